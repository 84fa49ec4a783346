// Stores for tests: options, folders that go away, short reads and writes.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <stdlib.h>

#include "storage/engine.h"

namespace orrery::storage {

namespace fs = std::filesystem;

// Merges by appending.
class Appender final : public Merger {
 public:
  const char* name() const override { return "test.append"; }
  std::string Merge(std::string_view, const std::string_view* existing,
                    const std::vector<std::string_view>& operands) const override {
    std::string out(existing == nullptr ? "new" : *existing);
    for (std::string_view operand : operands) {
      out.append("+").append(operand);
    }
    return out;
  }
};
inline const Appender appender;

class TempFolder {
 public:
  TempFolder() {
    // In memory if possible: the tests sync hundreds of times, and a shared disk takes 10 ms for
    // each.
    const bool in_memory = ::getenv("TEST_TMPDIR") == nullptr && fs::is_directory("/dev/shm");
    std::string name =
        (in_memory ? "/dev/shm/" : ::testing::TempDir() + "/") + "orrery_engine_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TempFolder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// As the log of a node: one space, so that log files are reused.
inline EngineOptions LogOptions() {
  return {.spaces = {"one"},
          .merger = &appender,
          .compress = false,
          .cache_bytes = 1 << 20,
          .write_buffer_bytes = 1 << 20};
}

inline EngineOptions TwoSpaceLogOptions() {
  EngineOptions options = LogOptions();
  options.spaces.push_back("two");
  return options;
}

// As the state of a node.
inline EngineOptions StateOptions() {
  EngineOptions options = TwoSpaceLogOptions();
  options.atomic_flush = true;
  options.log_files = false;
  options.compress = true;
  return options;
}

inline std::unique_ptr<Engine> MustOpen(const std::string& folder, const EngineOptions& options) {
  auto engine = OpenRocksEngine(folder, options);
  if (!engine) {
    ADD_FAILURE() << engine.error().ToString();
    ::abort();
  }
  return std::move(*engine);
}

inline Status PutOne(Engine& engine, std::string_view key, std::string_view value,
                     WriteMode mode = WriteMode::kSynced) {
  Batch batch;
  batch.Put(0, key, value);
  return engine.Write(batch, mode);
}

// The value, or the code's name in brackets.
inline std::string Read(Engine& engine, std::string_view key, ReadMode mode = ReadMode::kMayWait) {
  std::string value;
  const Status status = engine.Get(0, key, &value, mode);
  return status.ok() ? value : "<" + std::string(CodeName(status.code())) + ">";
}

inline std::string NameOf(Code code) { return "<" + std::string(CodeName(code)) + ">"; }

inline std::vector<fs::path> FilesOf(const std::string& folder, const std::string& extension) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == extension) {
      files.push_back(entry.path());
    }
  }
  return files;
}

inline std::map<std::string, uintmax_t> Sizes(const std::string& folder) {
  std::map<std::string, uintmax_t> sizes;
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    sizes[entry.path().filename().string()] = entry.file_size(gone);
  }
  return sizes;
}

// What a kill of the process would leave. Tries again if a compaction changed the folder meanwhile.
inline void CopyAsKilled(const std::string& from, const std::string& to) {
  std::map<std::string, uintmax_t> before;
  std::error_code error;
  do {
    before = Sizes(from);
    fs::remove_all(to);
    fs::copy(from, to, error);
  } while (error || Sizes(from) != before);
}

}  // namespace orrery::storage
