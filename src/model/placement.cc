#include "model/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace orrery::model {

namespace {

constexpr GroupId kMetaGroup{0};
constexpr size_t kSafe = 3;                 // with as many replicas one may fail; never fewer again
constexpr uint64_t kSpareBytes = 64 << 20;  // that a replica needs besides its items

const NodeLoad* FindLoad(const std::vector<NodeLoad>& nodes, NodeId id) {
  auto found = std::ranges::lower_bound(nodes, id, {}, &NodeLoad::id);
  return found == nodes.end() || found->id != id ? nullptr : &*found;
}

size_t CountUsable(const std::vector<NodeLoad>& nodes) {
  return static_cast<size_t>(std::ranges::count_if(nodes, &NodeLoad::usable));
}

std::vector<PlacedReplica> ByNode(std::vector<PlacedReplica> replicas) {
  std::ranges::sort(replicas, {}, &PlacedReplica::node);
  return replicas;
}

// A set of any size but two: two replicas can do less without each other than one.
bool FitsSet(size_t size) { return size != 2; }
bool FitsMeta(size_t size) { return size % 2 == 1; }

class Planner {
 public:
  Planner(const CatalogView& view, const ClusterHealth& health, const PlacementSettings& settings)
      : view_(view),
        health_(health),
        settings_(settings),
        nodes_(LoadsOf(view, health, settings)),
        usable_(CountUsable(nodes_)) {}

  std::vector<PlacementChange> Run();

 private:
  using Replicas = std::vector<PlacedReplica>;
  enum class Urgency { kRepair, kFirstGrowth, kOther, kNone };

  bool Usable(NodeId node) const {
    const NodeLoad* load = FindLoad(nodes_, node);
    return load != nullptr && load->usable();
  }
  bool Alive(NodeId node) const {
    const NodeLoad* load = FindLoad(nodes_, node);
    return load != nullptr && load->alive;
  }
  bool HasQuorum(const Replicas& voters) const;
  Urgency UrgencyOf(const Placement& placement) const;
  // The voters that should take the place of these. The same ones: there is nothing to do, or
  // nothing can be done.
  Replicas NextVoters(GroupId group, const Replicas& voters, size_t want,
                      bool (*fits)(size_t)) const;
  // Nodes that can take a replica now, of a set that has others.
  std::vector<NodeId> Others(GroupId group, const Replicas& beside, size_t count) const;
  // The one of them that is missed least.
  size_t Dispensable(const Replicas& replicas) const;
  std::optional<PlacementChange> PlanSet(GroupId group, const Placement& placement);
  std::optional<PlacementChange> PlanMeta(const Placement& placement) const;
  void Count(const Replicas& before, const Replicas& after);

