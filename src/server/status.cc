// What `orrery status` and `orrery node list` show, as JSON. On a cluster the figures of a
// partition are those of its leader, so any node can show all.
#include <algorithm>

#include "cluster/overview.h"
#include "model/throughput.h"
#include "server/json_text.h"
#include "server/node.h"

namespace orrery::server {

using cluster::Overview;
using cluster::PartitionFigures;
using runtime::Task;

namespace {

constexpr GroupId kMetaGroup(0);

std::string_view StateText(model::NodeState state) {
  switch (state) {
    case model::NodeState::kActive: return "active";
    case model::NodeState::kDraining: return "draining";
    case model::NodeState::kRemoved: return "removed";
  }
  return "";
}

void AppendNode(std::string& out, const cluster::NodeOverview& node) {
  Separate(out);
  out += '{';
  Count(out, "id", uint64_t{node.record->id.value()});
  Field(out, "address", Quoted(node.record->address));
  Field(out, "endpoint", Quoted(node.record->endpoint));
  Field(out, "zone", Quoted(node.record->zone));
  Field(out, "state", Quoted(StateText(node.record->state)));
  Flag(out, "alive", node.alive);
  if (!node.alive) {
    Count(out, "silentSeconds",
          uint64_t(std::chrono::duration_cast<std::chrono::seconds>(node.silent).count()));
  }
  if (node.reached) {
    Count(out, "leaders", node.leaders);
    Count(out, "replicas", node.replicas);
    Count(out, "freeBytes", node.free_bytes);
    Flag(out, "healthy", node.log_healthy);
    Flag(out, "diskFull", node.disk_full);
  }
  out += '}';
}

void AppendNodes(std::string& out, const Overview& overview) {
  Field(out, "nodes", "[");
  for (const cluster::NodeOverview& node : overview.nodes) {
    AppendNode(out, node);
  }
  out += ']';
}

void AppendMember(std::string& out, const cluster::MemberOverview& member) {
  Separate(out);
  out += '{';
  Count(out, "node", uint64_t{member.node.value()});
  Count(out, "replica", member.replica.value());
  Field(out, "role", Quoted(member.voter ? "voter" : "standby"));
  Flag(out, "alive", member.alive);
  if (member.lag) {
    Count(out, "lag", *member.lag);
  }
  if (member.applied) {
    Count(out, "applied", member.applied->value());
  }
  out += '}';
}

void AppendSet(std::string& out, const cluster::SetOverview& set, const std::string& container) {
  Separate(out);
  out += '{';
  Field(out, "id", Quoted(set.group == kMetaGroup ? "catalog" : set.group.ToString()));
  if (set.group != kMetaGroup) {
    Field(out, "container", Quoted(container));
  }
  Field(out, "leader", set.leader == NodeId() ? "null" : set.leader.ToString());
  Count(out, "term", set.term);
  Count(out, "wanted", set.wanted);
  Count(out, "alive", set.alive);
  Flag(out, "underReplicated", set.under_replicated());
  Flag(out, "moving", set.moving);
  Field(out, "members", "[");
  for (const cluster::MemberOverview& member : set.members) {
    AppendMember(out, member);
  }
  out += "]}";
}

// "database/container" of each partition.
std::map<GroupId, std::string> ContainersOfSets(const model::CatalogView& view) {
  std::map<GroupId, std::string> owners;
  for (const auto& [id, container] : view.containers_by_id) {
    for (const auto& range : container->map->ranges()) {
      owners[GroupId(range.id.value())] = container->database_name + "/" + container->name;
    }
  }
  return owners;
}

void AppendCluster(std::string& out, const model::CatalogView& view, const Overview& overview,
                   NodeId self) {
  Field(out, "cluster", "{");
  Field(out, "id", Quoted(std::to_string(view.cluster)));
  Count(out, "node", uint64_t{self.value()});
  AppendNodes(out, overview);
  uint64_t under = 0;
  uint64_t moving = 0;
  uint64_t leaderless = 0;
  for (const cluster::SetOverview& set : overview.sets) {
    under += set.under_replicated() ? 1 : 0;
    moving += set.moving ? 1 : 0;
    leaderless += set.leader == NodeId() ? 1 : 0;
  }
  Count(out, "underReplicated", under);
  Count(out, "moving", moving);
  Count(out, "withoutLeader", leaderless);
  std::map<GroupId, std::string> owners = ContainersOfSets(view);
  Field(out, "replicaSets", "[");
  for (const cluster::SetOverview& set : overview.sets) {
    AppendSet(out, set, owners[set.group]);
  }
  out += "]}";
}

// A partition as it is shown; figures are left out where nobody knows them.
struct ShownPartition {
  std::optional<PartitionFigures> figures;
  std::optional<Lsn> applied;
  std::optional<NodeId> leader;
};

void AppendPartition(std::string& out, const partition::PartitionRange& range,
                     const ShownPartition& shown) {
  Separate(out);
  out += '{';
  Field(out, "id", Quoted(range.id.ToString()));
  Field(out, "min", Quoted(ToHex(range.range.min)));
  Field(out, "max", Quoted(ToHex(range.range.max)));
  if (const auto& figures = shown.figures) {
    Field(out, "items", std::to_string(figures->totals.items));
    Field(out, "bytes", std::to_string(figures->totals.bytes));
    Field(out, "share", figures->share.ToString());
    Field(out, "usedLastSecond", figures->used_last_second.ToString());
    Field(out, "sustained", figures->sustained.ToString());
    Count(out, "throttled", figures->stats.throttled);
  }
  if (shown.applied) {
    Field(out, "lsn", shown.applied->ToString());
  }
  if (shown.leader) {
    Field(out, "leader", *shown.leader == NodeId() ? "null" : shown.leader->ToString());
  }
  out += '}';
}

using ShowPartition = std::function<ShownPartition(PartitionId)>;

// Of an offer: what it is scaled to, how low it may go, and how it is spread.
struct ShownOffer {
  const model::Offer& offer;
  model::OfferUse use;
  partition::RequestUnits scaled;  // of autoscale
  bool pending = false;
};

void AppendOffer(std::string& out, const ShownOffer& shown, const model::CatalogLimits& limits) {
  const model::Offer& offer = shown.offer;
  uint64_t scaled = std::min(model::WholeUnits(shown.scaled), offer.autoscale_max);
  Count(out, "currentThroughput", offer.autoscale() ? scaled : offer.manual);
  Count(out, "minimumThroughput", model::LeastThroughput(shown.use, offer.autoscale(), limits));
  Flag(out, "replacePending", shown.pending);
}

void AppendBuckets(std::string& out, const partition::Buckets& buckets) {
  Field(out, "buckets", "[");
  for (size_t i = 0; i < buckets.percent.size(); ++i) {
    if (buckets.percent[i] != 0) {
      Separate(out);
      out += '{';
      Count(out, "id", i + 1);
      Count(out, "percent", uint64_t{buckets.percent[i]});
      out += '}';
    }
  }
  out += ']';
  Field(out, "defaultBucket", buckets.unmarked == 0 ? "null" : std::to_string(buckets.unmarked));
}

void AppendIds(std::string& out, std::string_view name, const std::vector<PartitionId>& ids) {
  std::string list = "[";
  for (PartitionId id : ids) {
    list += (list.size() == 1 ? "\"" : ",\"") + id.ToString() + "\"";
  }
  Field(out, name, list + "]");
}

void AppendContainer(std::string& out, const model::Container& container, const ShowPartition& show,
                     const model::CatalogLimits& limits) {
  Separate(out);
  out += '{';
  Field(out, "id", Quoted(container.name));
  Field(out, "throughput", container.offer ? std::to_string(container.offer->spendable()) : "null");
  Flag(out, "autoscale", container.offer && container.offer->autoscale());
  model::OfferUse use;
  partition::RequestUnits scaled;
  std::string partitions = "[";
  for (const auto& range : container.map->ranges()) {
    ShownPartition shown = show(range.id);
    AppendPartition(partitions, range, shown);
    PartitionFigures figures = shown.figures.value_or(PartitionFigures());
    use.bytes += static_cast<uint64_t>(std::max<int64_t>(figures.totals.bytes, 0));
    if (container.offer) {
      scaled += model::ScaledShare(model::ShareOf(*container.offer, *container.map, range.id),
                                   figures.sustained);
    }
  }
  if (const auto& offer = container.offer) {
    use.most = offer->most();
    bool pending = model::ReplacePending(*offer, *container.map, limits.partition_throughput);
    AppendOffer(out, {*offer, use, scaled, pending}, limits);
    Field(out, "policy", Quoted(offer->custom.empty() ? "Equal" : "Custom"));
    AppendBuckets(out, offer->buckets);
  }
  Field(out, "reshapes", "[");
  for (const model::Reshape& reshape : container.reshapes) {
    Separate(out);
    out += '{';
    Field(out, "kind", Quoted(reshape.splits() ? "split" : "merge"));
    AppendIds(out, "parents", reshape.parents);
    AppendIds(out, "heirs", reshape.heirs);
    out += '}';
  }
  out += ']';
  Field(out, "partitions", partitions + "]}");
}

// What the partitions of a database share; it is counted where the first of them is led.
void AppendSharedOffer(std::string& out, const model::CatalogView& view,
                       const model::Database& database, const ShowPartition& show,
                       const model::CatalogLimits& limits) {
  model::OfferUse use{.most = database.offer->most()};
  partition::RequestUnits sustained;
  PartitionId first;
  for (const auto& container : view.ContainersOf(database.id)) {
    if (container->offer) {
      continue;
    }
    ++use.sharing;
    for (const auto& range : container->map->ranges()) {
      PartitionFigures figures = show(range.id).figures.value_or(PartitionFigures());
      use.bytes += static_cast<uint64_t>(std::max<int64_t>(figures.totals.bytes, 0));
      if (first == PartitionId() || range.id < first) {
        first = range.id;
        sustained = figures.sustained;
      }
    }
  }
  partition::RequestUnits all(static_cast<double>(database.offer->spendable()));
  AppendOffer(out, {*database.offer, use, model::ScaledShare(all, sustained)}, limits);
}

void AppendDatabases(std::string& out, const model::CatalogView& view, const ShowPartition& show,
                     const model::CatalogLimits& limits) {
  Field(out, "databases", "[");
  for (const auto& [name, database] : view.databases) {
    Separate(out);
    out += '{';
    Field(out, "id", Quoted(name));
    Field(out, "throughput",
          database->offer ? std::to_string(database->offer->spendable()) : "null");
    if (database->offer) {
      Flag(out, "autoscale", database->offer->autoscale());
      AppendSharedOffer(out, view, *database, show, limits);
    }
    Field(out, "containers", "[");
    for (const auto& container : view.ContainersOf(database->id)) {
      AppendContainer(out, *container, show, limits);
    }
    out += "]}";
  }
  out += ']';
}

ShownPartition ShowFromCluster(const Overview& overview, PartitionId partition) {
  GroupId group(partition.value());
  ShownPartition shown;
  if (auto found = overview.figures.find(group); found != overview.figures.end()) {
    shown.figures = found->second;
  }
  auto set = std::ranges::lower_bound(overview.sets, group, {}, &cluster::SetOverview::group);
  if (set != overview.sets.end() && set->group == group) {
    shown.leader = set->leader;
    auto leader = std::ranges::find(set->members, set->leader, &cluster::MemberOverview::node);
    if (leader != set->members.end()) {
      shown.applied = leader->applied;
    }
  }
  return shown;
}

}  // namespace

Task<std::string> Node::StatusJson() {
  std::string out = "{";
  Field(out, "version", Quoted(ORRERY_VERSION));
  Field(out, "endpoint", Quoted(endpoint_));
  Flag(out, "healthy", instance_->store().healthy());
  Flag(out, "diskFull", instance_->store().disk_full());
  auto view = instance_->catalog().view();
  Flag(out, "balancerPaused", view->balancer_paused);
  const model::CatalogLimits& limits = instance_->catalog().limits();
  if (instance_->clustered()) {
    Overview overview = co_await instance_->Look();
    AppendCluster(out, *view, overview, instance_->self());
    auto show = [&](PartitionId id) { return ShowFromCluster(overview, id); };
    AppendDatabases(out, *view, show, limits);
  } else {
    auto show = [this](PartitionId id) {
      ShownPartition shown{.figures = instance_->FiguresOf(id)};
      if (auto replica = instance_->replicas().Find(id)) {
        shown.applied = replica->applied();
      }
      return shown;
    };
    AppendDatabases(out, *view, show, limits);
  }
  co_return out + "}";
}

Task<std::string> Node::NodesJson() {
  Overview overview = co_await instance_->Look();
  std::string out = "{";
  AppendNodes(out, overview);
  co_return out + "}";
}

}  // namespace orrery::server
