#include "partition/router.h"

#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "partition/replica.h"
#include "storage/damaged_engine.h"

namespace orrery::partition {
namespace {

using runtime::Task;

// Commits without a log.
class FakeReplicaSet final : public replication::ReplicaSet {
 public:
  void SetListener(replication::ApplyListener*) override {}
  bool leads() const override { return leading; }
  uint64_t term() const override { return 1; }
  Task<Result<Lsn>> Commit(storage::WriteSet, uint64_t) override { co_return Lsn(++last); }
  // Applies what is committed.
  bool Within(const replication::Staleness& bound) const override {
    return bound.time >= age.load();
  }
  uint64_t installs() const override { return installed; }
  Task<Status> ReadBarrier() override {
    ++barriers;
    if (deposed) {
      co_return Status(Code::kNotLeader);
    }
    last = std::max<uint64_t>(last, committed);
    co_return Status::Ok();
  }
  bool replicated() const override { return has_others; }
  Task<bool> ReportDamage(Status) override {
    ++damaged;
    co_return has_others.load();
  }
  Lsn applied() const override { return Lsn(last); }
  storage::Totals totals() const override { return {}; }
  NodeId leader_node() const override { return leader; }

  std::atomic<bool> leading = true;
  std::atomic<NodeId> leader = NodeId();
  std::atomic<bool> has_others = false;
  std::atomic<bool> deposed = false;  // and does not know it
  std::atomic<Duration> age = Duration();
  std::atomic<uint64_t> installed = 0;
  std::atomic<int> barriers = 0;
  std::atomic<int> damaged = 0;
  std::atomic<uint64_t> committed = 0;
  std::atomic<uint64_t> last = 0;
};

// Answers with the name of the thread's worker.
class Ping final : public Operation {
 public:
  explicit Ping(bool write = true) : write(write) {}
  OperationKind kind() const override { return OperationKind::kWriteItems; }
  bool writes() const override { return write; }
  bool runs_anywhere() const override { return !write; }
  void Encode(Encoder& encoder) const override { encoder.Bool(write); }
  static Result<std::unique_ptr<Operation>> Decode(Decoder& decoder) {
    return std::make_unique<Ping>(decoder.Bool());
  }
  RequestUnits least_price() const override { return RequestUnits(5); }
  Lsn session_token() const override { return session; }
  Task<Reply> Run(Replica& replica) override {
    if (session > replica.applied()) {
      co_return replica.MakeReply(Status(Code::kSessionNotReached), RequestUnits(1));
    }
    if (during) {
      during();
    }
    Reply reply = replica.MakeReply(Status(), RequestUnits(10));
    reply.body = "worker " + std::to_string(runtime::Worker::Current()->index()) + " id " +
                 std::to_string(id.low);
    co_return reply;
  }
  const bool write;
  Lsn session;
  std::function<void()> during;
};

// Reads a key, or says that what it read means nothing.
class Look final : public Operation {
 public:
  explicit Look(bool reads) : reads(reads) {}
  OperationKind kind() const override { return OperationKind::kReadItem; }
  bool writes() const override { return false; }
  bool runs_anywhere() const override { return true; }
  void Encode(Encoder&) const override {}
  RequestUnits least_price() const override { return RequestUnits(1); }
  Task<Reply> Run(Replica& replica) override {
    Status status(Code::kCorruption, "malformed");
    if (reads) {
      auto value = co_await replica.Read(storage::Space::kItems, "a");
      status = value ? Status::Ok() : value.error();
    }
    co_return replica.MakeReply(std::move(status), RequestUnits(1));
  }
  const bool reads;
};

class RouterTest : public testing::Test {
 protected:
  RouterTest() {
    registry.Register(OperationKind::kWriteItems, Ping::Decode);
    pool.Start();
  }
  ~RouterTest() override { pool.Stop(); }

