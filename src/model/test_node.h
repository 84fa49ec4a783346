// TestNode: a node in memory, which a power cut can befall. Test support.
//
//   TestMachine machine;
//   TestNode node(machine);
//   auto container = node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
//   Written written = node.Write(*container, "a", {Create(R"({"id":"1","pk":"a"})")});
//   TestMachine after = machine.AfterPowerCut();
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/catalog.h"
#include "model/condition.h"
#include "model/items.h"
#include "model/partition_host.h"
#include "net/peer.h"
#include "partition/router.h"
#include "replication/local_replica_set.h"
#include "runtime/when_all.h"
#include "runtime/worker.h"
#include "storage/engine.h"
#include "storage/store.h"
#include "storage/watched_engine.h"

namespace orrery::model {

// Stands still until it is moved. Thread-safe, also while it is moved.
class TestClock final : public Clock {
 public:
  Instant Now() const override { return Instant(Duration(micros_.load())); }
  WallTime Wall() const override { return {kBase + micros_.load()}; }
  void Advance(Duration by) { micros_ += by.count(); }

 private:
  static constexpr int64_t kBase = 1'800'000'000'000'000;
  std::atomic<int64_t> micros_ = 0;
};

// What outlives the process: two disks and the time.
struct TestMachine {
  std::shared_ptr<storage::MemoryDisk> log = storage::MakeMemoryDisk();
  std::shared_ptr<storage::MemoryDisk> state = storage::MakeMemoryDisk();
  std::shared_ptr<TestClock> clock = std::make_shared<TestClock>();

  // What a power cut at this moment leaves; the node on this machine may go on. The log is looked
  // at first: what is cut from it later must not be missed.
  TestMachine AfterPowerCut() const {
    TestMachine after{storage::CopyOfMemoryDisk(*log), storage::CopyOfMemoryDisk(*state), clock};
    storage::CrashMemoryDisk(*after.log);
    storage::CrashMemoryDisk(*after.state);
    return after;
  }
};

struct TestNodeOptions {
  bool loopback = false;    // every operation is encoded and goes through a socket
  bool background = false;  // expired items are swept, half-cleared containers are cleared
  CatalogLimits limits;
  HostOptions host;
  storage::StoreOptions store;
  storage::WatchedEngine::Before before_log;
  storage::WatchedEngine::Before before_state;
};

// The condition "name=text" holds for an item whose property has this value as JSON.
class EqualsCondition final : public Condition {
 public:
  EqualsCondition(std::string name, std::string json)
      : name_(std::move(name)), json_(std::move(json)) {}
  Result<bool> Holds(types::Value item) const override {
    std::string json;
    types::AppendJson(types::Member(item, name_), json);
    return json == json_;
  }

