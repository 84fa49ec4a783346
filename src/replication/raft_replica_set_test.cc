#include "replication/raft_replica_set.h"

#include "replication/raft_set_test.h"

namespace orrery::replication {
namespace {

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
  // Writes at whoever leads, again and again until one write is acknowledged.
  void WriteSomewhere(const std::string& key, const std::string& value) {
    ASSERT_TRUE(Eventually([&] { return Leader()->Write(key, value).has_value(); }));
  }

  RaftHostOptions options_ = Fast();
  MemoryNetwork network_;
  std::map<uint32_t, TestDisks> disks_;
  std::map<uint32_t, std::unique_ptr<TestNode>> nodes_;
};

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
  auto quiet = [&] {
    for (auto& [id, node] : nodes_) {
      auto look = [&]() -> runtime::Task<bool> {
        co_return node->set->deadline() == Instant::max();
      };
      if (!node->Run(look())) {
        return false;
      }
    }
    return true;
  };
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

TEST_F(RaftReplicaSetTest, ALeaseAnswersReadsAndEnds) {
  options_.set.lease_reads = true;
  options_.set.quiesce = false;
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* leader = Leader();
  EXPECT_TRUE(Eventually([&] { return leader->Barrier().ok(); }));
  network_.Cut(leader->id, true);
  EXPECT_TRUE(Eventually([&] { return !leader->Barrier().ok(); }));
  network_.Cut(leader->id, false);
  WriteSomewhere("b", "2");
}

}  // namespace
}  // namespace orrery::replication
