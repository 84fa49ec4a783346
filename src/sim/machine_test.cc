#include "sim/machine.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sim/witness.h"

namespace orrery::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What the nodes of a test have done; outlives their processes.
struct Seen {
  std::vector<std::string> frames;
  std::vector<std::string> refused;
  size_t found = 0;  // keys in the log at the last start
  Status wrote;
};

// Notes what comes in and answers calls with what was asked.
class ProbeNode final : public SimNode {
 public:
  ProbeNode(Environment env, Seen& seen) : env_(std::move(env)), seen_(seen) {}
  Status Start() override {
    log_ = env_.open_log({.spaces = {"log"}});
    auto at = log_->NewIterator(0, "", "");
    seen_.found = 0;
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      ++seen_.found;
    }
    return Status::Ok();
  }
  bool CommitStep() override { return false; }
  bool ApplyStep() override { return false; }
  void OnFrame(NodeId, std::string frame) override { seen_.frames.push_back(std::move(frame)); }
  runtime::Task<std::string> OnCall(NodeId, std::string request) override {
    co_await runtime::Sleep(milliseconds(10));
    co_return "re: " + request;
  }
  void OnRefused(NodeId node) override { seen_.refused.push_back(node.ToString()); }
  runtime::Task<OpResult> Execute(ClientOp) override { co_return OpResult(); }
  std::vector<ReplicaReport> Report() override { return {}; }
  uint64_t StateHash(GroupId) override { return 0; }

  void Write(const std::string& key, storage::WriteMode mode) {
    storage::Batch batch;
    batch.Put(0, key, "");
    seen_.wrote = log_->Write(batch, mode);
  }
  replication::Transport& transport() { return env_.transport; }

 private:
  const Environment env_;
  Seen& seen_;
  std::unique_ptr<storage::Engine> log_;
};

class MachineTest : public testing::Test {
 protected:
  void Make(NetworkOptions options = {}, MachineOptions machine = {}) {
    network_ = std::make_unique<Network>(world_, options);
    machine.folder = testing::TempDir() + "orrery_machine_test";
    auto make = [this](Environment env) -> std::unique_ptr<SimNode> {
      Seen& seen = seen_[env.self];
      return std::make_unique<ProbeNode>(std::move(env), seen);
    };
    for (uint32_t i = 1; i <= 2; ++i) {
      machines_.push_back(std::make_unique<Machine>(world_, *network_, witness_, make, NodeId(i),
                                                    std::vector{NodeId(1), NodeId(2)}, machine));
      machines_.back()->Start();
    }
  }
  void RunFor(Duration how_long) {
    bool over = false;
    world_.After(how_long, [&over] { over = true; });
    while (!over) {
      Step(world_, machines_);
    }
  }
  Machine& one() { return *machines_[0]; }
  Machine& two() { return *machines_[1]; }
  static ProbeNode& Probe(Machine& machine) { return static_cast<ProbeNode&>(machine.node()); }

  void Send(const std::string& frame) {
    one().Post([frame](SimNode& node) {
      static_cast<ProbeNode&>(node).transport().Send(NodeId(2), frame);
    });
  }
  // What a call from one to two has given after so long.
  std::string Call(Duration longest) {
    answer_ = "pending";
    auto run = [](SimNode& node, MachineTest& self) -> runtime::Task<> {
      auto result = co_await static_cast<ProbeNode&>(node).transport().Call(NodeId(2), "hello");
      self.answer_ = result ? *result : std::string(CodeName(result.error().code()));
      self.answered_ = self.world_.now();
    };
    one().Spawn([&](SimNode& node) { return run(node, *this); });
    RunFor(longest);
    return answer_;
  }

  World world_{7, false};
  std::string answer_;  // of the last call
  Instant answered_;
  Witness witness_{world_};
  std::map<NodeId, Seen> seen_;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Machine>> machines_;
};

TEST_F(MachineTest, FramesArriveInOrder) {
  Make();
  std::vector<std::string> sent;
  for (int i = 0; i < 50; ++i) {
    sent.push_back(std::to_string(i));
    Send(sent.back());
  }
  RunFor(seconds(1));
  EXPECT_EQ(seen_[NodeId(2)].frames, sent);
}

TEST_F(MachineTest, FramesOvertakeEachOtherAndComeTwiceWhereTheyMay) {
  Make({.in_order = false, .twice_percent = 50});
  for (int i = 0; i < 50; ++i) {
    Send(std::to_string(100 + i));
  }
  RunFor(seconds(1));
  const std::vector<std::string>& frames = seen_[NodeId(2)].frames;
  EXPECT_GT(frames.size(), 50u);
  EXPECT_FALSE(std::is_sorted(frames.begin(), frames.end()));
}

