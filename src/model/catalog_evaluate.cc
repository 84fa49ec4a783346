#include "model/catalog_evaluate.h"

#include <set>

#include "model/catalog_records.h"
#include "model/catalog_roles.h"
#include "model/container_kind.h"
#include "model/throughput.h"
#include "types/rid.h"

namespace orrery::model {

using storage::Space;

namespace {

constexpr uint32_t kOffersMax = 1 << 24;  // their rids have three bytes
constexpr GroupId kMetaGroup{0};
constexpr uint32_t kReshapeFormat = 2;  // from here on nodes know splits and merges

Status NotFound() { return Status(Code::kNotFound, "Resource Not Found."); }

// --- rules ---------------------------------------------------------------------------------------

bool Matches(const std::string& if_match, uint64_t etag, WallTime time) {
  return if_match.empty() || if_match == "*" || if_match == EtagText(etag, time);
}

Status CheckEtag(const std::string& if_match, uint64_t etag, WallTime time) {
  if (Matches(if_match, etag, time)) {
    return Status::Ok();
  }
  return Status(
      Code::kPreconditionFailed,
      "Operation cannot be performed because one of the specified precondition is not met.");
}

// With number 0.
Result<Offer> MakeOffer(const ThroughputRequest& throughput, const OfferUse& use,
                        const CatalogLimits& limits, WallTime now) {
  Offer offer{.time = now, .etag = static_cast<uint64_t>(now.micros)};
  if (throughput.manual && throughput.autoscale_max) {
    return Error(Code::kInvalidArgument,
                 "Only one of manual throughput and autoscale settings may be given.");
  }
  offer.autoscale_max = throughput.autoscale_max.value_or(0);
  if (!throughput.autoscale_max) {
    offer.manual = throughput.manual.value_or(limits.default_throughput);
    offer.chosen = throughput.manual.has_value();
  }
  ORRERY_TRY_STATUS(CheckAmount(throughput.autoscale_max.value_or(offer.manual),
                                throughput.autoscale_max.has_value(), use, limits));
  return offer;
}

// --- the changes ---------------------------------------------------------------------------------

class Evaluation {
 public:
  explicit Evaluation(const EvaluationInput& input) : in_(input), view_(input.view) {
    done.next = input.next;
    done.set.time = input.now;
  }

  Status Do(const change::CreateDatabase& what);
  Status Do(const change::DropDatabase& what);
  Status Do(const change::CreateContainer& what);
  Status Do(const change::ReplaceContainer& what);
  Status Do(const change::DropContainer& what);
  Status Do(const change::ReplaceOffer& what);
  Status Do(const change::ChangeKeys& what);
  Status Do(const change::Cleared& what);
  Status Do(const change::AddNode& what);
  Status Do(const change::ChangeNode& what);
  Status Do(const change::SetPlacements& what);
  Status Do(const change::BeginReshape& what);
  Status Do(const change::FinishReshape& what);
  Status Do(const change::AbortReshape& what);
  Status Do(const change::PauseBalancer& what);
  Status Do(const change::DefineDatabase& what);
  Status Do(const change::PutRoles& what);
  Status Do(const change::RenewContainer& what);

  Evaluated done;

 private:
  uint64_t etag() const { return static_cast<uint64_t>(in_.now.micros); }
  void Put(const std::string& key, const std::string& value) {
    done.set.Put(Space::kCatalog, key, value);
  }
  void Delete(const std::string& key) { done.set.Delete(Space::kCatalog, key); }
  void Put(const Database& database) { Put(DatabaseKey(database.id), EncodeDatabase(database)); }
  void Put(const Container& container) {
    Put(ContainerKey(container.id), EncodeContainer(container));
  }
  void Put(GroupId group, const Placement& placement) {
    Put(PlacementKey(group), EncodePlacement(placement));
  }
  void Put(const std::optional<RolesRecord>& roles) {
    if (roles) {
      Put(RolesKey(), EncodeRoles(*roles));
    }
  }
  void PutCluster(uint64_t cluster) { Put(ClusterKey(), EncodeCluster(cluster, done.next)); }

