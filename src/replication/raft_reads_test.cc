// Who may answer reads: leases, and how new what a replica has surely is.
#include "replication/raft_set_test.h"

namespace orrery::replication {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class RaftReadsTest : public RaftReplicaSetTest {
 protected:
  RaftReadsTest() { options_.set.quiesce = false; }
  std::vector<TestNode*> Followers() {
    std::vector<TestNode*> followers;
    TestNode* leader = Leader();
    for (auto& [id, node] : nodes_) {
      if (node.get() != leader) {
        followers.push_back(node.get());
      }
    }
    return followers;
  }
  static bool Within(TestNode* node, Duration time) { return node->set->Within({10, time}); }
};

TEST_F(RaftReadsTest, ALeaseAnswersReadsAndEnds) {
  options_.set.lease_reads = true;
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  TestNode* leader = Leader();
  EXPECT_TRUE(Eventually([&] { return leader->Barrier().ok(); }));
  network_.Cut(leader->id, true);
  EXPECT_TRUE(Eventually([&] { return !leader->Barrier().ok(); }));
  network_.Cut(leader->id, false);
  WriteSomewhere("b", "2");
}

TEST_F(RaftReadsTest, WhoReadsByLeaseWakesAGroupThatSleeps) {
  options_.set.lease_reads = true;
  options_.set.quiesce = true;
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  ASSERT_TRUE(Eventually([&] { return Quiet(); }));
  EXPECT_TRUE(Leader()->Barrier().ok());
  EXPECT_FALSE(Quiet()) << "the lease of a group that sleeps is never renewed";
}

// Time is long for the leader, so that it goes on as if nothing had happened.
class RaftBoundTest : public RaftReadsTest {
 protected:
  RaftBoundTest() {
    options_.set.election_timeout = seconds(20);
    Found({1, 2, 3, 4});
    WriteSomewhere("a", "1");
  }
};

TEST_F(RaftBoundTest, AllThatHearTheirLeaderAreNew) {
  for (auto& [id, node] : nodes_) {
    EXPECT_TRUE(Eventually([&] { return Within(node.get(), milliseconds(500)); })) << id;
  }
  WriteSomewhere("b", "2");
  for (TestNode* follower : Followers()) {
    EXPECT_TRUE(Eventually([&] { return Within(follower, milliseconds(500)); }));
    EXPECT_EQ(follower->Get("a"), "1");
  }
}

TEST_F(RaftBoundTest, AFollowerThatHearsNothingGrowsOld) {
  TestNode* follower = Followers().front();
  ASSERT_TRUE(Eventually([&] { return Within(follower, seconds(1)); }));
  network_.Cut(follower->id, true);
  EXPECT_TRUE(Eventually([&] { return !Within(follower, milliseconds(300)); }, seconds(5)));
  network_.Cut(follower->id, false);
  EXPECT_TRUE(Eventually([&] { return Within(follower, milliseconds(300)); }));
}

// The others may have elected another leader, and acknowledged writes.
TEST_F(RaftBoundTest, ALeaderWithoutAMajorityKeepsNobodyNewNotEvenItself) {
  TestNode* leader = Leader();
  TestNode* follower = Followers().front();
  ASSERT_TRUE(Eventually([&] { return Within(follower, seconds(1)); }));
  ASSERT_TRUE(Eventually([&] { return Within(leader, seconds(1)); }));
  network_.Part({leader->id, follower->id});
  EXPECT_TRUE(Eventually([&] { return !Within(follower, milliseconds(300)); }, seconds(5)));
  EXPECT_TRUE(Eventually([&] { return !Within(leader, milliseconds(300)); }, seconds(5)));
  EXPECT_TRUE(leader->set->leads()) << "it does not know";
  EXPECT_EQ(follower->set->leader_node(), leader->id) << "nor does it";
  network_.Part({});
  EXPECT_TRUE(Eventually([&] { return Within(follower, milliseconds(300)); }));
}

TEST_F(RaftReadsTest, AQuietGroupGrowsOldAndARoundOfReadsMakesItsLeaderNew) {
  options_.set.quiesce = true;
  Found({1, 2, 3, 4});
  WriteSomewhere("a", "1");
  ASSERT_TRUE(Eventually([&] { return Quiet(); }));
  TestNode* leader = Leader();
  EXPECT_TRUE(Eventually([&] { return !Within(leader, milliseconds(200)); }));
  EXPECT_TRUE(Eventually([&] { return !Within(Followers().front(), milliseconds(200)); }));
  EXPECT_TRUE(leader->Barrier().ok());
  EXPECT_TRUE(Within(leader, seconds(5)));
  EXPECT_TRUE(Quiet()) << "nobody was woken";
}

// One follower, and a leader that says what a test wants it to.
class FollowerTest : public RaftReadsTest {
 protected:
  static constexpr NodeId kLeaderNode = NodeId(2);
  static constexpr ReplicaId kLeader = ReplicaId(102);

