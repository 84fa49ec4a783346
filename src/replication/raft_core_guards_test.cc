// Each guard of RaftCore: what it does, and what the library does without it. The library's
// assertions are on here.
#include <optional>

#include <gtest/gtest.h>

#include "replication/raft_core.h"
#include "replication/raft_test_cluster.h"
#include "replication/raft_test_replica.h"

namespace orrery::replication {
namespace {

uint32_t Without(uint32_t guard) { return kGuardsAll & ~guard; }

Configuration Plus(Configuration configuration, uint64_t id, Role role = Role::kStandby) {
  configuration.members.push_back({ReplicaId(id), NodeId(static_cast<uint32_t>(id)), role});
  return configuration;
}

Configuration Minus(Configuration configuration, uint64_t id) {
  std::erase_if(configuration.members, [&](const Member& m) { return m.id == ReplicaId(id); });
  return configuration;
}

// D1: a change that is not the first entry of a message.
Lsn ChangeBehindACommand(uint32_t guards) {
  TestReplica replica(2, guards);
  replica.Start(Group(3));
  replica.Append(1, 2, 1, 1, 1, {Command(2), ChangeEntry(2, Group(3, 1)), Command(2)});
  EXPECT_EQ(replica.core.last(), Lsn(4));
  EXPECT_EQ(replica.entries.size(), 3u);
  EXPECT_EQ(replica.core.configuration(), Group(3, 1));
  return replica.core.configuration_index();
}

TEST(RaftGuardsTest, AChangeKeepsItsIndexWhereverItStands) {
  EXPECT_EQ(ChangeBehindACommand(kGuardsAll), Lsn(3));
  EXPECT_EQ(ChangeBehindACommand(Without(kGuardChangeFirst)), Lsn(2));
}

TEST(RaftGuardsTest, OneAnswerToAMessageThatWasSplit) {
  TestReplica replica(2);
  replica.Start(Group(3));
  std::vector<LogEntry> entries = {Command(2), ChangeEntry(2, Group(3, 1)), Command(2)};
  replica.Append(1, 2, 1, 1, 1, entries);
  replica.sent.clear();
  replica.Append(1, 2, 1, 1, 4, entries);  // it has them all
  ASSERT_EQ(replica.sent.size(), 1u);
  EXPECT_EQ(replica.sent[0].index, Lsn(4));
  EXPECT_EQ(replica.core.commit(), Lsn(4));
  EXPECT_FALSE(replica.core.changing());
}

// D2: a message that begins below a log that was cut.
void AppendBelowTheBase(uint32_t guards) {
  TestReplica replica(2, guards);
  replica.Start(Group(3));
  replica.Append(1, 2, 1, 1, 6, {5, Command(2)});
  replica.Take(replica.core.LogCut({Lsn(4), 2, Group(3), Lsn(1)}, replica.now));
  replica.sent.clear();
  std::vector<LogEntry> entries(6, Command(2));
  entries[0].term = 1;
  replica.Append(1, 2, 0, 0, 6, entries);
  EXPECT_EQ(replica.core.last(), Lsn(6));
  ASSERT_EQ(replica.sent.size(), 1u);
  EXPECT_EQ(replica.sent[0].rejected, Lsn());
  EXPECT_EQ(replica.sent[0].index, Lsn(6));
}

TEST(RaftGuardsDeathTest, WhatTheBaseCoversIsNotTakenAgain) {
  AppendBelowTheBase(kGuardsAll);
  EXPECT_DEATH(AppendBelowTheBase(Without(kGuardTrimCompacted)), "Assertion");
}

// D3: who refuses a pre-vote because its log is longer has a higher term than the candidate, too.
uint64_t TermOfARefusal(uint32_t guards) {
  TestReplica replica(2, guards);
  replica.Start(Group(4), 7, {Command(5)});
  Message request = replica.From(1, MessageKind::kVote);
  request.term = 8;
  request.index = Lsn(1);
  request.index_term = 1;
  request.pre_vote = true;
  replica.Receive(request);
  EXPECT_FALSE(replica.Last(MessageKind::kVoteResult)->granted);
  return replica.Last(MessageKind::kVoteResult)->term;
}

TEST(RaftGuardsTest, ARefusedPreVoteTellsTheTermOfWhoRefuses) {
  EXPECT_EQ(TermOfARefusal(kGuardsAll), 7u);
  EXPECT_EQ(TermOfARefusal(Without(kGuardRefusalTerm)), 8u);
}

// D4: a rejection that was under way while the follower caught up.
void LateRejection(uint32_t guards) {
  TestReplica replica(1, guards);
  replica.Start(Group(3));
  replica.Lead();
  for (int i = 0; i < 3; ++i) {  // replica 2 is not heard and gets probes again
    replica.Tick();
    replica.Ack(3, replica.core.last().value());
  }
  Lsn match = replica.core.Match(ReplicaId(2));
  EXPECT_EQ(match, replica.core.last());
  replica.Ack(2, 0, match.value());
  EXPECT_EQ(replica.core.Match(ReplicaId(2)), match);
}

TEST(RaftGuardsDeathTest, ALateRejectionTakesNothingBack) {
  LateRejection(kGuardsAll);
  EXPECT_DEATH(LateRejection(Without(kGuardLateRejection)), "Assertion");
}

TEST(RaftGuardsTest, ATransferWaitsForTheWholeLog) {
  TestReplica replica(1);
  replica.Start(Group(3));
  replica.Lead();
  replica.Submit(4);
  uint64_t last = replica.core.last().value();
  replica.Ack(2, last - 1);
  EXPECT_EQ(replica.core.Transfer(ReplicaId(2), replica.now).error().code(), Code::kUnavailable);
  replica.Submit();  // still takes writes
  replica.Ack(2, last + 1);
  Result<Update> update = replica.core.Transfer(ReplicaId(2), replica.now);
  ASSERT_TRUE(update.has_value());
  ASSERT_EQ(update->messages.size(), 1u);
  EXPECT_EQ(update->messages[0].kind, MessageKind::kTimeoutNow);
  EXPECT_EQ(update->messages[0].index, replica.core.last());
  EXPECT_EQ(replica.core.Submit({Command(0)}, replica.now).error().code(), Code::kUnavailable);
}

TEST(RaftGuardsTest, WithoutItATransferGoesToAReplicaThatMustIgnoreIt) {  // D5
  TestReplica replica(1, Without(kGuardTransferReady));
  replica.Start(Group(3));
  replica.Lead();
  replica.Submit(4);
  replica.Take(*replica.core.Transfer(ReplicaId(2), replica.now));
  EXPECT_EQ(replica.Last(MessageKind::kTimeoutNow), nullptr);
  replica.Ack(2, replica.core.last().value() - 2);
  ASSERT_NE(replica.Last(MessageKind::kTimeoutNow), nullptr);
  EXPECT_GT(replica.Last(MessageKind::kTimeoutNow)->index, replica.core.Match(ReplicaId(2)));
}

TEST(RaftGuardsTest, AGroupKeepsThreeVotersButMayGrowFromOne) {
  TestReplica three(1);
  three.Start(Group(3));
  three.Lead();
  EXPECT_EQ(three.Change(Group(2)).code(), Code::kInvalidArgument);
  EXPECT_EQ(three.Change(Group(2, 1)).code(), Code::kInvalidArgument);
  EXPECT_EQ(three.Change(Plus(Group(2), 4)).code(), Code::kInvalidArgument);  // two differences
  TestReplica one(1);
  one.Start(Group(1));
  for (const Configuration& next : {Group(1, 1), Group(2), Plus(Group(2), 3), Group(3)}) {
    EXPECT_TRUE(one.Change(next).ok());
    one.AckAll();
    EXPECT_FALSE(one.core.changing());
  }
  TestReplica two(1);
  two.Start(Group(2));
  two.Lead();
  EXPECT_EQ(two.Change(Group(1)).code(), Code::kInvalidArgument);
}

TEST(RaftGuardsTest, WithoutItTwoReplicasLeadInOneTerm) {  // D6
  uint32_t guards = Without(kGuardSingleVoter | kGuardNewTerm);
  TestReplica old(2, guards);
  old.Start(Group(2));
  old.Lead();
  ASSERT_TRUE(old.Change(Group(1)).ok());
  TestReplica last(1, guards);
  last.Start(Group(2));
  last.Append(2, old.core.term(), 1, 1, 1, old.entries);
  last.Tick();
  EXPECT_TRUE(old.core.leads());
  EXPECT_TRUE(last.core.leads());
  EXPECT_EQ(old.core.term(), last.core.term());
}

// M1
void CatchUpTwice(uint32_t guards) {
  TestReplica replica(1, guards);
  replica.Start(Group(3, 1));
  replica.Elect();
  for (uint64_t peer : {2, 3}) {
    replica.Ack(peer, replica.core.last().value());
  }
  for (int i = 0; i < 2; ++i) {
    Result<RaftCore::CatchUpStep> step = replica.core.CatchUp(ReplicaId(4), replica.now);
    ASSERT_TRUE(step.has_value());
    EXPECT_FALSE(step->caught_up);
  }
  EXPECT_EQ(replica.Change(Plus(Group(3, 1), 5)).code(), Code::kUnavailable);
  replica.Ack(4, replica.core.last().value());
  EXPECT_TRUE(replica.core.CatchUp(ReplicaId(4), replica.now)->caught_up);
  EXPECT_TRUE(replica.Change(Group(4)).ok());
}

TEST(RaftGuardsDeathTest, ACatchUpIsBegunOnce) {
  CatchUpTwice(kGuardsAll);
  EXPECT_DEATH(CatchUpTwice(Without(kGuardOneCatchUp)), "Assertion");
}

// M3: 5 takes the place of 4 and has not heard of it.
Status RemoveTooEarly(uint32_t guards) {
  TestReplica replica(1, guards);
  replica.Start(Group(4, 1));
  replica.Lead();
  EXPECT_TRUE(replica.Change(Group(5)).ok());
  for (uint64_t peer : {2, 3, 4}) {
    replica.Ack(peer, replica.core.last().value());
  }
  EXPECT_FALSE(replica.core.changing());
  Status early = replica.Change(Minus(Group(5), 4));
  if (!early.ok()) {
    replica.Ack(5, replica.core.last().value());
    EXPECT_TRUE(replica.Change(Minus(Group(5), 4)).ok());
  }
  return early;
}

TEST(RaftGuardsTest, AVoterGoesWhenTheOthersKnowTheLastChange) {
  EXPECT_EQ(RemoveTooEarly(kGuardsAll).code(), Code::kUnavailable);
  EXPECT_TRUE(RemoveTooEarly(Without(kGuardRemoveCaughtUp)).ok());
}

TEST(RaftGuardsTest, TwoDeadVotersGoOneAfterTheOther) {
  TestReplica replica(1);
  replica.Start(Group(5));
  replica.Elect();
  auto living = [&] {
    for (uint64_t peer : {2, 3}) {
      replica.Ack(peer, replica.core.last().value());
    }
  };
  living();
  EXPECT_EQ(replica.Change(Minus(Group(5), 4)).code(), Code::kUnavailable);  // may be slow only
  for (int i = 0; i < 12; ++i) {
    replica.Tick();
    living();
  }
  EXPECT_EQ(replica.Change(Minus(Group(5), 3)).code(), Code::kUnavailable);  // this one lives
  EXPECT_TRUE(replica.Change(Minus(Group(5), 4)).ok());
  living();
  EXPECT_TRUE(replica.Change(Minus(Minus(Group(5), 4), 5)).ok());
}

TEST(RaftGuardsTest, ALeaderBeginsWithABarrier) {  // M5
  TestReplica replica(1);
  replica.Start(Group(3));
  replica.Elect();
  ASSERT_EQ(replica.entries.size(), 1u);
  EXPECT_EQ(replica.entries[0].kind, EntryKind::kBarrier);
  EXPECT_EQ(replica.entries[0].term, replica.core.term());
  EXPECT_FALSE(replica.core.settled());
  EXPECT_EQ(replica.Change(Group(3, 1)).code(), Code::kUnavailable);
  replica.AckAll();
  EXPECT_TRUE(replica.core.settled());
  EXPECT_TRUE(replica.Change(Group(3, 1)).ok());

  TestReplica bare(1, Without(kGuardBarrier));
  bare.Start(Group(3));
  bare.Elect();
  EXPECT_TRUE(bare.entries.empty());
  EXPECT_TRUE(bare.Change(Group(3, 1)).ok());  // nothing of its term is committed
}

TEST(RaftGuardsTest, OneBarrierIsEnough) {
  TestReplica replica(1);
  replica.Start(Group(3), 2, {Command(2)});  // the library begins one because of this entry
  replica.Elect();
  EXPECT_EQ(replica.entries.size(), 1u);
  EXPECT_EQ(replica.core.last(), Lsn(3));
}

// M6: replica 2 was made a voter, and has not heard of it.
bool StandbyVotes(uint32_t guards) {
  TestReplica replica(2, guards);
  replica.Start(Group(1, 1));
  replica.Append(1, 2, 1, 1, 1, {});
  Message request = replica.From(1, MessageKind::kVote);
  request.term = 3;
  request.index = Lsn(2);
  request.index_term = 2;
  replica.Receive(request);
  EXPECT_FALSE(replica.Last(MessageKind::kVoteResult)->granted);  // it knows a leader
  replica.Tick();
  replica.Receive(request);
  EXPECT_EQ(replica.core.configuration(), Group(1, 1));
  EXPECT_EQ(replica.core.state(), RaftState::kFollower);
  return replica.Last(MessageKind::kVoteResult)->granted;
}

TEST(RaftGuardsTest, AStandbyVotes) {
  EXPECT_TRUE(StandbyVotes(kGuardsAll));
  EXPECT_FALSE(StandbyVotes(Without(kGuardStandbyVotes)));
}

// D7: the entries that a lone voter sends in two lives.
std::pair<uint64_t, uint64_t> TermsOfTwoLives(uint32_t guards) {
  uint64_t terms[2];
  uint64_t stored = 1;
  for (uint64_t& term : terms) {
    TestReplica replica(1, guards);
    replica.persists = false;  // and the entry is lost
    replica.Start(Group(1, 1), stored);
    EXPECT_TRUE(replica.core.leads());
    term = replica.core.term();
    stored = replica.hard_state ? term : stored;
  }
  return {terms[0], terms[1]};
}

TEST(RaftGuardsTest, ALoneVoterLeadsInANewTerm) {
  auto [first, second] = TermsOfTwoLives(kGuardsAll);
  EXPECT_LT(first, second);
  auto [same, again] = TermsOfTwoLives(Without(kGuardNewTerm));
  EXPECT_EQ(same, again);
}

TEST(RaftGuardsTest, ALoneVoterThatWasDeposedLeadsInANewTerm) {
  TestReplica replica(1);
  replica.Start(Group(1, 1));
  Message result = replica.From(2, MessageKind::kAppendResult);
  result.term = replica.core.term() + 5;
  replica.Receive(result);
  EXPECT_FALSE(replica.core.leads());
  uint64_t term = replica.core.term();
  replica.Tick();
  EXPECT_TRUE(replica.core.leads());
  EXPECT_EQ(replica.core.term(), term + 1);
  EXPECT_EQ(replica.core.vote(), ReplicaId(1));
}

// D8: an old message that is sent again knows a newer commit index.
Lsn CommitAfterAnOldMessage(uint32_t guards) {
  TestReplica replica(2, guards);
  replica.Start(Group(3));
  replica.Append(1, 2, 1, 1, 4, {5, Command(2)});
  EXPECT_EQ(replica.core.commit(), Lsn(4));
  replica.Append(1, 2, 1, 1, 6, {Command(2)});
  return replica.core.commit();
}

TEST(RaftGuardsTest, TheCommitIndexNeverGoesBack) {
  EXPECT_EQ(CommitAfterAnOldMessage(kGuardsAll), Lsn(4));
  EXPECT_EQ(CommitAfterAnOldMessage(Without(kGuardCommitForward)), Lsn(2));
}

// D9: of two changes that arrive before the commit index does, the second is undone.
Configuration AfterARollback(uint32_t guards) {
  TestReplica replica(3, guards);
  replica.Start(Group(3));
  replica.Append(1, 2, 1, 1, 1, {ChangeEntry(2, Group(3, 1)), ChangeEntry(2, Group(3, 2))});
  EXPECT_EQ(replica.core.configuration(), Group(3, 2));
  replica.Append(2, 3, 2, 2, 1, {Command(3)});
  EXPECT_EQ(replica.core.last(), Lsn(3));
  return replica.core.configuration();
}

TEST(RaftGuardsTest, AChangeIsUndoneToTheOneBeforeIt) {
  EXPECT_EQ(AfterARollback(kGuardsAll), Group(3, 1));
  EXPECT_EQ(AfterARollback(Without(kGuardChangeSettled)), Group(3));
}

// D10
Lsn NewcomerToAYoungGroup(uint32_t guards) {
  TestCluster cluster({.founders = 1, .guards = guards});
  cluster.Run(1000);
  ReplicaId added = cluster.Add();
  RaftCore& leader = *cluster.leader();
  Configuration next = Plus(leader.configuration(), added.value());
  cluster.Handle(leader.leader(), *leader.Change(next, cluster.now()));
  cluster.Run(5000);
  EXPECT_EQ(cluster.fault(), "");
  return cluster.core(added)->stored();
}

TEST(RaftGuardsTest, ABaseAtIndexOneIsSentToNewcomers) {
  EXPECT_EQ(NewcomerToAYoungGroup(kGuardsAll), Lsn(3));
  EXPECT_EQ(NewcomerToAYoungGroup(Without(kGuardFirstSnapshot)), Lsn(0));
}

}  // namespace
}  // namespace orrery::replication
