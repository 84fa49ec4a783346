#include "model/catalog_change.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/catalog_records.h"

namespace orrery::model {
namespace {

types::Document Json(std::string_view text) { return *types::Document::FromJson(text); }

std::vector<CatalogChange> EveryKind() {
  std::vector<CatalogChange::What> all = {
      change::CreateDatabase{"name", {.manual = 400}},
      change::DropDatabase{"name", "\"etag\""},
      change::CreateContainer{"d", Json(R"({"id":"c","n":1})"), {.autoscale_max = 4000}},
      change::ReplaceContainer{"dbs/d/colls/c", Json(R"({"id":"c"})"), "*"},
      change::DropContainer{"dbs/d/colls/c", ""},
      change::ReplaceOffer{7, {}, "etag"},
      change::ChangeKeys{{{KeyName::kSecondary, std::string("\0raw", 4), {"", "old"}},
                          {KeyName::kSecondaryReadOnly, "x", {}}}},
      change::Cleared{ContainerId(3)},
      change::AddNode{"host:1", "https://host/", "zone", 2},
      change::ChangeNode{NodeId(2), "host:2", "", std::nullopt, 3, NodeState::kDraining},
      change::SetPlacements{
          {{GroupId(5), 4, {{ReplicaId(1), NodeId(2), true}, {ReplicaId(0), NodeId(3), false}}},
           {GroupId(6), 1, {}}}},
      change::BeginReshape{ContainerId(3), {PartitionId(4), PartitionId(5)}, "cut"},
      change::FinishReshape{ContainerId(3),
                            PartitionId(6),
                            "cut",
                            {{GroupId(4), Lsn(9), 2}, {GroupId(5), Lsn(7), 1}},
                            {{.applied = Lsn(10), .totals = {5, 6}, .time = {7}, .frozen = ""}},
                            {NodeId(1), NodeId(3)}},
      change::AbortReshape{ContainerId(3), PartitionId(6)},
      change::PauseBalancer{true},
      change::DefineDatabase{"k", Json(R"({"name":"k"})"), true, "etag"},
      change::PutRoles{Json(R"({"roles":[]})"), "etag"},
      change::RenewContainer{"dbs/d/colls/c", Json(R"({"id":"c"})"), "etag"}};
  std::vector<CatalogChange> changes;
  for (auto& what : all) {
    changes.push_back({.id = {.high = changes.size() + 1, .low = ~0ull}, .what = std::move(what)});
  }
  return changes;
}

TEST(CatalogChangeTest, EveryKindComesBackAsItWas) {
  auto changes = EveryKind();
  EXPECT_EQ(changes.size(), std::variant_size_v<CatalogChange::What>);
  for (const CatalogChange& change : changes) {
    auto read = CatalogChange::Decode(change.Encode());
    ASSERT_TRUE(read) << static_cast<int>(change.kind());
    EXPECT_EQ(read->id, change.id);
    EXPECT_EQ(read->kind(), change.kind());
    EXPECT_EQ(read->Encode(), change.Encode());
  }
  auto node = std::get<change::ChangeNode>(CatalogChange::Decode(changes[9].Encode())->what);
  EXPECT_EQ(node.address, "host:2");
  EXPECT_EQ(node.endpoint, "");
  EXPECT_EQ(node.zone, std::nullopt);
  EXPECT_EQ(node.state, NodeState::kDraining);
}

TEST(CatalogChangeTest, AKeyspaceComesBackWithItsThroughput) {
  CatalogChange change{.id = {.high = 1, .low = 2},
                       .what = change::DefineDatabase{"k", Json(R"({"name":"k"})"), true, "",
                                                      ThroughputRequest{.manual = 700}}};
  const std::string whole = change.Encode();
  auto read = CatalogChange::Decode(whole);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<change::DefineDatabase>(read->what).throughput.manual, 700u);
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(CatalogChange::Decode(std::string_view(whole).substr(0, size)));
  }
}

TEST(CatalogChangeTest, ACutANewerVersionAndAnUnknownKindAreRefused) {
  for (const CatalogChange& change : EveryKind()) {
    const std::string whole = change.Encode();
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(CatalogChange::Decode(std::string_view(whole).substr(0, size)));
    }
    EXPECT_FALSE(CatalogChange::Decode(whole + "x"));
    std::string newer = whole;
    newer[0] = 2;
    EXPECT_EQ(CatalogChange::Decode(newer).error().code(), Code::kInvalidArgument);
    newer = whole;
    newer[17] = 99;
    EXPECT_FALSE(CatalogChange::Decode(newer));
  }
}