  static std::shared_ptr<const Schema> SchemaOf(uint64_t version) {
    auto schema = std::make_shared<Schema>();
    schema->version = version;
    return schema;
  }
  std::shared_ptr<Replica> MakeReplica(const PartitionRange& range, uint64_t schema,
                                       double share = 1000) {
    auto replica = std::make_shared<Replica>(
        ContainerId(1), range, SchemaOf(schema), std::make_shared<Budget>(RequestUnits(share)),
        true, pool.at(1), std::make_unique<FakeReplicaSet>(), services);
    replicas.Add({replica});
    return replica;
  }
  static Ring RingOf(PartitionRange range, uint64_t schema) {
    auto map = PartitionMap::Make({std::move(range)});
    return {ContainerId(1), std::make_shared<const PartitionMap>(std::move(*map)), schema};
  }
  template <typename T>
  T Run(Task<T> task, size_t worker = 0) {
    auto done = std::make_shared<std::promise<T>>();
    auto run = [](Task<T> task, std::shared_ptr<std::promise<T>> done) -> Task<> {
      done->set_value(co_await std::move(task));
    };
    auto result = done->get_future();
    pool.at(worker).Spawn(run(std::move(task), done));
    return result.get();
  }
  Reply Execute(const Ring& ring, Operation& operation) {
    return Run(router.Execute(ring, "", operation));
  }

  const PartitionRange old_range{.id = PartitionId(1), .generation = 1};
  const PartitionRange new_range{.id = PartitionId(1), .generation = 2};

  ManualClock clock;
  runtime::WorkerPool pool{2};
  std::atomic<bool> damaged = false;  // the files of the state
  std::unique_ptr<storage::Engine> state = std::make_unique<storage::DamagedEngine>(
      storage::OpenMemoryEngine(storage::MakeMemoryDisk(),
                                {.spaces = {"replica", "items", "index", "catalog"}}),
      damaged);
  ReplicaServices services{.state = *state, .workers = pool, .clock = clock};
  ReplicaTable replicas;
  OperationRegistry registry;
  SystemRandom random;
  std::atomic<int> looked = 0;
  Ring newest;
  Router router{replicas, registry,
                [this](ContainerId) {
                  ++looked;
                  return newest;
                },
                random, clock};
};

TEST_F(RouterTest, AWriteRunsOnThePartitionsWorkerAndAPointReadWhereItArrives) {
  MakeReplica(old_range, 1);
  Ping write(true);
  write.id = {1, 2};
  EXPECT_EQ(Execute(RingOf(old_range, 1), write).body, "worker 1 id 2");
  Ping read(false);
  read.id = {1, 3};
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).body, "worker 0 id 3");
  EXPECT_EQ(looked, 0);
}

TEST_F(RouterTest, AnOldMapIsLookedUpAgain) {
  MakeReplica(new_range, 1);
  newest = RingOf(new_range, 1);
  Ping ping;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  EXPECT_EQ(looked, 1);
}

TEST_F(RouterTest, AnOldDefinitionIsLookedUpAgain) {
  MakeReplica(old_range, 2);
  newest = RingOf(old_range, 2);
  Ping ping;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  EXPECT_EQ(looked, 1);
}

TEST_F(RouterTest, APartitionThatIsGoneIsLookedForInTheNewMap) {
  const PartitionRange other{.id = PartitionId(9), .generation = 1};
  MakeReplica(other, 1);
  newest = RingOf(other, 1);
  Ping ping;
  EXPECT_EQ(Execute(RingOf(old_range, 1), ping).partition, PartitionId(9));
}

TEST_F(RouterTest, TheTriesOfAnOperationHaveOneId) {
  MakeReplica(new_range, 1);
  newest = RingOf(new_range, 1);
  Ping ping;
  ping.id = {5, 6};
  EXPECT_EQ(Execute(RingOf(old_range, 1), ping).body, "worker 1 id 6");
}

