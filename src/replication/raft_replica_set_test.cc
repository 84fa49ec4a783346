#include "replication/raft_replica_set.h"

#include "replication/raft_set_test.h"

namespace orrery::replication {
namespace {

TEST_F(RaftReplicaSetTest, AWriteIsAppliedByAll) {
  Found({1, 2, 3, 4});
  TestNode* leader = Leader();
  ASSERT_NE(leader, nullptr);
  auto lsn = leader->Write("a", "1");
  ASSERT_TRUE(lsn.has_value()) << lsn.error().ToString();
  EXPECT_EQ(leader->Get("a"), "1");
  for (auto& [id, node] : nodes_) {
    EXPECT_TRUE(Eventually([&] { return node->Get("a") == "1"; })) << id;
    EXPECT_TRUE(Eventually([&] { return node->set->applied() >= *lsn; }));
  }
  EXPECT_TRUE(leader->Barrier().ok());
}

TEST_F(RaftReplicaSetTest, WhatWasEvaluatedInAnotherTermIsRefused) {
  Found({1, 2, 3});
  TestNode* leader = Leader();
  storage::WriteSet write;
  write.Put(storage::Space::kCatalog, "a", "1");
  write.time = {leader->clock.Wall().micros};
  auto refused = leader->Run(leader->set->Commit(std::move(write), leader->set->term() - 1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kNotLeader);
}

TEST_F(RaftReplicaSetTest, OneVoterCommitsAlone) {
  Found({1});
  ASSERT_TRUE(Leader()->Write("a", "1").has_value());
  EXPECT_TRUE(Leader()->Barrier().ok());
}

TEST_F(RaftReplicaSetTest, TheOthersGoOnWithoutADeadLeader) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  uint32_t dead = Leader()->id.value();
  Kill(dead);
  WriteSomewhere("b", "2");
  EXPECT_EQ(Leader()->Get("a"), "1");
  // It comes back and catches up.
  Configuration all = Voters({1, 2, 3, 4});
  Boot(dead).Add(ReplicaId(100 + dead), all, all);
  EXPECT_TRUE(Eventually([&] { return nodes_[dead]->Get("b") == "2"; }));
}

// One that died when nothing was written has all of the log, and will not have what comes next.
TEST_F(RaftReplicaSetTest, ALeaderKnowsWhichOfThoseThatHoldItsLogAreSilent) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* leader = Leader();
  auto holders = [leader] {
    auto look = [leader]() -> runtime::Task<Result<ReplicaSet::Holders>> {
      co_return leader->set->HoldersOf(leader->set->applied());
    };
    return leader->Run(look());
  };
  ASSERT_TRUE(Eventually([&] { return holders()->holders.size() == 4; }));
  EXPECT_TRUE(Eventually([&] { return holders()->silent.empty(); }));
  uint32_t dead = leader->id.value() % 4 + 1;
  Kill(dead);
  EXPECT_EQ(holders()->holders.size(), 4u);
  EXPECT_EQ(holders()->silent, std::vector{NodeId(dead)});
}

TEST_F(RaftReplicaSetTest, ALeaderWithoutAQuorumConfirmsNothing) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* old = Leader();
  network_.Cut(old->id, true);
  auto write = std::async([&] { return old->Write("lost", "1"); });
  EXPECT_FALSE(old->Barrier().ok());
  EXPECT_EQ(write.get().error().code(), Code::kUnknownOutcome);
  network_.Cut(old->id, false);
  WriteSomewhere("b", "2");
}

TEST_F(RaftReplicaSetTest, ANewReplicaGetsASnapshotAndVotes) {
  Found({1, 2, 3});
  for (int i = 0; i < 400; ++i) {
    WriteSomewhere("key" + std::to_string(i), std::string(500, 'x'));
  }
  Configuration four = Voters({1, 2, 3, 4});
  Boot(4).Add(ReplicaId(104), {}, four);
  Place(four);
  EXPECT_TRUE(Eventually([&] { return Leader()->View().configuration == four; }));
  EXPECT_TRUE(Eventually([&] { return nodes_[4]->Get("key399") == std::string(500, 'x'); }));
  EXPECT_EQ(nodes_[4]->Get("key0"), std::string(500, 'x'));
  EXPECT_EQ(nodes_[4]->replaced, 1);
}

