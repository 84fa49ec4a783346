#include <string>

#include <gtest/gtest.h>

#include "model/items.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

constexpr std::string_view kPlain = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";
constexpr std::string_view kOne = R"({"id":"1","pk":"a","n":1})";
constexpr std::string_view kTwo = R"({"id":"1","pk":"a","n":2})";

// Each test runs twice: with the operation handed over, and encoded through a socket.
class WriteItemsTest : public testing::TestWithParam<bool> {
 protected:
  WriteItemsTest() : node(TestMachine(), {.loopback = GetParam()}) {
    container = node.MakeContainer(kPlain);
  }
  Written Write(ItemStep step) { return node.Write(*container, "a", {std::move(step)}); }
  std::string Read(const std::string& id = "1") { return node.ReadJson(*container, "a", id); }

  TestNode node;
  std::shared_ptr<const Container> container;
};

INSTANTIATE_TEST_SUITE_P(Ways, WriteItemsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Loopback" : "Direct"; });

TEST_P(WriteItemsTest, CreateStoresTheItemAndSaysSo) {
  Written written = Write(Create(kOne));
  ASSERT_EQ(written.code(), Code::kOk) << written.reply.status.ToString();
  EXPECT_TRUE(written.steps.at(0).created);
  EXPECT_EQ(JsonOf(written.item()), kOne);
  EXPECT_EQ(written.reply.lsn, Lsn(1));
  EXPECT_EQ(written.reply.charge, written.steps[0].charge);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, TheReplyShowsTheEtagThatAReadShows) {
  Written written = Write(Create(kOne));
  EXPECT_EQ(EtagOf(node.ReadReply(*container, "a", "1").body), EtagOf(written.item()));
}

TEST_P(WriteItemsTest, CreateOfAnIdThatIsTakenIsRefusedAndChangesNothing) {
  Write(Create(kOne));
  Written second = Write(Create(R"({"id":"1","pk":"a","n":2})"));
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_EQ(second.steps.at(0).status.code(), Code::kAlreadyExists);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, TheSameIdInAnotherLogicalPartitionIsAnotherItem) {
  Write(Create(kOne));
  EXPECT_EQ(node.Write(*container, "b", {Create(R"({"id":"1","pk":"b"})")}).code(), Code::kOk);
  EXPECT_EQ(Read(), kOne);
  EXPECT_EQ(node.ReadJson(*container, "b", "1"), R"({"id":"1","pk":"b"})");
}

TEST_P(WriteItemsTest, UpsertCreatesOrReplaces) {
  EXPECT_TRUE(Write(Upsert(kOne)).steps.at(0).created);
  EXPECT_FALSE(Write(Upsert(R"({"id":"1","pk":"a","n":2})")).steps.at(0).created);
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":2})");
}

TEST_P(WriteItemsTest, ReplaceDeletePatchAndReadOfAMissingItemFindNothing) {
  EXPECT_EQ(Write(Replace(kOne)).code(), Code::kNotFound);
  EXPECT_EQ(Write(Delete("1")).code(), Code::kNotFound);
  EXPECT_EQ(Write(PatchStep("1", R"([{"op":"set","path":"/n","value":2}])")).code(),
            Code::kNotFound);
  EXPECT_EQ(Read(), "<not found>");
  EXPECT_EQ(node.CountKeys(storage::Space::kItems), 0u);
}

TEST_P(WriteItemsTest, ReplaceKeepsTheRidAndChangesTheEtag) {
  Written first = Write(Create(kOne));
  Written second = Write(Replace(R"({"id":"1","pk":"a","n":3})"));
  EXPECT_EQ(storage::DecodeItem(second.item())->header.number,
            storage::DecodeItem(first.item())->header.number);
  EXPECT_NE(EtagOf(second.item()), EtagOf(first.item()));
}

TEST_P(WriteItemsTest, EveryWriteGivesAnotherEtagEvenIfTheClockStandsStill) {
  std::set<std::string> etags;
  for (int i = 0; i < 50; ++i) {
    etags.insert(EtagOf(Write(Upsert(kOne)).item()));
  }
  Write(Delete("1"));
  etags.insert(EtagOf(Write(Create(kOne)).item()));
  EXPECT_EQ(etags.size(), 51u);
}

