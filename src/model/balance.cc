#include "model/balance.h"

#include <algorithm>
#include <functional>
#include <set>

#include "model/elastic.h"

namespace orrery::model {

namespace {

constexpr GroupId kMetaGroup{0};
constexpr size_t kFair = 1;            // a difference of counts that may stay
constexpr double kWorthMoving = 64e6;  // bytes that a node must have more than another
// Leading a set is work even if nobody uses it: as much as so many RU/s.
constexpr double kLeadingUnits = 100;
// How much closer to each other two nodes must come, of the mean of all: load is never even.
constexpr double kWorthLeading = 0.2;
constexpr double kWorthHeat = 0.4;  // for a replica that has to move
constexpr int kTriesMax = 64;       // of moves for the sake of load, each time

struct Node {
  NodeLoad load;
  size_t replicas = 0;
  double work = 0;  // of the sets that name it first, and so want it to lead; 1: one that is idle
  NodeFill fill;
};

// A copy of a placement with another node in the place of one.
PlacementChange Moved(GroupId group, const Placement& placement, NodeId from, NodeId to) {
  PlacementChange change{.group = group, .epoch = placement.epoch, .members = placement.members};
  for (PlacedReplica& member : change.members) {
    if (member.node == from) {
      member = {.node = to, .voter = member.voter};
    }
  }
  return change;
}

class BalancePlanner {
 public:
  BalancePlanner(const CatalogView& view, const ClusterHealth& health,
                 const PlacementSettings& settings, const GroupLoads& loads);
  std::vector<PlacementChange> Run();

 private:
  using Changes = std::vector<PlacementChange>;
  std::vector<const Node*> MostFirst(const std::function<double(const Node&)>& what) const;
  std::optional<PlacementChange> EvenOut() const;
  std::optional<PlacementChange> MoveOne(const Node& from, const Node& to, bool by_fill) const;
  bool KeepsZones(const Placement& placement, NodeId from, NodeId to) const;
  std::optional<PlacementChange> LeadOne(const Node& from, const Node& to) const;
  Changes CoolOne(const Node& from, const Node& to);
  Changes WithReturn(PlacementChange change, const Node& from, const Node& to);
  bool RestsAfter(const Changes& changes);
  double Gain(const Node& from, const Node& to, GroupId group) const;
  GroupLoad LoadOf(GroupId group) const;
  double BytesOf(GroupId group) const { return LoadOf(group).bytes; }
  double WorkOf(GroupId group) const { return 1 + LoadOf(group).units / kLeadingUnits; }
  double Mean() const;
  bool HasRoom(const Node& to, double bytes) const;

