// What an operator can do to partitions by hand: split, merge, move; and the balancer.
#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "server/node.h"
#include "types/document.h"

namespace orrery::server {

using runtime::Task;

namespace {

struct Found {
  std::shared_ptr<const model::Container> container;
  size_t place = 0;  // among its ranges
};

Result<Found> FindPartition(const model::CatalogView& view, PartitionId id) {
  for (const auto& [_, container] : view.containers_by_id) {
    auto ranges = container->map->ranges();
    auto range = std::ranges::find(ranges, id, &partition::PartitionRange::id);
    if (range != ranges.end()) {
      return Found{container, static_cast<size_t>(range - ranges.begin())};
    }
  }
  return Error(Code::kNotFound, "there is no partition " + id.ToString() + " (any more)");
}

// A member of the body that is a whole number; 0: there is none.
uint32_t NumberOf(const types::Document& body, std::string_view name) {
  types::Value value = body.Get(name);
  bool whole = value.kind() == types::Kind::kNumber && value.is_integer() && value.integer() > 0 &&
               value.integer() <= UINT32_MAX;
  return whole ? static_cast<uint32_t>(value.integer()) : 0;
}

// The placement with a replica on another node; kInvalidArgument says why that cannot be.
Result<model::PlacementChange> Moved(const model::CatalogView& view, GroupId group, NodeId from,
                                     NodeId to) {
  auto placement = view.FindPlacement(group);
  auto node = view.FindNode(to);
  if (placement == nullptr || placement->Find(from) == nullptr) {
    return Error(Code::kInvalidArgument, "the partition has no replica on node " + from.ToString());
  }
  if (node == nullptr || node->state != model::NodeState::kActive) {
    return Error(Code::kInvalidArgument, "node " + to.ToString() + " takes no replicas");
  }
  if (placement->Find(to) != nullptr) {
    return Error(Code::kInvalidArgument,
                 "the partition has a replica on node " + to.ToString() + " already");
  }
  model::PlacementChange change{
      .group = group, .epoch = placement->epoch, .members = placement->members};
  for (model::PlacedReplica& member : change.members) {
    if (member.node == from) {
      member = {.node = to, .voter = member.voter};
    }
  }
  return change;
}

}  // namespace

Task<Status> Node::ChangePartition(std::string_view what, std::string_view body_text) {
  uint64_t number = 0;
  size_t slash = what.find('/');
  auto [end, error] = std::from_chars(what.data(), what.data() + what.size(), number);
  std::string_view action = slash == std::string_view::npos ? "" : what.substr(slash + 1);
  if (error != std::errc() || end != what.data() + slash ||
      (action != "split" && action != "merge" && action != "move")) {
    co_return Status(Code::kNotFound, "there is no such admin endpoint");
  }
  auto body = types::Document::FromJson(body_text.empty() ? "{}" : body_text);
  if (!body) {
    co_return body.error();
  }
  model::Catalog& catalog = instance_->catalog();
  auto view = catalog.view();
  PartitionId id(number);
  auto found = FindPartition(*view, id);
  if (!found) {
    co_return found.error();
  }
  Status status;
  if (action == "move") {
    auto change = Moved(*view, GroupId(number), NodeId(NumberOf(*body, "from")),
                        NodeId(NumberOf(*body, "to")));
    status = change ? co_await catalog.SetPlacements({std::move(*change)}) : change.error();
  } else if (action == "split") {
    types::Epk cut;
    types::Value at = body->Get("at");
    if (at.kind() == types::Kind::kString && !FromHex(at.string(), &cut)) {
      co_return Status(Code::kInvalidArgument, "'at' must be a place of the ring, in hex");
    }
    status = co_await catalog.BeginReshape(found->container->id, {id}, std::move(cut));
  } else {
    auto ranges = found->container->map->ranges();
    if (found->place + 1 == ranges.size()) {
      co_return Status(Code::kInvalidArgument, "partition " + id.ToString() +
                                                   " is the last of its container: nothing is "
                                                   "behind it to be merged with");
    }
    status = co_await catalog.BeginReshape(found->container->id, {id, ranges[found->place + 1].id});
  }
  if (status.ok()) {
    log::Info("a change of a partition was asked for",
              {{"partition", id.ToString()}, {"action", std::string(action)}});
  }
  co_return status;
}

Task<Status> Node::ChangeBalancer(std::string_view action) {
  if (action != "pause" && action != "resume") {
    co_return Status(Code::kNotFound, "there is no such admin endpoint");
  }
  log::Info("the balancer was told to " + std::string(action));
  co_return co_await instance_->catalog().PauseBalancer(action == "pause");
}

}  // namespace orrery::server