TEST_P(WriteItemsTest, DeleteRemovesTheItemAndHasNoBody) {
  Write(Create(kOne));
  Written gone = Write(Delete("1"));
  EXPECT_EQ(gone.code(), Code::kOk);
  EXPECT_EQ(gone.item(), "");
  EXPECT_EQ(Read(), "<not found>");
  EXPECT_EQ(node.TotalsOf(*container), storage::Totals());
}

TEST_P(WriteItemsTest, PatchChangesOnlyWhatItNames) {
  Write(Create(kOne));
  Written patched = Write(PatchStep("1", R"([{"op":"incr","path":"/n","value":4}])"));
  EXPECT_EQ(JsonOf(patched.item()), R"({"id":"1","pk":"a","n":5})");
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":5})");
}

TEST_P(WriteItemsTest, PatchOfTheIdOrThePartitionKeyIsRefused) {
  Write(Create(kOne));
  EXPECT_EQ(Write(PatchStep("1", R"([{"op":"set","path":"/id","value":"2"}])")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Write(PatchStep("1", R"([{"op":"set","path":"/pk","value":"b"}])")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, PatchThatMakesAnInvalidTtlIsRefused) {
  Write(Create(kOne));
  EXPECT_EQ(Write(PatchStep("1", R"([{"op":"set","path":"/ttl","value":0}])")).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, PatchThatMakesTheItemTooLargeIsRefused) {
  Write(Create(kOne));
  std::string text(kItemBytesMax - 20, 'x');
  std::string body = R"([{"op":"set","path":"/x","value":")" + text + R"("}])";
  EXPECT_EQ(Write(PatchStep("1", body)).code(), Code::kTooLarge);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, TheConditionOfAPatchDecides) {
  Write(Create(kOne));
  constexpr std::string_view kIfTwo =
      R"({"condition":"n=2","operations":[{"op":"set","path":"/n","value":9}]})";
  constexpr std::string_view kIfOne =
      R"({"condition":"n=1","operations":[{"op":"set","path":"/n","value":2}]})";
  EXPECT_EQ(Write(PatchStep("1", kIfTwo)).code(), Code::kConditionFalse);
  EXPECT_EQ(Read(), kOne);
  EXPECT_EQ(Write(PatchStep("1", kIfOne)).code(), Code::kOk);
  EXPECT_EQ(Write(PatchStep("1", kIfTwo)).code(), Code::kOk);
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":9})");
}

TEST_P(WriteItemsTest, AConditionThatCannotBeReadIsRefused) {
  Write(Create(kOne));
  constexpr std::string_view kBroken =
      R"({"condition":"broken","operations":[{"op":"set","path":"/n","value":9}]})";
  EXPECT_EQ(Write(PatchStep("1", kBroken)).code(), Code::kInvalidArgument);
  EXPECT_EQ(Read(), kOne);
}

TEST_P(WriteItemsTest, IfMatchLetsOnlyTheCurrentVersionThrough) {
  std::string old = EtagOf(Write(Create(kOne)).item());
  std::string current = EtagOf(Write(Upsert(kOne)).item());
  const std::string patch = R"([{"op":"incr","path":"/n","value":1}])";
  EXPECT_EQ(Write(IfMatch(Replace(kTwo), old)).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Write(IfMatch(Upsert(kTwo), old)).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Write(IfMatch(PatchStep("1", patch), old)).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Write(IfMatch(Delete("1"), old)).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Read(), kOne);
  current = EtagOf(Write(IfMatch(Replace(kTwo), current)).item());
  current = EtagOf(Write(IfMatch(Upsert(kTwo), current)).item());
  current = EtagOf(Write(IfMatch(PatchStep("1", patch), current)).item());
  EXPECT_EQ(Write(IfMatch(Delete("1"), current)).code(), Code::kOk);
}

TEST_P(WriteItemsTest, IfMatchStarLetsAnyVersionThrough) {
  Write(Create(kOne));
  EXPECT_EQ(Write(IfMatch(Replace(kOne), "*")).code(), Code::kOk);
}

TEST_P(WriteItemsTest, IfNoneMatchOfAReadSaysNotModified) {
  std::string etag = EtagOf(Write(Create(kOne)).item());
  EXPECT_EQ(node.ReadReply(*container, "a", "1", etag).status.code(), Code::kNotModified);
  EXPECT_EQ(node.ReadReply(*container, "a", "1", "*").status.code(), Code::kNotModified);
  Write(Upsert(kOne));
  EXPECT_EQ(node.ReadReply(*container, "a", "1", etag).status.code(), Code::kOk);
}

TEST_P(WriteItemsTest, IfNoneMatchOfAWriteRefusesThatVersion) {
  std::string etag = EtagOf(Write(Create(kOne)).item());
  EXPECT_EQ(Write(IfNoneMatch(Upsert(kOne), etag)).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Write(IfNoneMatch(Upsert(kOne), "*")).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Write(IfNoneMatch(Upsert(kOne), "\"other\"")).code(), Code::kOk);
}

TEST_P(WriteItemsTest, ASessionThatTheReplicaHasNotReachedIsRefused) {
  Lsn seen = Write(Create(kOne)).reply.lsn;
  Lsn later(seen.value() + 1);
  Written ahead = node.Run(node.WriteTask(*container, "a", {Upsert(kOne)}, {}, later));
  EXPECT_EQ(ahead.code(), Code::kSessionNotReached);
  ReadItem read;
  read.address = Address(*container, "a");
  read.id = "1";
  read.session = later;
  EXPECT_EQ(node.Execute(*container, read.address.epk, read).status.code(),
            Code::kSessionNotReached);
  ReadFeed feed;
  feed.session = later;
  EXPECT_EQ(node.Execute(*container, "", feed).status.code(), Code::kSessionNotReached);
  read.session = seen;
  EXPECT_EQ(node.Execute(*container, read.address.epk, read).status.code(), Code::kOk);
}

TEST_P(WriteItemsTest, AThrottledWriteChangesNothingAndSaysWhenToComeBack) {
  auto small =
      node.MakeContainer(R"({"id":"small","partitionKey":{"paths":["/pk"]}})", {.manual = 400});
  int done = 0;
  Written written;
  for (; done < 1000; ++done) {
    std::string json = R"({"id":")" + std::to_string(done) + R"(","pk":"a"})";
    written = node.Write(*small, "a", {Create(json)});
    if (written.code() != Code::kOk) {
      break;
    }
  }
  EXPECT_EQ(written.code(), Code::kThrottled);
  EXPECT_GT(done, 10);
  EXPECT_LT(done, 100);
  EXPECT_GE(written.reply.status.retry_after_ms(), 1u);
  EXPECT_LE(written.reply.status.retry_after_ms(), 2000u);
  EXPECT_EQ(node.Counted(*small).items, done);
  EXPECT_EQ(node.TotalsOf(*small), node.Counted(*small));
  node.clock().Advance(std::chrono::milliseconds(written.reply.status.retry_after_ms()));
  EXPECT_EQ(node.Write(*small, "a", {Upsert(R"({"id":"0","pk":"a"})")}).code(), Code::kOk);
}

TEST_P(WriteItemsTest, WithoutAChosenThroughputNothingIsThrottled) {
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(Write(Upsert(kOne)).code(), Code::kOk) << i;
  }
}

TEST_P(WriteItemsTest, ARepetitionGetsTheFirstOutcome) {
  const storage::OperationId id{7, 9};
  Written first = node.Write(*container, "a", {Create(kOne)}, id);
  Written again = node.Write(*container, "a", {Create(kOne)}, id);
  EXPECT_EQ(again.code(), Code::kOk);
  EXPECT_TRUE(again.steps.at(0).created);
  EXPECT_EQ(again.item(), first.item());
  EXPECT_EQ(again.reply.lsn, first.reply.lsn);
  EXPECT_EQ(again.reply.charge, first.reply.charge);
  EXPECT_EQ(node.TotalsOf(*container).items, 1);
}

TEST_P(WriteItemsTest, ARepeatedIncrementIsNotDoneTwice) {
  Write(Create(kOne));
  const storage::OperationId id{7, 9};
  const auto increment = [&] {
    return node.Write(*container, "a", {PatchStep("1", R"([{"op":"incr","path":"/n","value":1}])")},
                      id);
  };
  Written first = increment();
  Written again = increment();
  EXPECT_EQ(EtagOf(again.item()), EtagOf(first.item()));
  EXPECT_EQ(JsonOf(again.item()), JsonOf(first.item()));
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":2})");
}

TEST_P(WriteItemsTest, ALateTryOfAWriteThatHasEndedIsRefusedAndDoesNothing) {
  Write(Create(kOne));
  WriteItems write;
  write.address = Address(*container, "a");
  write.steps = {PatchStep("1", R"([{"op":"incr","path":"/n","value":1}])")};
  ASSERT_TRUE(node.Execute(*container, write.address.epk, write).status.ok());
  auto late = [&] {
    return node.Run(node.replicas().Find(write.target.partition)->Execute(write)).status.code();
  };
  EXPECT_EQ(late(), Code::kOk) << "nobody has said yet that it has ended: the first outcome";
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":2})");
  Write(Upsert(R"({"id":"other","pk":"a"})"));
  EXPECT_EQ(late(), Code::kUnknownOutcome);
  node.clock().Advance(std::chrono::seconds(30));
  Write(Upsert(R"({"id":"other","pk":"a"})"));
  EXPECT_EQ(late(), Code::kUnknownOutcome) << "however late";
  EXPECT_EQ(Read(), R"({"id":"1","pk":"a","n":2})");
}