  const CatalogView& view_;
  const ClusterHealth& health_;
  const PlacementSettings& settings_;
  const GroupLoads& loads_;
  std::vector<Node> nodes_;
  double busy_ = 0;  // work that is not idle, in the mean of all nodes
  int tries_left_ = kTriesMax;
};

BalancePlanner::BalancePlanner(const CatalogView& view, const ClusterHealth& health,
                               const PlacementSettings& settings, const GroupLoads& loads)
    : view_(view), health_(health), settings_(settings), loads_(loads) {
  for (NodeLoad& load : LoadsOf(view, health, settings)) {
    if (load.usable() && load.alive) {
      nodes_.push_back({.load = std::move(load)});
    }
  }
  for (Node& node : nodes_) {
    for (const auto& [group, placement] : view.placements) {
      if (group != kMetaGroup && placement->Find(node.load.id) != nullptr) {
        ++node.replicas;
        if (placement->members.front().node == node.load.id) {
          node.work += WorkOf(group);
          busy_ += (WorkOf(group) - 1) / static_cast<double>(nodes_.size());
        }
        node.fill.bytes += BytesOf(group);
      }
    }
    node.fill.capacity = node.fill.bytes + static_cast<double>(node.load.free_bytes);
  }
}

GroupLoad BalancePlanner::LoadOf(GroupId group) const {
  auto found = loads_.find(group);
  return found == loads_.end() ? GroupLoad() : found->second;
}

double BalancePlanner::Mean() const {
  std::vector<NodeFill> fills;
  for (const Node& node : nodes_) {
    fills.push_back(node.fill);
  }
  return MeanFill(fills);
}

// Whether a node with so much more would not be one that gives away because it is full.
bool BalancePlanner::HasRoom(const Node& to, double bytes) const {
  double after = to.fill.bytes + bytes;
  return after <= kWorthMoving || after <= to.fill.capacity * Mean();
}

bool BalancePlanner::KeepsZones(const Placement& placement, NodeId from, NodeId to) const {
  auto zone = [this](NodeId id) {
    auto node = view_.FindNode(id);
    return node == nullptr ? std::string() : node->zone;
  };
  std::set<std::string> before;
  std::set<std::string> after{zone(to)};
  for (const PlacedReplica& member : placement.members) {
    before.insert(zone(member.node));
    if (member.node != from) {
      after.insert(zone(member.node));
    }
  }
  return after.size() >= before.size();
}

// A replica of the one node that the other can take; rather one that does not lead.
std::optional<PlacementChange> BalancePlanner::MoveOne(const Node& from, const Node& to,
                                                       bool by_fill) const {
  double mean = Mean();
  std::optional<PlacementChange> best;
  for (const auto& [group, placement] : view_.placements) {
    if (group == kMetaGroup || placement->Find(from.load.id) == nullptr ||
        placement->Find(to.load.id) != nullptr ||
        !KeepsZones(*placement, from.load.id, to.load.id) ||
        !(by_fill ? ShouldMove(from.fill, to.fill, BytesOf(group), mean)
                  : HasRoom(to, BytesOf(group)))) {
      continue;
    }
    bool leads = placement->members.front().node == from.load.id;
    if (best && leads) {
      continue;
    }
    best = Moved(group, *placement, from.load.id, to.load.id);
    if (!leads) {
      break;
    }
  }
  return best;
}

// By how much less the busier of the two would have to do if the other led the group; below 0: it
// would have more.
double BalancePlanner::Gain(const Node& from, const Node& to, GroupId group) const {
  return from.work - std::max(from.work - WorkOf(group), to.work + WorkOf(group));
}

// The set that the one node leads and the other could whose change brings them closest.
std::optional<PlacementChange> BalancePlanner::LeadOne(const Node& from, const Node& to) const {
  std::optional<PlacementChange> best;
  double most = kWorthLeading * busy_;
  for (const auto& [group, placement] : view_.placements) {
    const PlacedReplica* other = placement->Find(to.load.id);
    if (group == kMetaGroup || placement->members.front().node != from.load.id ||
        other == nullptr || !other->voter || Gain(from, to, group) <= most) {
      continue;
    }
    most = Gain(from, to, group);
    best = {.group = group, .epoch = placement->epoch, .members = placement->members};
    auto at = std::ranges::find(best->members, to.load.id, &PlacedReplica::node);
    std::rotate(best->members.begin(), at, at + 1);
  }
  return best;
}

// Whether disks and numbers of replicas would still need nothing: else this would be undone.
bool BalancePlanner::RestsAfter(const Changes& changes) {
  if (tries_left_-- <= 0) {
    return false;
  }
  CatalogView view;
  view.nodes = view_.nodes;
  view.placements = view_.placements;
  for (const PlacementChange& change : changes) {
    Placement placement = *view.placements.at(change.group);
    placement.members = change.members;
    view.placements[change.group] = std::make_shared<const Placement>(std::move(placement));
  }
  BalancePlanner after(view, health_, settings_, loads_);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    after.nodes_[i].fill.capacity = nodes_[i].fill.capacity;  // what moves takes room with it
  }
  return !after.EvenOut();
}

// The change, and with it another replica that goes back, if need be. Nothing: it would not last.
BalancePlanner::Changes BalancePlanner::WithReturn(PlacementChange change, const Node& from,
                                                   const Node& to) {
  if (Changes alone{change}; RestsAfter(alone)) {
    return alone;
  }
  for (const auto& [group, placement] : view_.placements) {
    if (group == kMetaGroup || placement->Find(to.load.id) == nullptr ||
        placement->members.front().node == to.load.id || placement->Find(from.load.id) != nullptr ||
        !KeepsZones(*placement, to.load.id, from.load.id)) {
      continue;
    }
    Changes both{change, Moved(group, *placement, to.load.id, from.load.id)};
    if (RestsAfter(both)) {
      return both;
    }
  }
  return {};
}

// A set that the one node leads moves to the other, which leads it then.
BalancePlanner::Changes BalancePlanner::CoolOne(const Node& from, const Node& to) {
  for (const auto& [group, placement] : view_.placements) {
    if (group == kMetaGroup || placement->members.front().node != from.load.id ||
        placement->Find(to.load.id) != nullptr ||
        Gain(from, to, group) <= std::max(1.0, kWorthHeat * busy_) ||
        !KeepsZones(*placement, from.load.id, to.load.id)) {
      continue;
    }
    Changes found = WithReturn(Moved(group, *placement, from.load.id, to.load.id), from, to);
    if (!found.empty()) {
      return found;
    }
  }
  return {};
}

// Who has most gives to who has least; where that cannot be, the next ones are tried.
std::vector<const Node*> BalancePlanner::MostFirst(
    const std::function<double(const Node&)>& what) const {
  std::vector<const Node*> order;
  for (const Node& node : nodes_) {
    order.push_back(&node);
  }
  std::ranges::sort(order, std::greater(),
                    [&](const Node* node) { return std::pair(what(*node), node->load.id); });
  return order;
}

std::optional<PlacementChange> BalancePlanner::EvenOut() const {
  std::vector<const Node*> order = MostFirst([](const Node& node) {
    return node.fill.capacity > 0 ? node.fill.bytes / node.fill.capacity : 0;
  });
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (from->fill.bytes - (*to)->fill.bytes > kWorthMoving) {
        if (auto change = MoveOne(*from, **to, true)) {
          return change;
        }
      }
    }
  }
  order = MostFirst([](const Node& node) { return static_cast<double>(node.replicas); });
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (from->replicas > (*to)->replicas + kFair) {
        if (auto change = MoveOne(*from, **to, false)) {
          return change;
        }
      }
    }
  }
  return std::nullopt;
}

std::vector<PlacementChange> BalancePlanner::Run() {
  if (nodes_.size() < 2) {
    return {};
  }
  if (auto change = EvenOut()) {
    return {*change};
  }
  std::vector<const Node*> order = MostFirst([](const Node& node) { return node.work; });
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (auto change = LeadOne(*from, **to)) {
        return {*change};
      }
    }
  }
  for (const Node* from : order) {
    for (auto to = order.rbegin(); busy_ >= 1 && to != order.rend() && *to != from; ++to) {
      if (Changes changes = CoolOne(*from, **to); !changes.empty()) {
        return changes;
      }
    }
  }
  return {};
}

}  // namespace

std::vector<PlacementChange> PlanBalance(const CatalogView& view, const ClusterHealth& health,
                                         const PlacementSettings& settings,
                                         const GroupLoads& loads) {
  bool reshaping = std::ranges::any_of(view.containers_by_id, [](const auto& container) {
    return !container.second->reshapes.empty();
  });
  if (view.balancer_paused || reshaping || !health.moving.empty()) {
    return {};
  }
  return BalancePlanner(view, health, settings, loads).Run();
}

}  // namespace orrery::model
