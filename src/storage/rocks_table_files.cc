#include "storage/rocks_table_files.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::storage {
namespace {

thread_local bool must_not_wait = false;

rocksdb::IOStatus WouldWait() {
  return rocksdb::status_to_io_status(rocksdb::Status::Incomplete());
}

class TableFile final : public rocksdb::FSRandomAccessFile {
 public:
  TableFile(std::string name, int file) : name_(std::move(name)), file_(file) {}
  ~TableFile() override { ::close(file_); }

  rocksdb::IOStatus Read(uint64_t offset, size_t size, const rocksdb::IOOptions&,
                         rocksdb::Slice* result, char* scratch,
                         rocksdb::IODebugContext*) const override {
    *result = rocksdb::Slice();
    size_t have = 0;
    while (have < size) {
      iovec room{scratch + have, size - have};
      const ssize_t got = ::preadv2(file_, &room, 1, static_cast<off_t>(offset + have),
                                    must_not_wait ? RWF_NOWAIT : 0);
      if (got > 0) {
        have += static_cast<size_t>(got);
      } else if (got == 0) {
        break;  // the end of the file
      } else if (must_not_wait) {
        return WouldWait();  // or the file system cannot tell
      } else if (errno != EINTR) {
        return rocksdb::IOStatus::IOError("read of " + name_ + " at " + std::to_string(offset),
                                          std::strerror(errno));
      }
    }
    *result = rocksdb::Slice(scratch, have);
    return rocksdb::IOStatus::OK();
  }

  rocksdb::IOStatus Prefetch(uint64_t offset, size_t size, const rocksdb::IOOptions&,
                             rocksdb::IODebugContext*) override {
    return Advise(offset, size, POSIX_FADV_WILLNEED);
  }
  rocksdb::IOStatus InvalidateCache(size_t offset, size_t size) override {
    return Advise(offset, size, POSIX_FADV_DONTNEED);
  }
  void Hint(AccessPattern pattern) override {
    const int advice = pattern == kRandom       ? POSIX_FADV_RANDOM
                       : pattern == kSequential ? POSIX_FADV_SEQUENTIAL
                                                : POSIX_FADV_NORMAL;
    if (pattern == kNormal || pattern == kRandom || pattern == kSequential) {
      Advise(0, 0, advice).PermitUncheckedError();
    }
  }

 private:
  rocksdb::IOStatus Advise(uint64_t offset, size_t size, int advice) const {
    const int error =
        ::posix_fadvise(file_, static_cast<off_t>(offset), static_cast<off_t>(size), advice);
    return error == 0 ? rocksdb::IOStatus::OK()
                      : rocksdb::IOStatus::IOError("fadvise of " + name_, std::strerror(error));
  }

  const std::string name_;
  const int file_;
};

class TableFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  TableFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "orrery.table_file_system"; }

  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    if (must_not_wait) {
      return WouldWait();
    }
    const int opened = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
      return FileSystemWrapper::NewRandomAccessFile(name, options, file, debug);  // to say why
    }
    *file = std::make_unique<TableFile>(name, opened);
    return rocksdb::IOStatus::OK();
  }
};

}  // namespace

WithoutWaiting::WithoutWaiting(bool indeed) : before_(must_not_wait) {
  must_not_wait = indeed || before_;
}
WithoutWaiting::~WithoutWaiting() { must_not_wait = before_; }

std::unique_ptr<rocksdb::Env> MakeTableEnvironment() {
  return rocksdb::NewCompositeEnv(std::make_shared<TableFileSystem>());
}

}  // namespace orrery::storage