 private:
  const std::string name_;
  const std::string json_;
};

inline Result<std::unique_ptr<Condition>> CompileEquals(std::string_view text, types::Value) {
  size_t at = text.find('=');
  if (at == std::string_view::npos) {
    return Error(Code::kInvalidArgument, "not a condition");
  }
  return std::make_unique<EqualsCondition>(std::string(text.substr(0, at)),
                                           std::string(text.substr(at + 1)));
}

inline types::Document Json(std::string_view text) {
  auto document = types::Document::FromJson(text);
  EXPECT_TRUE(document) << text;
  return document ? *document : types::Document();
}

// --- steps ---------------------------------------------------------------------------------------

inline ItemStep BodyStep(StepKind kind, std::string_view json) {
  ItemStep step{.kind = kind, .body = Json(json)};
  step.id = step.body.Get("id").string();
  return step;
}
inline ItemStep Create(std::string_view json) { return BodyStep(StepKind::kCreate, json); }
inline ItemStep Upsert(std::string_view json) { return BodyStep(StepKind::kUpsert, json); }
inline ItemStep Replace(std::string_view json) { return BodyStep(StepKind::kReplace, json); }
inline ItemStep Delete(std::string id) { return {.kind = StepKind::kDelete, .id = std::move(id)}; }
inline ItemStep ReadStep(std::string id) { return {.kind = StepKind::kRead, .id = std::move(id)}; }
// `body` is that of a patch request.
inline ItemStep PatchStep(std::string id, std::string_view body) {
  ItemStep step{.kind = StepKind::kPatch, .id = std::move(id)};
  auto parsed = types::ParseJsonValue(body);
  auto patch = Patch::FromJson(parsed->Get("v"));
  EXPECT_TRUE(patch) << body;
  step.patch = std::move(*patch);
  return step;
}
inline ItemStep IfMatch(ItemStep step, std::string etag) {
  step.if_match = std::move(etag);
  return step;
}
inline ItemStep IfNoneMatch(ItemStep step, std::string etag) {
  step.if_none_match = std::move(etag);
  return step;
}

// A stored item as JSON text; "" if there is none.
inline std::string JsonOf(std::string_view stored) {
  std::string json;
  if (stored.size() >= storage::kItemHeaderBytes) {
    types::AppendJson(types::Value::Object(stored.substr(storage::kItemHeaderBytes)), json);
  }
  return json;
}
inline std::string EtagOf(std::string_view stored) {
  auto item = storage::DecodeItem(stored);
  return item ? ItemEtag(item->header) : "";
}

struct Written {
  partition::Reply reply;
  std::vector<StepResult> steps;

  Code code() const { return reply.status.code(); }
  const std::string& item(size_t step = 0) const { return steps.at(step).item; }
};

inline types::PartitionKey KeyOf(std::string text) {
  return {{types::KeyComponent::String(std::move(text))}};
}
inline ItemAddress Address(const Container& container, const std::string& key) {
  auto address = AddressOf(container, KeyOf(key));
  EXPECT_TRUE(address);
  return address ? *address : ItemAddress();
}

// --- the node ------------------------------------------------------------------------------------

class TestNode {
 public:
  explicit TestNode(TestMachine machine, TestNodeOptions options = {})
      : machine_(std::move(machine)), options_(std::move(options)) {
    static const bool once = [] {
      SetConditionCompiler(CompileEquals);
      return true;
    }();
    EXPECT_TRUE(once);
    RegisterItemOperations(registry_);
    // On a thread of its own, which remembers nothing of earlier nodes at the same address.
    std::thread([this] { Open(); }).join();
    workers_->Start();
    store_->Start();
    if (options_.background) {
      host_->Start();
    }
    if (options_.loopback) {
      StartLoopback();
    }
  }
  TestNode(const TestNode&) = delete;
  ~TestNode() {
    host_->Stop();
    catalog_->Stop();
    if (peer_server_ != nullptr) {
      peer_client_->Stop();
      peer_server_->Stop();
    }
    store_->Stop();
    workers_->Stop();
    peer_server_.reset();
    peer_client_.reset();
    workers_.reset();  // before what its tasks refer to
  }

  // Runs a task on a worker and waits for it.
  template <typename T>
  T Run(runtime::Task<T> task, size_t worker = 0) {
    auto done = std::make_shared<std::promise<T>>();
    auto run = [](runtime::Task<T> task, std::shared_ptr<std::promise<T>> done) -> runtime::Task<> {
      done->set_value(co_await std::move(task));
    };
    auto result = done->get_future();
    workers_->at(worker).Spawn(run(std::move(task), done));
    return result.get();
  }
  // Runs tasks side by side on all workers, those of one worker in the order of the list.
  template <typename T>
  std::vector<T> RunAll(std::vector<runtime::Task<T>> tasks) {
    std::vector<std::future<T>> results;
    size_t worker = 0;
    for (runtime::Task<T>& task : tasks) {
      auto done = std::make_shared<std::promise<T>>();
      auto run = [](runtime::Task<T> task,
                    std::shared_ptr<std::promise<T>> done) -> runtime::Task<> {
        done->set_value(co_await std::move(task));
      };
      results.push_back(done->get_future());
      workers_->at(worker++).Spawn(run(std::move(task), done));
    }
    std::vector<T> values;
    for (auto& result : results) {
      values.push_back(result.get());
    }
    return values;
  }

