#include "partition/horizon.h"

#include <algorithm>

#include "base/bytes.h"
#include "storage/keys.h"

namespace orrery::partition {

using storage::Space;

namespace {

constexpr char kHorizonMark = '\xFC';
constexpr char kBoundsMark = '\xFB';
// Clocks of clients that are ahead by a little stay so: not every one of their writes raises it.
constexpr int64_t kAheadStep = 1'000'000;

std::string Encoded(int64_t value) {
  std::string bytes;
  Encoder(bytes).U64(static_cast<uint64_t>(value));
  return bytes;
}

std::string Encoded(const Horizon::Bounds& bounds) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U64(static_cast<uint64_t>(bounds.ahead));
  encoder.U32(bounds.columns);
  return bytes;
}

}  // namespace

// Among the unique values, of which tables have none, of a partition key that no row has.
std::string Horizon::KeyAt(std::string_view epk, char mark) const {
  return storage::UniquePrefix(storage::LogicalPartitionPrefix(container_, epk, {})) + mark;
}

runtime::Task<Result<int64_t>> Horizon::Read() {
  while (term_ != set_.term()) {
    // Who only wants to lead in this term may not have all of it yet.
    if (!set_.leads()) {
      co_return Error(Code::kNotLeader, "this replica does not lead");
    }
    const uint64_t term = set_.term();
    int64_t latest = kNone;
    Bounds bounds;
    auto look = [&]() -> Status {
      const storage::KeySpan span = storage::UniqueSpan(container_, range_);
      auto at = state_.NewIterator(storage::Index(Space::kIndex), span.begin, span.end);
      for (at->SeekToFirst(); at->Valid(); at->Next()) {
        ORRERY_RETURN_IF_ERROR(TakeRecord(at->key(), at->value(), latest, bounds));
      }
      return at->status();
    };
    ORRERY_CO_TRY_STATUS(co_await runtime::OnBlocking(workers_, look));
    // Meanwhile somebody else may have read it, and raised it.
    value_ = term_ == term ? std::max(value_, latest) : latest;
    if (noted_term_ != term) {
      bounds_ = kept_ = {};
      slots_.clear();
      noted_term_ = term;
    }
    Kept(bounds);
    term_ = term;
  }
  co_return value_;
}

Status Horizon::TakeRecord(std::string_view key, std::string_view value, int64_t& horizon,
                           Bounds& bounds) const {
  types::Epk epk;
  if (!storage::ReadItemEpk(key.substr(1), &epk)) {
    return Status::Ok();
  }
  Decoder decoder(value);
  if (key == KeyAt(epk, kHorizonMark)) {
    horizon = std::max(horizon, static_cast<int64_t>(decoder.U64()));
  } else if (key == KeyAt(epk, kBoundsMark)) {
    bounds.ahead = std::max(bounds.ahead, static_cast<int64_t>(decoder.U64()));
    bounds.columns = std::max(bounds.columns, decoder.U32());
  } else {
    return Status::Ok();
  }
  return decoder.ok() && decoder.left() == 0
             ? Status::Ok()
             : Status(Code::kCorruption, "the purge horizon of a partition is malformed");
}

void Horizon::AddTo(storage::WriteSet& set, int64_t to) const {
  set.Put(Space::kIndex, KeyAt(range_.min, kHorizonMark), Encoded(std::max(to, value_)));
}

void Horizon::Risen(int64_t to, const Result<Lsn>& outcome) {
  if (outcome) {
    value_ = std::max(value_, to);
  } else {
    term_.reset();  // it may have
  }
}

void Horizon::AddForHeir(storage::WriteSet& set, std::string_view cut) const {
  if (value_ != kNone) {
    set.Put(Space::kIndex, KeyAt(cut, kHorizonMark), Encoded(value_));
  }
  if (bounds_ != Bounds()) {
    set.Put(Space::kIndex, KeyAt(cut, kBoundsMark), Encoded(bounds_));
  }
}

bool Horizon::NoteWrite(std::string_view key, int64_t timestamp, WallTime time) {
  if (slots_.empty()) {
    // All that was written before had an earlier time.
    slots_.assign(kSlots, std::max(time.micros - 1, kept_.ahead));
  }
  int64_t& newest = slots_[std::hash<std::string_view>()(key) % kSlots];
  const bool later = timestamp > newest;
  newest = std::max(newest, timestamp);
  if (timestamp > time.micros && timestamp > bounds_.ahead) {
    bounds_.ahead = timestamp > INT64_MAX - kAheadStep ? INT64_MAX : timestamp + kAheadStep;
  }
  return later;
}

std::optional<Horizon::Bounds> Horizon::AddBoundsTo(storage::WriteSet& set) const {
  if (bounds_ == kept_) {
    return std::nullopt;
  }
  set.Put(Space::kIndex, KeyAt(range_.min, kBoundsMark), Encoded(bounds_));
  return bounds_;
}

void Horizon::Kept(const Bounds& bounds) {
  for (Bounds* each : {&bounds_, &kept_}) {
    each->ahead = std::max(each->ahead, bounds.ahead);
    each->columns = std::max(each->columns, bounds.columns);
  }
}

}  // namespace orrery::partition
