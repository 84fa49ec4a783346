#include "storage/rocks_log_files.h"

#include <filesystem>
#include <optional>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include "base/log.h"

namespace orrery::storage {
namespace {

namespace fs = std::filesystem;

// After a torn log file recovery begins the next one with an empty batch, to note where it stopped:
// a header of 7 bytes and a batch of 12. A record of a reused file is longer.
constexpr uintmax_t kEmptyRecordBytes = 19;

class SequenceGuard final : public rocksdb::WalFilter {
 public:
  const char* Name() const override { return "orrery.sequence_guard"; }

  WalProcessingOption LogRecordFound(unsigned long long, const std::string& file,
                                     const rocksdb::WriteBatch& batch, rocksdb::WriteBatch*,
                                     bool*) override {
    // A batch begins with its first number, eight bytes, low first; each change takes one.
    uint64_t number = 0;
    for (int i = 7; i >= 0; --i) {
      number = number << 8 | static_cast<unsigned char>(batch.Data()[static_cast<size_t>(i)]);
    }
    if (next_ && *next_ != number) {
      log::Warning("unsynced log records dropped",
                   {{"file", file}, {"after", std::to_string(*next_ - 1)}});
      return WalProcessingOption::kStopReplay;
    }
    next_ = number + batch.Count();
    return WalProcessingOption::kContinueProcessing;
  }

 private:
  std::optional<uint64_t> next_;
};

class LogFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  using FSWritableFileOwnerWrapper::FSWritableFileOwnerWrapper;
  void SetPreallocationBlockSize(size_t) override {}
};

class LogFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  LogFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "orrery.log_file_system"; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    return Wrap(name, FileSystemWrapper::NewWritableFile(name, options, file, debug), file);
  }
  rocksdb::IOStatus ReuseWritableFile(const std::string& name, const std::string& old,
                                      const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSWritableFile>* file,
                                      rocksdb::IODebugContext* debug) override {
    return Wrap(name, FileSystemWrapper::ReuseWritableFile(name, old, options, file, debug), file);
  }

 private:
  static rocksdb::IOStatus Wrap(const std::string& name, rocksdb::IOStatus status,
                                std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<LogFile>(std::move(*file));
    }
    return status;
  }
};

}  // namespace

bool HasLogRecords(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".log" && entry.file_size(error) > kEmptyRecordBytes) {
      return true;
    }
  }
  return false;
}

std::unique_ptr<rocksdb::WalFilter> MakeSequenceGuard() {
  return std::make_unique<SequenceGuard>();
}

std::unique_ptr<rocksdb::Env> MakeLogEnvironment() {
  return rocksdb::NewCompositeEnv(std::make_shared<LogFileSystem>());
}

Status UnlinkLogs(const std::string& checkpoint_folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint_folder, error)) {
    if (entry.path().extension() != ".log" || entry.hard_link_count(error) < 2) {
      continue;
    }
    const fs::path copy = entry.path().string() + ".copy";
    fs::copy_file(entry.path(), copy, error);
    if (!error) {
      fs::rename(copy, entry.path(), error);
    }
    if (error) {
      break;
    }
  }
  return error ? Status(Code::kUnavailable, checkpoint_folder + ": " + error.message())
               : Status::Ok();
}

}  // namespace orrery::storage
