#include "api/cassandra/protocol.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/test_protocol.h"
#include "base/bytes.h"

namespace orrery::cassandra {
namespace {

TEST(BareTest, RequestsComeByteByByte) {
  for (int version : {3, 4}) {
    auto protocol = Ready(version);
    std::string bytes = Query(version, 1, "first") + Query(version, 2, "second");
    std::vector<std::string> texts;
    for (char byte : bytes) {
      protocol->Receive({&byte, 1});
      if (auto request = protocol->Next()) {
        EXPECT_EQ(request->version, version);
        texts.push_back(TextOf(request));
      }
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"first", "second"}));
    EXPECT_FALSE(protocol->holds_input());
  }
}

TEST(BareTest, MalformedBodiesDoNotEndTheConnection) {
  auto protocol = Ready(4);
  protocol->Receive(MakeEnvelope(4, 1, Opcode::kQuery, "xx") + Query(4, 2, "good"));
  EXPECT_EQ(TextOf(protocol->Next()), "good");
  auto answers = Envelopes(Take(*protocol));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].head.stream, 1);
  EXPECT_EQ(ErrorText(answers[0]), "Not enough bytes to read the body of QUERY");
}

TEST(BareTest, BodiesThatAreTooLargeAreSkipped) {
  auto protocol = Ready(4, kStartup, {.frame_bytes_max = 1000});
  std::string bytes = Query(4, 1, std::string(5000, 'x')) + Query(4, 2, "good");
  std::vector<std::string> texts;
  for (size_t at = 0; at < bytes.size(); at += 700) {
    protocol->Receive(std::string_view(bytes).substr(at, 700));
    while (auto request = protocol->Next()) {
      texts.push_back(TextOf(request));
    }
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"good"}));
  auto answers = Envelopes(Take(*protocol));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(ErrorText(answers[0]),
            "Request is too big: length 5007 exceeds maximum allowed length 1000.");
}

TEST(BareTest, CompressionGoesBothWays) {
  for (Compression compression : {Compression::kLz4, Compression::kSnappy}) {
    bool lz4 = compression == Compression::kLz4;
    auto protocol = Ready(4, lz4 ? kStartupLz4 : kStartupSnappy);
    std::string body;
    CompressBody(compression, QueryBody("squeezed", 4), body);
    protocol->Receive(MakeEnvelope(4, 1, Opcode::kQuery, body, kFlagCompressed));
    EXPECT_EQ(TextOf(protocol->Next()), "squeezed");
    protocol->Receive(Query(4, 2, "plain"));
    EXPECT_EQ(TextOf(protocol->Next()), "plain");

    protocol->Respond(1, MakeSetKeyspace(std::string(5000, 'k')));
    protocol->Respond(2, MakeVoid());
    auto answers = Envelopes(Take(*protocol));
    ASSERT_EQ(answers.size(), 2u);
    EXPECT_EQ(answers[0].head.flags, kFlagCompressed);
    EXPECT_LT(answers[0].body.size(), 1000u);
    auto plain = DecompressBody(compression, answers[0].body, 10'000);
    ASSERT_TRUE(plain);
    EXPECT_EQ(*plain, MakeSetKeyspace(std::string(5000, 'k')).body);
    EXPECT_EQ(answers[1].head.flags, 0);
  }
}

TEST(BareTest, CompressedBodiesThatCannotBeReadAreRefused) {
  auto protocol = Ready(4);
  protocol->Receive(MakeEnvelope(4, 1, Opcode::kQuery, "xxxxxxxx", kFlagCompressed));
  EXPECT_FALSE(protocol->Next());
  EXPECT_FALSE(protocol->closing());
  EXPECT_EQ(ErrorText(Envelopes(Take(*protocol)).at(0)),
            "The compressed body cannot be read: no compression was agreed on");
}

TEST(SegmentsTest, FollowTheAnswerToStartup) {
  for (bool lz4 : {false, true}) {
    auto protocol = Ready(5, lz4 ? kStartupLz4 : kStartup);
    std::string bytes = Segment(Query(5, 1, "a") + Query(5, 2, "b"), true, lz4) +
                        Segment(Query(5, 3, "c"), true, lz4);
    std::vector<std::string> texts;
    for (char byte : bytes) {
      protocol->Receive({&byte, 1});
      while (auto request = protocol->Next()) {
        texts.push_back(TextOf(request));
      }
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"a", "b", "c"}));
    protocol->Respond(1, MakeVoid());
    protocol->Respond(2, MakeSetKeyspace(std::string(9000, 'k')));
    protocol->Push(MakeStatusEvent("UP", "1234", 1));
    std::string out = Take(*protocol);
    EXPECT_EQ(out.size() < 1000, lz4);
    auto answers = SegmentedEnvelopes(out, lz4);
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_EQ(answers[0].head.stream, 1);
    EXPECT_EQ(answers[0].head.version, 5);
    EXPECT_EQ(answers[1].body, MakeSetKeyspace(std::string(9000, 'k')).body);
    EXPECT_EQ(answers[2].head.stream, -1);
  }
}

