// MemoryEngine: the store of the simulator and of tests.
//
// A key maps to its versions, oldest first. A version carries the number of the batch that wrote
// it, and a reader at number N sees the newest version not above N. Snapshots and iterators are
// numbers, and so is the durable point: a crash forgets the versions above it. Versions that
// neither the durable point nor a reader can see are dropped. Operands are merged when they are
// written.
//
// One mutex guards everything; iterators look their place up by key at each move.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "base/bytes.h"
#include "base/check.h"
#include "storage/engine.h"

namespace orrery::storage {
namespace {

struct Version {
  uint64_t number;
  std::optional<std::string> value;  // none: deleted
};
using Versions = std::vector<Version>;
using Space = std::map<std::string, Versions, std::less<>>;

const std::string* Visible(const Versions& versions, uint64_t number) {
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    if (version->number <= number) {
      return version->value ? &*version->value : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

struct MemoryDisk {
  // A key that has versions to drop once no reader is below `number`.
  struct Stale {
    uint64_t number;
    Space* space;
    std::string key;
  };

  std::mutex mutex;
  // All below: guarded by mutex.
  std::map<std::string, Space> spaces;
  uint64_t last = 0;     // number of the newest batch
  uint64_t durable = 0;  // what a crash goes back to
  std::multiset<uint64_t> readers;
  std::deque<Stale> stale;  // by number
  bool open = false;

  void Set(Space& space, std::string_view key, std::optional<std::string> value);
  void Apply(Space& space, const Batch::Change& change, const Merger* merger);
  void DropUnseen();
};

void MemoryDisk::Set(Space& space, std::string_view key, std::optional<std::string> value) {
  auto found = space.find(key);
  if (found == space.end()) {
    if (!value) {
      return;
    }
    found = space.emplace(std::string(key), Versions()).first;
  }
  Versions& versions = found->second;
  if (!versions.empty() && versions.back().number == last) {
    versions.back().value = std::move(value);  // twice in one batch
  } else {
    versions.push_back({last, std::move(value)});
  }
  if (versions.size() > 1 || !versions.back().value) {
    stale.push_back({last, &space, found->first});
  }
}

void MemoryDisk::Apply(Space& space, const Batch::Change& change, const Merger* merger) {
  switch (change.kind) {
    case Batch::Change::Kind::kPut: return Set(space, change.key, std::string(change.value));
    case Batch::Change::Kind::kDelete: return Set(space, change.key, std::nullopt);
    case Batch::Change::Kind::kDeleteRange: {
      const auto end = space.lower_bound(change.value);
      for (auto at = space.lower_bound(change.key); at != end; ++at) {
        if (at->second.back().value) {
          Set(space, at->first, std::nullopt);
        }
      }
      return;
    }
    case Batch::Change::Kind::kMerge: {
      ORRERY_CHECK(merger != nullptr);
      const auto found = space.find(change.key);
      const std::string* old = found == space.end() ? nullptr : Visible(found->second, last);
      const std::string_view existing = old == nullptr ? std::string_view() : *old;
      return Set(space, change.key,
                 merger->Merge(change.key, old == nullptr ? nullptr : &existing, {change.value}));
    }
  }
}

void MemoryDisk::DropUnseen() {
  const uint64_t horizon = readers.empty() ? durable : std::min(durable, *readers.begin());
  while (!stale.empty() && stale.front().number <= horizon) {
    const Stale entry = std::move(stale.front());
    stale.pop_front();
    const auto found = entry.space->find(entry.key);
    if (found == entry.space->end()) {
      continue;
    }
    // Keep the newest at or below the horizon, unless it says that there is nothing, and all above.
    Versions& versions = found->second;
    auto keep = std::find_if(versions.begin(), versions.end(),
                             [&](const Version& version) { return version.number > horizon; });
    if (keep != versions.begin() && (keep - 1)->value) {
      --keep;
    }
    versions.erase(versions.begin(), keep);
    if (versions.empty()) {
      entry.space->erase(found);
    }
  }
}

namespace {

// Holds a number, so that what is visible at it stays.
class MemorySnapshot final : public Snapshot {
 public:
  // REQUIRES: disk->mutex is held.
  MemorySnapshot(std::shared_ptr<MemoryDisk> disk, uint64_t number)
      : disk_(std::move(disk)), number_(number) {
    disk_->readers.insert(number_);
  }
  ~MemorySnapshot() override {
    std::lock_guard lock(disk_->mutex);
    disk_->readers.erase(disk_->readers.find(number_));
    disk_->DropUnseen();
  }
  MemoryDisk& disk() const { return *disk_; }
  uint64_t number() const { return number_; }

 private:
  const std::shared_ptr<MemoryDisk> disk_;
  const uint64_t number_;
};

class MemoryIterator final : public Iterator {
 public:
  MemoryIterator(std::unique_ptr<MemorySnapshot> at, const Space& space, std::string_view lower,
                 std::string_view upper)
      : at_(std::move(at)), space_(space), lower_(lower), upper_(upper) {}

  bool Valid() const override { return valid_; }
  void SeekToFirst() override { Seek(lower_); }
  void SeekToLast() override {
    std::lock_guard lock(at_->disk().mutex);
    Backward(upper_.empty() ? space_.end() : space_.lower_bound(upper_));
  }
  void Seek(std::string_view key) override {
    std::lock_guard lock(at_->disk().mutex);
    Forward(space_.lower_bound(std::max(key, std::string_view(lower_))));
  }
  void Next() override {
    ORRERY_CHECK(valid_);
    std::lock_guard lock(at_->disk().mutex);
    Forward(space_.upper_bound(key_));
  }
  void Prev() override {
    ORRERY_CHECK(valid_);
    std::lock_guard lock(at_->disk().mutex);
    Backward(space_.lower_bound(key_));
  }
  std::string_view key() const override { return key_; }
  std::string_view value() const override { return value_; }
  Status status() const override { return Status::Ok(); }

 private:
  // To the first visible key from `place` on.
  void Forward(Space::const_iterator place) {
    valid_ = false;
    while (!valid_ && place != space_.end() && (upper_.empty() || place->first < upper_)) {
      Take(place++);
    }
  }
  // To the last visible key before `place`.
  void Backward(Space::const_iterator place) {
    valid_ = false;
    while (!valid_ && place != space_.begin() && std::prev(place)->first >= lower_) {
      Take(--place);
    }
  }
  void Take(Space::const_iterator place) {
    if (const std::string* value = Visible(place->second, at_->number())) {
      key_ = place->first;
      value_ = *value;
      valid_ = true;
    }
  }

  const std::unique_ptr<MemorySnapshot> at_;
  const Space& space_;
  const std::string lower_;
  const std::string upper_;
  bool valid_ = false;
  std::string key_;
  std::string value_;
};

class MemoryEngine final : public Engine {
 public:
  MemoryEngine(std::shared_ptr<MemoryDisk> disk, EngineOptions options)
      : options_(std::move(options)), disk_(std::move(disk)) {
    std::lock_guard lock(disk_->mutex);
    ORRERY_CHECK(!disk_->open);
    disk_->open = true;
    for (const std::string& name : options_.spaces) {
      spaces_.push_back(&disk_->spaces[name]);
    }
  }
  ~MemoryEngine() override {
    std::lock_guard lock(disk_->mutex);
    disk_->open = false;
  }

  Status Get(SpaceIndex space, std::string_view key, std::string* value, ReadMode,
             const Snapshot* snapshot) override {
    std::lock_guard lock(disk_->mutex);
    const std::string* visible = Find(At(space), key, Number(snapshot));
    if (visible == nullptr) {
      value->clear();
      return Status(Code::kNotFound);
    }
    *value = *visible;
    return Status::Ok();
  }

  Status GetAll(SpaceIndex space, std::span<KeyRead> reads, ReadMode) override {
    std::lock_guard lock(disk_->mutex);
    for (KeyRead& read : reads) {
      const std::string* visible = Find(At(space), read.key, disk_->last);
      read.found = visible != nullptr;
      read.value = read.found ? *visible : std::string();
    }
    return Status::Ok();
  }

  Status Write(const Batch& batch, WriteMode mode) override {
    if (options_.read_only) {
      return Status(Code::kNotSupported, "the store is open for reading only");
    }
    if (batch.empty()) {
      return Status::Ok();
    }
    std::lock_guard lock(disk_->mutex);
    ++disk_->last;
    batch.ForEach([&](const Batch::Change& change) {
      disk_->Apply(At(change.space), change, options_.merger);
    });
    if (options_.log_files && mode == WriteMode::kSynced) {
      disk_->durable = disk_->last;
    }
    disk_->DropUnseen();
    return Status::Ok();
  }

  Status SyncLog() override { return options_.log_files ? Flush() : Status::Ok(); }

  Status Flush() override {
    std::lock_guard lock(disk_->mutex);
    disk_->durable = disk_->last;
    disk_->DropUnseen();
    return Status::Ok();
  }

  std::unique_ptr<Snapshot> NewSnapshot() override {
    std::lock_guard lock(disk_->mutex);
    return std::make_unique<MemorySnapshot>(disk_, disk_->last);
  }

  std::unique_ptr<Iterator> NewIterator(SpaceIndex space, std::string_view lower,
                                        std::string_view upper, const Snapshot* snapshot,
                                        ReadMode) override {
    std::lock_guard lock(disk_->mutex);
    auto at = std::make_unique<MemorySnapshot>(disk_, Number(snapshot));
    return std::make_unique<MemoryIterator>(std::move(at), At(space), lower, upper);
  }

  Status Ingest(const std::vector<IngestFile>& files) override;
  Status WriteIngestFile(SpaceIndex space, const std::string& path,
                         const std::function<bool(std::string*, std::string*)>& pairs) override;
  Status ReadIngestBounds(const std::string& path, std::string* first, std::string* last) override;

  Status Checkpoint(const std::string&) override {
    return Status(Code::kNotSupported, "a store in memory has no files to copy");
  }

  uint64_t ApproximateBytes(SpaceIndex space, std::string_view begin,
                            std::string_view end) override {
    uint64_t bytes = 0;
    const std::unique_ptr<Iterator> iterator =
        NewIterator(space, begin, end, nullptr, ReadMode::kMayWait);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      bytes += iterator->key().size() + iterator->value().size();
    }
    return bytes;
  }

  Status Compact() override { return Flush(); }

 private:
  Space& At(SpaceIndex space) const {
    ORRERY_CHECK(space < spaces_.size());
    return *spaces_[space];
  }

  static const std::string* Find(const Space& in, std::string_view key, uint64_t number) {
    const auto found = in.find(key);
    return found == in.end() ? nullptr : Visible(found->second, number);
  }

  uint64_t Number(const Snapshot* snapshot) const {
    return snapshot == nullptr ? disk_->last
                               : static_cast<const MemorySnapshot*>(snapshot)->number();
  }

  const EngineOptions options_;
  const std::shared_ptr<MemoryDisk> disk_;
  std::vector<Space*> spaces_;  // as options_.spaces
};

// An ingest file: (key bytes, value bytes)*, then the CRC-32C of all that as u32.
Status MemoryEngine::WriteIngestFile(SpaceIndex, const std::string& path,
                                     const std::function<bool(std::string*, std::string*)>& pairs) {
  std::string bytes;
  Encoder encoder(bytes);
  std::string key;
  std::string value;
  std::string before;
  for (bool first = true; pairs(&key, &value); first = false) {
    if (!first && key <= before) {
      return Status(Code::kInvalidArgument, "keys must ascend in " + path);
    }
    encoder.Bytes(key);
    encoder.Bytes(value);
    before = key;
  }
  if (bytes.empty()) {
    return Status(Code::kNotFound, "no pairs for " + path);
  }
  encoder.U32(Crc32c(bytes));
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  return file ? Status::Ok() : Status(Code::kUnavailable, "cannot write " + path);
}

Result<Batch> ReadIngestFile(const Engine::IngestFile& from) {
  std::ifstream file(from.path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const size_t size = bytes.size() < 4 ? 0 : bytes.size() - 4;
  if (size == 0 || GetU32(bytes.data() + size) != Crc32c(std::string_view(bytes).substr(0, size))) {
    return Error(Code::kCorruption, from.path + " is not a whole ingest file");
  }
  Batch batch;
  Decoder decoder(std::string_view(bytes).substr(0, size));
  while (!decoder.done()) {
    const std::string_view key = decoder.Bytes();
    const std::string_view value = decoder.Bytes();
    ORRERY_CHECK(decoder.ok());
    batch.Put(from.space, key, value);
  }
  return batch;
}

Status MemoryEngine::ReadIngestBounds(const std::string& path, std::string* first,
                                      std::string* last) {
  Result<Batch> batch = ReadIngestFile({0, path});
  if (!batch) {
    return batch.error();
  }
  bool any = false;
  batch->ForEach([&](const Batch::Change& change) {
    if (!any) {
      *first = change.key;
    }
    *last = change.key;
    any = true;
  });
  return Status::Ok();
}

Status MemoryEngine::Ingest(const std::vector<IngestFile>& files) {
  if (options_.log_files || options_.read_only) {
    return Status(Code::kNotSupported, "files cannot be added to a store with log files");
  }
  std::vector<Batch> batches;
  for (const IngestFile& file : files) {
    Result<Batch> batch = ReadIngestFile(file);
    if (!batch) {
      return batch.error();
    }
    batches.push_back(std::move(*batch));
  }
  std::lock_guard lock(disk_->mutex);
  ++disk_->last;
  for (const Batch& batch : batches) {
    batch.ForEach([&](const Batch::Change& change) {
      disk_->Apply(At(change.space), change, options_.merger);
    });
  }
  disk_->durable = disk_->last;
  disk_->DropUnseen();
  return Status::Ok();
}

}  // namespace

std::shared_ptr<MemoryDisk> MakeMemoryDisk() { return std::make_shared<MemoryDisk>(); }

std::unique_ptr<Engine> OpenMemoryEngine(std::shared_ptr<MemoryDisk> disk, EngineOptions options) {
  return std::make_unique<MemoryEngine>(std::move(disk), std::move(options));
}

std::shared_ptr<MemoryDisk> CopyOfMemoryDisk(MemoryDisk& disk) {
  auto copy = std::make_shared<MemoryDisk>();
  std::lock_guard lock(disk.mutex);
  copy->spaces = disk.spaces;
  copy->last = disk.last;
  copy->durable = disk.durable;
  return copy;
}

void CrashMemoryDisk(MemoryDisk& disk) {
  std::lock_guard lock(disk.mutex);
  ORRERY_CHECK(!disk.open && disk.readers.empty());
  for (auto& [name, space] : disk.spaces) {
    for (auto& [key, versions] : space) {
      std::erase_if(versions,
                    [&](const Version& version) { return version.number > disk.durable; });
    }
    std::erase_if(space, [](const auto& entry) { return entry.second.empty(); });
  }
  disk.last = disk.durable;
  disk.stale.clear();
}

}  // namespace orrery::storage
