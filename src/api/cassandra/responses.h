// Responses of the native protocol, encoded for one version of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cassandra/frame.h"
#include "api/cassandra/requests.h"
#include "cql/data_type.h"

namespace orrery::cassandra {

// What goes into one envelope. Warnings and payload are left out before version 4.
struct Response {
  Opcode opcode = Opcode::kReady;
  std::string body;
  std::optional<std::array<char, 16>> tracing_id;
  std::vector<std::string> warnings;
  std::vector<std::pair<std::string, std::string>> payload;  // RequestCharge

  uint8_t flags(int version) const;
  // Appends what stands before the body.
  void AppendPrefix(int version, std::string& out) const;
};

// --- Errors -----------------------------------------------------------------------------------

enum class ErrorCode : int32_t {
  kServerError = 0x0000,
  kProtocolError = 0x000A,
  kBadCredentials = 0x0100,
  kUnavailable = 0x1000,
  kOverloaded = 0x1001,
  kIsBootstrapping = 0x1002,
  kTruncateError = 0x1003,
  kWriteTimeout = 0x1100,
  kReadTimeout = 0x1200,
  kReadFailure = 0x1300,
  kFunctionFailure = 0x1400,
  kWriteFailure = 0x1500,
  kCdcWriteFailure = 0x1600,
  kCasWriteUnknown = 0x1700,
  kSyntaxError = 0x2000,
  kUnauthorized = 0x2100,
  kInvalid = 0x2200,
  kConfigError = 0x2300,
  kAlreadyExists = 0x2400,
  kUnprepared = 0x2500,
};

// One replica that failed, from version 5 on.
struct FailureReason {
  std::string address;  // 4 or 16 bytes
  uint16_t code = 0;
};

// A code, its message, and of the rest what the code has.
struct ErrorDetails {
  ErrorCode code = ErrorCode::kServerError;
  std::string message;
  // kUnavailable, the timeouts and failures, kCasWriteUnknown
  Consistency consistency = Consistency::kOne;
  int32_t received = 0;  // kUnavailable: how many are alive
  int32_t required = 0;
  std::vector<FailureReason> failures;
  bool data_present = false;          // kReadTimeout, kReadFailure
  std::string write_type = "SIMPLE";  // kWriteTimeout, kWriteFailure
  uint16_t contentions = 0;           // kWriteTimeout of a conditional write
  // kAlreadyExists (no name: the keyspace itself), kFunctionFailure
  std::string keyspace;
  std::string name;
  std::vector<std::string> argument_types;
  std::string statement_id;  // kUnprepared
};
// Codes that a version does not have become the nearest one that it has.
Response MakeError(const ErrorDetails& error, int version);
Response MakeError(ErrorCode code, std::string message, int version);

// --- Handshake and events ---------------------------------------------------------------------

using Supported = std::vector<std::pair<std::string, std::vector<std::string>>>;

Response MakeReady();
Response MakeAuthenticate(std::string_view authenticator);
Response MakeSupported(const Supported& options);
Response MakeAuthChallenge(std::optional<std::string_view> token);
Response MakeAuthSuccess(std::optional<std::string_view> token);

struct SchemaChange {
  std::string change;  // CREATED, UPDATED, DROPPED
  std::string target;  // KEYSPACE, TABLE, TYPE, FUNCTION, AGGREGATE
  std::string keyspace;
  std::string name;                         // of all but a keyspace
  std::vector<std::string> argument_types;  // of the last two
};
Response MakeSchemaEvent(const SchemaChange& change, int version);
// `change`: NEW_NODE, REMOVED_NODE. The address has 4 or 16 bytes.
Response MakeTopologyEvent(std::string_view change, std::string_view address, uint16_t port);
// `change`: UP, DOWN.
Response MakeStatusEvent(std::string_view change, std::string_view address, uint16_t port);

// --- Results ----------------------------------------------------------------------------------

Response MakeVoid();
Response MakeSetKeyspace(std::string_view keyspace);
Response MakeSchemaChange(const SchemaChange& change, int version);

struct ColumnSpec {
  std::string keyspace;
  std::string table;
  std::string name;
  cql::DataType type;
};

// The columns of a result, encoded once for many rows and many requests.
class EncodedColumns {
 public:
  EncodedColumns() = default;
  EncodedColumns(std::span<const ColumnSpec> columns, int version);
  int32_t count() const { return count_; }
  // Whether one keyspace and table stands for all.
  bool global() const { return global_; }
  std::string_view bytes() const { return bytes_; }

 private:
  int32_t count_ = 0;
  bool global_ = false;
  std::string bytes_;
};

// Writes a result of rows, cell by cell, straight into the body that will be sent.
class RowsWriter {
 public:
  struct Options {
    bool skip_metadata = false;
    // From version 5 on: the columns are not those that the client has; they are sent whatever
    // skip_metadata says.
    std::optional<std::string_view> new_metadata_id;
  };
  RowsWriter(const EncodedColumns& columns, const Options& options);
  RowsWriter(const RowsWriter&) = delete;

  // As many cells for each row as there are columns.
  void Cell(std::string_view bytes) { writer_.Bytes(bytes); }
  void NullCell() { writer_.NullBytes(); }
  void CellOrNull(std::optional<std::string_view> bytes) { writer_.Value(bytes); }
  void EndRow() { ++rows_; }
  int32_t rows() const { return rows_; }
  size_t bytes() const { return response_.body.size(); }
  // A paging state says that there is more. Ends the use of this object.
  Response Finish(std::optional<std::string_view> paging_state = std::nullopt);

 private:
  Response response_;
  cql::WireWriter writer_;
  int32_t flags_ = 0;
  size_t rows_place_ = 0;
  int32_t rows_ = 0;
};

struct PreparedStatement {
  std::string id;
  std::string result_metadata_id;  // from version 5 on
  std::vector<ColumnSpec> markers;
  // The markers that make up the partition key, in its order; empty if some are missing.
  std::vector<uint16_t> partition_key;
  std::vector<ColumnSpec> columns;  // of the result; empty if it has no rows
};
Response MakePrepared(const PreparedStatement& statement, int version);

}  // namespace orrery::cassandra