  // The catalog as a worker sees it.
  std::shared_ptr<const CatalogView> View() {
    auto look = [](Catalog& catalog) -> runtime::Task<std::shared_ptr<const CatalogView>> {
      co_return catalog.view();
    };
    return Run(look(*catalog_));
  }
  std::shared_ptr<const Container> Find(std::string_view link) {
    return View()->FindContainer(link);
  }
  // In the database "d", which is made if it is not there.
  std::shared_ptr<const Container> MakeContainer(std::string_view definition,
                                                 ThroughputRequest throughput = {}) {
    if (View()->FindDatabase("d") == nullptr) {
      EXPECT_TRUE(Run(catalog_->CreateDatabase("d", {})));
    }
    auto made = Run(catalog_->CreateContainer("d", Json(definition), throughput));
    EXPECT_TRUE(made) << made.error().ToString();
    return made ? *made : nullptr;
  }

  runtime::Task<partition::Reply> ExecuteTask(const Container& container, std::string epk,
                                              partition::Operation& operation) {
    co_return co_await router_->Execute(container.ring(), epk, operation);
  }
  partition::Reply Execute(const Container& container, const std::string& epk,
                           partition::Operation& operation) {
    return Run(ExecuteTask(container, epk, operation));
  }
  runtime::Task<Written> WriteTask(const Container& container, std::string key,
                                   std::vector<ItemStep> steps, storage::OperationId id = {},
                                   Lsn session = {}) {
    WriteItems write;
    write.address = Address(container, key);
    write.steps = std::move(steps);
    write.session = session;
    write.id = id;
    Written written;
    written.reply = co_await router_->Execute(container.ring(), write.address.epk, write);
    if (!written.reply.body.empty()) {
      auto results = DecodeStepResults(written.reply.body);
      EXPECT_TRUE(results);
      written.steps = std::move(*results);
    }
    co_return written;
  }
  Written Write(const Container& container, const std::string& key, std::vector<ItemStep> steps,
                storage::OperationId id = {}) {
    return Run(WriteTask(container, key, std::move(steps), id));
  }
  partition::Reply ReadReply(const Container& container, const std::string& key,
                             const std::string& id, const std::string& if_none_match = "") {
    ReadItem read;
    read.address = Address(container, key);
    read.id = id;
    read.if_none_match = if_none_match;
    return Execute(container, read.address.epk, read);
  }
  // The item as JSON, or the name of the status in brackets.
  std::string ReadJson(const Container& container, const std::string& key, const std::string& id) {
    partition::Reply reply = ReadReply(container, key, id);
    return reply.status.ok() ? JsonOf(reply.body)
                             : "<" + std::string(CodeName(reply.status.code())) + ">";
  }

