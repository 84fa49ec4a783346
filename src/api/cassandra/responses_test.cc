#include "api/cassandra/responses.h"

#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "api/cassandra/test_bytes.h"
#include "base/bytes.h"

namespace orrery::cassandra {
namespace {

using cql::TypeId;

void ExpectBody(const Response& response, Opcode opcode, std::string_view parts) {
  EXPECT_EQ(response.opcode, opcode);
  EXPECT_EQ(ToHex(response.body), ToHex(FromParts(parts)));
}

TEST(ResponsesTest, EveryErrorHasItsBody) {
  ErrorDetails error{.message = "m",
                     .consistency = Consistency::kQuorum,
                     .received = 1,
                     .required = 2,
                     .failures = {{FromParts("7F000001"), 3}},
                     .data_present = true,
                     .contentions = 5,
                     .keyspace = "ks",
                     .name = "n",
                     .argument_types = {"int"},
                     .statement_id = "\xAB\xCD"};
  const std::tuple<ErrorCode, int, std::string> rows[] = {
      {ErrorCode::kServerError, 4, "00000000 0001 'm'"},
      {ErrorCode::kProtocolError, 4, "0000000A 0001 'm'"},
      {ErrorCode::kBadCredentials, 4, "00000100 0001 'm'"},
      {ErrorCode::kUnavailable, 4, "00001000 0001 'm' 0004 00000002 00000001"},
      {ErrorCode::kOverloaded, 4, "00001001 0001 'm'"},
      {ErrorCode::kIsBootstrapping, 4, "00001002 0001 'm'"},
      {ErrorCode::kTruncateError, 4, "00001003 0001 'm'"},
      {ErrorCode::kWriteTimeout, 4, "00001100 0001 'm' 0004 00000001 00000002 0006 'SIMPLE'"},
      {ErrorCode::kReadTimeout, 4, "00001200 0001 'm' 0004 00000001 00000002 01"},
      {ErrorCode::kReadFailure, 3, "00001200 0001 'm' 0004 00000001 00000002 01"},
      {ErrorCode::kReadFailure, 4, "00001300 0001 'm' 0004 00000001 00000002 00000001 01"},
      {ErrorCode::kReadFailure, 5,
       "00001300 0001 'm' 0004 00000001 00000002 00000001 04 7F000001 0003 01"},
      {ErrorCode::kFunctionFailure, 4, "00001400 0001 'm' 0002 'ks' 0001 'n' 0001 0003 'int'"},
      {ErrorCode::kFunctionFailure, 3, "00002200 0001 'm'"},
      {ErrorCode::kWriteFailure, 4,
       "00001500 0001 'm' 0004 00000001 00000002 00000001 0006 'SIMPLE'"},
      {ErrorCode::kWriteFailure, 5,
       "00001500 0001 'm' 0004 00000001 00000002 00000001 04 7F000001 0003 0006 'SIMPLE'"},
      {ErrorCode::kCdcWriteFailure, 5, "00001600 0001 'm'"},
      {ErrorCode::kCdcWriteFailure, 4, "00000000 0001 'm'"},
      {ErrorCode::kCasWriteUnknown, 5, "00001700 0001 'm' 0004 00000001 00000002"},
      {ErrorCode::kCasWriteUnknown, 4, "00001100 0001 'm' 0004 00000001 00000002 0003 'CAS'"},
      {ErrorCode::kSyntaxError, 4, "00002000 0001 'm'"},
      {ErrorCode::kUnauthorized, 4, "00002100 0001 'm'"},
      {ErrorCode::kInvalid, 4, "00002200 0001 'm'"},
      {ErrorCode::kConfigError, 4, "00002300 0001 'm'"},
      {ErrorCode::kAlreadyExists, 4, "00002400 0001 'm' 0002 'ks' 0001 'n'"},
      {ErrorCode::kUnprepared, 4, "00002500 0001 'm' 0002 ABCD"},
  };
  for (const auto& [code, version, parts] : rows) {
    error.code = code;
    ExpectBody(MakeError(error, version), Opcode::kError, parts);
  }
  error.code = ErrorCode::kWriteTimeout;
  error.write_type = "CAS";
  ExpectBody(MakeError(error, 5), Opcode::kError,
             "00001100 0001 'm' 0004 00000001 00000002 0003 'CAS' 0005");
}

TEST(ResponsesTest, Handshake) {
  ExpectBody(MakeReady(), Opcode::kReady, "");
  ExpectBody(MakeAuthenticate("a.B"), Opcode::kAuthenticate, "0003 'a.B'");
  ExpectBody(MakeSupported({{"COMPRESSION", {}}, {"CQL_VERSION", {"3.4.5"}}}), Opcode::kSupported,
             "0002 000B 'COMPRESSION' 0000 000B 'CQL_VERSION' 0001 0005 '3.4.5'");
  ExpectBody(MakeAuthSuccess(std::nullopt), Opcode::kAuthSuccess, "FFFFFFFF");
  ExpectBody(MakeAuthChallenge("x"), Opcode::kAuthChallenge, "00000001 'x'");
}

TEST(ResponsesTest, Events) {
  ExpectBody(MakeSchemaEvent({"CREATED", "TABLE", "ks", "t"}, 4), Opcode::kEvent,
             "000D 'SCHEMA_CHANGE' 0007 'CREATED' 0005 'TABLE' 0002 'ks' 0001 't'");
  ExpectBody(MakeSchemaEvent({"DROPPED", "KEYSPACE", "ks"}, 4), Opcode::kEvent,
             "000D 'SCHEMA_CHANGE' 0007 'DROPPED' 0008 'KEYSPACE' 0002 'ks'");
  ExpectBody(MakeTopologyEvent("NEW_NODE", FromParts("7F000001"), 9042), Opcode::kEvent,
             "000F 'TOPOLOGY_CHANGE' 0008 'NEW_NODE' 04 7F000001 00002352");
  ExpectBody(MakeStatusEvent("UP", std::string(16, '\1'), 1), Opcode::kEvent,
             "000D 'STATUS_CHANGE' 0002 'UP' 10 01010101010101010101010101010101 00000001");
}

TEST(ResponsesTest, SimpleResults) {
  ExpectBody(MakeVoid(), Opcode::kResult, "00000001");
  ExpectBody(MakeSetKeyspace("ks"), Opcode::kResult, "00000003 0002 'ks'");
  ExpectBody(MakeSchemaChange({"UPDATED", "TYPE", "ks", "t"}, 4), Opcode::kResult,
             "00000005 0007 'UPDATED' 0004 'TYPE' 0002 'ks' 0001 't'");
  SchemaChange function{"CREATED", "FUNCTION", "ks", "f", {"int"}};
  ExpectBody(MakeSchemaChange(function, 4), Opcode::kResult,
             "00000005 0007 'CREATED' 0008 'FUNCTION' 0002 'ks' 0001 'f' 0001 0003 'int'");
  ExpectBody(MakeSchemaChange(function, 3), Opcode::kResult,
             "00000005 0007 'UPDATED' 0008 'KEYSPACE' 0002 'ks'");
}

const std::vector<ColumnSpec> kColumns = {{"ks", "t", "a", TypeId::kInt},
                                          {"ks", "t", "b", TypeId::kText}};

TEST(ResponsesTest, RowsWithOneTable) {
  RowsWriter rows(EncodedColumns(kColumns, 4), {});
  rows.Cell(FromParts("00000005"));
  rows.NullCell();
  rows.EndRow();
  rows.Cell(FromParts("00000006"));
  rows.CellOrNull("x");
  rows.EndRow();
  ExpectBody(rows.Finish(), Opcode::kResult,
             "00000002 00000001 00000002 0002 'ks' 0001 't' 0001 'a' 0009 0001 'b' 000D"
             "00000002 00000004 00000005 FFFFFFFF 00000004 00000006 00000001 'x'");
}

TEST(ResponsesTest, RowsOfSeveralTablesNameEach) {
  std::vector<ColumnSpec> columns = {{"ks", "t", "a", TypeId::kInt},
                                     {"ks", "u", "b", TypeId::kInt}};
  RowsWriter rows(EncodedColumns(columns, 4), {});
  ExpectBody(rows.Finish(), Opcode::kResult,
             "00000002 00000000 00000002 0002 'ks' 0001 't' 0001 'a' 0009"
             "0002 'ks' 0001 'u' 0001 'b' 0009 00000000");
}

TEST(ResponsesTest, RowsWithMorePagesAndWithoutMetadata) {
  RowsWriter rows(EncodedColumns(kColumns, 4), {.skip_metadata = true});
  rows.NullCell();
  rows.NullCell();
  rows.EndRow();
  ExpectBody(rows.Finish("\xAA\xBB"), Opcode::kResult,
             "00000002 00000006 00000002 00000002 AABB 00000001 FFFFFFFF FFFFFFFF");
}

TEST(ResponsesTest, RowsWithNewMetadataSendItAlways) {
  std::vector<ColumnSpec> columns = {{"ks", "t", "a", TypeId::kDuration}};
  RowsWriter rows(EncodedColumns(columns, 5), {.skip_metadata = true, .new_metadata_id = "id"});
  ExpectBody(rows.Finish("p"), Opcode::kResult,
             "00000002 0000000B 00000001 00000001 'p' 0002 'id' 0002 'ks' 0001 't'"
             "0001 'a' 0015 00000000");
}

TEST(ResponsesTest, Prepared) {
  PreparedStatement statement{.id = "\xAB\xCD",
                              .result_metadata_id = "\xEE",
                              .markers = kColumns,
                              .partition_key = {1, 0},
                              .columns = {kColumns[0]}};
  std::string markers = "0002 'ks' 0001 't' 0001 'a' 0009 0001 'b' 000D";
  std::string columns = "00000001 00000001 0002 'ks' 0001 't' 0001 'a' 0009";
  ExpectBody(MakePrepared(statement, 3), Opcode::kResult,
             "00000004 0002 ABCD 00000001 00000002" + markers + columns);
  ExpectBody(MakePrepared(statement, 4), Opcode::kResult,
             "00000004 0002 ABCD 00000001 00000002 00000002 0001 0000" + markers + columns);
  ExpectBody(MakePrepared(statement, 5), Opcode::kResult,
             "00000004 0002 ABCD 0001 EE 00000001 00000002 00000002 0001 0000" + markers + columns);
  ExpectBody(MakePrepared({.id = "i"}, 4), Opcode::kResult,
             "00000004 0001 'i' 00000000 00000000 00000000 00000004 00000000");
}

TEST(ResponsesTest, PrefixComesInItsOrder) {
  Response response = MakeVoid();
  response.tracing_id.emplace().fill('\x11');
  response.warnings = {"w"};
  response.payload = {{"RequestCharge", "12345678"}};
  std::string prefix;
  response.AppendPrefix(4, prefix);
  EXPECT_EQ(response.flags(4), 0x0E);
  EXPECT_EQ(ToHex(prefix), ToHex(FromParts("11111111111111111111111111111111 0001 0001 'w'"
                                           "0001 000D 'RequestCharge' 00000008 '12345678'")));
  prefix.clear();
  response.AppendPrefix(3, prefix);
  EXPECT_EQ(response.flags(3), 0x02);
  EXPECT_EQ(prefix.size(), 16u);
}

}  // namespace
}  // namespace orrery::cassandra
