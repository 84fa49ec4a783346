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
  void Send(NodeId from, NodeId to, std::string frame);
  TestNode* Reach(NodeId from, NodeId to) {
    std::lock_guard lock(mutex_);
    return Find(from, to);
  }

 private:
  TestNode* Find(NodeId from, NodeId to) const {
    auto found = nodes_.find(to);
    bool cut = cut_.contains(from) || cut_.contains(to);
    return found == nodes_.end() || cut ? nullptr : found->second;
  }

  std::mutex mutex_;
  std::map<NodeId, TestNode*> nodes_;
  std::set<NodeId> cut_;
};

// What one node sees of the network.
class MemoryTransport final : public Transport {
 public:
  MemoryTransport(MemoryNetwork& network, NodeId self) : network_(network), self_(self) {}
  void Send(NodeId to, std::string frame) override { network_.Send(self_, to, std::move(frame)); }
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request) override;

 private:
  MemoryNetwork& network_;
  const NodeId self_;
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
              storage::OpenMemoryEngine(disks.state, storage::StateEngineOptions()),
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

  // With founders: it is one of them. Without: it waits for a snapshot.
  void Add(ReplicaId replica, const Configuration& founders, const Configuration& placement,
           bool eager = false) {
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
  storage::Store store;
  std::unique_ptr<RaftHost> host;
  std::shared_ptr<RaftReplicaSet> set;
  std::mutex mutex;
  std::vector<std::string> results;
  std::atomic<int> replaced = 0;
};

inline void MemoryNetwork::Send(NodeId from, NodeId to, std::string frame) {
  std::lock_guard lock(mutex_);
  if (TestNode* node = Find(from, to)) {
    node->pool.at(0).Post(
        [node, from, frame = std::move(frame)] { node->host->OnFrame(from, frame); });
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

}  // namespace orrery::replication