TEST_F(RouterTest, AnOperationWithoutANameGetsOneAndAnotherOneWhenItIsExecutedAgain) {
  MakeReplica(new_range, 1);
  Ping ping;
  Execute(RingOf(new_range, 1), ping);
  storage::OperationId first = ping.id;
  EXPECT_NE(first, storage::OperationId());
  Execute(RingOf(new_range, 1), ping);
  EXPECT_EQ(ping.id.high, first.high);
  EXPECT_EQ(ping.id.low, first.low + 1);
  EXPECT_EQ(ping.settled, ping.id.low);
}

TEST_F(RouterTest, WhileANodeCannotReadItNothingIsSaidOfWhatHasEnded) {
  MakeReplica(new_range, 1);
  std::atomic<bool> all_read_it = false;
  router.SetTellsSettled([&] { return all_read_it.load(); });
  Ping before;
  Execute(RingOf(new_range, 1), before);
  EXPECT_NE(before.id, storage::OperationId());
  EXPECT_EQ(before.settled, 0u);
  EXPECT_EQ(OperationRegistry::EncodeMessage(before)[0], 1);
  all_read_it = true;
  Ping after;
  Execute(RingOf(new_range, 1), after);
  EXPECT_EQ(after.settled, 1u);
  EXPECT_EQ(OperationRegistry::EncodeMessage(after)[0], 3);
}

// The answer to the first try is lost. Meanwhile another operation comes and goes.
TEST_F(RouterTest, WhatIsTriedAgainHasItsIdAndHasNotSettledMeanwhile) {
  MakeReplica(old_range, 1);
  struct Sent {
    storage::OperationId id;
    uint64_t settled = 0;
    bool again = false;
  };
  std::vector<Sent> sent;
  Ping other;
  Remote remote{.self = NodeId(1), .nodes = [](PartitionId) { return std::vector{NodeId(2)}; }};
  remote.call = [&](NodeId, std::string message) -> Task<Result<std::string>> {
    auto operation = registry.DecodeMessage(message);
    sent.push_back({(*operation)->id, (*operation)->settled, (*operation)->again});
    if (sent.size() == 1) {
      co_await router.ExecuteAt(RingOf(old_range, 1), old_range, other);
      co_return Error(Code::kUnknownOutcome, "the connection broke");
    }
    std::string answer;
    Encoder encoder(answer);
    Reply().Encode(encoder);
    co_return answer;
  };
  router.SetRemote(std::move(remote));
  const PartitionRange elsewhere{.id = PartitionId(2), .generation = 1};
  Ping lost;
  EXPECT_TRUE(Run(router.ExecuteAt(RingOf(elsewhere, 1), elsewhere, lost)).status.ok());
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].id, sent[0].id);
  EXPECT_FALSE(sent[0].again);
  EXPECT_TRUE(sent[1].again);
  EXPECT_EQ(other.settled, lost.id.low) << "it was in flight";
  Ping next;
  Execute(RingOf(old_range, 1), next);
  EXPECT_EQ(next.settled, next.id.low) << "now all have ended";
}

// Three other nodes with replicas of a partition. One that is frozen answers nothing until it is
// known to be silent, as a transport has it.
class OtherNodes {
 public:
  Remote MakeRemote() {
    Remote remote{.self = NodeId(1)};
    remote.nodes = [](PartitionId) { return std::vector{NodeId(2), NodeId(3), NodeId(4)}; };
    remote.call = [this](NodeId node, std::string) { return Call(node); };
    remote.alive = [this](NodeId node) {
      std::lock_guard lock(mutex_);
      return !silent_.contains(node);
    };
    return remote;
  }
  void Lead(NodeId node) {
    std::lock_guard lock(mutex_);
    leader_ = node;
  }
  void Freeze(NodeId node) {
    std::lock_guard lock(mutex_);
    frozen_ = node;
  }
  void FallSilent(NodeId node) {
    std::vector<Resume> waiting;
    {
      std::lock_guard lock(mutex_);
      silent_.insert(node);
      waiting = std::exchange(waiting_, {});
    }
    for (Resume& resume : waiting) {
      resume(Error(Code::kUnknownOutcome, "nothing is heard of it"));
    }
  }
  size_t waiting() {
    std::lock_guard lock(mutex_);
    return waiting_.size();
  }
  size_t asked() {
    std::lock_guard lock(mutex_);
    return asked_.size();
  }
  std::vector<NodeId> TakeAsked() {
    std::lock_guard lock(mutex_);
    return std::exchange(asked_, {});
  }