TEST(CatalogChangeTest, PartsOfAnOfferComeBackAndOnlyTheyNeedTheNewerVersion) {
  std::vector<PartitionShare> shares = {{PartitionId(1ull << 40), 5'000}, {PartitionId(2), 1}};
  const change::ReplaceOffer rows[] = {
      {.number = 7, .buckets = partition::Buckets{.percent = {20, 0, 0, 0, 100}, .unmarked = 5}},
      {.number = 7, .shares = shares},
      {.number = 7, .shares = std::vector<PartitionShare>()},
      {.number = 7, .throughput = {.manual = 400}, .buckets = partition::Buckets()}};
  for (const change::ReplaceOffer& row : rows) {
    CatalogChange change{.id = {}, .what = row};
    std::string bytes = change.Encode();
    EXPECT_EQ(bytes[0], 2);
    auto read = CatalogChange::Decode(bytes);
    ASSERT_TRUE(read);
    auto& offer = std::get<change::ReplaceOffer>(read->what);
    EXPECT_EQ(offer.throughput, row.throughput);
    EXPECT_EQ(offer.buckets, row.buckets);
    EXPECT_EQ(offer.shares, row.shares);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(CatalogChange::Decode(std::string_view(bytes).substr(0, size)));
    }
  }
  CatalogChange plain{.id = {}, .what = change::ReplaceOffer{.throughput = {.manual = 400}}};
  EXPECT_EQ(plain.Encode()[0], 1);
}

ChangeResult FullResult() {
  ChangeResult result{.lsn = Lsn(300)};
  result.database = std::make_shared<const Database>(
      Database{.id = DatabaseId(1), .name = "d", .offer = Offer{.number = 1, .manual = 400}});
  result.keys = AccountKeys{{"a", "b", "", "d"}};
  result.joined = Joined{.cluster = ~0ull,
                         .node = NodeId(3),
                         .meta_replica = ReplicaId(9),
                         .nodes = {{.id = NodeId(3), .address = "h:1"}, {.id = NodeId(4)}}};
  return result;
}

TEST(CatalogChangeTest, AResultComesBack) {
  auto read = DecodeAnswer(EncodeAnswer(FullResult()));
  ASSERT_TRUE(read) << read.error().ToString();
  EXPECT_EQ(read->lsn, Lsn(300));
  EXPECT_EQ(EncodeDatabase(*read->database), EncodeDatabase(*FullResult().database));
  EXPECT_EQ(read->container, nullptr);
  EXPECT_EQ(read->keys, FullResult().keys);
  EXPECT_EQ(read->joined, FullResult().joined);
}

TEST(CatalogChangeTest, AStatusComesBackWithItsCodeAndMessage) {
  for (uint8_t code = 1; code <= static_cast<uint8_t>(Code::kInternal); ++code) {
    Status status(static_cast<Code>(code), "why " + std::to_string(code));
    status.set_retry_after_ms(code);
    auto read = DecodeAnswer(EncodeAnswer(Error(status)));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), status.code());
    EXPECT_EQ(read.error().message(), status.message());
    EXPECT_EQ(read.error().retry_after_ms(), code);
  }
}

TEST(CatalogChangeTest, AMalformedAnswerLeavesTheOutcomeOpen) {
  const std::string whole = EncodeAnswer(FullResult());
  for (size_t size = 0; size < whole.size(); ++size) {
    auto read = DecodeAnswer(std::string_view(whole).substr(0, size));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), Code::kUnknownOutcome);
  }
}

