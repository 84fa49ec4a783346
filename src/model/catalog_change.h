// CatalogChange: a change of the catalog as data, so that it can be sent to the node that leads the
// meta group and repeated there under the same id. ChangeResult: what comes back.
//
// See docs/formats/catalog.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "model/catalog_types.h"
#include "storage/write_set.h"
#include "types/document.h"

namespace orrery::model {

// Throughput as a request names it; neither: nothing was asked for.
struct ThroughputRequest {
  std::optional<uint64_t> manual;
  std::optional<uint64_t> autoscale_max;
  bool operator==(const ThroughputRequest&) const = default;
};

// A new value of one account key.
struct KeyChange {
  KeyName name = KeyName::kPrimary;
  std::string key;  // raw bytes
  // Only if the key is one of these now ("": there is none yet). Empty: always.
  std::vector<std::string> only_over;
  bool operator==(const KeyChange&) const = default;
};

namespace change {

struct CreateDatabase {
  std::string name;
  ThroughputRequest throughput;
};
struct DropDatabase {
  std::string name;
  std::string if_match;
};
struct CreateContainer {
  std::string database;
  types::Document definition;
  ThroughputRequest throughput;
};
struct ReplaceContainer {
  std::string link;
  types::Document definition;
  std::string if_match;
};
struct DropContainer {
  std::string link;
  std::string if_match;
};
// What is there is changed.
struct ReplaceOffer {
  uint32_t number = 0;
  ThroughputRequest throughput;
  std::string if_match;
  // Of a container, from kThroughputFormat on:
  std::optional<partition::Buckets> buckets;
  // Partitions that get another share; the others keep theirs. None: all get equal shares.
  std::optional<std::vector<PartitionShare>> shares;
};
struct ChangeKeys {
  std::vector<KeyChange> keys;
};
// The data of a dropped container is gone.
struct Cleared {
  ContainerId container;
};
// The first one makes a lone node a cluster of one: every group is placed on it.
struct AddNode {
  std::string address;
  std::string endpoint;
  std::string zone;
  uint32_t version = 0;
};
struct ChangeNode {
  NodeId node;
  std::optional<std::string> address;
  std::optional<std::string> endpoint;
  std::optional<std::string> zone;
  std::optional<uint32_t> version;
  std::optional<NodeState> state;
};
// All or none: kPreconditionFailed if one of the placements has changed meanwhile.
struct SetPlacements {
  std::vector<PlacementChange> placements;
};

// One partition into two, or two neighbours into one. They get their ids; the leaders do the rest.
struct BeginReshape {
  ContainerId container;
  std::vector<PartitionId> parents;
  types::Epk cut;
};
// The parents have ended: the heirs are in their place. Ok if that is so already.
struct FinishReshape {
  ContainerId container;
  PartitionId name;
  types::Epk cut;  // of a split
  std::vector<Origin::Parent> parents;
  std::vector<storage::ReplicaRecord> heirs;  // what each begins with
  std::vector<NodeId> nodes;  // on a cluster: a majority of them holds all of every parent
};
// What was begun does not happen.
struct AbortReshape {
  ContainerId container;
  PartitionId name;
};
struct PauseBalancer {
  bool paused = true;
};
// A keyspace that is new, or changed; from kTablesFormat on.
struct DefineDatabase {
  std::string name;
  types::Document definition;
  bool creates = false;
  std::string if_match;
  ThroughputRequest throughput = {};  // of one that is new: what its tables share
};
// An empty container in place of one, with its name and throughput and another id: what is written
// to the old one finds it gone. From kDerivedFormat on.
struct RenewContainer {
  std::string link;
  types::Document definition;
  std::string if_match;
};
// All roles of Cassandra's clients, in the form of cql/roles.h; from kRolesFormat on.
struct PutRoles {
  types::Document roles;
  std::string if_match;
};

}  // namespace change

enum class ChangeKind : uint8_t {
  kCreateDatabase = 1,
  kDropDatabase = 2,
  kCreateContainer = 3,
  kReplaceContainer = 4,
  kDropContainer = 5,
  kReplaceOffer = 6,
  kChangeKeys = 7,
  kCleared = 8,
  kAddNode = 9,
  kChangeNode = 10,
  kSetPlacements = 11,
  kBeginReshape = 12,
  kFinishReshape = 13,
  kAbortReshape = 14,
  kPauseBalancer = 15,
  kDefineDatabase = 16,
  kPutRoles = 17,
  kRenewContainer = 18,
};

struct CatalogChange {
  // In the order of kinds.
  using What = std::variant<change::CreateDatabase, change::DropDatabase, change::CreateContainer,
                            change::ReplaceContainer, change::DropContainer, change::ReplaceOffer,
                            change::ChangeKeys, change::Cleared, change::AddNode,
                            change::ChangeNode, change::SetPlacements, change::BeginReshape,
                            change::FinishReshape, change::AbortReshape, change::PauseBalancer,
                            change::DefineDatabase, change::PutRoles, change::RenewContainer>;

  storage::OperationId id;  // the same for every try
  What what;

  ChangeKind kind() const { return static_cast<ChangeKind>(what.index() + 1); }
  std::string Encode() const;
  // kInvalidArgument if it is malformed or newer than this program.
  static Result<CatalogChange> Decode(std::string_view bytes);
};

// What a new node must know to take part.
struct Joined {
  uint64_t cluster = 0;
  NodeId node;
  ReplicaId meta_replica;  // its replica of the meta group
  std::vector<NodeRecord> nodes;
  bool operator==(const Joined&) const = default;
};

struct ChangeResult {
  Lsn lsn;  // of the meta group: a view that has it shows the change
  std::shared_ptr<const Database> database;    // made
  std::shared_ptr<const Container> container;  // made or replaced; null if it is gone again
  std::optional<AccountKeys> keys;
  std::optional<Joined> joined;
};

// The answer to a change that another node sent.
std::string EncodeAnswer(const Result<ChangeResult>& answer);
// kUnknownOutcome if it is malformed.
Result<ChangeResult> DecodeAnswer(std::string_view bytes);

// What stands with the change in the log: from it and the view the result is made again.
struct ChangeOutcome {
  ChangeKind kind = ChangeKind::kCreateDatabase;
  uint32_t id = 0;  // of the database, container or node that was made or replaced

  std::string Encode() const;
  // kCorruption if it is malformed.
  static Result<ChangeOutcome> Decode(std::string_view bytes);
};

}  // namespace orrery::model