 private:
  using Resume = std::function<void(Result<std::string>)>;
  Task<Result<std::string>> Call(NodeId node) {
    Reply reply;
    bool hangs = false;
    {
      std::lock_guard lock(mutex_);
      asked_.push_back(node);
      hangs = node == frozen_;
      if (node != leader_) {
        reply.status = Status(Code::kNotLeader);
        reply.leader = leader_;
      }
    }
    if (hangs) {
      auto wait = [this](Resume resume) {
        std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(resume));
      };
      co_return co_await runtime::Suspend<Result<std::string>>(std::move(wait));
    }
    std::string answer;
    Encoder encoder(answer);
    reply.Encode(encoder);
    co_return answer;
  }

  std::mutex mutex_;
  NodeId leader_;
  NodeId frozen_;
  std::set<NodeId> silent_;
  std::vector<NodeId> asked_;
  std::vector<Resume> waiting_;
};

TEST_F(RouterTest, ALeaderThatFallsSilentIsPassedOver) {
  OtherNodes others;
  others.Lead(NodeId(2));
  router.SetRemote(others.MakeRemote());
  Ping before;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), before).status.ok());
  EXPECT_EQ(others.TakeAsked(), std::vector{NodeId(2)});
  others.Freeze(NodeId(2));
  std::thread others_notice([&] {
    while (others.waiting() == 0) {
      std::this_thread::yield();
    }
    others.FallSilent(NodeId(2));
    while (others.asked() < 4) {  // they still name the silent one
      std::this_thread::yield();
    }
    others.Lead(NodeId(3));
  });
  Ping under_way;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), under_way).status.ok());
  others_notice.join();
  others.TakeAsked();
  Ping after;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), after).status.ok());
  EXPECT_EQ(others.TakeAsked(), std::vector{NodeId(3)});
  EXPECT_EQ(others.waiting(), 0u) << "nobody asked it again";
}

TEST_F(RouterTest, WhoAnsweredLastIsForgottenWhenItDoesNotLeadAnyMore) {
  OtherNodes others;
  others.Lead(NodeId(4));
  Remote remote = others.MakeRemote();
  remote.call = [this, call = remote.call](NodeId node, std::string message) {
    clock.Advance(std::chrono::seconds(6));
    return call(node, std::move(message));
  };
  router.SetRemote(std::move(remote));
  Ping ping;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  others.TakeAsked();
  others.Lead(NodeId());
  EXPECT_EQ(Execute(RingOf(old_range, 1), ping).status.code(), Code::kUnavailable);
  EXPECT_EQ(others.TakeAsked().front(), NodeId(4));
  others.Lead(NodeId(2));
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  EXPECT_EQ(others.TakeAsked(), std::vector{NodeId(2)});
}

TEST_F(RouterTest, TheReplicaHereTellsFirstWhoLeads) {
  auto replica = MakeReplica(old_range, 1);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  set.leading = false;
  OtherNodes others;
  others.Lead(NodeId(2));
  router.SetRemote(others.MakeRemote());
  Ping ping;
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  others.TakeAsked();
  others.Lead(NodeId(3));
  set.leader = NodeId(3);
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  EXPECT_EQ(others.TakeAsked(), std::vector{NodeId(3)}) << "not the one that answered last";
}

TEST_F(RouterTest, AReplicaThatIsBehindTheCatalogForAMomentIsWaitedFor) {
  auto replica = MakeReplica(old_range, 1);
  newest = RingOf(old_range, 2);
  std::thread catches_up([&] {
    while (looked == 0) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    replica->SetSchema(SchemaOf(2));
  });
  Ping ping;
  EXPECT_TRUE(Execute(newest, ping).status.ok());
  catches_up.join();
}

