#include "api/cassandra/cluster_events.h"

#include <algorithm>

#include "api/cassandra/responses.h"

namespace orrery::cassandra {

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(200);

// The same node at the same place; null if it is not there.
const cql::NodeView* Find(const cql::ClusterView& cluster, const cql::NodeView& node) {
  auto found = std::ranges::find_if(cluster.peers, [&](const cql::NodeView& peer) {
    return peer.host_id == node.host_id && peer.address == node.address &&
           peer.native_port == node.native_port;
  });
  return found == cluster.peers.end() ? nullptr : &*found;
}

NodeChange Change(EventKind kind, std::string change, const cql::NodeView& node) {
  return {.kind = kind,
          .change = std::move(change),
          .address = node.address,
          .port = static_cast<uint16_t>(node.native_port)};
}

Response MakeEvent(const NodeChange& change) {
  return change.kind == EventKind::kTopology
             ? MakeTopologyEvent(change.change, change.address, change.port)
             : MakeStatusEvent(change.change, change.address, change.port);
}

}  // namespace

std::vector<NodeChange> NodeChanges(const cql::ClusterView& before, const cql::ClusterView& after) {
  std::vector<NodeChange> changes;
  for (const cql::NodeView& node : before.peers) {
    if (Find(after, node) == nullptr) {
      changes.push_back(Change(EventKind::kTopology, "REMOVED_NODE", node));
    }
  }
  for (const cql::NodeView& node : after.peers) {
    const cql::NodeView* old = Find(before, node);
    if (old == nullptr) {
      changes.push_back(Change(EventKind::kTopology, "NEW_NODE", node));
    }
    if (old == nullptr ? node.up : node.up != old->up) {
      changes.push_back(Change(EventKind::kStatus, node.up ? "UP" : "DOWN", node));
    }
  }
  return changes;
}

void ClusterEvents::Start(CassandraServer& server, runtime::WorkerPool& workers) {
  workers.at(0).Spawn(Loop(server, gate_.Enter()));
}

void ClusterEvents::Stop() {
  stopping_ = true;
  gate_.Close();
}

runtime::Task<> ClusterEvents::Loop(CassandraServer& server, runtime::Gate::Pass pass) {
  cql::ClusterView shown = look_();
  while (!stopping_) {
    cql::ClusterView now = look_();
    for (NodeChange& change : NodeChanges(shown, now)) {
      server.Publish(change.kind, [change = std::move(change)](int) { return MakeEvent(change); });
    }
    shown = std::move(now);
    co_await runtime::Sleep(kInterval);
  }
}

}  // namespace orrery::cassandra