TEST(SegmentsTest, AlsoWhenPasswordsAreAskedFor) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(5, 1, Opcode::kStartup, kStartup));
  ASSERT_TRUE(protocol.Next());
  protocol.Respond(1, MakeAuthenticate("x"));
  EXPECT_EQ(Envelopes(Take(protocol)).at(0).head.opcode, Opcode::kAuthenticate);
  protocol.Receive(
      Segment(MakeEnvelope(5, 2, Opcode::kAuthResponse, FromParts("00000003 00 'u' 00"))));
  ASSERT_TRUE(protocol.Next());
  protocol.Respond(2, MakeAuthSuccess(std::nullopt));
  auto answers = SegmentedEnvelopes(Take(protocol), false);
  EXPECT_EQ(answers.at(0).head.opcode, Opcode::kAuthSuccess);
}

TEST(SegmentsTest, AnErrorToStartupChangesNothing) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(5, 1, Opcode::kStartup, kStartupLz4));
  ASSERT_TRUE(protocol.Next());
  protocol.Respond(1, MakeError(ErrorCode::kOverloaded, "later", 5));
  protocol.Receive(MakeEnvelope(5, 2, Opcode::kStartup, kStartup));
  EXPECT_TRUE(protocol.Next());
}

TEST(SegmentsTest, SnappyIsNotForThem) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(5, 1, Opcode::kStartup, kStartupSnappy));
  EXPECT_FALSE(protocol.Next());
  EXPECT_EQ(ErrorText(Envelopes(Take(protocol)).at(0)), "Unknown compression algorithm: snappy");
}

TEST(SegmentsTest, LargeEnvelopesSpanThem) {
  for (bool lz4 : {false, true}) {
    auto protocol = Ready(5, lz4 ? kStartupLz4 : kStartup);
    std::string large(300'000, 'x');
    std::string envelopes = Query(5, 1, "before") + Query(5, 2, large) + Query(5, 3, "after");
    size_t first = Query(5, 1, "before").size();
    size_t second = first + Query(5, 2, large).size();
    std::string bytes;
    std::vector<size_t> ends = {first, second, envelopes.size()};
    AppendSegments(envelopes, ends, lz4, bytes);
    std::vector<std::string> texts;
    for (size_t at = 0; at < bytes.size(); at += 10'000) {
      protocol->Receive(std::string_view(bytes).substr(at, 10'000));
      while (auto request = protocol->Next()) {
        texts.push_back(TextOf(request));
      }
    }
    EXPECT_EQ(texts, (std::vector<std::string>{"before", large, "after"}));
    EXPECT_FALSE(protocol->closing());

    protocol->Respond(2, {.opcode = Opcode::kResult, .body = large});
    auto answers = SegmentedEnvelopes(Take(*protocol), lz4);
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].body, large);
  }
}

TEST(SegmentsTest, EnvelopesThatAreTooLargeAreSkipped) {
  auto protocol = Ready(5, kStartup, {.frame_bytes_max = 1000});
  std::string huge = Query(5, 1, std::string(300'000, 'x'));
  std::string bytes;
  AppendSegments(huge, std::vector<size_t>{huge.size()}, false, bytes);
  bytes += Segment(Query(5, 2, std::string(2000, 'x')) + Query(5, 3, "good"));
  protocol->Receive(bytes);
  EXPECT_EQ(TextOf(protocol->Next()), "good");
  EXPECT_FALSE(protocol->Next());
  EXPECT_FALSE(protocol->closing());
  EXPECT_EQ(SegmentedEnvelopes(Take(*protocol), false).size(), 2u);
}

TEST(SegmentsTest, FaultsEndTheConnection) {
  std::string whole = Query(5, 1, "x");
  std::string flipped = Segment(whole);
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  std::string bad_head = Segment(whole);
  bad_head[0] = static_cast<char>(bad_head[0] ^ 1);
  const std::string rows[] = {
      flipped,
      bad_head,
      whole,                                                                   // no segment
      Segment(std::string_view(whole).substr(0, whole.size() - 1)),            // cut off
      Segment("\x05"),                                                         //
      Segment(whole + whole, false),                                           // two in one part
      Segment(std::string_view(whole).substr(0, 12), false) + Segment(whole),  // one inside another
  };
  for (const std::string& bytes : rows) {
    auto protocol = Ready(5);
    protocol->Receive(bytes);
    EXPECT_FALSE(protocol->Next()) << ToHex(bytes);
    EXPECT_TRUE(protocol->closing()) << ToHex(bytes);
    protocol->Receive(Segment(whole));
    EXPECT_FALSE(protocol->Next());
    EXPECT_FALSE(protocol->holds_input() && protocol->has_output());
  }
}

TEST(ProtocolTest, BuffersCanBeGivenBackBetweenRequests) {
  for (int version : {4, 5}) {
    auto protocol = Ready(version);
    for (int i = 0; i < 3; ++i) {
      std::string query = Query(version, 1, "x");
      protocol->Receive(version == 5 ? Segment(query) : query);
      EXPECT_EQ(TextOf(protocol->Next()), "x");
      EXPECT_FALSE(protocol->Next());
      protocol->ReleaseBuffers();
      protocol->Respond(1, MakeVoid());
      EXPECT_FALSE(Take(*protocol).empty());
    }
  }
}

TEST(ProtocolTest, RequestsOutliveTheInput) {
  auto protocol = Ready(4);
  protocol->Receive(Query(4, 1, "kept") + Query(4, 2, "other"));
  auto first = protocol->Next();
  auto second = protocol->Next();
  Request moved = std::move(*first);
  protocol->ReleaseBuffers();
  EXPECT_EQ(std::get<QueryRequest>(moved.message).text, "kept");
}

}  // namespace
}  // namespace orrery::cassandra
