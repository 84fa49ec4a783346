#include "api/cassandra/protocol.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/test_bytes.h"

namespace orrery::cassandra {
namespace {

const std::string kStartup = FromParts("0001 000B 'CQL_VERSION' 0005 '3.0.0'");
const std::string kStartupLz4 =
    FromParts("0002 000B 'CQL_VERSION' 0005 '3.4.5' 000B 'COMPRESSION' 0003 'lz4'");
const std::string kStartupSnappy =
    FromParts("0002 000B 'CQL_VERSION' 0005 '3.4.5' 000B 'COMPRESSION' 0006 'snappy'");

struct Answer {
  EnvelopeHead head;
  std::string body;
};

std::string Take(Protocol& protocol) { return std::exchange(protocol.Output(), {}); }

std::vector<Answer> Envelopes(std::string_view bytes) {
  std::vector<Answer> answers;
  while (bytes.size() >= kEnvelopeHeadBytes) {
    EnvelopeHead head = ReadEnvelopeHead(bytes);
    answers.push_back({head, std::string(bytes.substr(kEnvelopeHeadBytes, head.length))});
    bytes.remove_prefix(std::min(bytes.size(), kEnvelopeHeadBytes + head.length));
  }
  EXPECT_TRUE(bytes.empty());
  return answers;
}

std::vector<Answer> SegmentedEnvelopes(std::string_view bytes, bool lz4) {
  std::string all;
  while (!bytes.empty()) {
    auto head = ReadSegmentHead(bytes, lz4);
    if (!head || !*head || (*head)->bytes() > bytes.size()) {
      ADD_FAILURE() << "no segment";
      break;
    }
    std::string payload;
    EXPECT_TRUE(ReadSegmentPayload(**head, bytes, payload).ok());
    all += payload;
    bytes.remove_prefix((*head)->bytes());
  }
  return Envelopes(all);
}

std::string ErrorText(const Answer& answer) {
  EXPECT_EQ(answer.head.opcode, Opcode::kError);
  cql::WireReader reader(answer.body);
  reader.Int();
  return std::string(reader.String());
}

// A connection after STARTUP and READY.
std::unique_ptr<Protocol> Ready(int version, std::string_view startup = kStartup,
                                const ProtocolOptions& options = {}) {
  auto protocol = std::make_unique<Protocol>(options);
  protocol->Receive(MakeEnvelope(version, 0, Opcode::kStartup, startup));
  EXPECT_TRUE(protocol->Next());
  protocol->Respond(0, MakeReady());
  EXPECT_EQ(Envelopes(Take(*protocol)).at(0).head.opcode, Opcode::kReady);
  EXPECT_EQ(protocol->state(), Protocol::State::kReady);
  return protocol;
}

std::string QueryBody(std::string_view text, int version) {
  std::string body;
  cql::WireWriter writer(body);
  writer.LongString(text);
  writer.Short(1);
  if (version >= 5) {
    writer.Int(0);
  } else {
    writer.Byte(0);
  }
  return body;
}

std::string Query(int version, int16_t stream, std::string_view text) {
  return MakeEnvelope(version, stream, Opcode::kQuery, QueryBody(text, version));
}

std::string TextOf(const std::optional<Request>& request) {
  if (!request || !std::holds_alternative<QueryRequest>(request->message)) {
    return "(none)";
  }
  return std::string(std::get<QueryRequest>(request->message).text);
}

std::string Segment(std::string_view payload, bool self_contained = true, bool lz4 = false) {
  std::string out;
  AppendSegment(payload, self_contained, lz4, out);
  return out;
}

TEST(NegotiationTest, UnknownVersionsAreAnsweredInTheHighestWeHave) {
  // What Node and Python send first.
  for (std::string_view parts : {"42 00 0005 01 00000003 000000", "42 00 0005 05 00000000",
                                 "41 00 0005 05 00000000", "06 10 0005 05 00000000"}) {
    Protocol protocol({});
    protocol.Receive(FromParts(parts));
    EXPECT_FALSE(protocol.Next());
    EXPECT_TRUE(protocol.closing());
    auto answers = Envelopes(Take(protocol));
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].head.version, 5);
    EXPECT_TRUE(answers[0].head.response);
    EXPECT_EQ(answers[0].head.stream, 5);
    EXPECT_EQ(answers[0].body.substr(0, 4), FromParts("0000000A"));
    std::string version = std::to_string(FromParts(parts)[0]);
    EXPECT_EQ(ErrorText(answers[0]), "Invalid or unsupported protocol version (" + version +
                                         "); supported versions are (3/v3, 4/v4, 5/v5)");
  }
}

TEST(NegotiationTest, OldVersionsHaveAShorterHead) {
  Protocol protocol({});
  protocol.Receive(FromParts("02 00 07 05 000000"));
  EXPECT_FALSE(protocol.Next());
  EXPECT_FALSE(protocol.closing());
  protocol.Receive(FromParts("00"));
  EXPECT_FALSE(protocol.Next());
  EXPECT_TRUE(protocol.closing());
  auto answers = Envelopes(Take(protocol));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].head.version, 3);
  EXPECT_EQ(answers[0].head.stream, 7);
}

TEST(NegotiationTest, OneConnectionSpeaksOneVersion) {
  auto protocol = Ready(4);
  protocol->Receive(Query(3, 1, "x"));
  EXPECT_FALSE(protocol->Next());
  EXPECT_TRUE(protocol->closing());
  auto answers = Envelopes(Take(*protocol));
  EXPECT_EQ(ErrorText(answers.at(0)),
            "Invalid message version. Got 3/v3 but previous messages on this connection had "
            "version 4/v4");
}

