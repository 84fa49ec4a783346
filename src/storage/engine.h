// Engine: an ordered key-value store with a few spaces (column families), behind which RocksDB and
// an in-memory store stand. A node has two: `log` (synced WAL) and `state` (no WAL, atomic flush).
//
// Thread-safe. Calls may wait for the disk (NewIterator too: it opens files). Workers call only
// NewSnapshot and what takes ReadMode::kMemoryOnly, which do not, and leave everything else to
// blocking threads.
//
// What a crash leaves is always a prefix of the sequence of writes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orrery::storage {

using SpaceIndex = uint8_t;  // a place in EngineOptions::spaces

// How operands are merged (Cassandra cells, later); null if a store has none. Thread-safe. Merging
// must be associative: operands are folded one by one or many at once.
class Merger {
 public:
  virtual ~Merger() = default;
  virtual const char* name() const = 0;
  // Folds operands, oldest first, into the existing value (null: none).
  virtual std::string Merge(std::string_view key, const std::string_view* existing,
                            const std::vector<std::string_view>& operands) const = 0;
  // Whether one operand, merged into nothing, gives itself.
  virtual bool keeps_first() const { return false; }
};

// An atomic group of changes, applied in order.
class Batch {
 public:
  void Put(SpaceIndex space, std::string_view key, std::string_view value);
  void Merge(SpaceIndex space, std::string_view key, std::string_view operand);
  void Delete(SpaceIndex space, std::string_view key);
  // Deletes [begin, end); nothing if begin is not below end.
  void DeleteRange(SpaceIndex space, std::string_view begin, std::string_view end);
  void Clear();
  // Forgets what was added after place() was asked.
  struct Place {
    size_t bytes = 0;
    size_t count = 0;
  };
  Place place() const { return {bytes_.size(), count_}; }
  void CutTo(Place place) {
    bytes_.resize(place.bytes);
    count_ = place.count;
  }
  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  size_t bytes() const { return bytes_.size(); }

  struct Change {
    enum class Kind : uint8_t { kPut, kMerge, kDelete, kDeleteRange } kind;
    SpaceIndex space;
    std::string_view key;
    std::string_view value;  // the end, for kDeleteRange
  };
  // Calls `visit` for each change in order.
  void ForEach(const std::function<void(const Change&)>& visit) const;

 private:
  void Add(Change::Kind kind, SpaceIndex space, std::string_view key, std::string_view value);
  std::string bytes_;  // kind u8, space u8, key bytes, value bytes
  size_t count_ = 0;
};

// A consistent view. Destroyed before its Engine.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
};

// Over [lower, upper) of one space. Views are valid until the next move. Not thread-safe; destroyed
// before its Engine. REQUIRES: Valid() at Next, Prev, key and value.
class Iterator {
 public:
  virtual ~Iterator() = default;
  virtual bool Valid() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  virtual void Seek(std::string_view key) = 0;  // the first at or after; clamped to the bounds
  virtual void Next() = 0;
  virtual void Prev() = 0;
  virtual std::string_view key() const = 0;
  virtual std::string_view value() const = 0;
  // Why it became invalid before the end; ok if it did not.
  virtual Status status() const = 0;
};

// kMemoryOnly: from what the process or the kernel has, or not at all. kPassing: as kMayWait, but
// what is read takes nobody's place in the cache: for walks over much that nobody asked for.
enum class ReadMode : uint8_t { kMayWait, kMemoryOnly, kPassing };

inline constexpr size_t kKeyReadsMax = 8;
// One key of several that are read together.
struct KeyRead {
  std::string_view key;
  std::string value;
  bool found = false;
};

enum class WriteMode : uint8_t {
  kSynced,   // durable when it returns
  kWritten,  // in the log file, not synced: survives the process, not the machine
  kNoLog,    // durable only after Flush(); in a store with log files the same as kWritten
};

struct EngineOptions {
  // The names of the spaces. The first must stay the first: RocksDB keeps it under a name of its
  // own. A store with log files and one space syncs faster (rocks_log_files.h).
  std::vector<std::string> spaces;
  const Merger* merger = nullptr;
  bool atomic_flush = false;  // a flush is of all spaces at one point; always so with log_files
  bool log_files = true;      // false: every write is kNoLog. True: no Ingest
  bool compress = true;
  // Every write is kSynced: then damage inside the log can be told from a torn end.
  bool always_synced = false;
  size_t cache_bytes = 256 << 20;
  size_t write_buffer_bytes = 64 << 20;  // of all spaces together
  bool read_only = false;
};

