#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/items.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

using partition::OperationRegistry;
using partition::Reply;

const OperationRegistry& Registry() {
  static const OperationRegistry* registry = [] {
    auto* made = new OperationRegistry;
    RegisterItemOperations(*made);
    return made;
  }();
  return *registry;
}

ItemAddress SomeAddress() {
  types::PartitionKey key{{types::KeyComponent::String(std::string("a\0b", 3)),
                           types::KeyComponent::Number(-1.5), types::KeyComponent::Null(),
                           types::KeyComponent::Bool(true), types::KeyComponent()}};
  return {.epk = std::string("\x05\0\xFF", 3), .key = key};
}

// One message for each kind of operation, with every field set to something of its own.
std::vector<std::string> Messages() {
  const partition::Target target{ContainerId(3), PartitionId(1ull << 40), 5, 6};
  std::vector<std::string> messages;
  auto add = [&](partition::Operation& operation) {
    operation.id = {.high = 0x1122334455667788, .low = 9};
    operation.target = target;
    messages.push_back(OperationRegistry::EncodeMessage(operation));
  };
  ReadItem read;
  read.address = SomeAddress();
  read.id = "the id";
  read.if_none_match = "\"tag\"";
  read.session = Lsn(77);
  read.level = partition::ReadLevel::kStrong;
  add(read);

  WriteItems write;
  write.address = SomeAddress();
  write.session = Lsn(1);
  write.steps = {
      Create(R"({"id":"1","x":[1,2.5,null,{"y":"z"}]})"),
      Upsert(R"({"id":"2"})"),
      IfMatch(Replace(R"({"id":"3"})"), "\"a\""),
      IfNoneMatch(Delete("4"), "*"),
      PatchStep("5", R"({"condition":"n=1","operations":[{"op":"add","path":"/a~1b","value":[1]},
                         {"op":"remove","path":"/c"},{"op":"move","from":"/d","path":"/e"},
                         {"op":"incr","path":"/n","value":-2}]})"),
      ReadStep("6")};
  add(write);

  ReadFeed feed;
  feed.range = {.min = "\x01", .max = "\x3F"};
  feed.only_key = SomeAddress().key;
  feed.after = std::string("k\0k", 3);
  feed.items_max = 17;
  feed.filter = "n=1";
  feed.parameters = Json(R"({"v":[{"name":"@a","value":1}]})");
  feed.session = Lsn(5);
  feed.level = partition::ReadLevel::kStrong;
  feed.claim = {.priority = partition::Priority::kLow, .bucket = 5};
  add(feed);
  ReadFeed plain;
  add(plain);

  DeleteItems logical;
  logical.logical_partition = SomeAddress();
  logical.after = "after";
  add(logical);
  DeleteItems expired;
  add(expired);
  return messages;
}

TEST(ItemEncodingTest, EveryOperationSurvivesTheWayThereByteForByte) {
  for (const std::string& message : Messages()) {
    auto decoded = Registry().DecodeMessage(message);
    ASSERT_TRUE(decoded) << decoded.error().ToString();
    EXPECT_EQ(OperationRegistry::EncodeMessage(**decoded), message);
    EXPECT_EQ((*decoded)->target.partition, PartitionId(1ull << 40));
    EXPECT_EQ((*decoded)->id.low, 9u);
  }
}

TEST(ItemEncodingTest, TheFieldsOfAWriteArrive) {
  auto decoded = Registry().DecodeMessage(Messages()[1]);
  ASSERT_TRUE(decoded);
  const auto& write = static_cast<const WriteItems&>(**decoded);
  EXPECT_EQ(write.address.epk, SomeAddress().epk);
  EXPECT_EQ(write.address.key, SomeAddress().key);
  ASSERT_EQ(write.steps.size(), 6u);
  EXPECT_EQ(write.steps[0].body.ToJson(), R"({"id":"1","x":[1,2.5,null,{"y":"z"}]})");
  EXPECT_EQ(write.steps[2].if_match, "\"a\"");
  EXPECT_EQ(write.steps[3].if_none_match, "*");
  EXPECT_EQ(write.steps[4].patch.condition, "n=1");
  EXPECT_EQ(write.steps[4].patch.operations.size(), 4u);
  EXPECT_EQ(write.steps[5].kind, StepKind::kRead);
}

