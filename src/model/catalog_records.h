// The records of the catalog space: how a view is made of them, and what differs between two views.
//
// See docs/formats/catalog.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "model/catalog_types.h"
#include "storage/engine.h"

namespace orrery::model {

// Keys: kind, then an id.
std::string DatabaseKey(DatabaseId id);
std::string ContainerKey(ContainerId id);
std::string DroppedKey(ContainerId id);
std::string CountersKey();
std::string KeysKey();
std::string ClusterKey();
std::string BalancerKey();
std::string RolesKey();
std::string NodeKey(NodeId id);
std::string PlacementKey(GroupId id);

// Values that are not those of catalog_types.h.
std::string EncodeCounters(const CatalogCounters& next);
std::string EncodeKeys(const AccountKeys& keys);
std::string EncodeDropped(const std::vector<PartitionId>& partitions);
std::string EncodeCluster(uint64_t cluster, const CatalogCounters& next);

// All partitions that a container has or had.
std::vector<PartitionId> PartitionsOf(const Container& container);

// One record written, or deleted.
struct RecordChange {
  std::string key;
  std::optional<std::string> value;
};
// kCorruption if it is malformed, of an unknown kind, or newer than this program.
Status ApplyRecord(CatalogView& view, std::string_view key, std::optional<std::string_view> value);
// All records of a state. May wait for the disk.
Result<std::shared_ptr<CatalogView>> LoadView(storage::Engine& state);

// What became of the things in `before`, and what is new.
struct CatalogDifference {
  std::vector<std::shared_ptr<const Container>> created;
  std::vector<std::shared_ptr<const Container>> changed;  // as they are now
  std::vector<std::shared_ptr<const Container>> dropped;
  std::vector<GroupId> placed;  // the placement is new or another
  std::vector<GroupId> unplaced;
  bool keys = false;
  bool nodes = false;
};
CatalogDifference Compare(const CatalogView& before, const CatalogView& after);

}  // namespace orrery::model