  Status CheckRoom() const;
  // It is not put yet.
  Result<Database> NewDatabase(const std::string& name, const ThroughputRequest& throughput);
  // Of a keyspace, or of a table.
  Status CheckTables(const Container* table = nullptr) const;
  Status NumberOffer(Offer& offer);
  // The offer as the change leaves it. `map` is null for the offer of a database.
  Result<Offer> ChangeOffer(const Offer& before, const change::ReplaceOffer& what, size_t sharing,
                            const partition::PartitionMap* map) const;
  Status ChangeParts(const change::ReplaceOffer& what, const partition::PartitionMap* map,
                     Offer& offer) const;
  void Drop(const Container& container);
  // The container with another definition.
  Result<Container> Redefined(const std::string& link, const types::Document& definition,
                              const std::string& if_match) const;
  // A placement for each partition of a new container.
  Status Place(const Container& container);
  PlacedReplica NewReplica(NodeId node, bool voter = true) {
    return {.replica = ReplicaId(done.next.replica++), .node = node, .voter = voter};
  }
  Status CheckVersion(uint32_t version) const;
  void RaiseFormat(const NodeRecord& changed);
  Status CheckPlacement(const PlacementChange& change, const Placement& before) const;

  const EvaluationInput& in_;
  const CatalogView& view_;
};

Status Evaluation::CheckRoom() const {
  if (view_.databases.size() + view_.containers.size() >= in_.limits.resources_max) {
    return Status(Code::kForbidden,
                  "The account has reached its limit of databases and containers.");
  }
  return Status::Ok();
}

Status Evaluation::NumberOffer(Offer& offer) {
  if (done.next.offer >= kOffersMax) {
    return Status(Code::kForbidden, "The account has made as many offers as it can name.");
  }
  offer.number = done.next.offer++;
  return Status::Ok();
}

Result<Database> Evaluation::NewDatabase(const std::string& name,
                                         const ThroughputRequest& throughput) {
  ORRERY_TRY_STATUS(CheckResourceName(name));
  if (view_.FindDatabase(name) != nullptr) {
    return Error(Code::kAlreadyExists,
                 "Resource with specified id, name, or unique index already exists.");
  }
  ORRERY_TRY_STATUS(CheckRoom());
  Database made{
      .id = DatabaseId(done.next.database++), .name = name, .time = in_.now, .etag = etag()};
  if (throughput.manual || throughput.autoscale_max) {
    ORRERY_TRY(Offer offer, MakeOffer(throughput, {}, in_.limits, in_.now));
    ORRERY_TRY_STATUS(NumberOffer(offer));
    made.offer = offer;
  }
  Put(CountersKey(), EncodeCounters(done.next));
  done.outcome.id = made.id.value();
  return made;
}

Status Evaluation::Do(const change::CreateDatabase& what) {
  auto made = NewDatabase(what.name, what.throughput);
  if (!made) {
    return made.error();
  }
  Put(*made);
  return Status::Ok();
}

Status Evaluation::Do(const change::DefineDatabase& what) {
  ORRERY_RETURN_IF_ERROR(CheckTables());
  auto before = view_.FindDatabase(what.name);
  if (!what.creates && before == nullptr) {
    return NotFound();
  }
  Database after;
  if (what.creates) {
    auto made = NewDatabase(what.name, what.throughput);
    if (!made) {
      return made.error();
    }
    after = std::move(*made);
  } else {
    ORRERY_RETURN_IF_ERROR(CheckEtag(what.if_match, before->etag, before->time));
    done.outcome.id = before->id.value();
    after = *before;
  }
  after.time = in_.now;
  after.etag = etag();
  after.definition = what.definition;
  Put(after);
  return Status::Ok();
}

Status Evaluation::CheckTables(const Container* table) const {
  const types::Value of = table == nullptr ? types::Value() : table->definition.Get("cassandra");
  const bool derived =
      table != nullptr &&
      (table->derived != 0 || Member(of, "indexOf").defined() || Member(of, "view").defined());
  return view_.writes(derived ? kDerivedFormat : kTablesFormat)
             ? Status::Ok()
             : Status(Code::kForbidden,
                      "Not every node of the cluster runs a program that knows Cassandra tables.");
}

void Evaluation::Drop(const Container& container) {
  std::vector<PartitionId> partitions = PartitionsOf(container);
  done.set.frees_space = true;
  Delete(ContainerKey(container.id));
  if (!view_.clustered()) {
    Put(DroppedKey(container.id), EncodeDropped(partitions));
    return;
  }
  // Each node discards by itself what no placement names any more.
  for (PartitionId id : partitions) {
    if (view_.placements.contains(GroupId(id.value()))) {
      Delete(PlacementKey(GroupId(id.value())));
    }
  }
}

Status Evaluation::Do(const change::DropDatabase& what) {
  auto database = view_.FindDatabase(what.name);
  if (database == nullptr) {
    return NotFound();
  }
  ORRERY_RETURN_IF_ERROR(CheckEtag(what.if_match, database->etag, database->time));
  for (const auto& container : view_.ContainersOf(database->id)) {
    Drop(*container);
  }
  Delete(DatabaseKey(database->id));
  Put(RolesWithout(view_, database->name, in_.now));
  return Status::Ok();
}

Status Evaluation::Place(const Container& container) {
  if (!view_.clustered()) {
    return Status::Ok();
  }
  std::vector<NodeLoad> nodes = LoadsOf(view_, in_.health, in_.limits.placement);
  // Drivers of Cassandra compute which node to ask. Where that is one for each partition, it leads.
  const bool by_tokens = container.is_table() && container.map->ranges().size() >= nodes.size();
  for (const auto& range : container.map->ranges()) {
    const NodeId wanted = by_tokens ? nodes[NodeOfTokens(range.range, nodes.size())].id : NodeId();
    std::vector<NodeId> placed = PlaceNewSet(nodes, in_.limits.placement.factor, wanted);
    if (placed.empty()) {
      return Status(Code::kUnavailable, "No node can take the partitions of a new container.");
    }
    Placement placement;
    for (NodeId node : placed) {
      placement.members.push_back(NewReplica(node));
    }
    placement.founders = placement.members;
    Put(GroupId(range.id.value()), placement);
  }
  PutCluster(view_.cluster);
  return Status::Ok();
}

Status Evaluation::Do(const change::CreateContainer& what) {
  auto database = view_.FindDatabase(what.database);
  if (database == nullptr) {
    return Status(Code::kOwnerNotFound, "Owner resource does not exist");
  }
  auto definition = NormalizeContainer(what.definition.root());
  if (!definition) {
    return definition.error();
  }
  Container made;
  made.definition = std::move(*definition);
  made.name = made.definition.Get("id").string();
  if (view_.containers.contains({database->id, made.name})) {
    return Status(Code::kAlreadyExists,
                  "Resource with specified id, name, or unique index already exists.");
  }
  ORRERY_RETURN_IF_ERROR(CheckRoom());
  made.id = ContainerId(done.next.container++);
  made.database = database->id;
  made.database_name = database->name;
  made.time = in_.now;
  made.etag = etag();
  ORRERY_RETURN_IF_ERROR(made.ReadDefinition());
  if (made.is_table()) {
    ORRERY_RETURN_IF_ERROR(CheckTables(&made));
  }
  size_t parts = 1;
  bool shares = database->offer && !what.throughput.manual && !what.throughput.autoscale_max;
  if (!shares) {
    auto offer = MakeOffer(what.throughput, {}, in_.limits, in_.now);
    if (!offer) {
      return offer.error();
    }
    ORRERY_RETURN_IF_ERROR(NumberOffer(*offer));
    made.offer = *offer;
    ORRERY_RETURN_IF_ERROR(CheckThroughput(made, in_.limits));
    if (MaySplit(made, in_.limits)) {
      parts = partition::PartitionCount(made.offer->spendable(), in_.limits.partition_throughput);
    }
  }
  made.map = std::make_shared<const partition::PartitionMap>(
      partition::PartitionMap::Even(made.key, parts, PartitionId(done.next.partition)));
  done.next.partition += parts;
  Put(made);
  Put(CountersKey(), EncodeCounters(done.next));
  done.outcome.id = made.id.value();
  return Place(made);
}

Result<Container> Evaluation::Redefined(const std::string& link, const types::Document& definition,
                                        const std::string& if_match) const {
  auto before = view_.FindContainer(link);
  if (before == nullptr) {
    return Error(NotFound());
  }
  ORRERY_TRY_STATUS(CheckEtag(if_match, before->etag, before->time));
  Container after = *before;
  ORRERY_TRY(after.definition, NormalizeContainer(definition.root()));
  after.name = after.definition.Get("id").string();
  ORRERY_TRY_STATUS(after.ReadDefinition());
  ORRERY_TRY_STATUS(CheckContainerChange(*before, after));
  if (after.is_table()) {
    ORRERY_TRY_STATUS(CheckTables(&after));
  }
  after.time = in_.now;
  after.etag = etag();
  return after;
}

Status Evaluation::Do(const change::ReplaceContainer& what) {
  auto after = Redefined(what.link, what.definition, what.if_match);
  if (!after) {
    return after.error();
  }
  ++after->version;
  Put(*after);
  done.outcome.id = after->id.value();
  return Status::Ok();
}

Status Evaluation::Do(const change::RenewContainer& what) {
  auto after = Redefined(what.link, what.definition, what.if_match);
  if (!after) {
    return after.error();
  }
  Drop(*view_.FindContainer(what.link));
  after->id = ContainerId(done.next.container++);
  after->version = 1;
  after->reshapes.clear();
  if (after->offer) {
    after->offer->custom.clear();  // of partitions that are gone
  }
  const size_t parts = after->map->ranges().size();
  after->map = std::make_shared<const partition::PartitionMap>(
      partition::PartitionMap::Even(after->key, parts, PartitionId(done.next.partition)));
  done.next.partition += parts;
  Put(*after);
  Put(CountersKey(), EncodeCounters(done.next));
  done.outcome.id = after->id.value();
  return Place(*after);
}

Status Evaluation::Do(const change::DropContainer& what) {
  auto container = view_.FindContainer(what.link);
  if (container == nullptr) {
    return NotFound();
  }
  ORRERY_RETURN_IF_ERROR(CheckEtag(what.if_match, container->etag, container->time));
  Drop(*container);
  Put(RolesWithout(view_, *container, in_.now));
  return Status::Ok();
}

// Buckets, and how the throughput is spread over partitions.
Status Evaluation::ChangeParts(const change::ReplaceOffer& what, const partition::PartitionMap* map,
                               Offer& offer) const {
  if (!view_.writes(kThroughputFormat)) {
    return Status(Code::kForbidden,
                  "Not every node of the cluster runs a program that knows throughput buckets and "
                  "redistribution.");
  }
  if (map == nullptr) {
    return Status(Code::kInvalidArgument, "The throughput of a database has no parts.");
  }
  if (what.buckets) {
    ORRERY_RETURN_IF_ERROR(CheckBuckets(*what.buckets));
    if (what.buckets->any() && !offer.chosen) {
      return Status(Code::kInvalidArgument,
                    "Nobody chose the throughput of the container, so that nothing of it is "
                    "limited: choose it before its buckets.");
    }
    offer.buckets = *what.buckets;
  }
  if (what.shares) {
    auto redistributed = Redistribute(offer, *map, *what.shares, in_.limits);
    if (!redistributed) {
      return redistributed.error();
    }
    offer = std::move(*redistributed);
  }
  return Status::Ok();
}

Result<Offer> Evaluation::ChangeOffer(const Offer& before, const change::ReplaceOffer& what,
                                      size_t sharing, const partition::PartitionMap* map) const {
  ORRERY_TRY_STATUS(CheckEtag(what.if_match, before.etag, before.time));
  Offer after = before;
  after.time = in_.now;
  after.etag = etag();
  if (what.throughput.manual || what.throughput.autoscale_max) {
    if (!before.custom.empty()) {
      return Error(Code::kInvalidArgument,
                   "The throughput is distributed over the partitions by hand: it can be changed "
                   "as a whole when the policy is Equal again.");
    }
    OfferUse use{.most = before.most(), .sharing = sharing};
    ORRERY_TRY(Offer made, MakeOffer(what.throughput, use, in_.limits, in_.now));
    after.manual = made.manual;
    after.autoscale_max = made.autoscale_max;
    after.chosen = made.chosen;
  }
  if (what.buckets || what.shares) {
    ORRERY_TRY_STATUS(ChangeParts(what, map, after));
  }
  bool remembers = before.most() > after.spendable() && view_.writes(kThroughputFormat);
  after.highest = remembers ? before.most() : 0;
  return after;
}

Status Evaluation::Do(const change::ReplaceOffer& what) {
  for (const auto& [name, database] : view_.databases) {
    if (database->offer && database->offer->number == what.number) {
      auto containers = view_.ContainersOf(database->id);
      auto shares = [](const auto& container) { return !container->offer; };
      auto sharing = static_cast<size_t>(std::ranges::count_if(containers, shares));
      auto made = ChangeOffer(*database->offer, what, sharing, nullptr);
      if (!made) {
        return made.error();
      }
      Database after = *database;
      after.offer = *made;
      Put(after);
      return Status::Ok();
    }
  }
  for (const auto& [id, container] : view_.containers_by_id) {
    if (container->offer && container->offer->number == what.number) {
      auto made = ChangeOffer(*container->offer, what, 0, container->map.get());
      if (!made) {
        return made.error();
      }
      Container after = *container;
      after.offer = *made;
      ORRERY_RETURN_IF_ERROR(CheckThroughput(after, in_.limits));
      Put(after);
      return Status::Ok();
    }
  }
  return NotFound();
}

Status Evaluation::Do(const change::ChangeKeys& what) {
  AccountKeys keys = view_.keys;
  for (const KeyChange& change : what.keys) {
    std::string& key = keys.keys[static_cast<size_t>(change.name)];
    if (change.only_over.empty() ||
        std::ranges::find(change.only_over, key) != change.only_over.end()) {
      key = change.key;
    }
  }
  if (keys != view_.keys) {
    Put(KeysKey(), EncodeKeys(keys));
  }
  return Status::Ok();
}

Status Evaluation::Do(const change::Cleared& what) {
  if (view_.dropped.contains(what.container)) {
    done.set.frees_space = true;
    Delete(DroppedKey(what.container));
  }
  return Status::Ok();
}

Status Evaluation::CheckVersion(uint32_t version) const {
  return !view_.clustered() || version >= view_.next.format
             ? Status::Ok()
             : Status(Code::kForbidden, "The cluster writes formats of version " +
                                            std::to_string(view_.next.format) +
                                            ", this node reads only those up to version " +
                                            std::to_string(version) + ".");
}

// What every node can read may be written from now on, and by no older node be read again.
void Evaluation::RaiseFormat(const NodeRecord& changed) {
  uint32_t oldest = std::numeric_limits<uint32_t>::max();
  auto look = [&](const NodeRecord& node) {
    if (node.state != NodeState::kRemoved) {
      oldest = std::min(oldest, node.version);
    }
  };
  look(changed);
  for (const auto& [id, node] : view_.nodes) {
    if (id != changed.id) {
      look(*node);
    }
  }
  if (oldest != std::numeric_limits<uint32_t>::max()) {
    done.next.format = std::max(done.next.format, oldest);
  }
}

Status Evaluation::Do(const change::AddNode& what) {
  ORRERY_RETURN_IF_ERROR(CheckNodeText(what.address, what.endpoint, what.zone));
  ORRERY_RETURN_IF_ERROR(CheckVersion(what.version));
  NodeRecord node{.id = NodeId(done.next.node++),
                  .address = what.address,
                  .endpoint = what.endpoint,
                  .zone = what.zone,
                  .version = what.version,
                  .joined = in_.now};
  uint64_t cluster = view_.cluster;
  Placement meta;
  if (view_.clustered()) {
    meta = *view_.FindPlacement(kMetaGroup);
    ++meta.epoch;
    meta.members.push_back(NewReplica(node.id, false));
  } else {
    while (cluster == 0) {
      cluster = in_.random.Next();
    }
    meta.members = {NewReplica(node.id)};
    meta.founders = meta.members;
    for (const auto& [id, container] : view_.containers_by_id) {
      for (const auto& range : container->map->ranges()) {
        Placement placement{.members = {NewReplica(node.id)}};
        placement.founders = placement.members;
        Put(GroupId(range.id.value()), placement);
      }
    }
  }
  Put(kMetaGroup, meta);
  Put(NodeKey(node.id), EncodeNode(node));
  RaiseFormat(node);
  PutCluster(cluster);
  done.outcome.id = node.id.value();
  return Status::Ok();
}

Status Evaluation::Do(const change::ChangeNode& what) {
  auto before = view_.FindNode(what.node);
  if (before == nullptr) {
    return NotFound();
  }
  NodeRecord after = *before;
  after.address = what.address.value_or(before->address);
  after.endpoint = what.endpoint.value_or(before->endpoint);
  after.zone = what.zone.value_or(before->zone);
  after.version = what.version.value_or(before->version);
  after.state = what.state.value_or(before->state);
  if (after == *before) {
    return Status::Ok();
  }
  if (before->state == NodeState::kRemoved) {
    return Status(Code::kForbidden, "Node " + what.node.ToString() + " was removed.");
  }
  ORRERY_RETURN_IF_ERROR(CheckNodeText(after.address, after.endpoint, after.zone));
  ORRERY_RETURN_IF_ERROR(CheckVersion(after.version));
  if (after.state != before->state && after.state == NodeState::kDraining) {
    ORRERY_RETURN_IF_ERROR(CanDrain(view_, what.node));
  }
  if (after.state == NodeState::kRemoved) {
    ORRERY_RETURN_IF_ERROR(CanRemove(view_, what.node));
  }
  Put(NodeKey(what.node), EncodeNode(after));
  RaiseFormat(after);
  PutCluster(view_.cluster);
  return Status::Ok();
}

Status Evaluation::CheckPlacement(const PlacementChange& change, const Placement& before) const {
  std::set<NodeId> nodes;
  size_t voters = 0;
  for (const PlacedReplica& replica : change.members) {
    auto node = view_.FindNode(replica.node);
    const PlacedReplica* old = before.Find(replica.node);
    bool known = old != nullptr && old->replica == replica.replica;
    bool made =
        replica.replica == ReplicaId() && node != nullptr && node->state != NodeState::kRemoved;
    if ((!known && !made) || !nodes.insert(replica.node).second) {
      return Status(Code::kInvalidArgument, "A replica of group " + change.group.ToString() +
                                                " cannot be placed on node " +
                                                replica.node.ToString() + ".");
    }
    voters += replica.voter ? 1 : 0;
  }
  if (voters == 0 || (before.voters() >= 3 && voters < 3)) {
    return Status(Code::kInvalidArgument,
                  "Group " + change.group.ToString() + " would have too few voters.");
  }
  return Status::Ok();
}

Status Evaluation::Do(const change::SetPlacements& what) {
  std::set<GroupId> groups;
  for (const PlacementChange& change : what.placements) {
    auto before = view_.FindPlacement(change.group);
    if (before == nullptr || before->epoch != change.epoch) {
      return Status(Code::kPreconditionFailed,
                    "The placement of group " + change.group.ToString() + " has changed.");
    }
    if (!groups.insert(change.group).second) {
      return Status(Code::kInvalidArgument,
                    "Group " + change.group.ToString() + " is named twice.");
    }
    ORRERY_RETURN_IF_ERROR(CheckPlacement(change, *before));
    Placement after = *before;  // who founded it, and from what, stays
    ++after.epoch;
    after.members = change.members;
    for (PlacedReplica& replica : after.members) {
      if (replica.replica == ReplicaId()) {
        replica = NewReplica(replica.node, replica.voter);
      }
    }
    Put(change.group, after);
  }
  if (!what.placements.empty()) {
    PutCluster(view_.cluster);
  }
  return Status::Ok();
}

Status Evaluation::Do(const change::BeginReshape& what) {
  auto before = view_.FindContainer(what.container);
  if (before == nullptr || what.parents.empty()) {
    return NotFound();
  }
  if (!view_.writes(kReshapeFormat)) {
    return Status(Code::kUnavailable, "A node of the cluster cannot split partitions yet.");
  }
  size_t running = 0;
  for (const auto& [id, container] : view_.containers_by_id) {
    running += container->reshapes.size();
  }
  if (what.parents.size() == 1 && !MaySplit(*before, in_.limits)) {
    return Status(Code::kForbidden, "A fixed container has one partition.");
  }
  if (running >= in_.limits.reshapes_max) {
    return Status(Code::kUnavailable, "Enough partitions are being split or merged already.");
  }
  const auto& ranges = before->map->ranges();
  auto first = std::ranges::find(ranges, what.parents.front(), &partition::PartitionRange::id);
  for (size_t i = 0; i < what.parents.size(); ++i) {
    if (static_cast<size_t>(ranges.end() - first) <= i || first[i].id != what.parents[i]) {
      return Status(Code::kNotFound, "There is no such partition, or they are not neighbours.");
    }
    for (const Reshape& other : before->reshapes) {
      if (std::ranges::find(other.parents, what.parents[i]) != other.parents.end()) {
        return Status(Code::kAlreadyExists, "The partition is being split or merged already.");
      }
    }
  }
  bool splits = what.parents.size() == 1;
  const types::EpkRange& range = first->range;
  if (what.parents.size() > 2 ||
      (!what.cut.empty() && (!splits || what.cut <= range.min || !range.Contains(what.cut) ||
                             what.cut >= types::EpkRange().max))) {
    return Status(Code::kInvalidArgument, "The partition cannot be cut there.");
  }
  if (before->is_table() && !what.cut.empty() &&
      what.cut != types::TokenEpk(types::TokenOf(what.cut))) {
    return Status(Code::kInvalidArgument, "A table is cut at whole tokens.");
  }
  Container after = *before;
  Reshape reshape{.parents = what.parents, .cut = what.cut};
  for (size_t i = 0; i < (splits ? 2 : 1); ++i) {
    reshape.heirs.emplace_back(done.next.partition++);
  }
  after.reshapes.push_back(std::move(reshape));
  Put(after);
  Put(CountersKey(), EncodeCounters(done.next));
  done.outcome.id = after.id.value();
  return Status::Ok();
}

Status Evaluation::Do(const change::FinishReshape& what) {
  auto before = view_.FindContainer(what.container);
  if (before == nullptr) {
    return NotFound();
  }
  auto reshape = std::ranges::find(before->reshapes, what.name, &Reshape::name);
  if (reshape == before->reshapes.end()) {
    return before->map->FindId(what.name) != nullptr ? Status::Ok() : NotFound();
  }
  std::vector<partition::PartitionRange> heirs;
  types::EpkRange whole{before->map->FindId(reshape->parents.front())->range.min,
                        before->map->FindId(reshape->parents.back())->range.max};
  uint64_t generation = 0;
  for (PartitionId parent : reshape->parents) {
    generation = std::max(generation, before->map->FindId(parent)->generation);
  }
  for (PartitionId heir : reshape->heirs) {
    heirs.push_back(
        {.id = heir, .range = whole, .parents = reshape->parents, .generation = generation + 1});
  }
  if (reshape->splits()) {
    heirs[0].range.max = heirs[1].range.min = what.cut;
  }
  if (what.heirs.size() != heirs.size() || what.parents.size() != reshape->parents.size() ||
      (view_.clustered() && what.nodes.empty())) {
    return Status(Code::kInvalidArgument, "That is not how the change was begun.");
  }
  auto map = before->map->Replaced(reshape->parents, std::move(heirs));
  if (!map) {
    return map.error();
  }
  Container after = *before;
  after.map = std::make_shared<const partition::PartitionMap>(std::move(*map));
  std::erase_if(after.reshapes, [&](const Reshape& one) { return one.name() == what.name; });
  Put(after);
  done.outcome.id = after.id.value();
  if (!view_.clustered()) {
    return Status::Ok();
  }
  for (PartitionId parent : reshape->parents) {
    Delete(PlacementKey(GroupId(parent.value())));
  }
  for (size_t i = 0; i < what.heirs.size(); ++i) {
    Placement placement{.origin = Origin{.parents = what.parents, .record = what.heirs[i]}};
    for (NodeId node : what.nodes) {
      placement.members.push_back(NewReplica(node));
    }
    placement.founders = placement.members;
    Put(GroupId(reshape->heirs[i].value()), placement);
  }
  PutCluster(view_.cluster);
  return Status::Ok();
}

Status Evaluation::Do(const change::AbortReshape& what) {
  auto before = view_.FindContainer(what.container);
  if (before == nullptr) {
    return NotFound();
  }
  Container after = *before;
  if (std::erase_if(after.reshapes, [&](const Reshape& one) { return one.name() == what.name; })) {
    Put(after);
  }
  return Status::Ok();
}

Status Evaluation::Do(const change::PauseBalancer& what) {
  if (what.paused != view_.balancer_paused) {
    Put(BalancerKey(), std::string(1, what.paused ? 1 : 0));
  }
  return Status::Ok();
}

Status Evaluation::Do(const change::PutRoles& what) {
  if (!view_.writes(kRolesFormat)) {
    return Status(Code::kForbidden,
                  "Not every node of the cluster runs a program that knows Cassandra's roles.");
  }
  if (!what.if_match.empty() && what.if_match != RolesEtag(view_)) {
    return Status(Code::kPreconditionFailed, "The roles have changed.");
  }
  auto record = MakeRoles(what.roles, in_.now);
  if (!record) {
    return record.error();
  }
  Put(std::optional(*std::move(record)));
  return Status::Ok();
}

}  // namespace

Result<Evaluated> Evaluate(const CatalogChange& change, const EvaluationInput& input) {
  Evaluation evaluation(input);
  ORRERY_TRY_STATUS(
      std::visit([&evaluation](const auto& what) { return evaluation.Do(what); }, change.what));
  Evaluated done = std::move(evaluation.done);
  done.outcome.kind = change.kind();
  done.set.id = change.id;
  done.set.result = done.outcome.Encode();
  return done;
}

}  // namespace orrery::model