TEST_F(MachineTest, ACutLinkIsCutOneWay) {
  Make();
  network_->Cut(NodeId(2), NodeId(1));
  Send("there");
  EXPECT_EQ(Call(seconds(11)), std::string(CodeName(Code::kUnknownOutcome)));  // no way back
  EXPECT_EQ(seen_[NodeId(2)].frames.size(), 1u);
  network_->HealCuts();
  EXPECT_EQ(Call(seconds(1)), "re: hello");
}

TEST_F(MachineTest, ADeadProcessRefusesAtOnce) {
  Make();
  two().Die(Death::kKill);
  EXPECT_EQ(Call(seconds(1)), std::string(CodeName(Code::kUnavailable)));
  EXPECT_LT(answered_, Instant(milliseconds(10)));
  EXPECT_EQ(seen_[NodeId(1)].refused, (std::vector<std::string>{"2"}));
}

TEST_F(MachineTest, AMachineWithoutPowerSaysNothing) {
  Make();
  two().Die(Death::kPowerCut);
  EXPECT_EQ(Call(seconds(11)), std::string(CodeName(Code::kUnknownOutcome)));
  EXPECT_GE(answered_, Instant(seconds(10)));
  EXPECT_TRUE(seen_[NodeId(1)].refused.empty());
}

TEST_F(MachineTest, ACallWhoseProcessDiesHasAnUnknownOutcome) {
  Make();
  world_.After(milliseconds(5), [this] { two().Die(Death::kKill); });
  EXPECT_EQ(Call(seconds(1)), std::string(CodeName(Code::kUnknownOutcome)));
  EXPECT_LT(answered_, Instant(milliseconds(20)));
}

TEST_F(MachineTest, FramesForADeadProcessDoNotReachTheNext) {
  Make();
  Send("old");
  two().Die(Death::kKill);
  two().Start();
  Send("new");
  RunFor(seconds(1));
  EXPECT_EQ(seen_[NodeId(2)].frames, (std::vector<std::string>{"new"}));
}

TEST_F(MachineTest, APausedProcessTakesItsMessagesLater) {
  Make();
  two().Pause();
  Send("a");
  EXPECT_EQ(Call(seconds(1)), "pending");
  EXPECT_TRUE(seen_[NodeId(2)].frames.empty());
  two().Resume();
  RunFor(seconds(1));
  EXPECT_EQ(seen_[NodeId(2)].frames, (std::vector<std::string>{"a"}));
}

TEST_F(MachineTest, OnlyAPowerCutLosesWhatWasNotSynced) {
  Make();
  Probe(one()).Write("a", storage::WriteMode::kSynced);
  Probe(one()).Write("b", storage::WriteMode::kWritten);
  one().Die(Death::kKill);
  one().Start();
  EXPECT_EQ(seen_[NodeId(1)].found, 2u);
  one().Die(Death::kPowerCut);
  one().Start();
  EXPECT_EQ(seen_[NodeId(1)].found, 1u);
}

TEST_F(MachineTest, DeathAtAWriteLeavesWhatWasBeforeIt) {
  Make();
  one().DieAtWrite(Death::kKill, 2);
  one().Post([](SimNode& node) {
    for (const char* key : {"a", "b", "c"}) {
      static_cast<ProbeNode&>(node).Write(key, storage::WriteMode::kSynced);
      static_cast<ProbeNode&>(node).transport().Send(NodeId(2), key);
    }
  });
  RunFor(seconds(1));
  EXPECT_FALSE(one().up());
  EXPECT_EQ(seen_[NodeId(2)].frames, (std::vector<std::string>{"a"}));
  one().Start();
  EXPECT_EQ(seen_[NodeId(1)].found, 1u);
}

TEST_F(MachineTest, ABrokenLogTakesNothingUntilTheNextStart) {
  Make();
  one().BreakLog();
  Probe(one()).Write("a", storage::WriteMode::kSynced);
  EXPECT_EQ(seen_[NodeId(1)].wrote.code(), Code::kUnknownOutcome);
  Probe(one()).Write("a", storage::WriteMode::kSynced);
  EXPECT_EQ(seen_[NodeId(1)].wrote.code(), Code::kUnavailable);
  one().Die(Death::kKill);
  one().Start();
  Probe(one()).Write("a", storage::WriteMode::kSynced);
  EXPECT_TRUE(seen_[NodeId(1)].wrote.ok());
}

TEST_F(MachineTest, AFastClockSleepsLessThanItSays) {
  Make({}, {.skew_ppm = 20'000});
  Instant woke;
  auto sleep = [](World& world, Instant& woke) -> runtime::Task<> {
    co_await runtime::Sleep(seconds(10));
    woke = world.now();
  };
  one().Spawn([&](SimNode&) { return sleep(world_, woke); });
  RunFor(seconds(11));
  EXPECT_NEAR(static_cast<double>(woke.time_since_epoch().count()), 1e7 / 1.02, 2);
}

}  // namespace
}  // namespace orrery::sim