  const CatalogView& view_;
  const ClusterHealth& health_;
  const PlacementSettings& settings_;
  std::vector<NodeLoad> nodes_;
  const size_t usable_;
};

bool Planner::HasQuorum(const Replicas& voters) const {
  auto alive = static_cast<size_t>(std::ranges::count_if(
      voters, [this](const PlacedReplica& replica) { return Alive(replica.node); }));
  return alive > voters.size() / 2;
}

Planner::Urgency Planner::UrgencyOf(const Placement& placement) const {
  for (const PlacedReplica& replica : placement.members) {
    if (!Usable(replica.node)) {
      return Urgency::kRepair;
    }
  }
  size_t has = placement.members.size();
  if (has == ReplicaCount(usable_, has, settings_.factor)) {
    return Urgency::kNone;
  }
  return has < kSafe ? Urgency::kFirstGrowth : Urgency::kOther;
}

size_t Planner::Dispensable(const Replicas& replicas) const {
  std::map<std::string, size_t> zones;
  for (const PlacedReplica& replica : replicas) {
    ++zones[FindLoad(nodes_, replica.node)->zone];
  }
  auto weight = [&](const PlacedReplica& replica) {
    const NodeLoad& node = *FindLoad(nodes_, replica.node);
    return std::tuple(zones[node.zone], node.replicas, node.id);
  };
  return static_cast<size_t>(std::ranges::max_element(replicas, {}, weight) - replicas.begin());
}

Planner::Replicas Planner::NextVoters(GroupId group, const Replicas& voters, size_t want,
                                      bool (*fits)(size_t)) const {
  Replicas next;
  Replicas leaving;
  for (const PlacedReplica& replica : voters) {
    (Usable(replica.node) ? next : leaving).push_back(replica);
  }
  while (next.size() > want) {
    next.erase(next.begin() + static_cast<ptrdiff_t>(Dispensable(next)));
  }
  std::vector<NodeId> added = Others(group, next, want - next.size());
  // Too few others: some must stay where they are, rather those that can still vote.
  std::ranges::sort(leaving, {}, [this](const PlacedReplica& replica) {
    return std::pair(!Alive(replica.node), replica.node);
  });
  for (const PlacedReplica& replica : leaving) {
    if (next.size() + added.size() < std::min(want, voters.size())) {
      next.push_back(replica);
    }
  }
  while (!added.empty() && !fits(next.size() + added.size())) {
    added.pop_back();
  }
  for (NodeId node : added) {
    next.push_back({.replica = {}, .node = node, .voter = true});
  }
  // One that could soon be three does not move alone.
  if (next.size() < std::min(kSafe, std::max(want, voters.size())) || !fits(next.size())) {
    return ByNode(voters);
  }
  return ByNode(next);
}

std::vector<NodeId> Planner::Others(GroupId group, const Replicas& beside, size_t count) const {
  auto bytes = health_.bytes.find(group);
  const uint64_t needs =
      settings_.reserve_bytes + kSpareBytes + (bytes == health_.bytes.end() ? 0 : bytes->second);
  std::vector<NodeId> taken;
  for (const PlacedReplica& replica : beside) {
    taken.push_back(replica.node);
  }
  std::vector<NodeLoad> candidates;
  std::ranges::copy_if(nodes_, std::back_inserter(candidates), [&](const NodeLoad& node) {
    return (node.alive && node.free_bytes >= needs) ||
           std::ranges::find(taken, node.id) != taken.end();
  });
  return PlaceNew(candidates, count, taken);
}

void Planner::Count(const Replicas& before, const Replicas& after) {
  for (NodeLoad& node : nodes_) {
    auto here = [&](const PlacedReplica& replica) { return replica.node == node.id; };
    node.replicas += static_cast<size_t>(std::ranges::count_if(after, here));
    node.replicas -= static_cast<size_t>(std::ranges::count_if(before, here));
  }
}

std::optional<PlacementChange> Planner::PlanSet(GroupId group, const Placement& placement) {
  if (!HasQuorum(placement.members)) {
    return std::nullopt;  // nobody could carry it out
  }
  size_t want = ReplicaCount(usable_, placement.members.size(), settings_.factor);
  Replicas next = NextVoters(group, placement.members, want, FitsSet);
  if (next == ByNode(placement.members)) {
    return std::nullopt;
  }
  Count(placement.members, next);
  return PlacementChange{.group = group, .epoch = placement.epoch, .members = std::move(next)};
}

std::optional<PlacementChange> Planner::PlanMeta(const Placement& placement) const {
  Replicas voters;
  std::ranges::copy_if(placement.members, std::back_inserter(voters), &PlacedReplica::voter);
  Replicas next = NextVoters(kMetaGroup, voters, MetaVoters(usable_, voters.size()), FitsMeta);
  for (PlacedReplica& replica : next) {
    if (const PlacedReplica* standby = placement.Find(replica.node)) {
      replica.replica = standby->replica;
    }
  }
  for (const NodeLoad& node : nodes_) {
    if (std::ranges::find(next, node.id, &PlacedReplica::node) == next.end()) {
      const PlacedReplica* standby = placement.Find(node.id);
      next.push_back({.replica = standby == nullptr ? ReplicaId() : standby->replica,
                      .node = node.id,
                      .voter = false});
    }
  }
  next = ByNode(std::move(next));
  if (next == ByNode(placement.members)) {
    return std::nullopt;
  }
  return PlacementChange{.group = kMetaGroup, .epoch = placement.epoch, .members = std::move(next)};
}

std::vector<PlacementChange> Planner::Run() {
  std::vector<PlacementChange> changes;
  std::vector<std::pair<Urgency, GroupId>> sets;
  size_t moving = 0;
  for (const auto& [group, placement] : view_.placements) {
    bool in_motion = health_.moving.contains(group);
    if (group == kMetaGroup) {
      if (auto change = PlanMeta(*placement)) {
        changes.push_back(std::move(*change));
      }
      continue;
    }
    moving += in_motion ? 1 : 0;
    Urgency urgency = UrgencyOf(*placement);
    // What is on its way is let be, unless it goes to a node that is no good any more.
    if (urgency == Urgency::kRepair || (urgency != Urgency::kNone && !in_motion)) {
      sets.emplace_back(urgency, group);
    }
  }
  std::ranges::sort(sets);
  for (const auto& [urgency, group] : sets) {
    bool in_motion = health_.moving.contains(group);
    if (!in_motion && moving >= settings_.max_moves) {
      continue;
    }
    if (auto change = PlanSet(group, *view_.FindPlacement(group))) {
      changes.push_back(std::move(*change));
      moving += in_motion ? 0 : 1;
    }
  }
  return changes;
}

// Nodes that can take over what is on `node`.
size_t OthersThan(const CatalogView& view, NodeId node) {
  return static_cast<size_t>(std::ranges::count_if(view.nodes, [node](const auto& entry) {
    return entry.first != node && entry.second->state == NodeState::kActive;
  }));
}

Status CanLeave(const CatalogView& view, NodeId node) {
  auto record = view.FindNode(node);
  if (record == nullptr || record->state == NodeState::kRemoved) {
    return Status(Code::kNotFound, "There is no node " + node.ToString() + ".");
  }
  size_t others = OthersThan(view, node);
  if (others == 0) {
    return Status(Code::kForbidden, "Node " + node.ToString() + " is the last active one.");
  }
  for (const auto& [group, placement] : view.placements) {
    if (others < kSafe && placement->voters() >= kSafe && placement->Find(node) != nullptr) {
      return Status(Code::kForbidden, "Without node " + node.ToString() + " there are " +
                                          std::to_string(others) +
                                          " active nodes, and sets with 3 replicas.");
    }
  }
  return Status::Ok();
}

}  // namespace