  // What the partitions of a container say that they hold.
  storage::Totals TotalsOf(const Container& container) {
    storage::Totals sum;
    for (const auto& replica : replicas_.All()) {
      if (replica->container() == container.id) {
        sum.bytes += replica->totals().bytes;
        sum.items += replica->totals().items;
      }
    }
    return sum;
  }
  // What a look at every item finds.
  storage::Totals Counted(const Container& container) {
    storage::Totals sum;
    storage::KeySpan span = storage::ItemSpan(container.id, {});
    auto at = state().NewIterator(storage::Index(storage::Space::kItems), span.begin, span.end);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      sum.bytes += static_cast<int64_t>(at->key().size() + at->value().size());
      sum.items += 1;
    }
    return sum;
  }
  size_t CountKeys(storage::Space space) {
    size_t count = 0;
    auto at = state().NewIterator(storage::Index(space), "", "");
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      ++count;
    }
    return count;
  }

  const Status& recovered() const { return recovered_; }
  TestClock& clock() { return *machine_.clock; }
  TestMachine& machine() { return machine_; }
  Catalog& catalog() { return *catalog_; }
  PartitionHost& host() { return *host_; }
  storage::Store& store() { return *store_; }
  storage::Engine& state() { return store_->state(); }
  runtime::WorkerPool& workers() { return *workers_; }
  partition::Router& router() { return *router_; }
  partition::ReplicaTable& replicas() { return replicas_; }

 private:
  void Open() {
    auto log = storage::OpenMemoryEngine(machine_.log, {.spaces = storage::LogSpaces()});
    auto state = storage::OpenMemoryEngine(machine_.state, storage::StateEngineOptions());
    store_ = std::make_unique<storage::Store>(
        std::make_unique<storage::WatchedEngine>(std::move(log), options_.before_log),
        std::make_unique<storage::WatchedEngine>(std::move(state), options_.before_state),
        options_.store);
    RecoveredOutcomes outcomes;
    recovered_ = store_->Recover([&](GroupId group, Lsn lsn, const storage::WriteSetView& set) {
      if (set.id != storage::OperationId()) {
        outcomes[group].push_back({set.id, lsn, std::string(set.result), set.time, set.settled});
      }
    });
    EXPECT_TRUE(recovered_.ok()) << recovered_.ToString();
    workers_ = std::make_unique<runtime::WorkerPool>(2);
    meta_ = std::make_unique<replication::LocalReplicaSet>(GroupId(0), *store_, workers_->at(0));
    catalog_ =
        std::make_unique<Catalog>(*meta_, *workers_, *machine_.clock, random_, options_.limits);
    Status loaded =
        catalog_->Load(store_->state(), store_->Record(GroupId(0)).time, outcomes[GroupId(0)]);
    EXPECT_TRUE(loaded.ok()) << loaded.ToString();
    auto find_ring = [this](ContainerId container) { return catalog_->FindRing(container); };
    router_ = std::make_unique<partition::Router>(replicas_, registry_, find_ring, random_,
                                                  *machine_.clock);
    host_ = std::make_unique<PartitionHost>(*catalog_, *store_, *workers_, *machine_.clock,
                                            replicas_, options_.host);
    loaded = host_->Load(std::move(outcomes));
    EXPECT_TRUE(loaded.ok()) << loaded.ToString();
    catalog_->AddListener(host_.get());
  }
  void StartLoopback() {
    net::PeerHandlers handlers;
    handlers.on_call = [this](NodeId, std::string message) {
      return router_->HandleMessage(std::move(message));
    };
    peer_server_ = std::make_unique<net::PeerServer>(*workers_, std::move(handlers));
    EXPECT_TRUE(peer_server_->Start("127.0.0.1", 0).ok());
    peer_client_ = std::make_unique<net::PeerClient>(*workers_, "127.0.0.1", peer_server_->port());
    partition::Remote remote;
    remote.self = NodeId(1);
    remote.nodes = [](PartitionId) { return std::vector<NodeId>{NodeId(1)}; };
    remote.call = [this](NodeId, std::string message) {
      return peer_client_->Call(std::move(message));
    };
    remote.always = true;
    router_->SetRemote(std::move(remote));
  }

  TestMachine machine_;
  const TestNodeOptions options_;
  SystemRandom random_;
  Status recovered_;
  partition::OperationRegistry registry_;
  partition::ReplicaTable replicas_;
  std::unique_ptr<runtime::WorkerPool> workers_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<replication::LocalReplicaSet> meta_;
  std::unique_ptr<Catalog> catalog_;
  std::unique_ptr<partition::Router> router_;
  std::unique_ptr<PartitionHost> host_;
  std::unique_ptr<net::PeerServer> peer_server_;
  std::unique_ptr<net::PeerClient> peer_client_;
};

// Waits for a condition; false if it does not come within ten seconds.
template <typename F>
bool Eventually(F condition) {
  for (int tries = 0; tries < 2000; ++tries) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace orrery::model