// The first try is still on its way when the second is refused.
TEST_P(WriteItemsTest, ARefusalEndsTheEarlierTriesToo) {
  WriteItems replace;
  replace.address = Address(*container, "a");
  replace.steps = {Replace(kOne)};
  replace.id = {.high = 70, .low = 3};
  replace.settled = 3;
  replace.target = {.container = container->id,
                    .partition = container->map->ranges().front().id,
                    .schema_version = container->version};
  auto replica = node.replicas().Find(replace.target.partition);
  replace.again = true;
  auto refused = node.Run(replica->Execute(replace));
  EXPECT_EQ(refused.status.code(), Code::kNotFound);
  Write(Create(kTwo));
  replace.again = false;
  auto late = node.Run(replica->Execute(replace));
  EXPECT_EQ(late.status.code(), Code::kNotFound);
  EXPECT_EQ(late.status.message(), refused.status.message());
  EXPECT_EQ(late.body, refused.body);
  EXPECT_EQ(late.charge, refused.charge);
  EXPECT_EQ(Read(), kTwo);
}

TEST_P(WriteItemsTest, ARefusalOfAFirstTryLeavesNothingInTheLog) {
  Write(Create(kOne));
  auto replica = node.replicas().Find(container->map->ranges().front().id);
  Lsn before = replica->applied();
  EXPECT_EQ(Write(Create(kOne)).code(), Code::kAlreadyExists);
  EXPECT_EQ(replica->applied(), before);
}