NodeHealth ClusterHealth::Of(NodeId node) const {
  auto found = nodes.find(node);
  return found == nodes.end() ? NodeHealth() : found->second;
}

std::vector<NodeLoad> LoadsOf(const CatalogView& view, const ClusterHealth& health,
                              const PlacementSettings& settings) {
  std::map<NodeId, size_t> replicas;
  std::map<NodeId, size_t> first;  // in placements: these lead, as far as nothing else is known
  for (const auto& [group, placement] : view.placements) {
    if (group == kMetaGroup) {
      continue;
    }
    for (const PlacedReplica& replica : placement->members) {
      ++replicas[replica.node];
    }
    ++first[placement->members.front().node];
  }
  std::vector<NodeLoad> loads;
  for (const auto& [id, node] : view.nodes) {
    if (node->state == NodeState::kRemoved) {
      continue;
    }
    NodeHealth known = health.Of(id);
    loads.push_back({.id = id,
                     .zone = node->zone,
                     .state = node->state,
                     .alive = known.alive,
                     .gone = !known.alive && known.silent > settings.replace_after,
                     .replicas = replicas[id],
                     .leaders = known.leaders > 0 ? known.leaders : first[id],
                     .free_bytes = known.free_bytes});
  }
  return loads;
}

size_t ReplicaCount(size_t usable_nodes, size_t had, size_t pinned) {
  size_t count = usable_nodes >= 4 ? 4 : usable_nodes == 3 ? 3 : 1;
  if (pinned != 0) {
    count = std::min(count, pinned);
  }
  return had >= kSafe ? std::max(count, kSafe) : count;
}

size_t MetaVoters(size_t usable_nodes, size_t had) {
  size_t count = usable_nodes >= 5 ? 5 : usable_nodes >= 3 ? 3 : 1;
  return had >= kSafe ? std::max(count, kSafe) : count;
}