class Engine {
 public:
  virtual ~Engine() = default;

  // kNotFound: no such key. kWouldBlock: only with kMemoryOnly. kCorruption names the file.
  virtual Status Get(SpaceIndex space, std::string_view key, std::string* value,
                     ReadMode mode = ReadMode::kMayWait, const Snapshot* snapshot = nullptr) = 0;
  // At most kKeyReadsMax keys as they are at one moment. Ok, whether or not they are there;
  // otherwise as Get.
  virtual Status GetAll(SpaceIndex space, std::span<KeyRead> reads,
                        ReadMode mode = ReadMode::kMayWait) = 0;
  // kUnknownOutcome: writing or syncing the log failed; until the store is opened again every later
  // write gives kUnavailable. kUnavailable: nothing was done.
  virtual Status Write(const Batch& batch, WriteMode mode) = 0;
  // Syncs what was written with kWritten.
  virtual Status SyncLog() = 0;
  // After it returns everything written before the call is durable, whatever its mode.
  virtual Status Flush() = 0;
  virtual std::unique_ptr<Snapshot> NewSnapshot() = 0;
  // An empty `upper` is no bound. With a null snapshot: the state at the time of the call. With
  // kMemoryOnly it ends with the status kWouldBlock where it would have to wait.
  virtual std::unique_ptr<Iterator> NewIterator(SpaceIndex space, std::string_view lower,
                                                std::string_view upper,
                                                const Snapshot* snapshot = nullptr,
                                                ReadMode mode = ReadMode::kMayWait) = 0;
  // Takes files made by WriteIngestFile into their spaces at one point, replacing older values; the
  // files themselves may be gone then.
  // Then they are durable, and so is all that was written before the call. The files of one space
  // must not overlap. Where older ones are damaged it is not at one point: the first space is last.
  struct IngestFile {
    SpaceIndex space;
    std::string path;
  };
  virtual Status Ingest(const std::vector<IngestFile>& files) = 0;
  // Writes pairs, in ascending order of distinct keys, into a file that Ingest takes. `pairs` sets
  // key and value and returns true, or returns false at the end. kNotFound, and no file: there were
  // no pairs.
  virtual Status WriteIngestFile(
      SpaceIndex space, const std::string& path,
      const std::function<bool(std::string* key, std::string* value)>& pairs) = 0;
  // The first and the last key of such a file. kCorruption if it cannot be read.
  virtual Status ReadIngestBounds(const std::string& path, std::string* first,
                                  std::string* last) = 0;
  // A consistent copy of everything in a new folder, taken while writes go on. kNotSupported in
  // memory.
  virtual Status Checkpoint(const std::string& folder) = 0;
  // Roughly how many bytes on disk and in memory a range takes. An empty `end` is no bound.
  virtual uint64_t ApproximateBytes(SpaceIndex space, std::string_view begin,
                                    std::string_view end) = 0;
  // Flushes and rewrites everything in sorted order; for tests and tools.
  virtual Status Compact() = 0;
  // How often a read of a key gave kCorruption: tells damage of the files from bytes that were
  // written so and mean nothing.
  virtual uint64_t damage_met() const { return 0; }
};

// Opens or creates. kCorruption with the file's name; kUnavailable for other reasons.
Result<std::unique_ptr<Engine>> OpenRocksEngine(const std::string& folder, EngineOptions options);

// The contents of a MemoryEngine, which outlive it as files outlive a process. One engine at a
// time. Ingest files are real files, so that code which sends them works on both engines.
struct MemoryDisk;
std::shared_ptr<MemoryDisk> MakeMemoryDisk();
std::unique_ptr<Engine> OpenMemoryEngine(std::shared_ptr<MemoryDisk> disk, EngineOptions options);
// The disk as it is now, while an engine is open on it; for tests of crashes in the middle of work.
std::shared_ptr<MemoryDisk> CopyOfMemoryDisk(MemoryDisk& disk);
// What a power cut leaves: everything not synced or flushed is gone. REQUIRES: no engine is open on
// it.
void CrashMemoryDisk(MemoryDisk& disk);

}  // namespace orrery::storage