TEST(CatalogChangeTest, AnOutcomeComesBack) {
  ChangeOutcome outcome{.kind = ChangeKind::kAddNode, .id = 70'000};
  auto read = ChangeOutcome::Decode(outcome.Encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, outcome.kind);
  EXPECT_EQ(read->id, outcome.id);
  EXPECT_FALSE(ChangeOutcome::Decode("x"));
}

TEST(CatalogChangeTest, FlippedBitsNeverBreakAReader) {
  SeededRandom random(5);
  std::vector<std::string> all;
  for (const CatalogChange& change : EveryKind()) {
    all.push_back(change.Encode());
  }
  all.push_back(EncodeAnswer(FullResult()));
  all.push_back(EncodeNode({.id = NodeId(1), .address = "h:1", .zone = "z"}));
  Placement placement{.epoch = 3, .members = {{ReplicaId(1), NodeId(2), true}}};
  all.push_back(EncodePlacement(placement));
  for (int i = 0; i < 30'000; ++i) {
    std::string bytes = all[random.Next() % all.size()];
    for (uint64_t flips = 1 + random.Next() % 3; flips > 0; --flips) {
      bytes[random.Next() % bytes.size()] ^= static_cast<char>(1u << random.Next() % 8);
    }
    if (auto change = CatalogChange::Decode(bytes)) {
      EXPECT_TRUE(CatalogChange::Decode(change->Encode()));
    }
    if (auto answer = DecodeAnswer(bytes)) {
      EXPECT_TRUE(DecodeAnswer(EncodeAnswer(answer)));
    }
    if (auto node = DecodeNode(bytes)) {
      EXPECT_EQ(DecodeNode(EncodeNode(*node)), *node);
    }
    if (auto read = DecodePlacement(bytes)) {
      EXPECT_EQ(DecodePlacement(EncodePlacement(*read)), *read);
    }
    CatalogView view;
    std::string key = NodeKey(NodeId(1));
    key[random.Next() % key.size()] ^= static_cast<char>(1u << random.Next() % 8);
    Status status = ApplyRecord(view, key, bytes);
    EXPECT_TRUE(status.ok() || status.code() == Code::kCorruption);
  }
}

TEST(CatalogRecordsTest, AnOfferWithMoreThanAnAmountComesBackInTheNewerVersion) {
  Offer plain{.number = 1, .manual = 400, .time = {5}, .etag = 6};
  Offer low = plain;
  low.highest = 50'000;
  Offer bucketed = plain;
  bucketed.buckets = {.percent = {1, 2, 3, 4, 100}, .unmarked = 2};
  Offer custom = plain;
  custom.custom = {{PartitionId(1), 300}, {PartitionId(2), 100}};
  for (const Offer& offer : {plain, low, bucketed, custom}) {
    std::string bytes = EncodeDatabase({.id = DatabaseId(1), .name = "d", .offer = offer});
    EXPECT_EQ(bytes[0], offer == plain ? 1 : 2);
    auto read = DecodeDatabase(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->offer, offer);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(DecodeDatabase(std::string_view(bytes).substr(0, size)));
    }
    EXPECT_FALSE(DecodeDatabase(bytes + "x"));
  }
}

TEST(CatalogRecordsTest, NodesPlacementsAndTheClusterComeBackFromTheirRecords) {
  CatalogView view;
  NodeRecord node{.id = NodeId(4),
                  .address = "10.0.0.1:7000",
                  .endpoint = "https://db/",
                  .zone = "a",
                  .version = 3,
                  .state = NodeState::kDraining,
                  .joined = {77}};
  Placement placement{
      .epoch = 1ull << 40,
      .members = {{ReplicaId(1ull << 50), NodeId(4), true}, {ReplicaId(2), NodeId(5), false}},
      .founders = {{ReplicaId(8), NodeId(9), true}}};
  ASSERT_TRUE(ApplyRecord(view, NodeKey(node.id), EncodeNode(node)).ok());
  GroupId group(1ull << 33);
  ASSERT_TRUE(ApplyRecord(view, PlacementKey(group), EncodePlacement(placement)).ok());
  CatalogCounters next{.node = 5, .replica = 1ull << 51, .format = 3};
  ASSERT_TRUE(ApplyRecord(view, ClusterKey(), EncodeCluster(~0ull, next)).ok());
  EXPECT_EQ(*view.FindNode(node.id), node);
  EXPECT_EQ(*view.FindPlacement(group), placement);
  EXPECT_EQ(view.cluster, ~0ull);
  EXPECT_EQ(view.next, next);
  ASSERT_TRUE(ApplyRecord(view, PlacementKey(group), std::nullopt).ok());
  EXPECT_EQ(view.FindPlacement(group), nullptr);
  EXPECT_EQ(ApplyRecord(view, "?", "x").code(), Code::kCorruption);
  EXPECT_EQ(ApplyRecord(view, "", "x").code(), Code::kCorruption);
  EXPECT_EQ(ApplyRecord(view, CountersKey(), std::nullopt).code(), Code::kCorruption);
}

}  // namespace
}  // namespace orrery::model