TEST_F(RouterTest, AContainerThatIsGoneHasNoOwner) {
  Ping ping;
  EXPECT_EQ(Execute(RingOf(old_range, 1), ping).status.code(), Code::kOwnerNotFound);
}

TEST_F(RouterTest, APartitionThatNobodyHasIsLookedForABoundedNumberOfTimes) {
  newest = RingOf(old_range, 1);
  Ping ping;
  // Ten seconds, of another time.
  runtime::ManualTime time(clock);
  runtime::WorkerPool slow(1, 0, &time);
  std::optional<Reply> reply;
  auto run = [&]() -> Task<> { reply = co_await router.Execute(newest, "", ping); };
  slow.at(0).Spawn(run());
  Instant began = clock.Now();
  for (slow.RunReady(); !reply; slow.RunReady()) {
    ASSERT_TRUE(time.next());
    clock.Advance(std::chrono::duration_cast<Duration>(*time.next() - clock.Now()));
    time.WakeOne();
  }
  EXPECT_EQ(reply->status.code(), Code::kUnavailable);
  EXPECT_GT(looked, 1);
  EXPECT_LE(looked, 320);
  EXPECT_GT(clock.Now() - began, std::chrono::seconds(9));
  EXPECT_LT(clock.Now() - began, std::chrono::seconds(11));
  EXPECT_EQ(Run(router.ExecuteAt(newest, old_range, ping)).status.code(), Code::kMoved);
}

TEST_F(RouterTest, AMessageIsHandledLikeALocalOperation) {
  MakeReplica(old_range, 1);
  Ping ping;
  ping.id = {1, 4};
  ping.target = {ContainerId(1), PartitionId(1), 1, 1};
  auto ask = [this](std::string message) {
    std::string bytes = Run(router.HandleMessage(std::move(message)));
    Decoder decoder(bytes);
    return Reply::Decode(decoder);
  };
  EXPECT_EQ(ask(OperationRegistry::EncodeMessage(ping)).body, "worker 1 id 4");
  ping.target.generation = 2;
  EXPECT_EQ(ask(OperationRegistry::EncodeMessage(ping)).status.code(), Code::kMoved);
  ping.target = {ContainerId(1), PartitionId(1), 1, 2};
  EXPECT_EQ(ask(OperationRegistry::EncodeMessage(ping)).status.code(), Code::kSchemaChanged);
  ping.target.partition = PartitionId(2);
  EXPECT_EQ(ask(OperationRegistry::EncodeMessage(ping)).status.code(), Code::kMoved);
  EXPECT_EQ(ask("nonsense").status.code(), Code::kInvalidArgument);
}

// --- the replica ---------------------------------------------------------------------------------

TEST_F(RouterTest, AReplicaThatDoesNotLeadRefusesWritesAndServesReads) {
  auto replica = MakeReplica(old_range, 1);
  static_cast<FakeReplicaSet&>(replica->set()).leading = false;
  Ping write(true);
  Ping read(false);
  EXPECT_EQ(Execute(RingOf(old_range, 1), write).status.code(), Code::kNotLeader);
  EXPECT_TRUE(Execute(RingOf(old_range, 1), read).status.ok());
}

// A follower has shown entry 5 to the client; the leader has applied less.
TEST_F(RouterTest, ALeaderFirstAppliesWhatASessionHasSeen) {
  auto replica = MakeReplica(old_range, 1);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  set.has_others = true;
  for (bool write : {false, true}) {
    Ping ping(write);
    auto code = [&](uint64_t token) {
      ping.session = Lsn(token);
      return Execute(RingOf(old_range, 1), ping).status.code();
    };
    set.last = 3;
    set.committed = 5;
    EXPECT_EQ(code(3), Code::kOk);
    EXPECT_EQ(set.last, 3u) << "nothing had to be waited for";
    EXPECT_EQ(code(5), Code::kOk);
    EXPECT_EQ(code(6), Code::kSessionNotReached) << "nobody can have seen it";
    set.deposed = true;
    EXPECT_EQ(code(6), Code::kNotLeader) << "another may know it";
    set.deposed = false;
  }
}