TEST_F(RaftReplicaSetTest, ASetGrowsFromOneToThreeAndMoves) {
  Found({1});
  WriteSomewhere("a", "1");
  Configuration three = Voters({1, 2, 3});
  Boot(2).Add(ReplicaId(102), {}, three);
  Boot(3).Add(ReplicaId(103), {}, three);
  Place(three);
  EXPECT_TRUE(Eventually([&] { return Leader()->View().configuration == three; }));
  // Away from node 1, which leads.
  Configuration moved = Voters({2, 3, 4});
  Boot(4).Add(ReplicaId(104), {}, moved);
  Place(moved);
  EXPECT_TRUE(Eventually([&] {
    TestNode* leader = Leader();
    return leader->id != NodeId(1) && leader->View().configuration == moved;
  }));
  EXPECT_TRUE(Eventually([&] { return nodes_[4]->Get("a") == "1"; }));
  EXPECT_TRUE(Eventually([&] { return nodes_[1]->set->gone(); }));
  WriteSomewhere("b", "2");
}

// Guard M4.
TEST_F(RaftReplicaSetTest, AReplicaThatWasRemovedWhileItWasAwayHearsOfIt) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  Kill(4);
  Configuration three = Voters({1, 2, 3});
  Place(three);
  ASSERT_TRUE(Eventually([&] { return Leader()->View().configuration == three; }));
  Boot(4).Add(ReplicaId(104), {}, Voters({1, 2, 3, 4}));
  EXPECT_TRUE(Eventually([&] { return nodes_[4]->set->gone(); }));
  for (uint32_t id : {1, 2, 3}) {
    EXPECT_FALSE(nodes_[id]->set->gone());
  }
}

// As of a split at a node that was behind, if the replica is moved away before its snapshot comes.
TEST_F(RaftReplicaSetTest, AFounderThatNeverBeganHearsThatItWasRemovedAndANewcomerWaits) {
  Found({1, 2, 3});
  WriteSomewhere("a", "1");
  Configuration three = Voters({1, 2, 3});
  for (uint32_t id : {4, 5}) {
    Boot(id).Add(ReplicaId(100 + id), {}, three, false, id == 4);
  }
  EXPECT_TRUE(Eventually([&] { return nodes_[4]->set->gone(); }));
  EXPECT_FALSE(nodes_[5]->set->gone()) << "it may still be added";
}

// No voter may go while one that stays lacks the last change.
TEST_F(RaftReplicaSetTest, OfThoseThatShouldGoADeadOneHoldsNobodyUp) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  Kill(3);
  Configuration five = Voters({1, 2, 3, 4, 5});
  Boot(5).Add(ReplicaId(105), {}, five);
  Place(five);
  ASSERT_TRUE(Eventually([&] { return Leader()->View().configuration == five; }));
  Configuration three = Leader()->id == NodeId(1) ? Voters({1, 4, 5}) : Voters({2, 4, 5});
  Place(three);
  EXPECT_TRUE(Eventually([&] { return Leader()->View().configuration == three; }));
}

// A request as SnapshotTransfer sends it; the answer is a code and what it says.
template <typename... More>
std::string AskForSnapshot(TestNode& node, uint8_t kind, uint64_t first, More... more) {
  std::string request;
  Encoder encoder(request);
  encoder.U8(kind);
  encoder.U64(first);
  ((sizeof(more) == 4 ? encoder.U32(static_cast<uint32_t>(more)) : encoder.U64(more)), ...);
  return node.Run(node.host->snapshots().Handle(request));
}

// However large it is, each request is short and the sender keeps few files.
TEST_F(RaftReplicaSetTest, ASnapshotIsWrittenFileByFile) {
  Found({1});
  for (int i = 0; i < 100; ++i) {
    WriteSomewhere("key" + std::to_string(i), std::string(1000, 'x'));
  }
  TestNode* node = Leader();
  auto ask = [node](uint8_t kind, uint64_t first, auto... more) {
    return AskForSnapshot(*node, kind, first, more...);
  };
  std::string opening = ask(1, kTestGroup.value(), uint64_t{1});
  Decoder decoder(opening);
  ASSERT_EQ(decoder.U8(), 0) << opening;
  auto base = [&]() -> runtime::Task<Lsn> { co_return node->set->SnapshotMetaNow().index; };
  Lsn before = node->Run(base());
  uint64_t id = decoder.U64();
  uint32_t files = 0;
  for (std::string file; (file = ask(4, id, files)).size() > 1; ++files) {
    ASSERT_EQ(file[0], 0) << file;
    EXPECT_EQ(ask(4, id, files), file) << "an answer may be lost";
    EXPECT_TRUE(node->Write("more" + std::to_string(files), std::string(9000, 'x')));
    auto folder =
        std::filesystem::recursive_directory_iterator(node->host->options().snapshot_folder);
    EXPECT_LE(
        std::ranges::count_if(folder, [](const auto& entry) { return entry.is_regular_file(); }),
        2);
  }
  EXPECT_GT(files, 10u);
  EXPECT_EQ(ask(2, id, uint32_t{0}, uint64_t{0}, uint32_t{10})[0],
            static_cast<char>(Code::kNotFound));
  EXPECT_GT(ask(2, id, files - 1, uint64_t{0}, uint32_t{10}).size(), 10u);
  EXPECT_TRUE(node->store.CutLog().ok());
  EXPECT_EQ(node->Run(base()), before) << "who fetches it needs the log after it";
  ask(3, id);
  EXPECT_EQ(ask(4, id, files)[0], static_cast<char>(Code::kNotFound));
}