std::vector<NodeId> PlaceNew(const std::vector<NodeLoad>& nodes, size_t count,
                             const std::vector<NodeId>& beside) {
  std::map<std::string, size_t> zones;
  std::vector<const NodeLoad*> free;
  for (const NodeLoad& node : nodes) {
    if (std::ranges::find(beside, node.id) != beside.end()) {
      ++zones[node.zone];
    } else if (node.usable()) {
      free.push_back(&node);
    }
  }
  auto rank = [&zones](const NodeLoad* node) {
    return std::tuple(!node->alive, node->free_bytes < kFreeBytesMin, zones[node->zone],
                      node->replicas, node->leaders, node->id);
  };
  std::vector<NodeId> placed;
  while (placed.size() < count && !free.empty()) {
    auto best = std::ranges::min_element(free, {}, rank);
    placed.push_back((*best)->id);
    ++zones[(*best)->zone];
    free.erase(best);
  }
  return placed;
}

std::vector<NodeId> PlaceNewSet(std::vector<NodeLoad>& nodes, size_t pinned, NodeId wanted) {
  auto alive = static_cast<size_t>(std::ranges::count_if(
      nodes, [](const NodeLoad& node) { return node.usable() && node.alive; }));
  size_t count = std::max(ReplicaCount(alive, 0, pinned),
                          std::min(kSafe, ReplicaCount(CountUsable(nodes), 0, pinned)));
  std::vector<NodeId> placed;
  auto first = std::ranges::find(nodes, wanted, &NodeLoad::id);
  if (first != nodes.end() && first->usable() && first->alive &&
      first->free_bytes >= kFreeBytesMin) {
    placed = PlaceNew(nodes, count - 1, {wanted});
    placed.push_back(wanted);
  } else {
    placed = PlaceNew(nodes, count);
  }
  NodeLoad* leader = nullptr;
  for (NodeLoad& node : nodes) {
    if (std::ranges::find(placed, node.id) == placed.end()) {
      continue;
    }
    ++node.replicas;
    auto rank = [wanted](const NodeLoad& one) {
      return std::tuple(!one.alive, one.id != wanted, one.leaders);
    };
    if (leader == nullptr || rank(node) < rank(*leader)) {
      leader = &node;
    }
  }
  if (leader != nullptr) {
    ++leader->leaders;
    std::iter_swap(placed.begin(), std::ranges::find(placed, leader->id));
  }
  return placed;
}

int64_t NodeToken(size_t place, size_t nodes) {
  using Wide = unsigned __int128;
  auto at = static_cast<uint64_t>((Wide{place} << 64) / nodes);
  return static_cast<int64_t>(at ^ uint64_t{1} << 63);
}

size_t NodeOfTokens(const types::EpkRange& range, size_t nodes) {
  const int64_t begin = range.min.empty() ? INT64_MIN : types::TokenOf(range.min);
  const int64_t end = range.max == types::EpkRange().max ? INT64_MAX : types::TokenOf(range.max);
  const int64_t middle = std::midpoint(begin, end);
  for (size_t place = 0; place < nodes; ++place) {
    if (NodeToken(place, nodes) >= middle) {
      return place;
    }
  }
  return 0;
}

std::vector<PlacementChange> Plan(const CatalogView& view, const ClusterHealth& health,
                                  const PlacementSettings& settings) {
  return Planner(view, health, settings).Run();
}

Status CanDrain(const CatalogView& view, NodeId node) { return CanLeave(view, node); }

Status CanRemove(const CatalogView& view, NodeId node) {
  ORRERY_RETURN_IF_ERROR(CanLeave(view, node));
  for (const auto& [group, placement] : view.placements) {
    const PlacedReplica* here = placement->Find(node);
    if (here != nullptr && here->voter && placement->voters() == 1) {
      return Status(Code::kForbidden, "Node " + node.ToString() +
                                          " has the only replica of group " + group.ToString() +
                                          "; drain it first.");
    }
  }
  return Status::Ok();
}

}  // namespace orrery::model
