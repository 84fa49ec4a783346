// Replicas of one group in one process, on memory disks and a network in memory, for tests.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "replication/raft_host.h"
#include "storage/damaged_engine.h"

namespace orrery::replication {

class TestNode;

class MemoryNetwork {
 public:
  void Plug(NodeId id, TestNode* node) {
    std::lock_guard lock(mutex_);
    nodes_[id] = node;
  }
  void Unplug(NodeId id) {
    std::lock_guard lock(mutex_);
    nodes_.erase(id);
  }
  // Nothing goes from or to it.
  void Cut(NodeId id, bool cut) {
    std::lock_guard lock(mutex_);
    if (cut) {
      cut_.insert(id);
    } else {
      cut_.erase(id);
    }
  }
  // Those here reach each other and nobody else, until all are in one part again.
  void Part(std::set<NodeId> apart) {
    std::lock_guard lock(mutex_);
    apart_ = std::move(apart);
  }
  // As many frames with a part of this kind are lost from now on.
  void Lose(FrameKind kind, int frames) {
    std::lock_guard lock(mutex_);
    lost_kind_ = kind;
    to_lose_ = frames;
  }
  int to_lose() {
    std::lock_guard lock(mutex_);
    return to_lose_;
  }
  void Send(NodeId from, NodeId to, std::string frame);
  // The newest frame to a node that is not here.
  std::string LastTo(NodeId id) {
    std::lock_guard lock(mutex_);
    return last_[id];
  }
  TestNode* Reach(NodeId from, NodeId to) {
    std::lock_guard lock(mutex_);
    return Find(from, to);
  }

 private:
  TestNode* Find(NodeId from, NodeId to) const {
    auto found = nodes_.find(to);
    bool cut =
        cut_.contains(from) || cut_.contains(to) || apart_.contains(from) != apart_.contains(to);
    return found == nodes_.end() || cut ? nullptr : found->second;
  }

  std::mutex mutex_;
  // Loses the frame, if it is one of those.
  bool Loses(const std::string& frame) {
    bool has = false;
    Decoder decoder(frame);
    decoder.U8();  // version
    while (to_lose_ > 0 && decoder.ok() && decoder.left() > 0) {
      decoder.U64();  // group, and the two replicas
      decoder.U64();
      decoder.U64();
      has |= static_cast<FrameKind>(decoder.U8()) == lost_kind_;
      decoder.Bytes();
    }
    to_lose_ -= has ? 1 : 0;
    return has;
  }

  std::map<NodeId, TestNode*> nodes_;
  std::set<NodeId> cut_;
  std::set<NodeId> apart_;
  std::map<NodeId, std::string> last_;
  FrameKind lost_kind_ = FrameKind::kRaft;
  int to_lose_ = 0;
};

// What one node sees of the network.
class MemoryTransport final : public Transport {
 public:
  MemoryTransport(MemoryNetwork& network, NodeId self) : network_(network), self_(self) {}
  void Send(NodeId to, std::string frame) override { network_.Send(self_, to, std::move(frame)); }
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request) override;
  void EndCalls(NodeId to) override {
    std::lock_guard lock(mutex_);
    ++ended_[to];
  }
  // How often calls to this node were ended.
  int Ended(NodeId to) {
    std::lock_guard lock(mutex_);
    return ended_[to];
  }

 private:
  MemoryNetwork& network_;
  const NodeId self_;
  std::mutex mutex_;
  std::map<NodeId, int> ended_;
};

struct TestDisks {
  std::shared_ptr<storage::MemoryDisk> log = storage::MakeMemoryDisk();
  std::shared_ptr<storage::MemoryDisk> state = storage::MakeMemoryDisk();
};

inline constexpr GroupId kTestGroup(7);