TEST_F(RouterTest, ABoundedReadIsAnsweredByAReplicaThatIsSurelyNewEnough) {
  auto replica = MakeReplica(old_range, 1);
  replica->SetGoverned(false);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  set.has_others = true;
  set.leading = false;
  Ping read(false);
  read.level = ReadLevel::kBounded;
  set.age = services.staleness.time;
  EXPECT_TRUE(replica->MayServe(read));
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kOk);
  set.age = services.staleness.time + Duration(1);
  EXPECT_FALSE(replica->MayServe(read));
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kNotLeader);
  EXPECT_EQ(set.barriers, 0);
}

TEST_F(RouterTest, ALeaderAsksTheOthersBeforeABoundedReadIfItMayBeTooOld) {
  auto replica = MakeReplica(old_range, 1);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  set.has_others = true;
  Ping read(false);
  read.level = ReadLevel::kBounded;
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kOk);
  EXPECT_EQ(set.barriers, 0);
  set.age = services.staleness.time + Duration(1);
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kOk);
  EXPECT_EQ(set.barriers, 1);
  set.deposed = true;
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kNotLeader);
}

TEST_F(RouterTest, WhatWasReadWhileASnapshotWasTakenInIsNotShown) {
  auto replica = MakeReplica(old_range, 1);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  set.has_others = true;
  set.leading = false;
  Ping read(false);
  read.level = ReadLevel::kEventual;
  replica->SetGoverned(false);
  set.installed = 1;
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kNotLeader);
  set.installed = 2;
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kOk);
  read.during = [&] { set.installed = 4; };
  EXPECT_EQ(Execute(RingOf(old_range, 1), read).status.code(), Code::kNotLeader);
}

TEST_F(RouterTest, OverItsBudgetAReplicaThrottlesAndCountsIt) {
  auto replica = MakeReplica(old_range, 1, 30);
  Ping ping;
  int done = 0;
  while (Execute(RingOf(old_range, 1), ping).status.ok()) {
    ++done;
  }
  EXPECT_EQ(done, 3);
  EXPECT_EQ(replica->stats().requests, 4u);
  EXPECT_EQ(replica->stats().throttled, 1u);
  EXPECT_EQ(replica->stats().charge_hundredths, 3000u);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  replica->SetGoverned(false);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Execute(RingOf(old_range, 1), ping).status.ok());
  }
}

TEST_F(RouterTest, TimeGoesOnlyForward) {
  auto replica = MakeReplica(old_range, 1);
  WallTime first = replica->NextTime();
  WallTime third = replica->NextTime(2);
  EXPECT_EQ(third.micros, first.micros + 2);
  replica->Remember({}, Lsn(1), "", {first.micros + 100});
  EXPECT_EQ(replica->NextTime().micros, first.micros + 101);
  clock.Advance(std::chrono::seconds(5));
  EXPECT_EQ(replica->NextTime(), clock.Wall());
}

TEST_F(RouterTest, OutcomesAreRememberedUpToANumber) {
  auto replica = MakeReplica(old_range, 1);
  for (uint64_t i = 1; i <= 60'000; ++i) {
    replica->Remember({i, i}, Lsn(i), std::to_string(i), {static_cast<int64_t>(i)});
  }
  EXPECT_EQ(replica->Recall({1, 1}), nullptr);
  ASSERT_NE(replica->Recall({60'000, 60'000}), nullptr);
  EXPECT_EQ(replica->Recall({60'000, 60'000})->result, "60000");
  EXPECT_NE(replica->Recall({20'000, 20'000}), nullptr);
  EXPECT_EQ(replica->Recall({200, 201}), nullptr);
}

