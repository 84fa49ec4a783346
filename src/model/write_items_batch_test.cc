// Transactional batches, and the unique keys that they and single writes keep.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "model/items.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

using partition::ReadLevel;
using storage::Space;

constexpr std::string_view kPlain = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";
constexpr std::string_view kUnique =
    R"({"id":"u","partitionKey":{"paths":["/pk"]},"defaultTtl":-1,
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]},{"paths":["/x/y","/z"]}]}})";

std::string Item(std::string_view id, std::string_view members = "") {
  std::string json = R"({"id":")" + std::string(id) + R"(","pk":"a")";
  return json + (members.empty() ? "" : ",") + std::string(members) + "}";
}
// An item of kUnique: `v` is its value of the first key; the second is its own.
std::string Valued(std::string_view id, std::string_view v, std::string_view more = "") {
  return Item(
      id, R"("v":")" + std::string(v) + R"(","z":")" + std::string(id) + "\"" + std::string(more));
}

class BatchTest : public testing::Test {
 protected:
  BatchTest() : node(TestMachine()), container(node.MakeContainer(kPlain)) {}
  Written Write(std::vector<ItemStep> steps) {
    return node.Write(*container, "a", std::move(steps));
  }
  std::string Read(const std::string& id) { return node.ReadJson(*container, "a", id); }

  TestNode node;
  std::shared_ptr<const Container> container;
};

TEST_F(BatchTest, ABatchIsOneEntryOfTheLog) {
  Written written = Write({Create(Item("1")), Create(Item("2")), Create(Item("3"))});
  EXPECT_EQ(written.code(), Code::kOk);
  EXPECT_EQ(written.reply.lsn, Lsn(1));
  for (const char* id : {"1", "2", "3"}) {
    EXPECT_EQ(storage::DecodeItem(node.ReadReply(*container, "a", id).body)->header.lsn, Lsn(1));
  }
}

TEST_F(BatchTest, NothingOfAFailedBatchIsStored) {
  Write({Create(Item("old", R"("n":1)"))});
  storage::Totals before = node.TotalsOf(*container);
  Written written = Write({Create(Item("1")), Replace(Item("old", R"("n":2)")), Delete("old"),
                           Delete("missing"), Create(Item("2"))});
  EXPECT_EQ(written.code(), Code::kNotFound);
  EXPECT_EQ(Read("1"), "<not found>");
  EXPECT_EQ(Read("2"), "<not found>");
  EXPECT_EQ(Read("old"), Item("old", R"("n":1)"));
  EXPECT_EQ(node.TotalsOf(*container), before);
  EXPECT_EQ(node.Counted(*container), before);
}

TEST_F(BatchTest, TheStepThatFailedIsNamedAndTheOthersAreUndone) {
  Written written = Write({Create(Item("1")), Delete("missing"), Create(Item("2"))});
  ASSERT_EQ(written.steps.size(), 3u);
  EXPECT_EQ(written.steps[1].status.code(), Code::kNotFound);
  EXPECT_FALSE(written.steps[1].undone);
  for (size_t i : {0, 2}) {
    EXPECT_TRUE(written.steps[i].undone) << i;
    EXPECT_EQ(written.steps[i].item, "") << i;
  }
}

TEST_F(BatchTest, StepsSeeWhatEarlierStepsDid) {
  Written written = Write(
      {Create(Item("1", R"("n":1)")), PatchStep("1", R"([{"op":"incr","path":"/n","value":1}])"),
       ReadStep("1"), Delete("1"), Create(Item("1", R"("n":7)")), Upsert(Item("1", R"("n":8)"))});
  ASSERT_EQ(written.code(), Code::kOk) << written.reply.status.ToString();
  EXPECT_EQ(JsonOf(written.item(1)), Item("1", R"("n":2)"));
  EXPECT_EQ(JsonOf(written.item(2)), Item("1", R"("n":2)"));
  EXPECT_FALSE(written.steps[5].created);
  EXPECT_EQ(Read("1"), Item("1", R"("n":8)"));
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
}

TEST_F(BatchTest, CreateTwiceInABatchIsAConflict) {
  EXPECT_EQ(Write({Create(Item("1")), Create(Item("1"))}).code(), Code::kAlreadyExists);
  EXPECT_EQ(Read("1"), "<not found>");
}