class TestNode final : public ApplyListener {
 public:
  TestNode(MemoryNetwork& network, NodeId id, TestDisks& disks, RaftHostOptions options,
           std::vector<NodeId> peers)
      : id(id),
        network(network),
        transport(network, id),
        store(storage::OpenMemoryEngine(disks.log, {.spaces = storage::LogSpaces()}),
              std::make_unique<storage::DamagedEngine>(
                  storage::OpenMemoryEngine(disks.state, storage::StateEngineOptions()), damaged),
              StoreOptionsOf(this)) {
    options.snapshot_folder = (std::filesystem::temp_directory_path() /
                               ("orrery-raft-" + std::to_string(getpid()) + "-" + id.ToString()))
                                  .string();
    EXPECT_TRUE(store.Recover([](GroupId, Lsn, const storage::WriteSetView&) {}).ok());
    host = std::make_unique<RaftHost>(id, store, pool, clock, random, transport, options);
    host->SetPeers(std::move(peers));
    pool.Start();
    store.Start();
    host->Start();
    network.Plug(id, this);
  }
  ~TestNode() override {
    network.Unplug(id);
    host->Stop();
    store.Stop();
    pool.Stop();
  }
  static storage::StoreOptions StoreOptionsOf(TestNode* node) {
    storage::StoreOptions options;
    options.cut_after_bytes = 64 << 10;
    options.snapshot_file_bytes = 8 << 10;
    options.on_flushed = [node] { node->host->OnFlushed(); };
    return options;
  }

  // With founders: it is one of them. Without: it waits for a snapshot; a late founder is one of
  // them all the same.
  void Add(ReplicaId replica, const Configuration& founders, const Configuration& placement,
           bool eager = false, bool late_founder = false) {
    if (!store.Log(kTestGroup)) {
      std::optional<storage::LogBase> base;
      if (!founders.members.empty()) {
        base = storage::LogBase{Lsn(1), 1, founders.Encode(), Lsn(1)};
      }
      storage::ReplicaIdentity identity{.id = replica, .spans = storage::CatalogSpans()};
      Status status =
          store.Found(kTestGroup, identity, base, {.term = base ? uint64_t{1} : uint64_t{0}});
      ASSERT_TRUE(status.ok()) << status.ToString();
    }
    auto heads = store.ReadHeads(kTestGroup);
    ASSERT_TRUE(heads.has_value());
    set = std::make_shared<RaftReplicaSet>(kTestGroup, replica, *host, pool.at(0));
    set->SetListener(this);
    set->SetPlacement(placement);
    if (late_founder) {
      set->SetFounder();
    }
    host->Insert(set);
    pool.at(0).Post([set = set, heads = *heads, eager] { set->Start(heads, eager); });
  }

  void OnApplied(Lsn lsn, const storage::WriteSetView& view) override {
    std::lock_guard lock(mutex);
    results.push_back(std::string(view.result));
  }
  void OnReplaced() override { ++replaced; }
  std::string Outcomes() const override { return "outcomes"; }

  template <typename T>
  T Run(runtime::Task<T> task) {
    std::promise<T> done;
    auto run = [](runtime::Task<T> task, std::promise<T>& done) -> runtime::Task<> {
      done.set_value(co_await std::move(task));
    };
    pool.at(0).Spawn(run(std::move(task), done));
    return done.get_future().get();
  }
  Result<Lsn> Write(const std::string& key, const std::string& value) {
    storage::WriteSet write;
    write.Put(storage::Space::kCatalog, key, value);
    write.result = key;
    write.time = {clock.Wall().micros};
    return Run(set->Commit(std::move(write), set->term()));
  }
  Status Barrier() { return Run(set->ReadBarrier()); }
  std::string Get(const std::string& key) {
    std::string value;
    Status status = store.state().Get(storage::Index(storage::Space::kCatalog), key, &value);
    return status.ok() ? value : status.ToString();
  }
  RaftView View() {
    auto look = [this]() -> runtime::Task<RaftView> { co_return set->view(); };
    return Run(look());
  }

  const NodeId id;
  MemoryNetwork& network;
  SystemClock clock;
  SystemRandom random;
  MemoryTransport transport;
  runtime::WorkerPool pool{1};
  std::atomic<bool> damaged = false;  // reads of the state fail
  storage::Store store;
  std::unique_ptr<RaftHost> host;
  std::shared_ptr<RaftReplicaSet> set;
  std::mutex mutex;
  std::vector<std::string> results;
  std::atomic<int> replaced = 0;
};

