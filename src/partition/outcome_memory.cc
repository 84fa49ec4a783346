#include "partition/outcome_memory.h"

#include <algorithm>
#include <vector>

#include "base/bytes.h"

namespace orrery::partition {

namespace {

// How many outcomes, and how long, if nobody says that they are not needed.
constexpr size_t kOutcomesMax = 50'000;
constexpr Duration kOutcomeAge = std::chrono::seconds(20);
// A node has one for each of its workers, and makes another one now and then. Longer than anything
// stays on its way.
constexpr size_t kInstancesMax = 4096;
constexpr Duration kInstanceAge = std::chrono::hours(1);

constexpr uint8_t kVersion = 1;
constexpr uint8_t kMarksVersion = 2;

}  // namespace

const OutcomeMemory::Outcome* OutcomeMemory::Recall(const storage::OperationId& id) const {
  auto found = found_.find(id);
  return found == found_.end() ? nullptr : &found->second->outcome;
}

bool OutcomeMemory::Refuses(const storage::OperationId& id) const {
  auto known = instances_.find(id.high);
  return known != instances_.end() && id.low < known->second.mark && !found_.contains(id);
}

void OutcomeMemory::Remember(const storage::OperationId& id, uint64_t settled, Lsn lsn,
                             std::string_view result, WallTime time) {
  if (id == storage::OperationId() || lsn <= as_of_) {
    return;
  }
  as_of_ = lsn;
  if (settled > 0) {
    Instance& instance = Hear(id.high, time);
    instance.mark = std::max(instance.mark, settled);
    while (!instance.remembered.empty() && *instance.remembered.begin() < settled) {
      Erase({.high = id.high, .low = *instance.remembered.begin()});
    }
  }
  // The last try of one that had been given up: nobody will ask.
  if (!Refuses(id)) {
    Add({.id = id, .outcome = {lsn, std::string(result)}, .time = time});
  }
  Trim(time);
}

OutcomeMemory::Instance* OutcomeMemory::Find(uint64_t instance) {
  auto known = instances_.find(instance);
  return known == instances_.end() ? nullptr : &known->second;
}

OutcomeMemory::Instance& OutcomeMemory::Hear(uint64_t instance, WallTime time) {
  Instance* known = Find(instance);
  if (known == nullptr) {
    MakeRoom(time);
    known = &instances_[instance];
    for (const Entry& entry : order_) {
      if (entry.id.high == instance) {
        known->remembered.insert(entry.id.low);
      }
    }
  }
  known->time = std::max(known->time, time);
  return *known;
}

// For one more instance.
void OutcomeMemory::MakeRoom(WallTime time) {
  std::erase_if(instances_, [&](const auto& known) {
    return known.second.time.micros + kInstanceAge.count() < time.micros;
  });
  while (instances_.size() >= kInstancesMax) {
    instances_.erase(std::ranges::min_element(instances_, {}, [](const auto& known) {
      return std::pair(known.second.time, known.first);
    }));
  }
}

void OutcomeMemory::Add(Entry entry) {
  auto [found, fresh] = found_.try_emplace(entry.id);
  if (!fresh) {
    return;
  }
  if (Instance* instance = Find(entry.id.high)) {
    instance->remembered.insert(entry.id.low);
  }
  found->second = order_.insert(order_.end(), std::move(entry));
}

void OutcomeMemory::Erase(const storage::OperationId& id) {
  auto found = found_.extract(id);
  if (Instance* instance = Find(id.high)) {
    instance->remembered.erase(id.low);
  }
  if (found) {
    order_.erase(found.mapped());
  }
}

void OutcomeMemory::Trim(WallTime time) {
  while (order_.size() > kOutcomesMax ||
         (!order_.empty() && order_.front().time.micros + kOutcomeAge.count() < time.micros)) {
    const storage::OperationId id = order_.front().id;
    if (Instance* instance = Find(id.high)) {
      instance->mark = std::max(instance->mark, id.low + 1);
    }
    Erase(id);
  }
}

void OutcomeMemory::Merge(OutcomeMemory other) {
  as_of_ = std::max(as_of_, other.as_of_);
  // In order, so that all replicas forget the same if there are too many.
  std::vector<std::pair<uint64_t, Instance>> theirs(
      std::make_move_iterator(other.instances_.begin()),
      std::make_move_iterator(other.instances_.end()));
  std::ranges::sort(theirs, {}, [](const auto& known) { return known.first; });
  for (const auto& [id, known] : theirs) {
    Instance& instance = Hear(id, known.time);
    instance.mark = std::max(instance.mark, known.mark);
  }
  for (Entry& entry : other.order_) {
    Add(std::move(entry));
  }
  order_.sort([](const Entry& a, const Entry& b) { return a.time < b.time; });
  if (!order_.empty()) {
    Trim(order_.back().time);
  }
}

std::string OutcomeMemory::Encode(WallTime time) const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(instances_.empty() ? kVersion : kMarksVersion);
  encoder.U64(static_cast<uint64_t>(time.micros));
  if (!instances_.empty()) {
    std::vector<uint64_t> ids;
    for (const auto& [id, instance] : instances_) {
      ids.push_back(id);
    }
    std::ranges::sort(ids);
    encoder.U64(as_of_.value());
    encoder.Varint(ids.size());
    for (uint64_t id : ids) {
      const Instance& instance = instances_.at(id);
      encoder.U64(id);
      encoder.Varint(instance.mark);
      encoder.U64(static_cast<uint64_t>(instance.time.micros));
    }
  }
  for (const Entry& entry : order_) {
    encoder.U64(entry.id.high);
    encoder.U64(entry.id.low);
    encoder.U64(entry.outcome.lsn.value());
    encoder.U64(static_cast<uint64_t>(entry.time.micros));
    encoder.Bytes(entry.outcome.result);
  }
  return bytes;
}

std::optional<WallTime> OutcomeMemory::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  const uint8_t version = decoder.U8();
  if (version != kVersion && version != kMarksVersion) {
    return std::nullopt;
  }
  OutcomeMemory read;
  const WallTime time{static_cast<int64_t>(decoder.U64())};
  if (version == kMarksVersion) {
    read.as_of_ = Lsn(decoder.U64());
    for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
      Instance& instance = read.instances_[decoder.U64()];
      instance.mark = decoder.Varint();
      instance.time = {static_cast<int64_t>(decoder.U64())};
    }
  }
  while (decoder.ok() && decoder.left() > 0) {
    Entry entry;
    entry.id = {.high = decoder.U64(), .low = decoder.U64()};
    entry.outcome.lsn = Lsn(decoder.U64());
    entry.time = {static_cast<int64_t>(decoder.U64())};
    entry.outcome.result = decoder.Bytes();
    if (decoder.ok()) {
      read.Add(std::move(entry));
    }
  }
  if (!decoder.ok()) {
    return std::nullopt;
  }
  if (version == kVersion) {
    Merge(std::move(read));
  } else if (read.as_of_ >= as_of_) {
    *this = std::move(read);
  }
  return time;
}

std::string OutcomeMemory::Join(std::string_view a, std::string_view b) {
  OutcomeMemory joined;
  OutcomeMemory other;
  std::optional<WallTime> time = joined.Decode(a);
  std::optional<WallTime> other_time = other.Decode(b);
  if (!time || !other_time) {
    return std::string(time ? a : b);
  }
  joined.Merge(std::move(other));
  return joined.Encode(std::max(*time, *other_time));
}

}  // namespace orrery::partition
