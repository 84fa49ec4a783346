// Keys of the state store: memcomparable, so that byte order is the order of containers, then of
// the ring, then of partition key values, then of row keys. A physical partition is one key span.
//
//   replica    group u64                      -> ReplicaRecord
//              group u64, 'o'                 -> what came with the snapshot it was installed from
//   items      container u32, EPK (ordered bytes), partition key (ordered), row key (plain, to the
//              end)
//   index      'u', container u32, EPK (ordered bytes), partition key (ordered), policy u8,
//              values (ordered)
//   catalog    kind u8, id                    -> a record of the catalog
//
// See docs/formats/keys.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/strong_id.h"
#include "storage/engine.h"
#include "types/epk.h"
#include "types/partition_key.h"

namespace orrery::storage {

// The spaces of the state store.
enum class Space : SpaceIndex { kReplica, kItems, kIndex, kCatalog };
inline constexpr SpaceIndex Index(Space space) { return static_cast<SpaceIndex>(space); }

// The parts of an item's identity.
struct ItemKey {
  ContainerId container;
  types::Epk epk;
  types::PartitionKey partition_key;
  std::string row_key;

  std::string Encode() const;
};

// What every item of one logical partition starts with.
std::string LogicalPartitionPrefix(ContainerId container, std::string_view epk,
                                   const types::PartitionKey& key);
// The same for its unique values.
std::string UniquePrefix(std::string_view logical_partition_prefix);

// [begin, end) of the items, or of the unique values, of a range of the ring.
struct KeySpan {
  std::string begin;
  std::string end;
};
KeySpan ItemSpan(ContainerId container, const types::EpkRange& range);
KeySpan UniqueSpan(ContainerId container, const types::EpkRange& range);
// The EPK inside an item's key. False: malformed.
bool ReadItemEpk(std::string_view item_key, types::Epk* epk);
// The beginning of an item's key that LogicalPartitionPrefix made, with the partition key in it.
// Empty: malformed.
std::string_view ReadLogicalPartition(std::string_view item_key, types::PartitionKey* key);

std::string ReplicaKey(GroupId group);
// Of what the owner of a group put into a snapshot, and is not its state.
std::string ReplicaExtraKey(GroupId group);

// The smallest string greater than every string that starts with the prefix; empty if there is
// none.
std::string PrefixEnd(std::string prefix);

}  // namespace orrery::storage