// Takes the latches of a write, and says what the replica said.
class Latched final : public Operation {
 public:
  OperationKind kind() const override { return OperationKind::kWriteItems; }
  bool writes() const override { return true; }
  void Encode(Encoder&) const override {}
  RequestUnits least_price() const override { return RequestUnits(); }
  Task<Reply> Run(Replica& replica) override {
    Result<Replica::Turn> turn = co_await replica.Acquire(*this, {});
    co_return replica.MakeReply(turn ? Status::Ok() : turn.error(), {});
  }
};

TEST_F(RouterTest, HeirsKnowWhatWasInFlightAndWhatHasEnded) {
  auto parent = MakeReplica(old_range, 1);
  auto sibling = MakeReplica({.id = PartitionId(2), .generation = 1}, 1);
  parent->Remember({7, 3}, Lsn(5), "in flight", {1}, 3);
  parent->Remember({7, 4}, Lsn(6), "too", {2}, 3);
  sibling->Remember({7, 2}, Lsn(9), "elsewhere", {3}, 1);
  const std::string split = parent->Outcomes();
  const std::string merged = Replica::JoinOutcomes(parent->Outcomes(), sibling->Outcomes());
  for (uint64_t id = 3; const std::string& inherited : {split, merged}) {
    const PartitionRange range{.id = PartitionId(id++), .generation = 1};
    auto heir = MakeReplica(range, 1);
    ASSERT_TRUE(heir->DecodeOutcomes(inherited));
    auto code = [&](storage::OperationId named) {
      Latched late;
      late.id = named;
      late.target = {ContainerId(1), range.id, 1, 1};
      return Run(heir->Execute(late)).status.code();
    };
    EXPECT_EQ(code({7, 1}), Code::kUnknownOutcome) << "it has ended";
    EXPECT_EQ(code({7, 3}), Code::kOk);
    EXPECT_EQ(code({7, 5}), Code::kOk);
    EXPECT_EQ(heir->Recall({7, 3})->result, "in flight");
    EXPECT_EQ(heir->Recall({7, 4})->lsn, Lsn(6));
    EXPECT_EQ(heir->Recall({7, 2}) != nullptr, inherited == merged);
  }
}

TEST_F(RouterTest, AReplicaTableForgetsWhatIsRemoved) {
  MakeReplica(old_range, 1);
  EXPECT_NE(replicas.Find(PartitionId(1)), nullptr);
  replicas.Remove({PartitionId(1)});
  EXPECT_EQ(replicas.Find(PartitionId(1)), nullptr);
  EXPECT_TRUE(replicas.All().empty());
}

// Each thread remembers the table it saw last; it must not take it for another one.
TEST_F(RouterTest, AReplicaTableAtTheAddressOfAnOldOneShowsItsOwnReplicas) {
  auto replica = MakeReplica(old_range, 1);
  std::optional<ReplicaTable> table;
  table.emplace();
  table->Add({});
  EXPECT_EQ(table->Find(PartitionId(1)), nullptr);
  table.emplace();
  table->Add({replica});
  EXPECT_EQ(table->Find(PartitionId(1)), replica);
}

TEST_F(RouterTest, AReplicaWhoseFilesAreDamagedSaysSoAndLeavesTheAnswerToOthers) {
  auto replica = MakeReplica(old_range, 1);
  auto& set = static_cast<FakeReplicaSet&>(replica->set());
  auto look = [&](bool reads) {
    Look operation(reads);
    operation.target = {ContainerId(1), old_range.id, old_range.generation, 1};
    return Run(replica->Execute(operation)).status.code();
  };
  set.has_others = true;
  EXPECT_EQ(look(true), Code::kNotFound);
  damaged = true;
  EXPECT_EQ(look(true), Code::kNotLeader);
  EXPECT_EQ(set.damaged, 1);
  EXPECT_EQ(look(false), Code::kCorruption) << "every replica has these bytes";
  EXPECT_EQ(set.damaged, 1);
  set.has_others = false;
  EXPECT_EQ(look(true), Code::kCorruption) << "nobody else can answer";
}

}  // namespace
}  // namespace orrery::partition