TEST_F(RaftReplicaSetTest, ASnapshotThatNobodyFetchesIsForgotten) {
  options_.snapshots.keep = std::chrono::milliseconds(50);
  Found({1});
  WriteSomewhere("a", "1");
  std::string opening = AskForSnapshot(*Leader(), 1, kTestGroup.value(), uint64_t{1});
  ASSERT_EQ(opening[0], 0);
  std::filesystem::path folder = Leader()->host->options().snapshot_folder;
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(Eventually([&] { return std::filesystem::is_empty(folder); }));
}

// Guard M2.
TEST_F(RaftReplicaSetTest, TheLogIsNotCutWhileSomebodyFetchesASnapshot) {
  Found({1});
  WriteSomewhere("a", "1");
  TestNode* node = Leader();
  auto base = [&]() -> runtime::Task<Lsn> { co_return node->set->SnapshotMetaNow().index; };
  auto hold = [&](Duration how_long) {
    auto run = [&]() -> runtime::Task<bool> {
      node->set->HoldLog(how_long);
      co_return true;
    };
    node->Run(run());
  };
  hold(std::chrono::hours(1));
  Lsn before = node->Run(base());
  for (int i = 0; i < 300; ++i) {
    WriteSomewhere("key" + std::to_string(i), std::string(1000, 'x'));
  }
  ASSERT_TRUE(node->store.CutLog().ok());
  EXPECT_EQ(node->Run(base()), before);
  EXPECT_EQ(*node->store.Outcomes(kTestGroup), "");
  hold(Duration::zero());
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(node->Write("more", std::string(70'000, 'x')));
    return node->Run(base()) > before;
  }));
  EXPECT_EQ(*node->store.Outcomes(kTestGroup), "outcomes") << "they are not forgotten with the log";
}

TEST_F(RaftReplicaSetTest, AQuietGroupWakesWhenItIsUsedAndWhenItsLeaderDies) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  auto quiet = [&] { return Quiet(); };
  ASSERT_TRUE(Eventually(quiet));
  WriteSomewhere("b", "2");
  for (auto& [id, node] : nodes_) {
    EXPECT_TRUE(Eventually([&] { return node->Get("b") == "2"; }));
  }
  ASSERT_TRUE(Eventually(quiet));
  uint32_t dead = Leader()->id.value();
  network_.Cut(NodeId(dead), true);  // silent, not refused
  nodes_.erase(dead);
  WriteSomewhere("c", "3");
}

// It would sleep through its own removal, and never ask whether it is gone.
TEST_F(RaftReplicaSetTest, AReplicaThatKnowsThatItShouldGoDoesNotFallAsleep) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* leader = Leader();
  TestNode& leaving = *nodes_[leader->id == NodeId(4) ? 3 : 4];
  Configuration others = Voters({1, 2, leader->id == NodeId(4) ? 4u : 3u});
  leaving.pool.at(0).Post([set = leaving.set, others] { set->SetPlacement(others); });
  auto leader_sleeps = [&] {
    auto look = [&]() -> runtime::Task<bool> {
      co_return leader->set->deadline() == Instant::max();
    };
    return leader->Run(look());
  };
  for (int i = 0; i < 3; ++i) {  // it does not know the placement yet, and is woken
    ASSERT_TRUE(Eventually(leader_sleeps));
    ASSERT_TRUE(Eventually([&] { return !leader_sleeps(); }));
  }
  Place(others);
  EXPECT_TRUE(Eventually([&] { return leaving.set->gone(); }));
}