  FollowerTest() {
    options_.set.election_timeout = seconds(20);
    Configuration founders = Voters({1, 2, 3});
    follower_ = &Boot(1);
    follower_->Add(ReplicaId(101), founders, founders);
  }
  // Its time in the answer to an append, which tells what is proved and committed.
  uint64_t Append(uint64_t proved, uint64_t commit) {
    Message message{.kind = MessageKind::kAppend,
                    .from = kLeader,
                    .to = ReplicaId(101),
                    .term = 2,
                    .index = Lsn(1),
                    .index_term = 1};
    message.commit = Lsn(1);
    std::string body;
    Encoder encoder(body);
    message.Encode(encoder);
    encoder.U64(++now_);
    encoder.U64(proved);
    encoder.U64(commit);
    auto receive = [this, &body]() -> runtime::Task<Status> {
      follower_->set->Receive(kLeaderNode, kLeader, FrameKind::kRaft, body);
      co_return Status::Ok();
    };
    EXPECT_TRUE(follower_->Run(receive()).ok());
    uint64_t own = 0;
    EXPECT_TRUE(Eventually([&] { return ReadAnswer(&own); }));
    return own;
  }
  // Whether the last append was answered.
  bool ReadAnswer(uint64_t* own) {
    std::string frame = network_.LastTo(kLeaderNode);
    Decoder decoder(frame);
    decoder.U8();   // version
    decoder.U64();  // group, and the two replicas
    decoder.U64();
    decoder.U64();
    bool is_raft = static_cast<FrameKind>(decoder.U8()) == FrameKind::kRaft;
    Decoder body(decoder.Bytes());
    Message answer;
    if (!is_raft || !Message::Decode(body, &answer) || answer.kind != MessageKind::kAppendResult) {
      return false;
    }
    EXPECT_EQ(body.U64(), 0u) << "nothing is promised without leases";
    bool last = body.U64() == now_;
    *own = body.U64();
    return last && body.ok();
  }

  TestNode* follower_;
  uint64_t now_ = 1000;
};

TEST_F(FollowerTest, IsAsNewAsItsTimeThatComesBack) {
  uint64_t own = Append(0, 1);
  EXPECT_FALSE(Within(follower_, seconds(3600))) << "nothing is proved";
  Append(own, 1);
  EXPECT_TRUE(Within(follower_, seconds(3600)));
  Append(own, 1);
  EXPECT_TRUE(Eventually([&] { return !Within(follower_, milliseconds(100)); }))
      << "it hears the leader, but no newer proof";
}

TEST_F(FollowerTest, IsNotNewBeforeItHasAppliedWhatWasCommitted) {
  Append(Append(0, 1), 2);
  EXPECT_FALSE(Within(follower_, seconds(3600)));
}

TEST_F(FollowerTest, LacksAtMostSoManyEntries) {
  uint64_t own = Append(Append(0, 1), 1);
  Append(own, 12);
  EXPECT_FALSE(follower_->set->Within({10, seconds(3600)}));
  EXPECT_TRUE(follower_->set->Within({11, seconds(3600)}));
}

TEST_F(FollowerTest, DoesNotTakeTheTimeOfAnotherProcessForItsOwn) {
  uint64_t own = Append(0, 1);
  follower_->host->Remove(kTestGroup);
  follower_->Add(ReplicaId(101), {}, Voters({1, 2, 3}));
  Append(own, 1);
  EXPECT_FALSE(Within(follower_, seconds(3600)));
}

}  // namespace
}  // namespace orrery::replication
