// What the catalog knows: databases, containers, offers, keys; on a cluster also nodes and
// placements. Values; immutable once published.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "model/index_policy.h"
#include "partition/operation.h"
#include "partition/partition_map.h"
#include "partition/router.h"
#include "storage/store.h"
#include "types/document.h"
#include "types/partition_key.h"

namespace orrery::cql {
struct Roles;
}

namespace orrery::model {

// What every node of a cluster must read before it is written (CatalogCounters::format): offers
// with more than an amount, and operations with a claim.
inline constexpr uint32_t kThroughputFormat = 2;
// The same for keyspaces and tables of Cassandra.
inline constexpr uint32_t kTablesFormat = 3;
// Operations that tell which earlier ones have ended.
inline constexpr uint32_t kSettledFormat = 3;
// Roles of Cassandra's clients.
inline constexpr uint32_t kRolesFormat = 4;
// Tables with indexes or views, and what these keep.
inline constexpr uint32_t kDerivedFormat = 4;
// What this program reads: all of them.
inline constexpr uint32_t kNewestFormat = 4;

// The throughput of one partition where it was set.
struct PartitionShare {
  PartitionId partition;
  uint64_t throughput = 0;  // RU/s
  bool operator==(const PartitionShare&) const = default;
};

// Provisioned throughput of a container or a database. What it means is in model/throughput.h.
struct Offer {
  uint32_t number = 0;         // of its rid; never reused
  uint64_t manual = 0;         // RU/s, if not autoscale
  uint64_t autoscale_max = 0;  // RU/s; 0: manual
  bool chosen = true;          // false: nobody chose it, so it throttles only in strict mode
  WallTime time;
  uint64_t etag = 0;
  // The most that it ever was, if that is more than it is now; else 0.
  uint64_t highest = 0;
  // Of a container:
  partition::Buckets buckets;
  std::vector<PartitionShare> custom;  // by partition; empty: all partitions have equal shares

  bool autoscale() const { return autoscale_max != 0; }
  // What may be spent in a second.
  uint64_t spendable() const { return autoscale() ? autoscale_max : manual; }
  // The most that it ever was.
  uint64_t most() const { return std::max(highest, spendable()); }
  // What is reported as provisioned while nothing is used: autoscale idles at a tenth.
  uint64_t reported() const { return autoscale() ? autoscale_max / 10 : manual; }
  bool operator==(const Offer&) const = default;
};

struct Database {
  DatabaseId id;
  std::string name;
  std::string rid;
  WallTime time;
  uint64_t etag = 0;
  std::optional<Offer> offer;
  // Of a keyspace, in the form of cql/schema_document.h.
  std::optional<types::Document> definition;

  std::string self() const { return "dbs/" + rid + "/"; }
};

// Partitions that others are to take the place of: one is split into two, or two are merged. Until
// that is done the parents serve.
struct Reshape {
  std::vector<PartitionId> parents;  // in the order of the ring
  std::vector<PartitionId> heirs;    // their ids; the first one names the change
  types::Epk cut;                    // of a split; empty: where it halves the data
  bool operator==(const Reshape&) const = default;

  PartitionId name() const { return heirs.front(); }
  bool splits() const { return parents.size() == 1; }
};

struct Container final : partition::Schema {
  ContainerId id;
  DatabaseId database;
  std::string name;
  std::string rid;
  std::string database_name;
  std::string self;  // dbs/<rid>/colls/<rid>/
  std::string link;  // dbs/<name>/colls/<name>
  WallTime time;
  uint64_t etag = 0;
  types::Document definition;  // as it is shown, without system properties
  std::optional<Offer> offer;  // none: shares the database's
  std::shared_ptr<const partition::PartitionMap> map;
  std::vector<Reshape> reshapes;

  // Read from the definition:
  types::PartitionKeyDefinition key;
  bool keyless = false;  // made without a partition key: the system gave it one
  std::vector<std::vector<std::string>> key_paths;
  std::optional<int32_t> default_ttl;
  std::vector<std::vector<std::vector<std::string>>> unique_keys;  // policies of paths of names
  IndexPolicy index;