TEST_F(RaftReplicaSetTest, AReadInAQuietGroupAsksAgainWhenItsQuestionOrTheAnswersAreLost) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  for (FrameKind kind : {FrameKind::kProbe, FrameKind::kProbeAck}) {
    ASSERT_TRUE(Eventually([&] { return Quiet(); }));
    TestNode* leader = Leader();
    network_.Lose(kind, 3);  // of the first round
    auto read = std::async(std::launch::async, [&] { return leader->Barrier(); });
    EXPECT_EQ(read.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(network_.to_lose(), 0);
    WriteSomewhere("b", "2");  // wakes them in any case
    EXPECT_TRUE(read.get().ok());
  }
}

TEST_F(RaftReplicaSetTest, CallsToANodeEndEachTimeThatItFallsSilent) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  for (int times = 1; times <= 2; ++times) {
    EXPECT_TRUE(Eventually([&] { return nodes_[1]->host->Alive(NodeId(4)); }));
    EXPECT_EQ(nodes_[1]->transport.Ended(NodeId(4)), times - 1);
    network_.Cut(NodeId(4), true);
    EXPECT_TRUE(Eventually([&] { return nodes_[1]->transport.Ended(NodeId(4)) == times; }));
    EXPECT_FALSE(nodes_[1]->host->Alive(NodeId(4)));
    network_.Cut(NodeId(4), false);
  }
}

TEST_F(RaftReplicaSetTest, EverybodyRestartsWithWhatWasAcknowledged) {
  Found({1, 2, 3, 4});
  for (int i = 0; i < 50; ++i) {
    WriteSomewhere("key" + std::to_string(i), std::to_string(i));
  }
  nodes_.clear();
  for (auto& [id, disks] : disks_) {
    storage::CrashMemoryDisk(*disks.log);
    storage::CrashMemoryDisk(*disks.state);
  }
  Configuration all = Voters({1, 2, 3, 4});
  for (uint32_t id : {1, 2, 3, 4}) {
    Boot(id).Add(ReplicaId(100 + id), all, all);
  }
  WriteSomewhere("more", "1");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Leader()->Get("key" + std::to_string(i)), std::to_string(i));
  }
}

TEST_F(RaftReplicaSetTest, LeadershipIsGivenAway) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  NodeId before = Leader()->id;
  nodes_[before.value()]->pool.at(0).Post(
      [set = nodes_[before.value()]->set] { set->TransferAway(); });
  EXPECT_TRUE(Eventually([&] { return Leader()->id != before; }));
  WriteSomewhere("b", "2");
}

TEST_F(RaftReplicaSetTest, TheFirstOfThePlacementGetsTheLeadershipBack) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  uint32_t now = Leader()->id.value();
  uint32_t wanted = now == 4 ? 1 : now + 1;
  Configuration placement;
  for (uint32_t i = 0; i < 4; ++i) {
    placement.members.push_back(At((wanted - 1 + i) % 4 + 1));
  }
  Place(placement);
  EXPECT_TRUE(Eventually([&] {
    for (auto& [id, node] : nodes_) {  // the others ask in vain
      node->pool.at(0).Post([set = node->set] { set->AskToLead(); });
    }
    return Leader()->id == NodeId(wanted);
  }));
  WriteSomewhere("b", "2");
}

TEST_F(RaftReplicaSetTest, AReplicaThatDiffersFromTheOthersIsFound) {
  std::mutex mutex;
  std::vector<ReplicaId> odd;
  options_.on_difference = [&](GroupId group, ReplicaId replica) {
    std::lock_guard lock(mutex);
    EXPECT_EQ(group, kTestGroup);
    odd.push_back(replica);
  };
  Found({1, 2, 3, 4});
  for (int i = 0; i < 20; ++i) {
    WriteSomewhere("key" + std::to_string(i), std::to_string(i));
  }
  TestNode* leader = Leader();
  auto check = [&] {
    auto lsn = leader->set->applied();
    leader->pool.at(0).Post([set = leader->set] { set->Check(); });
    EXPECT_TRUE(Eventually([&] { return leader->set->applied() > lsn; }));
    WriteSomewhere("after", "1");
  };
  check();
  uint32_t wrong = leader->id.value() % 4 + 1;
  Lsn written = leader->set->applied();  // it may be behind, and would then mend itself
  EXPECT_TRUE(Eventually([&] { return nodes_[wrong]->set->applied() >= written; }));
  storage::Batch batch;
  batch.Put(storage::Index(storage::Space::kCatalog), "key7", "rot");
  EXPECT_TRUE(nodes_[wrong]->store.state().Write(batch, storage::WriteMode::kNoLog).ok());
  // The one before may still be under way, and then a second one is not begun.
  EXPECT_TRUE(Eventually([&] {
    for (auto& [id, node] : nodes_) {  // a slow machine may have changed the leader
      node->pool.at(0).Post([set = node->set] { set->Check(); });
    }
    std::lock_guard lock(mutex);
    return !odd.empty();
  }));
  std::lock_guard lock(mutex);
  ASSERT_FALSE(odd.empty());
  EXPECT_EQ(odd[0], ReplicaId(100 + wrong));
}

