// LogEntry: one entry of a group's replicated log.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/strong_id.h"

namespace orrery::storage {

// Only commands change items; the others take an index too.
enum class EntryKind : uint8_t { kCommand = 1, kBarrier = 2, kChange = 3 };

// Its payload is shared by the log, the cache, messages and apply.
struct LogEntry {
  uint64_t term = 1;
  EntryKind kind = EntryKind::kCommand;
  bool frees_space = false;  // not stored
  // An encoded WriteSet, an encoded configuration, or null (a barrier).
  std::shared_ptr<const std::string> payload;

  size_t bytes() const { return payload == nullptr ? 0 : payload->size(); }
};

// What a replica must not forget between elections.
struct HardState {
  uint64_t term = 0;
  uint64_t vote = 0;
  bool operator==(const HardState&) const = default;
};

// What stands below the first entry of a group's log.
struct LogBase {
  Lsn index;
  uint64_t term = 0;
  std::string configuration;  // encoded, as of index
  Lsn configuration_index;
};

}  // namespace orrery::storage