  // Of Cassandra: it has rows instead of items, and its definition a member `cassandra`. Rises with
  // every change of what indexes and views keep of its rows.
  uint32_t derived = 0;
  // Seconds for which what died stays: gc_grace_seconds, and more of those that follow from another
  // table.
  int64_t grace_seconds = 0;
  bool is_table() const { return key.kind == types::KeyKind::kToken; }
  partition::Ring ring() const { return {.container = id, .map = map, .schema_version = version}; }
  // Fills in what is read from the definition. kInvalidArgument if it is not one.
  Status ReadDefinition();
};

enum class KeyName : uint8_t { kPrimary, kSecondary, kPrimaryReadOnly, kSecondaryReadOnly };
inline constexpr size_t kKeyCount = 4;

struct AccountKeys {
  std::array<std::string, kKeyCount> keys;  // raw bytes
  bool operator==(const AccountKeys&) const = default;
};

// Who Cassandra's clients may be, and what they may do (model/catalog_roles.h).
struct RolesRecord {
  WallTime time;  // of the last change: its etag
  std::shared_ptr<const cql::Roles> roles;
};

// Draining: it gets no new replicas and those it has move away. Removed: for good; its id is never
// used again.
enum class NodeState : uint8_t { kActive = 1, kDraining = 2, kRemoved = 3 };

// A node of the cluster.
struct NodeRecord {
  NodeId id;
  std::string address;   // host:port, for the other nodes
  std::string endpoint;  // URL, for clients
  std::string zone;      // nodes of one zone may fail together; empty: not known
  uint32_t version = 0;  // of the formats and messages that it can read
  NodeState state = NodeState::kActive;
  WallTime joined;
  bool operator==(const NodeRecord&) const = default;
};

struct PlacedReplica {
  ReplicaId replica;
  NodeId node;
  bool voter = true;
  bool operator==(const PlacedReplica&) const = default;
};

// Of a group that took the place of others: founders that hold these begin with what they have, the
// rest get a snapshot.
struct Origin {
  struct Parent {
    GroupId group;
    Lsn lsn;            // nothing that counts comes behind it
    uint64_t term = 0;  // of that entry: a log that has it is complete up to it
    bool operator==(const Parent&) const = default;
  };
  std::vector<Parent> parents;
  storage::ReplicaRecord record;  // what the group begins with
  bool operator==(const Origin&) const = default;
};

// Where the replicas of a group should be. Its leader moves the configuration towards it.
struct Placement {
  uint64_t epoch = 1;  // rises with each change
  std::vector<PlacedReplica> members;
  // Who began the group, all of them with the same base; never changes. A replica of the list that
  // never existed may still begin so; every other one begins empty and gets a snapshot.
  std::vector<PlacedReplica> founders;
  std::optional<Origin> origin;
  bool operator==(const Placement&) const = default;

  const PlacedReplica* Find(NodeId node) const;  // among the members; null if it has none there
  bool founds(ReplicaId replica) const;
  size_t voters() const;
};

// Another list of members for a group that has a placement.
struct PlacementChange {
  GroupId group;
  uint64_t epoch = 0;                  // of the placement that it was made from
  std::vector<PlacedReplica> members;  // replica 0: a new one, which gets its id when this is done
  bool operator==(const PlacementChange&) const = default;
};

// The next ids to give out.
struct CatalogCounters {
  uint32_t database = 1;
  uint32_t container = 1;
  uint32_t offer = 1;
  uint64_t partition = 1;
  uint32_t node = 1;
  uint64_t replica = 1;
  // Of commands and formats: what every node of the cluster can read. New ones are used only from
  // their version on; nodes that are older are refused.
  uint32_t format = 1;
  bool operator==(const CatalogCounters&) const = default;

