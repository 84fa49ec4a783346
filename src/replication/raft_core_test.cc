#include "replication/raft_core.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "replication/raft_test_cluster.h"
#include "replication/raft_test_replica.h"

namespace orrery::replication {
namespace {

using std::chrono::milliseconds;

size_t Appends(const std::vector<Message>& messages, uint64_t to) {
  return std::ranges::count_if(messages, [&](const Message& message) {
    return message.kind == MessageKind::kAppend && message.to == ReplicaId(to);
  });
}

TEST(RaftCoreTest, EntriesComeBackAsTheyWereGiven) {
  TestReplica leader(1);
  leader.Start(Group(3));
  leader.Lead();
  LogEntry entry = Command(0, "payload");
  const std::string* payload = entry.payload.get();
  Result<Update> update = leader.core.Submit({entry}, leader.now);
  ASSERT_TRUE(update.has_value());
  ASSERT_EQ(update->entries.size(), 1u);
  EXPECT_EQ(update->first_entry, leader.core.last());
  EXPECT_EQ(update->entries[0].term, leader.core.term());
  EXPECT_EQ(update->entries[0].payload.get(), payload);  // not a copy
  ASSERT_EQ(Appends(update->messages, 2), 1u);
  EXPECT_EQ(update->messages[0].entry_count, 1u);
  EXPECT_TRUE(update->messages[0].entries.empty());

  TestReplica follower(2);
  follower.Start(Group(3));
  entry.term = 2;
  follower.Append(1, 2, 1, 1, 1, {entry});
  ASSERT_EQ(follower.entries.size(), 1u);
  EXPECT_EQ(follower.entries[0].payload.get(), payload);
  EXPECT_EQ(follower.Last(MessageKind::kAppendResult)->index, Lsn(2));
  EXPECT_TRUE(follower.hard_state);
}

TEST(RaftCoreTest, CommitsWhatAMajorityHas) {
  TestReplica leader(1);
  leader.Start(Group(4));
  leader.Lead();
  leader.Submit(3);
  Lsn before = leader.core.commit();
  leader.Ack(2, leader.core.last().value());
  EXPECT_EQ(leader.core.commit(), before);
  leader.Ack(3, leader.core.last().value() - 1);
  EXPECT_EQ(leader.core.commit().value(), leader.core.last().value() - 1);
}

TEST(RaftCoreTest, RefusesWhereItDoesNotLead) {
  TestReplica replica(2);
  replica.Start(Group(3));
  EXPECT_EQ(replica.core.Submit({Command(0)}, replica.now).error().code(), Code::kNotLeader);
  EXPECT_EQ(replica.core.Change(Group(3, 1), replica.now).error().code(), Code::kNotLeader);
  EXPECT_EQ(replica.core.Transfer(ReplicaId(1), replica.now).error().code(), Code::kNotLeader);
  EXPECT_EQ(replica.core.CatchUp(ReplicaId(1), replica.now).error().code(), Code::kNotLeader);
}

TEST(RaftCoreTest, AFullWindowSendsOnlyHeartbeats) {
  TestReplica leader(1, kGuardsAll, 4);
  leader.Start(Group(3));
  leader.Lead();
  for (int i = 0; i < 10; ++i) {
    leader.Submit();
    leader.Ack(3, leader.core.last().value());
  }
  EXPECT_EQ(Appends(leader.sent, 2), 4u);
  EXPECT_EQ(Appends(leader.sent, 3), 10u);
  leader.sent.clear();
  for (int i = 0; i < 20; ++i) {  // a second of writes, without a tick
    leader.now += milliseconds(50);
    leader.Submit();
  }
  EXPECT_EQ(Appends(leader.sent, 2), 5u);
  leader.sent.clear();
  leader.Ack(2, leader.core.Match(ReplicaId(2)).value() + 4);
  ASSERT_EQ(Appends(leader.sent, 2), 1u);
  EXPECT_EQ(leader.sent[0].entry_count, 4u);
}

TEST(RaftCoreTest, ALogThatContradictsItsLeaderStops) {
  TestReplica replica(2);
  replica.Start(Group(3));
  replica.Append(1, 2, 1, 1, 2, {Command(2)});
  EXPECT_TRUE(replica.core.status().ok());
  replica.Append(3, 3, 1, 1, 2, {Command(3)});
  EXPECT_EQ(replica.core.status().code(), Code::kCorruption);
  replica.sent.clear();
  replica.Tick();
  EXPECT_TRUE(replica.sent.empty());
}

TEST(RaftCoreTest, AMalformedConfigurationInTheLogStopsIt) {
  TestReplica replica(2);
  LogEntry change = ChangeEntry(1, Group(3));
  change.payload = std::make_shared<const std::string>("nonsense");
  replica.Start(Group(3), 1, {change});
  EXPECT_EQ(replica.core.status().code(), Code::kCorruption);
}

TEST(RaftCoreTest, AStaleLeaderLearnsTheTerm) {
  TestReplica replica(2);
  replica.Start(Group(3), 9);
  replica.Append(1, 2, 1, 1, 1, {Command(2)});
  ASSERT_EQ(replica.sent.size(), 1u);
  EXPECT_EQ(replica.sent[0].term, 9u);
  EXPECT_EQ(replica.sent[0].index, Lsn());
  EXPECT_EQ(replica.core.last(), Lsn(1));
}

// Snapshots ---------------------------------------------------------------------------------------

Message Install(const TestReplica& replica, uint64_t index) {
  Message message = replica.From(1, MessageKind::kInstall);
  message.term = 3;
  message.index = Lsn(index);
  message.index_term = 3;
  message.configuration = Group(3, 1);
  message.configuration_index = Lsn(index - 1);
  message.manifest = "where it is";
  return message;
}

TEST(RaftCoreTest, ASnapshotTakesThePlaceOfTheLog) {
  TestReplica replica(4);
  replica.Take(replica.core.Start({}, replica.now));
  Update update = replica.core.Receive(Install(replica, 20), replica.now);
  ASSERT_TRUE(update.install.has_value());
  EXPECT_EQ(update.install_manifest, "where it is");
  EXPECT_EQ(update.install_from, ReplicaId(1));
  EXPECT_EQ(update.install->configuration, Group(3, 1));
  replica.Append(1, 3, 20, 3, 20, {Command(3)});  // too early
  replica.Receive(Install(replica, 20));          // known
  EXPECT_TRUE(replica.entries.empty());
  EXPECT_FALSE(replica.install.has_value());
  EXPECT_EQ(replica.Last(MessageKind::kAppendResult)->rejected, Lsn());
  replica.sent.clear();
  replica.Take(replica.core.PersistedSnapshot(*update.install, replica.now));
  EXPECT_EQ(replica.core.commit(), Lsn(20));
  EXPECT_EQ(replica.core.last(), Lsn(20));
  EXPECT_EQ(replica.core.stored(), Lsn(20));
  EXPECT_EQ(replica.core.TermOf(Lsn(20)), 3u);
  EXPECT_EQ(replica.core.configuration(), Group(3, 1));
  EXPECT_EQ(replica.core.configuration_index(), Lsn(19));
  ASSERT_EQ(replica.sent.size(), 1u);
  EXPECT_EQ(replica.sent[0].index, Lsn(20));
  EXPECT_EQ(replica.sent[0].to, ReplicaId(1));
  replica.Append(1, 3, 20, 3, 20, {Command(3)});
  EXPECT_EQ(replica.core.last(), Lsn(21));
}

TEST(RaftCoreTest, ASnapshotThatFailsLeavesTheLog) {
  TestReplica replica(2);
  replica.Start(Group(3));
  replica.persists = false;
  replica.Append(1, 2, 1, 1, 2, {Command(2), Command(2)});
  replica.Receive(Install(replica, 20));
  ASSERT_TRUE(replica.install.has_value());
  replica.Tick();  // no candidacy meanwhile
  EXPECT_EQ(replica.core.state(), RaftState::kFollower);
  replica.Take(replica.core.Persisted(Lsn(3), replica.now));
  replica.core.InstallFailed();
  EXPECT_EQ(replica.core.last(), Lsn(3));
  EXPECT_EQ(replica.core.stored(), Lsn(3));
  EXPECT_EQ(replica.core.commit(), Lsn(2));
  replica.install.reset();
  replica.Receive(Install(replica, 20));
  EXPECT_TRUE(replica.install.has_value());
}

TEST(RaftCoreTest, ASnapshotOfWhatIsThereIsNotFetched) {
  TestReplica replica(2);
  replica.Start(Group(3));
  replica.Append(1, 3, 1, 1, 1, {Command(3), Command(3), Command(3)});
  replica.sent.clear();
  replica.Receive(Install(replica, 3));
  EXPECT_FALSE(replica.install.has_value());
  ASSERT_EQ(replica.sent.size(), 1u);
  EXPECT_EQ(replica.sent[0].index, Lsn(3));
  EXPECT_EQ(replica.core.last(), Lsn(4));
}

TEST(RaftCoreTest, WhoseSenderWasDeposedIsInstalledAllTheSame) {
  TestReplica replica(2);
  replica.Start(Group(3));
  replica.Receive(Install(replica, 20));
  Message request = replica.From(3, MessageKind::kVote);
  request.term = 8;
  request.index = Lsn(30);
  request.index_term = 3;
  request.disrupt = true;
  replica.Receive(request);
  EXPECT_EQ(replica.core.vote(), ReplicaId(3));
  EXPECT_TRUE(replica.Last(MessageKind::kVoteResult)->granted);
  replica.sent.clear();
  replica.Take(replica.core.PersistedSnapshot(*replica.install, replica.now));
  EXPECT_EQ(replica.core.last(), Lsn(20));
  EXPECT_EQ(replica.core.term(), 8u);
}

TEST(RaftCoreTest, ACutLogIsSentAsSnapshot) {
  TestCluster cluster({.founders = 3});
  cluster.Run(5000, [&] { return cluster.Settled(); });
  cluster.Crash(ReplicaId(3));
  cluster.Run(3000, [&] { return cluster.leader() != nullptr; });
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(cluster.Submit("x"));
    cluster.Run(20);
  }
  cluster.CutAll();
  cluster.Restart(ReplicaId(3));
  cluster.Run(5000, [&] { return cluster.Settled(); });
  EXPECT_EQ(cluster.fault(), "");
  EXPECT_TRUE(cluster.Settled());
  EXPECT_EQ(cluster.installs(), 1u);
}

// Elections ---------------------------------------------------------------------------------------

TEST(RaftCoreTest, ALeaderKnownToBeDeadIsReplacedSoon) {
  for (size_t founders : {3, 4, 5}) {
    TestCluster cluster({.seed = founders, .founders = founders});
    cluster.Run(5000, [&] { return cluster.Settled(); });
    ReplicaId old = cluster.leader()->leader();
    cluster.Crash(old);
    Instant died = cluster.now();
    for (uint64_t id = 1; id <= founders; ++id) {
      if (ReplicaId(id) != old) {
        cluster.Handle(ReplicaId(id), cluster.core(ReplicaId(id))->LeaderDied(cluster.now()));
      }
    }
    cluster.Run(5000, [&] { return cluster.leader() != nullptr && cluster.leader()->settled(); });
    EXPECT_LT(cluster.now() - died, milliseconds(200)) << founders;
  }
}

TEST(RaftCoreTest, TheLeadershipIsHandedOver) {
  TestCluster cluster({.founders = 3});
  cluster.Run(5000, [&] { return cluster.Settled(); });
  RaftCore& leader = *cluster.leader();
  ReplicaId next(leader.leader().value() % 3 + 1);
  Instant begin = cluster.now();
  cluster.Handle(leader.leader(), *leader.Transfer(next, cluster.now()));
  cluster.Run(5000, [&] { return cluster.core(next)->settled(); });
  EXPECT_LT(cluster.now() - begin, milliseconds(100));
}

TEST(RaftCoreTest, ARemovedLeaderStepsDownWhenTheChangeIsApplied) {
  TestReplica leader(1);
  leader.Start(Group(4));
  leader.Lead();
  Configuration next = Group(4);
  next.members.erase(next.members.begin());
  ASSERT_TRUE(leader.Change(next).ok());
  Lsn index = leader.core.last();
  leader.AckAll();
  EXPECT_EQ(leader.core.commit(), index);
  EXPECT_TRUE(leader.core.leads());
  leader.Take(leader.core.ConfigurationApplied(index, next, leader.now));
  EXPECT_FALSE(leader.core.leads());
}

// Everything at once ------------------------------------------------------------------------------

struct Faults {
  const char* name;
  bool reorder;
};

class RaftClusterTest : public testing::TestWithParam<Faults> {};

// ORRERY_RAFT_SEEDS: how many, in place of 300.
TEST_P(RaftClusterTest, KeepsItsPromisesUnderFaults) {
  const char* more = std::getenv("ORRERY_RAFT_SEEDS");
  uint64_t seeds = more == nullptr ? 300 : std::strtoull(more, nullptr, 10);
  uint64_t applied = 0, changes = 0, installs = 0, crashes = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    TestCluster cluster({.seed = seed,
                         .founders = seed % 4 == 0 ? 1u : 3u + seed % 3,
                         .chaos = true,
                         .reorder = GetParam().reorder});
    cluster.Run(20'000);
    cluster.Heal();
    cluster.Run(60'000, [&] { return cluster.Settled(); });
    ASSERT_EQ(cluster.fault(), "");
    ASSERT_TRUE(cluster.Settled()) << "seed " << seed;
    applied += cluster.applied_max();
    changes += cluster.changes();
    installs += cluster.installs();
    crashes += cluster.crashes();
  }
  // Otherwise it tests less than it says.
  EXPECT_GT(applied, 200 * seeds);
  EXPECT_GT(changes, 3 * seeds);
  EXPECT_GT(installs, 4 * seeds);
  EXPECT_GT(crashes, 15 * seeds);
}

INSTANTIATE_TEST_SUITE_P(Networks, RaftClusterTest,
                         testing::Values(Faults{"InOrder", false}, Faults{"Reordered", true}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace orrery::replication