TEST_F(BatchTest, CreateAndDeleteOfTheSameItemLeavesNothing) {
  EXPECT_EQ(Write({Create(Item("1")), Delete("1")}).code(), Code::kOk);
  EXPECT_EQ(Read("1"), "<not found>");
  EXPECT_EQ(node.TotalsOf(*container), storage::Totals());
}

TEST_F(BatchTest, DeleteAndCreateGivesTheItemAnotherRid) {
  Written first = Write({Create(Item("1"))});
  Written second = Write({Delete("1"), Create(Item("1"))});
  EXPECT_NE(storage::DecodeItem(second.item(1))->header.number,
            storage::DecodeItem(first.item())->header.number);
  EXPECT_EQ(EtagOf(node.ReadReply(*container, "a", "1").body), EtagOf(second.item(1)));
}

TEST_F(BatchTest, EachStepHasItsOwnEtagAndTheLastOneStays) {
  Written written = Write({Create(Item("1")), Upsert(Item("1")), Upsert(Item("1"))});
  std::set<std::string> etags;
  for (size_t i = 0; i < 3; ++i) {
    etags.insert(EtagOf(written.item(i)));
  }
  EXPECT_EQ(etags.size(), 3u);
  EXPECT_EQ(EtagOf(node.ReadReply(*container, "a", "1").body), EtagOf(written.item(2)));
}

TEST_F(BatchTest, AnEtagFromBeforeTheBatchIsOldOnceAStepHasWritten) {
  std::string etag = EtagOf(Write({Create(Item("1", R"("n":1)"))}).item());
  Written written = Write({IfMatch(Replace(Item("1", R"("n":2)")), etag),
                           IfMatch(Replace(Item("1", R"("n":3)")), etag)});
  EXPECT_EQ(written.code(), Code::kPreconditionFailed);
  EXPECT_EQ(Read("1"), Item("1", R"("n":1)"));
}

TEST_F(BatchTest, AReadStepShowsTheEtagThatTheEarlierStepGave) {
  Written written = Write({Create(Item("1")), ReadStep("1")});
  EXPECT_EQ(EtagOf(written.item(1)), EtagOf(written.item(0)));
}

TEST_F(BatchTest, AReadStepSeesAChangeOfAnEarlierStepAsModified) {
  std::string etag = EtagOf(Write({Create(Item("1", R"("n":1)"))}).item());
  Written written = Write({Upsert(Item("1", R"("n":2)")), IfNoneMatch(ReadStep("1"), etag)});
  EXPECT_EQ(written.steps.at(1).status.code(), Code::kOk);
}

TEST_F(BatchTest, AReadStepOfWhatTheClientHasDoesNotFailTheBatch) {
  std::string etag = EtagOf(Write({Create(Item("1"))}).item());
  Written written = Write({IfNoneMatch(ReadStep("1"), etag), Create(Item("2"))});
  EXPECT_EQ(written.code(), Code::kOk);
  EXPECT_EQ(written.steps[0].status.code(), Code::kNotModified);
  EXPECT_EQ(Read("2"), Item("2"));
}

TEST_F(BatchTest, ABatchOfReadsWritesNothing) {
  Written written = Write({Create(Item("1"))});
  Written reads = Write({ReadStep("1"), ReadStep("1")});
  EXPECT_EQ(reads.code(), Code::kOk);
  EXPECT_EQ(reads.reply.lsn, written.reply.lsn);
  EXPECT_EQ(EtagOf(reads.item(1)), EtagOf(written.item()));
}

TEST_F(BatchTest, AReadStepCostsWhatAReadOfItsLevelCosts) {
  Write({Create(Item("1"))});
  for (ReadLevel level : {ReadLevel::kStrong, ReadLevel::kBounded, ReadLevel::kSession}) {
    ReadItem read;
    read.address = Address(*container, "a");
    read.id = "1";
    read.level = level;
    WriteItems batch;
    batch.address = read.address;
    batch.steps = {ReadStep("1"), ReadStep("1")};
    batch.level = level;
    EXPECT_EQ(node.Execute(*container, batch.address.epk, batch).charge,
              node.Execute(*container, read.address.epk, read).charge * 2);
  }
}

