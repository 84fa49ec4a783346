#include "api/cassandra/responses.h"

#include <algorithm>

#include "base/bytes.h"

namespace orrery::cassandra {
namespace {

using cql::WireWriter;

constexpr int32_t kResultVoid = 1;
constexpr int32_t kResultRows = 2;
constexpr int32_t kResultSetKeyspace = 3;
constexpr int32_t kResultPrepared = 4;
constexpr int32_t kResultSchemaChange = 5;

constexpr int32_t kGlobalSpec = 0x1;
constexpr int32_t kMorePages = 0x2;
constexpr int32_t kNoMetadata = 0x4;
constexpr int32_t kMetadataChanged = 0x8;

// Where the flags of a result of rows stand, and where its paging state belongs.
constexpr size_t kFlagsPlace = 4;
constexpr size_t kPagingPlace = 12;

void WriteStrings(const std::vector<std::string>& strings, WireWriter& writer) {
  writer.Short(static_cast<uint16_t>(strings.size()));
  for (const std::string& text : strings) {
    writer.String(text);
  }
}

void WriteAddress(std::string_view address, WireWriter& writer) {
  writer.Byte(static_cast<uint8_t>(address.size()));
  writer.Raw(address);
}

// What a client of an older version is told instead.
ErrorCode CodeFor(ErrorCode code, int version) {
  switch (code) {
    case ErrorCode::kReadFailure: return version >= 4 ? code : ErrorCode::kReadTimeout;
    case ErrorCode::kWriteFailure: return version >= 4 ? code : ErrorCode::kWriteTimeout;
    case ErrorCode::kFunctionFailure: return version >= 4 ? code : ErrorCode::kInvalid;
    case ErrorCode::kCdcWriteFailure: return version >= 5 ? code : ErrorCode::kServerError;
    case ErrorCode::kCasWriteUnknown: return version >= 5 ? code : ErrorCode::kWriteTimeout;
    default: return code;
  }
}

void WriteFailures(const ErrorDetails& error, int version, WireWriter& writer) {
  writer.Int(static_cast<int32_t>(error.failures.size()));
  if (version < 5) {
    return;
  }
  for (const FailureReason& failure : error.failures) {
    WriteAddress(failure.address, writer);
    writer.Short(failure.code);
  }
}

void WriteCounts(const ErrorDetails& error, WireWriter& writer) {
  writer.Short(static_cast<uint16_t>(error.consistency));
  writer.Int(error.received);
  writer.Int(error.required);
}

void WriteDetails(const ErrorDetails& error, ErrorCode code, int version, WireWriter& writer) {
  switch (code) {
    case ErrorCode::kUnavailable:
      writer.Short(static_cast<uint16_t>(error.consistency));
      writer.Int(error.required);
      writer.Int(error.received);
      return;
    case ErrorCode::kWriteTimeout: {
      WriteCounts(error, writer);
      bool conditional = error.code == ErrorCode::kCasWriteUnknown || error.write_type == "CAS";
      writer.String(conditional ? "CAS" : error.write_type);
      if (conditional && version >= 5) {
        writer.Short(error.contentions);
      }
      return;
    }
    case ErrorCode::kReadTimeout:
      WriteCounts(error, writer);
      writer.Byte(error.data_present ? 1 : 0);
      return;
    case ErrorCode::kReadFailure:
      WriteCounts(error, writer);
      WriteFailures(error, version, writer);
      writer.Byte(error.data_present ? 1 : 0);
      return;
    case ErrorCode::kWriteFailure:
      WriteCounts(error, writer);
      WriteFailures(error, version, writer);
      writer.String(error.write_type);
      return;
    case ErrorCode::kFunctionFailure:
      writer.String(error.keyspace);
      writer.String(error.name);
      WriteStrings(error.argument_types, writer);
      return;
    case ErrorCode::kCasWriteUnknown: WriteCounts(error, writer); return;
    case ErrorCode::kAlreadyExists:
      writer.String(error.keyspace);
      writer.String(error.name);
      return;
    case ErrorCode::kUnprepared: writer.ShortBytes(error.statement_id); return;
    case ErrorCode::kServerError:
    case ErrorCode::kProtocolError:
    case ErrorCode::kBadCredentials:
    case ErrorCode::kOverloaded:
    case ErrorCode::kIsBootstrapping:
    case ErrorCode::kTruncateError:
    case ErrorCode::kCdcWriteFailure:
    case ErrorCode::kSyntaxError:
    case ErrorCode::kUnauthorized:
    case ErrorCode::kInvalid:
    case ErrorCode::kConfigError: return;
  }
}

void WriteSchemaChange(const SchemaChange& change, int version, WireWriter& writer) {
  bool function = change.target == "FUNCTION" || change.target == "AGGREGATE";
  if (function && version < 4) {
    // It knows no functions: the keyspace has changed.
    writer.String("UPDATED");
    writer.String("KEYSPACE");
    writer.String(change.keyspace);
    return;
  }
  writer.String(change.change);
  writer.String(change.target);
  writer.String(change.keyspace);
  if (change.target != "KEYSPACE") {
    writer.String(change.name);
  }
  if (function) {
    WriteStrings(change.argument_types, writer);
  }
}

Response AddressEvent(std::string_view type, std::string_view change, std::string_view address,
                      uint16_t port) {
  Response response{.opcode = Opcode::kEvent};
  WireWriter writer(response.body);
  writer.String(type);
  writer.String(change);
  WriteAddress(address, writer);
  writer.Int(port);
  return response;
}

Response TokenResponse(Opcode opcode, std::optional<std::string_view> token) {
  Response response{.opcode = opcode};
  WireWriter(response.body).Value(token);
  return response;
}

}  // namespace

uint8_t Response::flags(int version) const {
  uint8_t flags = tracing_id ? kFlagTracing : 0;
  if (version >= 4) {
    flags |= warnings.empty() ? 0 : kFlagWarnings;
    flags |= payload.empty() ? 0 : kFlagPayload;
  }
  return flags;
}

void Response::AppendPrefix(int version, std::string& out) const {
  uint8_t set = flags(version);
  WireWriter writer(out);
  if ((set & kFlagTracing) != 0) {
    writer.Raw({tracing_id->data(), tracing_id->size()});
  }
  if ((set & kFlagWarnings) != 0) {
    WriteStrings(warnings, writer);
  }
  if ((set & kFlagPayload) != 0) {
    writer.Short(static_cast<uint16_t>(payload.size()));
    for (const auto& [name, value] : payload) {
      writer.String(name);
      writer.Bytes(value);
    }
  }
}

Response MakeError(const ErrorDetails& error, int version) {
  Response response{.opcode = Opcode::kError};
  WireWriter writer(response.body);
  ErrorCode code = CodeFor(error.code, version);
  writer.Int(static_cast<int32_t>(code));
  writer.String(error.message);
  WriteDetails(error, code, version, writer);
  return response;
}

Response MakeError(ErrorCode code, std::string message, int version) {
  return MakeError({.code = code, .message = std::move(message)}, version);
}

Response MakeReady() { return {.opcode = Opcode::kReady}; }

Response MakeAuthenticate(std::string_view authenticator) {
  Response response{.opcode = Opcode::kAuthenticate};
  WireWriter(response.body).String(authenticator);
  return response;
}

Response MakeSupported(const Supported& options) {
  Response response{.opcode = Opcode::kSupported};
  WireWriter writer(response.body);
  writer.Short(static_cast<uint16_t>(options.size()));
  for (const auto& [name, values] : options) {
    writer.String(name);
    WriteStrings(values, writer);
  }
  return response;
}

Response MakeAuthChallenge(std::optional<std::string_view> token) {
  return TokenResponse(Opcode::kAuthChallenge, token);
}
Response MakeAuthSuccess(std::optional<std::string_view> token) {
  return TokenResponse(Opcode::kAuthSuccess, token);
}

Response MakeSchemaEvent(const SchemaChange& change, int version) {
  Response response{.opcode = Opcode::kEvent};
  WireWriter writer(response.body);
  writer.String("SCHEMA_CHANGE");
  WriteSchemaChange(change, version, writer);
  return response;
}

Response MakeTopologyEvent(std::string_view change, std::string_view address, uint16_t port) {
  return AddressEvent("TOPOLOGY_CHANGE", change, address, port);
}
Response MakeStatusEvent(std::string_view change, std::string_view address, uint16_t port) {
  return AddressEvent("STATUS_CHANGE", change, address, port);
}

Response MakeVoid() {
  Response response{.opcode = Opcode::kResult};
  WireWriter(response.body).Int(kResultVoid);
  return response;
}

Response MakeSetKeyspace(std::string_view keyspace) {
  Response response{.opcode = Opcode::kResult};
  WireWriter writer(response.body);
  writer.Int(kResultSetKeyspace);
  writer.String(keyspace);
  return response;
}

Response MakeSchemaChange(const SchemaChange& change, int version) {
  Response response{.opcode = Opcode::kResult};
  WireWriter writer(response.body);
  writer.Int(kResultSchemaChange);
  WriteSchemaChange(change, version, writer);
  return response;
}

EncodedColumns::EncodedColumns(std::span<const ColumnSpec> columns, int version)
    : count_(static_cast<int32_t>(columns.size())) {
  global_ = !columns.empty() && std::ranges::all_of(columns, [&](const ColumnSpec& column) {
    return column.keyspace == columns[0].keyspace && column.table == columns[0].table;
  });
  WireWriter writer(bytes_);
  if (global_) {
    writer.String(columns[0].keyspace);
    writer.String(columns[0].table);
  }
  for (const ColumnSpec& column : columns) {
    if (!global_) {
      writer.String(column.keyspace);
      writer.String(column.table);
    }
    writer.String(column.name);
    column.type.AppendOption(version, writer);
  }
}

RowsWriter::RowsWriter(const EncodedColumns& columns, const Options& options)
    : writer_(response_.body) {
  response_.opcode = Opcode::kResult;
  bool skip = options.skip_metadata && !options.new_metadata_id;
  flags_ = skip ? kNoMetadata : columns.global() ? kGlobalSpec : 0;
  flags_ |= options.new_metadata_id ? kMetadataChanged : 0;
  writer_.Int(kResultRows);
  writer_.Int(flags_);
  writer_.Int(columns.count());
  if (options.new_metadata_id) {
    writer_.ShortBytes(*options.new_metadata_id);
  }
  if (!skip) {
    writer_.Raw(columns.bytes());
  }
  rows_place_ = response_.body.size();
  writer_.Int(0);
}

Response RowsWriter::Finish(std::optional<std::string_view> paging_state) {
  std::string& body = response_.body;
  PutU32(body.data() + rows_place_, static_cast<uint32_t>(rows_));
  if (paging_state) {
    PutU32(body.data() + kFlagsPlace, static_cast<uint32_t>(flags_ | kMorePages));
    std::string encoded;
    WireWriter(encoded).Bytes(*paging_state);
    body.insert(kPagingPlace, encoded);
  }
  return std::move(response_);
}

Response MakePrepared(const PreparedStatement& statement, int version) {
  Response response{.opcode = Opcode::kResult};
  WireWriter writer(response.body);
  writer.Int(kResultPrepared);
  writer.ShortBytes(statement.id);
  if (version >= 5) {
    writer.ShortBytes(statement.result_metadata_id);
  }
  EncodedColumns markers(statement.markers, version);
  writer.Int(markers.global() ? kGlobalSpec : 0);
  writer.Int(markers.count());
  if (version >= 4) {
    writer.Int(static_cast<int32_t>(statement.partition_key.size()));
    for (uint16_t place : statement.partition_key) {
      writer.Short(place);
    }
  }
  writer.Raw(markers.bytes());
  EncodedColumns columns(statement.columns, version);
  writer.Int(columns.count() == 0 ? kNoMetadata : columns.global() ? kGlobalSpec : 0);
  writer.Int(columns.count());
  writer.Raw(columns.bytes());
  return response;
}

}  // namespace orrery::cassandra
