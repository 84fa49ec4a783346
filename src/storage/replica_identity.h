// ReplicaIdentity: which replica of a group stands here, and which keys of the state are its own.
//
// A node knows from these alone what belongs to whom: no key belongs to two groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strong_id.h"
#include "storage/engine.h"
#include "storage/keys.h"
#include "storage/log_entry.h"

namespace orrery::storage {

// The keys [begin, end) of a space.
struct Span {
  Space space = Space::kItems;
  std::string begin;
  std::string end;

  bool Contains(std::string_view key) const { return begin <= key && key < end; }
  bool Overlaps(const Span& other) const {
    return space == other.space && begin < other.end && other.begin < end;
  }
  bool operator==(const Span&) const = default;
};

// Of a physical partition: items and unique values. Of the catalog: its whole space.
std::vector<Span> PartitionSpans(ContainerId container, const types::EpkRange& range);
std::vector<Span> CatalogSpans();

struct ReplicaIdentity {
  ReplicaId id;
  uint64_t generation = 1;  // of the spans
  std::vector<Span> spans;
  bool operator==(const ReplicaIdentity&) const = default;
};

// All that an install needs: with it, and while the files are there, a start after a crash finishes
// what was begun.
struct InstallPlan {
  LogBase base;
  std::vector<Engine::IngestFile> files;
};

// That something is done to a group in steps, and all keys that it may have meanwhile.
struct GroupMark {
  enum class Kind : uint8_t { kInstalling = 1, kDiscarding = 2 } kind = Kind::kInstalling;
  uint64_t snapshot_id = 0;
  std::vector<Span> spans;
  std::optional<InstallPlan> plan;
};

}  // namespace orrery::storage