// Of a set whose members hear of damage from the comparison, and from readers.
class RaftDamageTest : public RaftReplicaSetTest {
 protected:
  RaftDamageTest() {
    options_.on_difference = [this](GroupId, ReplicaId replica) {
      std::lock_guard lock(mutex_);
      replaced_.insert(replica);
    };
  }
  std::set<ReplicaId> Replaced() {
    std::lock_guard lock(mutex_);
    return replaced_;
  }
  static bool Report(TestNode& node) {
    return node.Run(node.set->ReportDamage(Status(Code::kCorruption, "a file is damaged")));
  }

 private:
  std::mutex mutex_;
  std::set<ReplicaId> replaced_;
};

TEST_F(RaftDamageTest, ALeaderThatCannotReadItsStateGivesWayAndIsReplaced) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* damaged = Leader();
  EXPECT_TRUE(Eventually([&] { return Report(*damaged); })) << "the others can do without it";
  EXPECT_TRUE(Eventually([&] { return damaged->set->gone(); }));
  EXPECT_EQ(Replaced(), std::set{damaged->set->replica()});
  EXPECT_EQ(damaged->Barrier().code(), Code::kNotLeader);
  WriteSomewhere("b", "2");
}

TEST_F(RaftDamageTest, AReplicaThatCannotBeComparedIsReplaced) {
  for (bool leads : {true, false}) {
    SCOPED_TRACE(leads);
    Found({1, 2, 3, 4});
    WriteSomewhere("a", "1");
    uint32_t leader = Leader()->id.value();
    TestNode& damaged = *nodes_[leads ? leader : leader % 4 + 1];
    damaged.damaged = true;
    nodes_[leader]->pool.at(0).Post([set = nodes_[leader]->set] { set->Check(); });
    EXPECT_TRUE(Eventually([&] { return damaged.set->gone(); }));
    EXPECT_TRUE(Replaced().contains(damaged.set->replica()));
    nodes_.clear();
    disks_.clear();
  }
}

TEST_F(RaftDamageTest, AReplicaWithoutWhichThereIsNoMajorityLeavesTheLeadToOthersAndVotesOn) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* damaged = Leader();
  Kill(damaged->id.value() % 4 + 1);
  WriteSomewhere("b", "2");
  EXPECT_TRUE(Eventually([&] { return Report(*damaged) && !damaged->set->leads(); }));
  WriteSomewhere("c", "3");
  EXPECT_NE(Leader(), damaged);
  EXPECT_FALSE(damaged->set->gone());
  EXPECT_TRUE(Replaced().empty());
}

TEST_F(RaftDamageTest, WhereAllAreDamagedOneLeadsOnAndAMajorityIsKept) {
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  auto refused = [&] {
    for (auto& [id, node] : nodes_) {
      Report(*node);
    }
    return !Report(*Leader());
  };
  EXPECT_TRUE(Eventually(refused));
  WriteSomewhere("b", "2");
  EXPECT_LE(Replaced().size(), 1u) << "the first that spoke, before the others did";
}

TEST_F(RaftDamageTest, TheOnlyReplicaGoesOn) {
  Found({1});
  WriteSomewhere("a", "1");
  EXPECT_FALSE(Report(*Leader()));
  WriteSomewhere("b", "2");
  EXPECT_TRUE(Replaced().empty());
}

TEST_F(RaftReplicaSetTest, ABrokenReplicaIsReplacedOnItsOwnNode) {
  Found({1, 2, 3});
  WriteSomewhere("a", "1");
  uint32_t broken = Leader()->id.value() % 3 + 1;
  Configuration next;
  for (uint32_t id : {1, 2, 3}) {
    next.members.push_back(id == broken ? Member{ReplicaId(200), NodeId(broken)} : At(id));
  }
  Kill(broken);
  disks_[broken] = TestDisks();
  Boot(broken).Add(ReplicaId(200), {}, next);
  Place(next);
  EXPECT_TRUE(Eventually([&] { return Leader()->View().configuration.SameMembers(next); }));
  EXPECT_TRUE(Eventually([&] { return nodes_[broken]->Get("a") == "1"; }));
}

}  // namespace
}  // namespace orrery::replication
