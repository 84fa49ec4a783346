#include "storage/rocks_log_files.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>
#include <rocksdb/wal_filter.h>
#include <rocksdb/write_batch.h>

#include "base/bytes.h"
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
  using FileSystemWrapper::FileSystemWrapper;
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
    rocksdb::IOStatus status =
        FileSystemWrapper::ReuseWritableFile(name, old, options, file, debug);
    if (status.ok()) {
      status = SyncFolder(fs::path(name).parent_path().string(), debug);
    }
    return Wrap(name, std::move(status), file);
  }

 private:
  rocksdb::IOStatus SyncFolder(const std::string& folder, rocksdb::IODebugContext* debug) {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    const rocksdb::IOOptions options;
    rocksdb::IOStatus status = NewDirectory(folder, options, &directory, debug);
    return status.ok() ? directory->Fsync(options, debug) : status;
  }
  static rocksdb::IOStatus Wrap(const std::string& name, rocksdb::IOStatus status,
                                std::unique_ptr<rocksdb::FSWritableFile>* file) {
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<LogFile>(std::move(*file));
    }
    return status;
  }
};

// RocksDB's log format: blocks of 32 KB with records
//   checksum u32, length u16, type u8, [log number u32], payload      all low byte first
// where the types of reused files carry the number of the file's present life.
constexpr size_t kBlockBytes = 32 << 10;
constexpr uint8_t kFull = 1;
constexpr uint8_t kFirst = 2;
constexpr uint8_t kReusable = 4;  // added to a type
constexpr uint8_t kTypeMost = 8;

uint32_t LittleU32(const char* at) {
  uint32_t value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

struct LogRecord {
  size_t bytes = 0;  // with its header; 0: it is none
  uint8_t type = 0;
};

LogRecord ReadRecord(std::string_view block, uint32_t log_number) {
  if (block.size() < 7) {
    return {};
  }
  auto type = static_cast<uint8_t>(block[6]);
  size_t head = type > kReusable ? 11 : 7;
  size_t length =
      static_cast<uint8_t>(block[4]) | static_cast<size_t>(static_cast<uint8_t>(block[5])) << 8;
  if (type == 0 || type > kTypeMost || block.size() < head + length ||
      (type > kReusable && LittleU32(block.data() + 7) != log_number)) {
    return {};
  }
  uint32_t crc = Crc32c(block.substr(6, head - 6 + length));
  uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
  return masked == LittleU32(block.data()) ? LogRecord{head + length, type} : LogRecord{};
}

// The log number of the record at the beginning of a block; 0: it has none.
uint32_t NumberOf(std::string_view block) {
  const bool has = block.size() >= 11 && static_cast<uint8_t>(block[6]) > kReusable;
  return has ? LittleU32(block.data() + 7) : 0;
}

bool DamagedInside(std::string_view content, uint32_t log_number) {
  const std::string_view begin = content.substr(0, kBlockBytes);
  // Where the new name of a reused file was lost nobody needs what it had.
  if (const uint32_t next = NumberOf(begin);
      next > log_number && ReadRecord(begin, next).bytes > 0) {
    return false;
  }
  LogRecord first = ReadRecord(begin, log_number);
  const bool reusable = first.bytes == 0 || first.type > kReusable;
  bool broken = first.bytes == 0;
  for (size_t start = 0; start < content.size(); start += kBlockBytes) {
    std::string_view block = content.substr(start, kBlockBytes);
    while (block.size() >= (reusable ? 11 : 7)) {  // what is left of a block is filled up
      LogRecord record = ReadRecord(block, log_number);
      // Of a former life: records without a number in a file whose own have one.
      if (record.bytes == 0 || (record.type > kReusable) != reusable) {
        broken = true;
        break;
      }
      uint8_t type = reusable ? record.type - kReusable : record.type;
      if (broken && (type == kFull || type == kFirst)) {
        return true;
      }
      block.remove_prefix(record.bytes);
    }
  }
  return false;
}

}  // namespace

Status CheckLogFiles(const std::string& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".log") {
      continue;
    }
    std::ifstream file(entry.path(), std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto number = static_cast<uint32_t>(std::strtoull(entry.path().stem().c_str(), nullptr, 10));
    if (DamagedInside(content, number)) {
      return Status(Code::kCorruption, "the log file " + entry.path().filename().string() +
                                           " is damaged before its end");
    }
  }
  return error ? Status(Code::kUnavailable, folder + ": " + error.message()) : Status::Ok();
}

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

std::unique_ptr<rocksdb::Env> MakeLogEnvironment(std::shared_ptr<rocksdb::FileSystem> files) {
  if (files == nullptr) {
    files = rocksdb::FileSystem::Default();
  }
  return rocksdb::NewCompositeEnv(std::make_shared<LogFileSystem>(std::move(files)));
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