TEST(ItemEncodingTest, ATruncatedOperationIsRefused) {
  for (const std::string& message : Messages()) {
    for (size_t size = 0; size < message.size(); ++size) {
      auto decoded = Registry().DecodeMessage(std::string_view(message).substr(0, size));
      EXPECT_FALSE(decoded) << size << " of " << message.size();
    }
  }
}

TEST(ItemEncodingTest, AnOperationWithBytesBehindItIsRefused) {
  for (const std::string& message : Messages()) {
    EXPECT_FALSE(Registry().DecodeMessage(message + '\0'));
  }
}

TEST(ItemEncodingTest, ANewerMessageAndAnUnknownKindAreRefused) {
  std::string newer = Messages()[0];
  newer[0] = 3;
  EXPECT_FALSE(Registry().DecodeMessage(newer));
  EXPECT_FALSE(OperationRegistry().DecodeMessage(Messages()[0]));
}

TEST(ItemEncodingTest, OnlyAnOperationWithAClaimHasTheFormThatOlderNodesCannotRead) {
  ReadItem read;
  EXPECT_EQ(OperationRegistry::EncodeMessage(read)[0], 1);
  read.claim.priority = partition::Priority::kLow;
  EXPECT_EQ(OperationRegistry::EncodeMessage(read)[0], 2);
  read.claim = {.bucket = 3};
  std::string message = OperationRegistry::EncodeMessage(read);
  auto decoded = Registry().DecodeMessage(message);
  ASSERT_TRUE(decoded);
  EXPECT_EQ((*decoded)->claim, read.claim);
  read.claim = {.bucket = 6};
  EXPECT_FALSE(Registry().DecodeMessage(OperationRegistry::EncodeMessage(read)));
}

TEST(ItemEncodingTest, TotalsAreAskedForWithTheUseOrWithout) {
  for (bool with_use : {false, true}) {
    ReadTotals read;
    read.with_use = with_use;
    std::string message = OperationRegistry::EncodeMessage(read);
    auto decoded = Registry().DecodeMessage(message);
    ASSERT_TRUE(decoded);
    EXPECT_EQ(static_cast<ReadTotals&>(**decoded).with_use, with_use);
    EXPECT_FALSE(Registry().DecodeMessage(message + '\0'));
  }
}

TEST(ItemEncodingTest, FlippedBitsGiveAnErrorOrAnOperationThatCanBeSentAgain) {
  SeededRandom random(1);
  for (const std::string& message : Messages()) {
    for (int i = 0; i < 3000; ++i) {
      std::string flipped = message;
      for (uint64_t flips = 1 + random.Next() % 3; flips > 0; --flips) {
        flipped[random.Next() % flipped.size()] ^= static_cast<char>(1u << random.Next() % 8);
      }
      auto decoded = Registry().DecodeMessage(flipped);
      if (decoded) {
        std::string again = OperationRegistry::EncodeMessage(**decoded);
        EXPECT_TRUE(Registry().DecodeMessage(again));
      }
    }
  }
}

TEST(ItemEncodingTest, AnAbsurdNumberOfStepsIsRefusedWithoutMakingRoomForThem) {
  std::string bytes;
  Encoder encoder(bytes);
  SomeAddress().Encode(encoder);
  encoder.Varint(0);
  encoder.Varint(~0ull);
  Decoder decoder(bytes);
  EXPECT_FALSE(WriteItems::Decode(decoder));
}

// --- replies -------------------------------------------------------------------------------------

Reply SomeReply() {
  Reply reply{.status = Status::Throttled(123),
              .charge = partition::RequestUnits(4.95),
              .lsn = Lsn(88),
              .partition = PartitionId(3),
              .body = std::string("\0\1\2", 3)};
  return reply;
}

std::string Encoded(const Reply& reply) {
  std::string bytes;
  Encoder encoder(bytes);
  reply.Encode(encoder);
  return bytes;
}