TEST(NegotiationTest, OptionsAreAnsweredAtAnyTime) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(4, 3, Opcode::kOptions, ""));
  EXPECT_FALSE(protocol.Next());
  auto answers = Envelopes(Take(protocol));
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].head.opcode, Opcode::kSupported);
  EXPECT_EQ(answers[0].head.stream, 3);
  EXPECT_EQ(answers[0].body,
            FromParts("0003 000B 'CQL_VERSION' 0001 0005 '3.4.5'"
                      "000B 'COMPRESSION' 0002 0006 'snappy' 0003 'lz4'"
                      "0011 'PROTOCOL_VERSIONS' 0003 0004 '3/v3' 0004 '4/v4' 0004 '5/v5'"));

  auto ready = Ready(4);
  ready->Receive(MakeEnvelope(4, 9, Opcode::kOptions, ""));
  EXPECT_FALSE(ready->Next());
  EXPECT_EQ(Envelopes(Take(*ready)).at(0).head.opcode, Opcode::kSupported);
}

TEST(HandshakeTest, NothingIsReadBeforeStartupIsAnswered) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(4, 1, Opcode::kStartup, kStartup) + Query(4, 2, "early"));
  auto startup = protocol.Next();
  ASSERT_TRUE(startup);
  EXPECT_TRUE(std::holds_alternative<StartupRequest>(startup->message));
  EXPECT_FALSE(protocol.Next());
  protocol.Respond(1, MakeReady());
  EXPECT_EQ(TextOf(protocol.Next()), "early");
}

TEST(HandshakeTest, PasswordsAreAskedForBeforeAnythingElse) {
  Protocol protocol({});
  protocol.Receive(MakeEnvelope(4, 1, Opcode::kStartup, kStartup));
  ASSERT_TRUE(protocol.Next());
  protocol.Respond(1, MakeAuthenticate("x.PasswordAuthenticator"));
  EXPECT_EQ(protocol.state(), Protocol::State::kAuthenticating);
  protocol.Receive(Query(4, 2, "x"));
  EXPECT_FALSE(protocol.Next());
  protocol.Receive(MakeEnvelope(4, 3, Opcode::kAuthResponse, FromParts("00000003 00 'u' 00")));
  auto auth = protocol.Next();
  ASSERT_TRUE(auth);
  protocol.Respond(3, MakeError(ErrorCode::kBadCredentials, "no", 4));
  EXPECT_EQ(protocol.state(), Protocol::State::kAuthenticating);
  protocol.Receive(MakeEnvelope(4, 4, Opcode::kAuthResponse, FromParts("00000003 00 'u' 00")));
  ASSERT_TRUE(protocol.Next());
  protocol.Respond(4, MakeAuthSuccess(std::nullopt));
  EXPECT_EQ(protocol.state(), Protocol::State::kReady);
  auto answers = Envelopes(Take(protocol));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(ErrorText(answers[1]), "Unexpected message QUERY, expecting SASL_RESPONSE");
}

TEST(HandshakeTest, MistakesInStartupAreNamed) {
  const std::pair<std::string, std::string> rows[] = {
      {FromParts("0000"), "Missing value CQL_VERSION in STARTUP message"},
      {FromParts("0001 000B 'CQL_VERSION' 0005 '2.0.0'"),
       "CQL version 2.0.0 is not supported by the binary protocol (supported version are >= "
       "3.0.0)"},
      {FromParts("0002 000B 'CQL_VERSION' 0005 '3.0.0' 000B 'COMPRESSION' 0003 'zip'"),
       "Unknown compression algorithm: zip"},
      {FromParts("0001"), "Not enough bytes to read the body of STARTUP"},
  };
  for (const auto& [body, message] : rows) {
    Protocol protocol({});
    protocol.Receive(MakeEnvelope(4, 1, Opcode::kStartup, body));
    EXPECT_FALSE(protocol.Next());
    EXPECT_FALSE(protocol.closing());
    EXPECT_EQ(ErrorText(Envelopes(Take(protocol)).at(0)), message);
    // The client may try again.
    protocol.Receive(MakeEnvelope(4, 1, Opcode::kStartup, kStartup));
    EXPECT_TRUE(protocol.Next());
  }
}

TEST(HandshakeTest, QueriesBeforeStartupAndASecondStartupAreRefused) {
  Protocol protocol({});
  protocol.Receive(Query(4, 1, "x"));
  EXPECT_FALSE(protocol.Next());
  EXPECT_EQ(ErrorText(Envelopes(Take(protocol)).at(0)),
            "Unexpected message QUERY, expecting STARTUP or OPTIONS");
  auto ready = Ready(4);
  ready->Receive(MakeEnvelope(4, 1, Opcode::kStartup, kStartup));
  EXPECT_FALSE(ready->Next());
  EXPECT_EQ(ErrorText(Envelopes(Take(*ready)).at(0)),
            "Unexpected message STARTUP, the connection is ready");
}

TEST(HandshakeTest, LargeBodiesBeforeItEndTheConnection) {
  Protocol protocol({.startup_bytes_max = 100});
  protocol.Receive(FromParts("04 00 0001 01 00000065"));
  EXPECT_FALSE(protocol.Next());
  EXPECT_TRUE(protocol.closing());
}

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