  void RaiseTo(const CatalogCounters& other);
};

// One state of the catalog.
struct CatalogView {
  std::map<std::string, std::shared_ptr<const Database>, std::less<>> databases;  // by name
  // By database and name.
  std::map<std::pair<DatabaseId, std::string>, std::shared_ptr<const Container>> containers;
  std::map<ContainerId, std::shared_ptr<const Container>> containers_by_id;
  // Links by name, "dbs/d/colls/c", for the path of every request.
  std::map<std::string, std::shared_ptr<const Container>, std::less<>> containers_by_link;
  AccountKeys keys;
  std::shared_ptr<const RolesRecord> roles;  // null: nobody has changed any
  CatalogCounters next;
  std::map<ContainerId, std::vector<PartitionId>> dropped;  // still to be cleared
  bool balancer_paused = false;  // nothing is split, merged or moved unless somebody asks for it

  // Of a cluster; all empty on a lone node.
  uint64_t cluster = 0;                                       // random; made with the first node
  std::map<NodeId, std::shared_ptr<const NodeRecord>> nodes;  // also the removed ones
  std::map<GroupId, std::shared_ptr<const Placement>> placements;

  bool clustered() const { return cluster != 0; }
  // Whether every node reads what is of this format.
  bool writes(uint32_t format) const { return !clustered() || next.format >= format; }
  std::shared_ptr<const NodeRecord> FindNode(NodeId id) const;
  std::shared_ptr<const Placement> FindPlacement(GroupId group) const;
  std::shared_ptr<const Database> FindDatabase(DatabaseId id) const;
  std::shared_ptr<const Database> FindDatabase(std::string_view name) const;
  // By resource id, as links of the form dbs/<rid>/colls/<rid>/ name them; null if there is none.
  std::shared_ptr<const Database> FindDatabaseByRid(std::string_view rid) const;
  std::shared_ptr<const Container> FindContainerByRid(std::string_view rid) const;
  std::shared_ptr<const Container> FindContainer(std::string_view link) const;
  std::shared_ptr<const Container> FindContainer(ContainerId id) const;
  // All containers of a database, by name.
  std::vector<std::shared_ptr<const Container>> ContainersOf(DatabaseId database) const;
};

// Checks the definition that a client sent and fills in defaults, in the order in which it is
// shown. kInvalidArgument says what is wrong. `version_given`: without one, hash version 2 is used.
Result<types::Document> NormalizeContainer(types::Value definition);
// A changed definition: the partition key, unique keys and id must be the same.
Status CheckContainerChange(const Container& before, const Container& after);

// 1 to 255 characters, none of / \ # ?, no space at the end.
Status CheckResourceName(std::string_view name);
// What a node says of itself.
Status CheckNodeText(const std::string& address, const std::string& endpoint,
                     const std::string& zone);

// Records of the catalog; see docs/formats/catalog.md.
std::string EncodeDatabase(const Database& database);
Result<Database> DecodeDatabase(std::string_view bytes);
std::string EncodeContainer(const Container& container);
Result<Container> DecodeContainer(std::string_view bytes);
std::string EncodeNode(const NodeRecord& node);
Result<NodeRecord> DecodeNode(std::string_view bytes);
std::string EncodePlacement(const Placement& placement);
Result<Placement> DecodePlacement(std::string_view bytes);

// Replicas as they stand in a placement.
void EncodeReplicas(Encoder& encoder, const std::vector<PlacedReplica>& replicas);
std::vector<PlacedReplica> DecodeReplicas(Decoder& decoder);
// Of an Origin.
void EncodeParents(Encoder& encoder, const std::vector<Origin::Parent>& parents);
std::vector<Origin::Parent> DecodeParents(Decoder& decoder);
void EncodeBeginning(Encoder& encoder, const storage::ReplicaRecord& record);
storage::ReplicaRecord DecodeBeginning(Decoder& decoder);

// The etag of a record as clients see it, with quotes.
std::string EtagText(uint64_t etag, WallTime time);

}  // namespace orrery::model
