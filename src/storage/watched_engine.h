// WatchedEngine: an Engine that asks before each change, so that a test can make it fail or look at
// the disks in the middle of work. Test support.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/engine.h"

namespace orrery::storage {

class WatchedEngine : public Engine {
 public:
  enum class Call : uint8_t { kWrite, kSync, kFlush, kIngest };
  // Called before the change on the thread that makes it. An error is given instead of the change.
  using Before = std::function<Status(Call)>;

  WatchedEngine(std::unique_ptr<Engine> engine, Before before)
      : engine_(std::move(engine)), before_(std::move(before)) {}

  Status Get(SpaceIndex space, std::string_view key, std::string* value, ReadMode mode,
             const Snapshot* snapshot) override {
    return engine_->Get(space, key, value, mode, snapshot);
  }
  Status GetAll(SpaceIndex space, std::span<KeyRead> reads, ReadMode mode) override {
    return engine_->GetAll(space, reads, mode);
  }
  Status Write(const Batch& batch, WriteMode mode) override {
    ORRERY_RETURN_IF_ERROR(Ask(Call::kWrite));
    return engine_->Write(batch, mode);
  }
  Status SyncLog() override {
    ORRERY_RETURN_IF_ERROR(Ask(Call::kSync));
    return engine_->SyncLog();
  }
  Status Flush() override {
    ORRERY_RETURN_IF_ERROR(Ask(Call::kFlush));
    return engine_->Flush();
  }
  std::unique_ptr<Snapshot> NewSnapshot() override { return engine_->NewSnapshot(); }
  std::unique_ptr<Iterator> NewIterator(SpaceIndex space, std::string_view lower,
                                        std::string_view upper, const Snapshot* snapshot,
                                        ReadMode mode) override {
    return engine_->NewIterator(space, lower, upper, snapshot, mode);
  }
  Status Ingest(const std::vector<IngestFile>& files) override {
    ORRERY_RETURN_IF_ERROR(Ask(Call::kIngest));
    return engine_->Ingest(files);
  }
  Status WriteIngestFile(SpaceIndex space, const std::string& path,
                         const std::function<bool(std::string*, std::string*)>& pairs) override {
    return engine_->WriteIngestFile(space, path, pairs);
  }
  Status ReadIngestBounds(const std::string& path, std::string* first, std::string* last) override {
    return engine_->ReadIngestBounds(path, first, last);
  }
  Status Checkpoint(const std::string& folder) override { return engine_->Checkpoint(folder); }
  uint64_t ApproximateBytes(SpaceIndex space, std::string_view begin,
                            std::string_view end) override {
    return engine_->ApproximateBytes(space, begin, end);
  }
  Status Compact() override { return engine_->Compact(); }
  uint64_t damage_met() const override { return engine_->damage_met(); }

 private:
  Status Ask(Call call) const { return before_ ? before_(call) : Status::Ok(); }

  const std::unique_ptr<Engine> engine_;
  const Before before_;
};

}  // namespace orrery::storage