inline void MemoryNetwork::Send(NodeId from, NodeId to, std::string frame) {
  std::lock_guard lock(mutex_);
  if (Loses(frame)) {
    return;
  }
  if (TestNode* node = Find(from, to)) {
    node->pool.at(0).Post(
        [node, from, frame = std::move(frame)] { node->host->OnFrame(from, frame); });
  } else {
    last_[to] = std::move(frame);
  }
}

inline runtime::Task<Result<std::string>> MemoryTransport::Call(NodeId to, std::string request) {
  TestNode* node = network_.Reach(self_, to);
  if (node == nullptr) {
    co_return Error(Code::kUnavailable, "not reachable");
  }
  request.erase(0, 1);  // the kind: here all are about snapshots
  auto handle = [node, &request] { return node->host->snapshots().Handle(request); };
  co_return co_await runtime::OnWorker(node->pool.at(0), handle);
}

// Waits for a condition, with a deadline.
template <typename F>
bool Eventually(F condition, Duration longest = std::chrono::seconds(20)) {
  auto until = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class RaftReplicaSetTest : public testing::Test {
 protected:
  static RaftHostOptions Fast() {
    RaftHostOptions options;
    options.set.election_timeout = std::chrono::milliseconds(150);
    options.set.heartbeat = std::chrono::milliseconds(30);
    options.set.trail_entries = 50;
    options.set.cut_entries = 50;
    return options;
  }
  static Member At(uint32_t node, Role role = Role::kVoter) {
    return {ReplicaId(100 + node), NodeId(node), role};
  }
  static Configuration Voters(std::initializer_list<uint32_t> nodes) {
    Configuration configuration;
    for (uint32_t node : nodes) {
      configuration.members.push_back(At(node));
    }
    return configuration;
  }
  TestNode& Boot(uint32_t id) {
    nodes_[id] = std::make_unique<TestNode>(
        network_, NodeId(id), disks_[id], options_,
        std::vector<NodeId>{NodeId(1), NodeId(2), NodeId(3), NodeId(4), NodeId(5)});
    return *nodes_[id];
  }
  void Found(std::initializer_list<uint32_t> ids) {
    Configuration founders = Voters(ids);
    for (uint32_t id : ids) {
      Boot(id).Add(ReplicaId(100 + id), founders, founders, id == *ids.begin());
    }
  }
  void Place(const Configuration& placement) {
    for (auto& [id, node] : nodes_) {
      node->pool.at(0).Post([set = node->set, placement] { set->SetPlacement(placement); });
    }
  }
  TestNode* Leader() {
    TestNode* leader = nullptr;
    EXPECT_TRUE(Eventually([&] {
      for (auto& [id, node] : nodes_) {
        if (node != nullptr && node->set->leads()) {
          leader = node.get();
          return true;
        }
      }
      return false;
    }));
    return leader;
  }
  void Kill(uint32_t id) {
    nodes_.erase(id);
    for (auto& [other, node] : nodes_) {
      node->host->OnRefused(NodeId(id));
    }
  }
  // Whether the clocks of all stand still.
  bool Quiet() {
    for (auto& [id, node] : nodes_) {
      auto look = [&]() -> runtime::Task<bool> {
        co_return node->set->deadline() == Instant::max();
      };
      if (!node->Run(look())) {
        return false;
      }
    }
    return true;
  }
  // Writes at whoever leads, again and again until one write is acknowledged.
  void WriteSomewhere(const std::string& key, const std::string& value) {
    ASSERT_TRUE(Eventually([&] { return Leader()->Write(key, value).has_value(); }));
  }

  RaftHostOptions options_ = Fast();
  MemoryNetwork network_;
  std::map<uint32_t, TestDisks> disks_;
  std::map<uint32_t, std::unique_ptr<TestNode>> nodes_;
};

}  // namespace orrery::replication
