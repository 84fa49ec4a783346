#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/test_protocol.h"

namespace orrery::cassandra {
namespace {

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

}  // namespace
}  // namespace orrery::cassandra
