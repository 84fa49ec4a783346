// DamagedEngine: an Engine whose files can be damaged and whole again: then every read of a key
// gives kCorruption. Test support.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "storage/watched_engine.h"

namespace orrery::storage {

class DamagedEngine final : public WatchedEngine {
 public:
  // `damaged` outlives it.
  DamagedEngine(std::unique_ptr<Engine> engine, const std::atomic<bool>& damaged)
      : WatchedEngine(std::move(engine), nullptr), damaged_(damaged) {}

  Status Get(SpaceIndex space, std::string_view key, std::string* value, ReadMode mode,
             const Snapshot* snapshot) override {
    return damaged_ ? Meet() : WatchedEngine::Get(space, key, value, mode, snapshot);
  }
  Status GetAll(SpaceIndex space, std::span<KeyRead> reads, ReadMode mode) override {
    return damaged_ ? Meet() : WatchedEngine::GetAll(space, reads, mode);
  }
  std::unique_ptr<Iterator> NewIterator(SpaceIndex space, std::string_view lower,
                                        std::string_view upper, const Snapshot* snapshot,
                                        ReadMode mode) override {
    if (damaged_) {
      return std::make_unique<Nothing>(Meet());
    }
    return WatchedEngine::NewIterator(space, lower, upper, snapshot, mode);
  }
  uint64_t damage_met() const override { return met_; }

 private:
  class Nothing final : public Iterator {
   public:
    explicit Nothing(Status why) : why_(std::move(why)) {}
    bool Valid() const override { return false; }
    void SeekToFirst() override {}
    void SeekToLast() override {}
    void Seek(std::string_view) override {}
    void Next() override {}
    void Prev() override {}
    std::string_view key() const override { return {}; }
    std::string_view value() const override { return {}; }
    Status status() const override { return why_; }

   private:
    const Status why_;
  };

  Status Meet() {
    ++met_;
    return Status(Code::kCorruption, "block checksum mismatch in 000007.sst");
  }

  const std::atomic<bool>& damaged_;
  std::atomic<uint64_t> met_ = 0;
};

}  // namespace orrery::storage