TEST_P(WriteItemsTest, ALateDeleteOfALogicalPartitionIsRefused) {
  Write(Create(kOne));
  DeleteItems remove;
  remove.logical_partition = Address(*container, "a");
  ASSERT_TRUE(node.Execute(*container, remove.logical_partition->epk, remove).status.ok());
  Write(Create(kOne));
  auto replica = node.replicas().Find(remove.target.partition);
  EXPECT_EQ(node.Run(replica->Execute(remove)).status.code(), Code::kUnknownOutcome);
  EXPECT_EQ(Read(), kOne);
}

// The second try is done and its client answered, then others write through another node, then the
// first one comes.
class LateDeleteTest : public WriteItemsTest {
 protected:
  LateDeleteTest() {
    remove.logical_partition = Address(*container, "a");
    remove.id = {.high = 70, .low = 3};
    remove.settled = 3;
    remove.target = {.container = container->id,
                     .partition = container->map->ranges().front().id,
                     .schema_version = container->version};
  }
  partition::Reply Try(bool again) {
    remove.again = again;
    return node.Run(node.replicas().Find(remove.target.partition)->Execute(remove));
  }
  DeleteItems remove;
};
INSTANTIATE_TEST_SUITE_P(Ways, LateDeleteTest, testing::Bool(),
                         [](const auto& way) { return way.param ? "Loopback" : "Direct"; });