TEST(ItemEncodingTest, AReplySurvivesTheWayBackByteForByte) {
  std::string bytes = Encoded(SomeReply());
  Decoder decoder(bytes);
  Reply reply = Reply::Decode(decoder);
  EXPECT_EQ(reply.status.code(), Code::kThrottled);
  EXPECT_EQ(reply.status.retry_after_ms(), 123u);
  EXPECT_EQ(reply.charge, partition::RequestUnits(4.95));
  EXPECT_EQ(Encoded(reply), bytes);
}

TEST(ItemEncodingTest, WhatHasSettledGoesWithTheMessageInANewVersion) {
  OperationRegistry registry;
  RegisterItemOperations(registry);
  WriteItems write;
  write.address = SomeAddress();
  write.steps = {Delete("1")};
  write.id = {.high = 3, .low = 700};
  EXPECT_EQ(OperationRegistry::EncodeMessage(write)[0], 1);
  write.settled = 600;
  write.again = true;
  for (partition::Claim claim : {partition::Claim(), partition::Claim{.bucket = 3}}) {
    write.claim = claim;
    const std::string message = OperationRegistry::EncodeMessage(write);
    EXPECT_EQ(message[0], 3);
    auto decoded = registry.DecodeMessage(message);
    ASSERT_TRUE(decoded);
    EXPECT_EQ((*decoded)->settled, 600u);
    EXPECT_TRUE((*decoded)->again);
    EXPECT_EQ((*decoded)->id, write.id);
    EXPECT_EQ((*decoded)->claim, claim);
  }
}

TEST(ItemEncodingTest, ATruncatedReplyHasAnUnknownOutcome) {
  std::string bytes = Encoded(SomeReply());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Decoder decoder(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(Reply::Decode(decoder).status.code(), Code::kUnknownOutcome) << size;
  }
}

TEST(ItemEncodingTest, ACodeThatDoesNotExistIsAnUnknownOutcome) {
  std::string bytes = Encoded(SomeReply());
  bytes[0] = '\x7F';
  Decoder decoder(bytes);
  EXPECT_EQ(Reply::Decode(decoder).status.code(), Code::kUnknownOutcome);
}

std::vector<StepResult> SomeResults() {
  return {{.created = true, .charge = partition::RequestUnits(5.5), .item = "item"},
          {.status = Status(Code::kNotFound, "why"), .charge = partition::RequestUnits(1)},
          {.status = Status(Code::kUnavailable), .undone = true},
          {.without_body = true, .item = "header"}};
}

TEST(ItemEncodingTest, StepResultsSurviveByteForByteAndTruncatedOnesAreRefused) {
  std::string bytes = EncodeStepResults(SomeResults());
  auto results = DecodeStepResults(bytes);
  ASSERT_TRUE(results);
  EXPECT_EQ(EncodeStepResults(*results), bytes);
  EXPECT_EQ((*results)[1].status.message(), "why");
  for (size_t size = 0; size < bytes.size(); ++size) {
    auto cut = DecodeStepResults(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut) << size;
    EXPECT_EQ(cut.error().code(), Code::kUnknownOutcome);
  }
}

TEST(ItemEncodingTest, APageSurvivesByteForByteAndATruncatedOneIsRefused) {
  ReadFeed::Page page{.items = {"", "one", std::string(300, 'x')}, .last = "key"};
  std::string bytes = page.Encode();
  auto decoded = ReadFeed::Page::Decode(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->items, page.items);
  EXPECT_EQ(decoded->Encode(), bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadFeed::Page::Decode(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(ItemEncodingTest, RandomBytesNeverBreakTheReaders) {
  SeededRandom random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random.Next() % 64, '\0');
    for (char& c : bytes) {
      c = static_cast<char>(random.Next());
    }
    IgnoreError(DecodeStepResults(bytes) ? Status() : Status(), "only that it ends");
    IgnoreError(ReadFeed::Page::Decode(bytes) ? Status() : Status(), "only that it ends");
    Decoder decoder(bytes);
    Reply::Decode(decoder);
  }
}

}  // namespace
}  // namespace orrery::model
