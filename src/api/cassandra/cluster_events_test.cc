#include "api/cassandra/cluster_events.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/responses.h"
#include "api/cassandra/test_bytes.h"
#include "net/test_client.h"

namespace orrery::cassandra {
namespace {

cql::NodeView NodeAt(char number, bool up, char host = 0) {
  cql::NodeView node{.host_id = std::string(16, number)};
  node.address = std::string("\x0A\x00\x00", 3) + (host == 0 ? number : host);
  node.up = up;
  return node;
}

std::string Told(const std::vector<cql::NodeView>& before,
                 const std::vector<cql::NodeView>& after) {
  std::string text;
  for (const NodeChange& change : NodeChanges({.peers = before}, {.peers = after})) {
    EXPECT_EQ(change.port, 9042);
    EXPECT_EQ(change.kind == EventKind::kTopology, change.change.ends_with("NODE"));
    text += change.change + " " + std::to_string(change.address.back()) + ";";
  }
  return text;
}

TEST(ClusterEventsTest, WhatIsDifferentInTheNodesIsTold) {
  const std::vector<cql::NodeView> two{NodeAt(1, true), NodeAt(2, true)};
  EXPECT_EQ(Told(two, two), "");
  EXPECT_EQ(Told(two, {NodeAt(1, true)}), "REMOVED_NODE 2;");
  EXPECT_EQ(Told(two, {NodeAt(2, true), NodeAt(1, true), NodeAt(3, true)}), "NEW_NODE 3;UP 3;");
  EXPECT_EQ(Told(two, {NodeAt(1, false), NodeAt(2, true)}), "DOWN 1;");
  EXPECT_EQ(Told({NodeAt(1, false), NodeAt(2, false)}, two), "UP 1;UP 2;");
}

TEST(ClusterEventsTest, ANewNodeIsUpWhenItIsHeard) {
  EXPECT_EQ(Told({}, {NodeAt(1, false)}), "NEW_NODE 1;");
  EXPECT_EQ(Told({NodeAt(1, false)}, {NodeAt(1, true)}), "UP 1;");
}

TEST(ClusterEventsTest, ANodeWithAnotherAddressIsAnotherOne) {
  EXPECT_EQ(Told({NodeAt(1, true)}, {NodeAt(1, true, 7)}), "REMOVED_NODE 1;NEW_NODE 7;UP 7;");
}

class ReadyHandler final : public Handler {
 public:
  runtime::Task<Response> Handle(Client&, Request) override { co_return MakeReady(); }
};

// A cluster whose nodes a test changes.
class FakeCluster {
 public:
  void Set(std::vector<cql::NodeView> peers) {
    std::lock_guard lock(mutex_);
    view_.peers = std::move(peers);
  }
  cql::ClusterView Look() {
    std::lock_guard lock(mutex_);
    looked_ = true;
    return view_;
  }
  bool looked() {
    std::lock_guard lock(mutex_);
    return looked_;
  }

 private:
  std::mutex mutex_;
  cql::ClusterView view_;
  bool looked_ = false;
};

TEST(ClusterEventsTest, ClientsThatRegisteredAreTold) {
  runtime::WorkerPool pool(1, 1);
  ReadyHandler handler;
  CassandraServer server(pool, {.port = 0}, handler);
  FakeCluster cluster;
  ClusterEvents events([&cluster] { return cluster.Look(); });
  pool.Start();
  ASSERT_TRUE(server.Start().ok());
  cluster.Set({NodeAt(1, true)});
  events.Start(server, pool);
  ASSERT_TRUE(net::Eventually([&] { return cluster.looked(); }));
  {
    net::TestClient client(server.port());
    client.Send(
        MakeEnvelope(4, 1, Opcode::kStartup, FromParts("0001 000B 'CQL_VERSION' 0005 '3.0.0'")));
    EXPECT_EQ(client.ReceiveBytes(9).size(), 9u);
    client.Send(MakeEnvelope(4, 2, Opcode::kRegister,
                             FromParts("0002 000D 'STATUS_CHANGE' 000F 'TOPOLOGY_CHANGE'")));
    EXPECT_EQ(client.ReceiveBytes(9).size(), 9u);
    cluster.Set({NodeAt(1, false), NodeAt(2, true)});
    for (const Response& wanted : {MakeStatusEvent("DOWN", NodeAt(1, true).address, 9042),
                                   MakeTopologyEvent("NEW_NODE", NodeAt(2, true).address, 9042),
                                   MakeStatusEvent("UP", NodeAt(2, true).address, 9042)}) {
      EXPECT_EQ(client.ReceiveBytes(9).size(), 9u);
      EXPECT_EQ(client.ReceiveBytes(wanted.body.size()), wanted.body);
    }
  }
  events.Stop();
  server.Stop(std::chrono::milliseconds(0));
  pool.Stop();
}

}  // namespace
}  // namespace orrery::cassandra
