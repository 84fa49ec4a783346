#include "api/cassandra/requests.h"

#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "api/cassandra/test_bytes.h"

namespace orrery::cassandra {
namespace {

Result<Request> Decode(int version, Opcode opcode, std::string_view bytes, uint8_t flags = 0) {
  static std::deque<std::string> bodies;  // the views of requests point into them
  const std::string& body = bodies.emplace_back(bytes);
  EnvelopeHead head{.version = static_cast<uint8_t>(version), .flags = flags, .opcode = opcode};
  return DecodeRequest(head, body);
}

template <typename Message>
Message Get(Result<Request>&& request) {
  EXPECT_TRUE(request) << (request ? "" : request.error().message());
  return request ? std::get<Message>(std::move(request->message)) : Message();
}

void ExpectError(int version, Opcode opcode, std::string_view parts, std::string_view message) {
  auto request = Decode(version, opcode, FromParts(parts));
  ASSERT_FALSE(request) << parts;
  EXPECT_EQ(request.error().message(), message);
}

TEST(RequestsTest, Startup) {
  std::string body = FromParts(
      "0002 000B 'CQL_VERSION' 0005 '3.0.0'"
      "000B 'COMPRESSION' 0003 'lz4'");
  auto startup = Get<StartupRequest>(Decode(4, Opcode::kStartup, body));
  EXPECT_EQ(startup.Get("CQL_VERSION"), "3.0.0");
  EXPECT_EQ(startup.Get("COMPRESSION"), "lz4");
  EXPECT_EQ(startup.Get("DRIVER_NAME"), "");
}

TEST(RequestsTest, AuthResponse) {
  std::string body = FromParts("00000004 00 'u' 00 'p'");
  auto auth = Get<AuthResponseRequest>(Decode(4, Opcode::kAuthResponse, body));
  EXPECT_EQ(*auth.token, FromParts("00 'u' 00 'p'"));
  auto null = Get<AuthResponseRequest>(Decode(4, Opcode::kAuthResponse, FromParts("FFFFFFFF")));
  EXPECT_FALSE(null.token);
}

// What both drivers send by default: page size 5000 and a timestamp, at LOCAL_ONE.
TEST(RequestsTest, QueryOfDrivers) {
  std::string body = FromParts("00000008 'SELECT 1' 000A 24 00001388 0005F5E100000001");
  auto query = Get<QueryRequest>(Decode(4, Opcode::kQuery, body));
  EXPECT_EQ(query.text, "SELECT 1");
  EXPECT_EQ(query.parameters.consistency, Consistency::kLocalOne);
  EXPECT_EQ(query.parameters.page_size, 5000);
  EXPECT_EQ(query.parameters.timestamp, 0x0005F5E100000001);
  EXPECT_TRUE(query.parameters.values.empty());
  EXPECT_FALSE(query.parameters.paging_state);
  EXPECT_FALSE(query.parameters.skip_metadata);
}

TEST(RequestsTest, QueryWithEveryFlagOfVersion5) {
  std::string body = FromParts(
      "00000001 'q' 0004 000001FF"
      "0003 0001 'a' 00000002 0102 0001 'b' FFFFFFFF 0001 'c' FFFFFFFE"
      "00000064 00000003 AABBCC 0008 FFFFFFFFFFFFFFFF 0002 'ks' 00000007");
  auto query = Get<QueryRequest>(Decode(5, Opcode::kQuery, body));
  const QueryParameters& p = query.parameters;
  EXPECT_EQ(p.consistency, Consistency::kQuorum);
  EXPECT_TRUE(p.named);
  EXPECT_TRUE(p.skip_metadata);
  ASSERT_EQ(p.values.size(), 3u);
  EXPECT_EQ(p.values[0].name, "a");
  EXPECT_EQ(p.values[0].kind, BoundValue::Kind::kBytes);
  EXPECT_EQ(p.values[0].bytes, "\x01\x02");
  EXPECT_EQ(p.values[1].kind, BoundValue::Kind::kNull);
  EXPECT_EQ(p.values[2].kind, BoundValue::Kind::kUnset);
  EXPECT_EQ(p.values[2].name, "c");
  EXPECT_EQ(p.page_size, 100);
  EXPECT_EQ(*p.paging_state, "\xAA\xBB\xCC");
  EXPECT_EQ(p.serial_consistency, Consistency::kSerial);
  EXPECT_EQ(p.timestamp, -1);
  EXPECT_EQ(p.keyspace, "ks");
  EXPECT_EQ(p.now_in_seconds, 7);
}

TEST(RequestsTest, FlagsThatAVersionDoesNotHaveAreIgnored) {
  auto query = Get<QueryRequest>(Decode(4, Opcode::kQuery, FromParts("00000001 'q' 0001 80")));
  EXPECT_FALSE(query.parameters.keyspace);
}

TEST(RequestsTest, UnsetIsNullBeforeVersion4) {
  std::string body = FromParts("00000001 'q' 0001 01 0001 FFFFFFFE");
  auto old = Get<QueryRequest>(Decode(3, Opcode::kQuery, body));
  EXPECT_EQ(old.parameters.values.at(0).kind, BoundValue::Kind::kNull);
  auto query = Get<QueryRequest>(Decode(4, Opcode::kQuery, body));
  EXPECT_EQ(query.parameters.values.at(0).kind, BoundValue::Kind::kUnset);
}

TEST(RequestsTest, PrepareHasFlagsFromVersion5On) {
  std::string bare = FromParts("00000001 'q'");
  std::string body = FromParts("00000001 'q' 00000001 0002 'ks'");
  EXPECT_EQ(Get<PrepareRequest>(Decode(4, Opcode::kPrepare, bare)).text, "q");
  EXPECT_EQ(Get<PrepareRequest>(Decode(5, Opcode::kPrepare, body)).keyspace, "ks");
  std::string none = FromParts("00000001 'q' 00000000");
  EXPECT_FALSE(Get<PrepareRequest>(Decode(5, Opcode::kPrepare, none)).keyspace);
}

TEST(RequestsTest, ExecuteNamesTheResultMetadataFromVersion5On) {
  std::string v4 = FromParts("0002 ABCD 000A 01 0001 00000004 00000005");
  std::string v5 = FromParts("0002 ABCD 0001 EE 000A 00000003 0001 00000000");
  auto execute = Get<ExecuteRequest>(Decode(4, Opcode::kExecute, v4));
  EXPECT_EQ(execute.id, "\xAB\xCD");
  EXPECT_FALSE(execute.result_metadata_id);
  EXPECT_EQ(execute.parameters.values.at(0).bytes, FromParts("00000005"));
  execute = Get<ExecuteRequest>(Decode(5, Opcode::kExecute, v5));
  EXPECT_EQ(*execute.result_metadata_id, "\xEE");
  EXPECT_TRUE(execute.parameters.skip_metadata);
  EXPECT_EQ(execute.parameters.values.at(0).kind, BoundValue::Kind::kBytes);
}

TEST(RequestsTest, BatchOfBothKinds) {
  std::string body = FromParts(
      "01 0002 00 00000001 'q' 0000  01 0002 ABCD 0001 00000001 'x'"
      "0006 30 0009 0000000000000005");
  auto batch = Get<BatchRequest>(Decode(4, Opcode::kBatch, body));
  EXPECT_EQ(batch.type, BatchRequest::Type::kUnlogged);
  ASSERT_EQ(batch.statements.size(), 2u);
  EXPECT_FALSE(batch.statements[0].prepared);
  EXPECT_EQ(batch.statements[0].text, "q");
  EXPECT_TRUE(batch.statements[1].prepared);
  EXPECT_EQ(batch.statements[1].text, "\xAB\xCD");
  EXPECT_EQ(batch.statements[1].values.at(0).bytes, "x");
  EXPECT_EQ(batch.parameters.consistency, Consistency::kLocalQuorum);
  EXPECT_EQ(batch.parameters.serial_consistency, Consistency::kLocalSerial);
  EXPECT_EQ(batch.parameters.timestamp, 5);
}

TEST(RequestsTest, EmptyBatchOfVersion5) {
  auto batch = Get<BatchRequest>(
      Decode(5, Opcode::kBatch, FromParts("00 0000 0001 00000180 0002 'ks' 00000009")));
  EXPECT_TRUE(batch.statements.empty());
  EXPECT_EQ(batch.parameters.keyspace, "ks");
  EXPECT_EQ(batch.parameters.now_in_seconds, 9);
}

TEST(RequestsTest, Register) {
  auto events = Get<RegisterRequest>(
      Decode(4, Opcode::kRegister, FromParts("0002 000D 'STATUS_CHANGE' 000D 'SCHEMA_CHANGE'")));
  EXPECT_EQ(events.events.size(), 2u);
}

TEST(RequestsTest, TracingAndCustomPayload) {
  std::string body = FromParts("0001 0001 'k' 00000001 'v' 00000001 'q' 0001 00");
  auto request = Decode(4, Opcode::kQuery, body, kFlagTracing | kFlagPayload);
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->tracing);
  ASSERT_EQ(request->payload.size(), 1u);
  EXPECT_EQ(request->payload[0].first, "k");
  EXPECT_EQ(request->payload[0].second, "v");
  EXPECT_EQ(std::get<QueryRequest>(request->message).text, "q");
}

TEST(RequestsTest, MistakesAreNamed) {
  ExpectError(4, Opcode::kQuery, "00000001 'q' 000B 00", "Unknown code 11 for a consistency level");
  ExpectError(4, Opcode::kQuery, "00000001 'q' 0001 10 0001",
              "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL");
  ExpectError(4, Opcode::kQuery, "00000001 'q' 0001 01 0001 FFFFFFFD",
              "Invalid ByteBuffer length -3");
  ExpectError(4, Opcode::kBatch, "03 0000 0001 00", "Invalid BATCH message type 3");
  ExpectError(4, Opcode::kBatch, "00 0001 02",
              "Invalid query kind in BATCH messages. Must be 0 or 1 but got 2");
  ExpectError(4, Opcode::kRegister, "0001 0001 'x'", "Invalid value 'x' for Type");
  ExpectError(4, Opcode::kResult, "",
              "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode RESULT");
  ExpectError(4, static_cast<Opcode>(0x04), "", "Unknown opcode 4");
}

TEST(RequestsTest, BodiesThatAreCutAreRefused) {
  const std::pair<Opcode, std::string> bodies[] = {
      {Opcode::kStartup, FromParts("0001 000B 'CQL_VERSION' 0005 '3.0.0'")},
      {Opcode::kQuery, FromParts("00000001 'q' 0004 000001FF 0001 0001 'a' 00000002 0102 00000064 "
                                 "00000003 AABBCC 0008 FFFFFFFFFFFFFFFF 0002 'ks' 00000007")},
      {Opcode::kPrepare, FromParts("00000001 'q' 00000001 0002 'ks'")},
      {Opcode::kExecute, FromParts("0002 ABCD 0001 EE 000A 00000001 0001 00000001 00")},
      {Opcode::kBatch, FromParts("00 0001 01 0002 ABCD 0001 00000001 'x' 0006 00000000")},
      {Opcode::kRegister, FromParts("0001 000D 'STATUS_CHANGE'")},
      {Opcode::kAuthResponse, FromParts("00000001 00")},
  };
  for (const auto& [opcode, body] : bodies) {
    EXPECT_TRUE(Decode(5, opcode, body)) << *OpcodeName(opcode);
    for (size_t size = 0; size < body.size(); ++size) {
      EXPECT_FALSE(Decode(5, opcode, std::string_view(body).substr(0, size)))
          << *OpcodeName(opcode) << " " << size;
    }
  }
}

}  // namespace
}  // namespace orrery::cassandra