// A replica that believes that it leads; others may have come in its place.
class OldLeader final : public replication::ReplicaSet {
 public:
  void SetListener(replication::ApplyListener*) override {}
  bool leads() const override { return true; }
  bool replicated() const override { return true; }
  uint64_t term() const override { return term_now; }
  runtime::Task<Result<Lsn>> Commit(storage::WriteSet, uint64_t) override {
    co_return Error(Code::kNotLeader, "another leads");
  }
  runtime::Task<Status> ReadBarrier() override {
    ++asked;
    term_now += elected_again ? 2 : 0;
    co_return elected_again ? Status::Ok() : Status(Code::kNotLeader, "another leads");
  }
  bool Within(const replication::Staleness&) const override { return is_new; }
  Lsn applied() const override { return Lsn(1); }
  storage::Totals totals() const override { return {}; }

  std::atomic<uint64_t> term_now = 1;
  std::atomic<bool> is_new = false;
  std::atomic<int> asked = 0;
  std::atomic<bool> elected_again = false;
};

class OldLeaderTest : public BatchTest {
 protected:
  OldLeaderTest() { Write({Create(Item("1"))}); }
  Code Read(ReadLevel level) {
    const partition::PartitionRange& range = container->map->ranges().front();
    auto budget = std::make_shared<partition::Budget>(partition::RequestUnits(1000));
    partition::Replica replica(container->id, range, container, budget, false, node.workers().at(0),
                               old, services);
    WriteItems batch;
    batch.address = Address(*container, "a");
    batch.steps = {ReadStep("1")};
    batch.level = level;
    batch.target = {container->id, range.id, range.generation, container->version};
    return node.Run(replica.Execute(batch)).status.code();
  }

  partition::ReplicaServices services{
      .state = node.state(), .workers = node.workers(), .clock = node.clock()};
  std::shared_ptr<OldLeader> old = std::make_shared<OldLeader>();
};

TEST_F(OldLeaderTest, AStrongBatchOfReadsIsNotAnsweredByAnOldLeader) {
  EXPECT_EQ(Read(ReadLevel::kStrong), Code::kNotLeader);
}

TEST_F(OldLeaderTest, NorByOneThatWasElectedAgainAfterItHasRead) {
  old->elected_again = true;
  EXPECT_EQ(Read(ReadLevel::kStrong), Code::kNotLeader);
}

TEST_F(OldLeaderTest, ABoundedBatchOfReadsIsAnsweredIfItIsNewEnough) {
  EXPECT_EQ(Read(ReadLevel::kBounded), Code::kNotLeader);
  old->is_new = true;
  EXPECT_EQ(Read(ReadLevel::kBounded), Code::kOk);
  EXPECT_EQ(old->asked, 1) << "only where it could not be told";
}

TEST_F(OldLeaderTest, ABatchOfReadsOfASessionAsksNobody) {
  EXPECT_EQ(Read(ReadLevel::kSession), Code::kOk);
  EXPECT_EQ(old->asked, 0);
}

TEST_F(BatchTest, ARepeatedBatchGetsTheFirstOutcome) {
  const storage::OperationId id{1, 2};
  std::vector<ItemStep> steps = {Create(Item("1")), Upsert(Item("2")), Delete("1")};
  Written first = node.Write(*container, "a", steps, id);
  Written again = node.Write(*container, "a", steps, id);
  ASSERT_EQ(again.code(), Code::kOk) << again.reply.status.ToString();
  EXPECT_EQ(again.reply.body, first.reply.body);
  EXPECT_EQ(again.reply.lsn, first.reply.lsn);
}

// --- unique keys ---------------------------------------------------------------------------------

class UniqueKeyTest : public BatchTest {
 protected:
  UniqueKeyTest() { container = node.MakeContainer(kUnique); }
};

