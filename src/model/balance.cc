#include "model/balance.h"

#include <algorithm>
#include <set>

#include "model/elastic.h"

namespace orrery::model {

namespace {

constexpr GroupId kMetaGroup{0};
constexpr size_t kFair = 1;            // a difference of counts that may stay
constexpr double kWorthMoving = 64e6;  // bytes that a node must have more than another

struct Node {
  NodeLoad load;
  size_t replicas = 0;
  size_t first = 0;  // placements that name it first, and so want it to lead
  NodeFill fill;
};

class BalancePlanner {
 public:
  BalancePlanner(const CatalogView& view, const ClusterHealth& health,
                 const PlacementSettings& settings, const GroupBytes& bytes);
  std::optional<PlacementChange> Run();

 private:
  using Nodes = std::vector<Node>;
  std::optional<PlacementChange> MoveOne(const Node& from, const Node& to, bool by_fill) const;
  bool KeepsZones(const Placement& placement, NodeId from, NodeId to) const;
  std::optional<PlacementChange> LeadOne(const Node& from, const Node& to) const;
  double BytesOf(GroupId group) const;
  double Mean() const;
  bool HasRoom(const Node& to, double bytes) const;

  const CatalogView& view_;
  const GroupBytes& bytes_;
  Nodes nodes_;
};

BalancePlanner::BalancePlanner(const CatalogView& view, const ClusterHealth& health,
                               const PlacementSettings& settings, const GroupBytes& bytes)
    : view_(view), bytes_(bytes) {
  for (NodeLoad& load : LoadsOf(view, health, settings)) {
    if (load.usable() && load.alive) {
      nodes_.push_back({.load = std::move(load)});
    }
  }
  for (Node& node : nodes_) {
    for (const auto& [group, placement] : view.placements) {
      if (group != kMetaGroup && placement->Find(node.load.id) != nullptr) {
        ++node.replicas;
        node.first += placement->members.front().node == node.load.id ? 1 : 0;
        node.fill.bytes += BytesOf(group);
      }
    }
    node.fill.capacity = node.fill.bytes + static_cast<double>(node.load.free_bytes);
  }
}

double BalancePlanner::BytesOf(GroupId group) const {
  auto found = bytes_.find(group);
  return found == bytes_.end() ? 0 : found->second;
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
    best = PlacementChange{.group = group, .epoch = placement->epoch};
    for (PlacedReplica member : placement->members) {
      if (member.node == from.load.id) {
        member = {.node = to.load.id, .voter = member.voter};
      }
      best->members.push_back(member);
    }
    if (!leads) {
      break;
    }
  }
  return best;
}

// A set that the one node leads and the other could.
std::optional<PlacementChange> BalancePlanner::LeadOne(const Node& from, const Node& to) const {
  for (const auto& [group, placement] : view_.placements) {
    const PlacedReplica* other = placement->Find(to.load.id);
    if (group == kMetaGroup || placement->members.front().node != from.load.id ||
        other == nullptr || !other->voter) {
      continue;
    }
    PlacementChange change{
        .group = group, .epoch = placement->epoch, .members = placement->members};
    auto at = std::ranges::find(change.members, to.load.id, &PlacedReplica::node);
    std::rotate(change.members.begin(), at, at + 1);
    return change;
  }
  return std::nullopt;
}

std::optional<PlacementChange> BalancePlanner::Run() {
  if (nodes_.size() < 2) {
    return std::nullopt;
  }
  auto by = [this](auto what) {
    std::vector<const Node*> order;
    for (const Node& node : nodes_) {
      order.push_back(&node);
    }
    std::ranges::sort(order, std::greater(),
                      [&](const Node* node) { return std::pair(what(*node), node->load.id); });
    return order;
  };
  // Who has most gives to who has least; where that cannot be, the next ones are tried.
  auto count = [](const Node& node) { return static_cast<double>(node.replicas); };
  auto fill = [](const Node& node) {
    return node.fill.capacity > 0 ? node.fill.bytes / node.fill.capacity : 0;
  };
  auto leads = [](const Node& node) { return static_cast<double>(node.first); };
  std::vector<const Node*> order = by(fill);
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (from->fill.bytes - (*to)->fill.bytes > kWorthMoving) {
        if (auto change = MoveOne(*from, **to, true)) {
          return change;
        }
      }
    }
  }
  order = by(count);
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (from->replicas > (*to)->replicas + kFair) {
        if (auto change = MoveOne(*from, **to, false)) {
          return change;
        }
      }
    }
  }
  order = by(leads);
  for (const Node* from : order) {
    for (auto to = order.rbegin(); to != order.rend() && *to != from; ++to) {
      if (from->first > (*to)->first + kFair) {
        if (auto change = LeadOne(*from, **to)) {
          return change;
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<PlacementChange> PlanBalance(const CatalogView& view, const ClusterHealth& health,
                                           const PlacementSettings& settings,
                                           const GroupBytes& bytes) {
  bool reshaping = std::ranges::any_of(view.containers_by_id, [](const auto& container) {
    return !container.second->reshapes.empty();
  });
  if (view.balancer_paused || reshaping || !health.moving.empty()) {
    return std::nullopt;
  }
  return BalancePlanner(view, health, settings, bytes).Run();
}

}  // namespace orrery::model