TEST_P(LateDeleteTest, ItDeletesNothingThatWasMadeSince) {
  Write(Create(kOne));
  partition::Reply done = Try(true);
  ASSERT_TRUE(done.status.ok()) << done.status.ToString();
  Write(Create(kTwo));
  partition::Reply late = Try(false);
  EXPECT_TRUE(late.status.ok()) << late.status.ToString();
  EXPECT_EQ(late.charge, done.charge);
  EXPECT_EQ(late.lsn, done.lsn);
  EXPECT_EQ(late.body, done.body);
  EXPECT_EQ(Read(), kTwo);
}

TEST_P(LateDeleteTest, NorIfThereWasNothingToDelete) {
  ASSERT_TRUE(Try(true).status.ok());
  Write(Create(kOne));
  EXPECT_TRUE(Try(false).status.ok());
  EXPECT_EQ(Read(), kOne);
}

TEST_P(LateDeleteTest, AFirstTryThatFindsNothingLeavesNothingInTheLog) {
  auto replica = node.replicas().Find(remove.target.partition);
  Lsn before = replica->applied();
  EXPECT_TRUE(Try(false).status.ok());
  EXPECT_EQ(replica->applied(), before);
}

TEST_P(WriteItemsTest, OnlyWhatIsInFlightIsRemembered) {
  for (int i = 0; i < 300; ++i) {
    Write(Upsert(kOne));
  }
  auto replica = node.replicas().Find(container->map->ranges().front().id);
  EXPECT_LT(replica->Outcomes().size(), 2000u);
}

TEST_P(WriteItemsTest, AnOutcomeIsForgottenAfterAMinute) {
  const storage::OperationId id{7, 9};
  node.Write(*container, "a", {Create(kOne)}, id);
  node.clock().Advance(std::chrono::seconds(61));
  Write(Upsert(R"({"id":"other","pk":"a"})"));
  EXPECT_EQ(node.Write(*container, "a", {Create(kOne)}, id).code(), Code::kAlreadyExists);
}

TEST_P(WriteItemsTest, AnExpiredItemIsNotThereButItsPlaceIsCounted) {
  auto mortal =
      node.MakeContainer(R"({"id":"mortal","partitionKey":{"paths":["/pk"]},"defaultTtl":10})");
  node.Write(*mortal, "a", {Create(kOne)});
  node.clock().Advance(std::chrono::seconds(9));
  EXPECT_EQ(node.ReadJson(*mortal, "a", "1"), kOne);
  node.clock().Advance(std::chrono::seconds(1));
  EXPECT_EQ(node.ReadJson(*mortal, "a", "1"), "<not found>");
  EXPECT_EQ(node.Write(*mortal, "a", {Replace(kOne)}).code(), Code::kNotFound);
  EXPECT_EQ(node.Write(*mortal, "a", {Delete("1")}).code(), Code::kNotFound);
  EXPECT_EQ(node.TotalsOf(*mortal).items, 1);
  EXPECT_TRUE(node.Write(*mortal, "a", {Upsert(kOne)}).steps.at(0).created);
  EXPECT_EQ(node.TotalsOf(*mortal), node.Counted(*mortal));
}

TEST_P(WriteItemsTest, TheTtlOfAnItemBeatsThatOfTheContainer) {
  auto mortal =
      node.MakeContainer(R"({"id":"mortal","partitionKey":{"paths":["/pk"]},"defaultTtl":-1})");
  node.Write(*mortal, "a", {Create(R"({"id":"1","pk":"a","ttl":5})")});
  node.Write(*mortal, "a", {Create(R"({"id":"2","pk":"a","ttl":-1})")});
  node.Write(*mortal, "a", {Create(R"({"id":"3","pk":"a"})")});
  Write(Create(R"({"id":"1","pk":"a","ttl":5})"));
  node.clock().Advance(std::chrono::seconds(6));
  EXPECT_EQ(node.ReadJson(*mortal, "a", "1"), "<not found>");
  EXPECT_NE(node.ReadJson(*mortal, "a", "2"), "<not found>");
  EXPECT_NE(node.ReadJson(*mortal, "a", "3"), "<not found>");
  EXPECT_NE(Read(), "<not found>") << "without a default, time to live is off";
}

}  // namespace
}  // namespace orrery::model