TEST_F(UniqueKeyTest, AValueThatIsTakenIsRefused) {
  Write({Create(Valued("1", "x"))});
  Written second = Write({Create(Valued("2", "x"))});
  EXPECT_EQ(second.code(), Code::kUniqueViolated);
  EXPECT_EQ(Read("2"), "<not found>");
  EXPECT_EQ(Write({Create(Valued("2", "y"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Replace(Valued("2", "x"))}).code(), Code::kUniqueViolated);
  EXPECT_EQ(Write({PatchStep("2", R"([{"op":"set","path":"/v","value":"x"}])")}).code(),
            Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AnItemMayKeepItsOwnValue) {
  Write({Create(Valued("1", "x"))});
  EXPECT_EQ(Write({Replace(Valued("1", "x", R"(,"n":2)"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AnotherLogicalPartitionMayHaveTheSameValue) {
  Write({Create(Valued("1", "x"))});
  Written other = node.Write(*container, "b", {Create(R"({"id":"1","pk":"b","v":"x"})")});
  EXPECT_EQ(other.code(), Code::kOk);
}

TEST_F(UniqueKeyTest, KeysOfSeveralPathsCompareAllOfThem) {
  Write({Create(Item("1", R"("v":1,"x":{"y":1},"z":1)"))});
  EXPECT_EQ(Write({Create(Item("2", R"("v":2,"x":{"y":1},"z":2)"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Item("3", R"("v":3,"x":{"y":1},"z":1)"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AMissingValueIsAValue) {
  Write({Create(Item("1", R"("z":1)"))});
  EXPECT_EQ(Write({Create(Item("2", R"("z":2)"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, TheTypeOfAValueCounts) {
  Write({Create(Item("1", R"("v":1,"z":1)"))});
  EXPECT_EQ(Write({Create(Item("2", R"("v":"1","z":2)"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Item("3", R"("v":1.0,"z":3)"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, DeleteAndChangeFreeAValue) {
  Write({Create(Valued("1", "x"))});
  Write({Delete("1")});
  EXPECT_EQ(node.CountKeys(Space::kIndex), 0u);
  EXPECT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Replace(Valued("2", "y"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("3", "x"))}).code(), Code::kOk);
  EXPECT_EQ(node.CountKeys(Space::kIndex), 4u);
}

TEST_F(UniqueKeyTest, ItemsMaySwapValuesInsideABatch) {
  Write({Create(Valued("1", "x")), Create(Valued("2", "y"))});
  EXPECT_EQ(Write({Replace(Valued("1", "y")), Replace(Valued("2", "x"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("3", "x"))}).code(), Code::kUniqueViolated);
  EXPECT_EQ(Write({Create(Valued("3", "y"))}).code(), Code::kUniqueViolated);
  EXPECT_EQ(Write({Delete("2"), Create(Valued("3", "x"))}).code(), Code::kOk);
}

TEST_F(UniqueKeyTest, ABatchThatBreaksAKeyStoresNothing) {
  Written written = Write({Create(Valued("1", "x")), Create(Valued("2", "x"))});
  EXPECT_EQ(written.code(), Code::kUniqueViolated);
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
  EXPECT_EQ(node.CountKeys(Space::kIndex), 0u);
}

TEST_F(UniqueKeyTest, TheLaterStepIsToBlameWhateverTheIdsAre) {
  Written written = Write({Create(Valued("b", "x")), Create(Valued("a", "x"))});
  ASSERT_EQ(written.steps.size(), 2u);
  EXPECT_TRUE(written.steps[0].undone);
  EXPECT_EQ(written.steps[1].status.code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, ExpiryFreesAValue) {
  Write({Create(Valued("1", "x", R"(,"ttl":5)"))});
  EXPECT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kUniqueViolated);
  node.clock().Advance(std::chrono::seconds(6));
  EXPECT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("3", "x"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AValueTakenOverFromAnExpiredItemStaysTakenWhenThatItemIsSwept) {
  Write({Create(Valued("1", "x", R"(,"ttl":5)"))});
  node.clock().Advance(std::chrono::seconds(6));
  ASSERT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kOk);
  DeleteItems sweep;
  ASSERT_TRUE(node.Execute(*container, Address(*container, "a").epk, sweep).status.ok());
  EXPECT_EQ(Write({Create(Valued("3", "x"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AValueTakenOverFromAnExpiredItemIsNotTakenBackByIt) {
  Write({Create(Valued("1", "x", R"(,"ttl":5)"))});
  node.clock().Advance(std::chrono::seconds(6));
  ASSERT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("1", "x"))}).code(), Code::kUniqueViolated);
}

TEST_F(UniqueKeyTest, AValueTakenOverFromAnExpiredItemStaysTakenWhenThatItemIsMadeAgain) {
  Write({Create(Valued("1", "x", R"(,"ttl":5)"))});
  node.clock().Advance(std::chrono::seconds(6));
  ASSERT_EQ(Write({Create(Valued("2", "x"))}).code(), Code::kOk);
  ASSERT_EQ(Write({Create(Valued("1", "y"))}).code(), Code::kOk);
  EXPECT_EQ(Write({Create(Valued("3", "x"))}).code(), Code::kUniqueViolated);
}

}  // namespace
}  // namespace orrery::model
