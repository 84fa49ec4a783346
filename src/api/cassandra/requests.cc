#include "api/cassandra/requests.h"

#include <algorithm>

#include "cql/wire.h"

namespace orrery::cassandra {
namespace {

using cql::WireReader;

constexpr int32_t kValues = 0x01;
constexpr int32_t kSkipMetadata = 0x02;
constexpr int32_t kPageSize = 0x04;
constexpr int32_t kPagingState = 0x08;
constexpr int32_t kSerialConsistency = 0x10;
constexpr int32_t kTimestamp = 0x20;
constexpr int32_t kNames = 0x40;
constexpr int32_t kKeyspace = 0x80;
constexpr int32_t kNowInSeconds = 0x100;
constexpr int32_t kPrepareKeyspace = 0x01;

std::unexpected<Status> Malformed(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// What a body said that cannot be, beyond being too short.
struct Reading {
  explicit Reading(int version, std::string_view body) : version(version), in(body) {}
  const int version;
  WireReader in;
  std::string problem;

  void Fail(std::string what) {
    if (problem.empty()) {
      problem = std::move(what);
    }
    in.Fail();
  }
};

Consistency ReadConsistency(Reading& reading) {
  uint16_t code = reading.in.Short();
  if (code > static_cast<uint16_t>(Consistency::kLocalOne)) {
    reading.Fail("Unknown code " + std::to_string(code) + " for a consistency level");
    return Consistency::kOne;
  }
  return static_cast<Consistency>(code);
}

BoundValue ReadValue(Reading& reading, bool named) {
  BoundValue value;
  if (named) {
    value.name = reading.in.String();
  }
  int32_t size = reading.in.Int();
  if (size >= 0) {
    value.kind = BoundValue::Kind::kBytes;
    value.bytes = reading.in.Raw(static_cast<size_t>(size));
  } else if (reading.version >= 4 && size == -2) {
    value.kind = BoundValue::Kind::kUnset;
  } else if (reading.version >= 4 && size < -2) {
    reading.Fail("Invalid ByteBuffer length " + std::to_string(size));
  }
  return value;
}

std::vector<BoundValue> ReadValues(Reading& reading, bool named) {
  size_t count = reading.in.Short();
  std::vector<BoundValue> values;
  values.reserve(std::min(count, reading.in.left() / 4));
  for (size_t i = 0; i < count && reading.in.ok(); ++i) {
    values.push_back(ReadValue(reading, named));
  }
  return values;
}

int32_t ReadFlags(Reading& reading) {
  return reading.version >= 5 ? reading.in.Int() : reading.in.Byte() & 0x7F;
}

// What stands in the order of its flags behind values and pages.
void ReadCommon(Reading& reading, int32_t flags, QueryParameters& parameters) {
  if ((flags & kSerialConsistency) != 0) {
    parameters.serial_consistency = ReadConsistency(reading);
    if (parameters.serial_consistency != Consistency::kSerial &&
        parameters.serial_consistency != Consistency::kLocalSerial) {
      reading.Fail(
          "Invalid consistency for conditional update. Must be one of SERIAL or "
          "LOCAL_SERIAL");
    }
  }
  if ((flags & kTimestamp) != 0) {
    parameters.timestamp = reading.in.Long();
    if (parameters.timestamp == INT64_MIN) {
      reading.Fail(
          "Out of bound timestamp, must be in [-9223372036854775807, "
          "9223372036854775807] (got -9223372036854775808)");
    }
  }
  if ((flags & kKeyspace) != 0) {
    parameters.keyspace = reading.in.String();
  }
  if ((flags & kNowInSeconds) != 0) {
    parameters.now_in_seconds = reading.in.Int();
  }
}

QueryParameters ReadParameters(Reading& reading) {
  QueryParameters parameters;
  parameters.consistency = ReadConsistency(reading);
  int32_t flags = ReadFlags(reading);
  parameters.named = (flags & kNames) != 0;
  parameters.skip_metadata = (flags & kSkipMetadata) != 0;
  if ((flags & kValues) != 0) {
    parameters.values = ReadValues(reading, parameters.named);
  }
  if ((flags & kPageSize) != 0) {
    parameters.page_size = reading.in.Int();
  }
  if ((flags & kPagingState) != 0) {
    parameters.paging_state = reading.in.Bytes();
  }
  ReadCommon(reading, flags, parameters);
  return parameters;
}

StartupRequest ReadStartup(Reading& reading) {
  StartupRequest startup;
  size_t count = reading.in.Short();
  for (size_t i = 0; i < count && reading.in.ok(); ++i) {
    std::string_view name = reading.in.String();
    startup.options.emplace_back(name, reading.in.String());
  }
  return startup;
}

PrepareRequest ReadPrepare(Reading& reading) {
  PrepareRequest prepare{.text = reading.in.LongString()};
  if (reading.version >= 5 && (reading.in.Int() & kPrepareKeyspace) != 0) {
    prepare.keyspace = reading.in.String();
  }
  return prepare;
}

ExecuteRequest ReadExecute(Reading& reading) {
  ExecuteRequest execute{.id = reading.in.ShortBytes()};
  if (reading.version >= 5) {
    execute.result_metadata_id = reading.in.ShortBytes();
  }
  execute.parameters = ReadParameters(reading);
  return execute;
}

BatchRequest ReadBatch(Reading& reading) {
  BatchRequest batch;
  uint8_t type = reading.in.Byte();
  if (type > static_cast<uint8_t>(BatchRequest::Type::kCounter)) {
    reading.Fail("Invalid BATCH message type " + std::to_string(type));
  }
  batch.type = static_cast<BatchRequest::Type>(type);
  size_t count = reading.in.Short();
  batch.statements.reserve(std::min(count, reading.in.left() / 5));
  for (size_t i = 0; i < count && reading.in.ok(); ++i) {
    BatchRequest::Statement& statement = batch.statements.emplace_back();
    uint8_t kind = reading.in.Byte();
    if (kind > 1) {
      reading.Fail("Invalid query kind in BATCH messages. Must be 0 or 1 but got " +
                   std::to_string(kind));
    }
    statement.prepared = kind == 1;
    statement.text = statement.prepared ? reading.in.ShortBytes() : reading.in.LongString();
    statement.values = ReadValues(reading, false);
  }
  batch.parameters.consistency = ReadConsistency(reading);
  int32_t flags = ReadFlags(reading);
  if ((flags & kNames) != 0) {
    // The flag stands behind the values that it would name, so nobody can have meant it.
    reading.Fail("Names for values are not supported in BATCH messages");
  }
  ReadCommon(reading, flags, batch.parameters);
  return batch;
}

RegisterRequest ReadRegister(Reading& reading) {
  RegisterRequest request;
  size_t count = reading.in.Short();
  for (size_t i = 0; i < count && reading.in.ok(); ++i) {
    std::string_view event = reading.in.String();
    if (event != "TOPOLOGY_CHANGE" && event != "STATUS_CHANGE" && event != "SCHEMA_CHANGE") {
      reading.Fail("Invalid value '" + std::string(event) + "' for Type");
    }
    request.events.push_back(event);
  }
  return request;
}

void ReadPayload(Reading& reading, Request& request) {
  size_t count = reading.in.Short();
  for (size_t i = 0; i < count && reading.in.ok(); ++i) {
    std::string_view name = reading.in.String();
    request.payload.emplace_back(name, reading.in.Bytes());
  }
}

void ReadMessage(Opcode opcode, Reading& reading, Request& request) {
  switch (opcode) {
    case Opcode::kOptions: request.message = OptionsRequest(); return;
    case Opcode::kStartup: request.message = ReadStartup(reading); return;
    case Opcode::kAuthResponse: request.message = AuthResponseRequest{reading.in.Bytes()}; return;
    case Opcode::kQuery: {
      QueryRequest query{.text = reading.in.LongString()};
      query.parameters = ReadParameters(reading);
      request.message = std::move(query);
      return;
    }
    case Opcode::kPrepare: request.message = ReadPrepare(reading); return;
    case Opcode::kExecute: request.message = ReadExecute(reading); return;
    case Opcode::kBatch: request.message = ReadBatch(reading); return;
    case Opcode::kRegister: request.message = ReadRegister(reading); return;
    case Opcode::kError:
    case Opcode::kReady:
    case Opcode::kAuthenticate:
    case Opcode::kSupported:
    case Opcode::kResult:
    case Opcode::kEvent:
    case Opcode::kAuthChallenge:
    case Opcode::kAuthSuccess: break;
  }
  auto name = OpcodeName(opcode);
  reading.Fail(name ? "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode " +
                          std::string(*name)
                    : "Unknown opcode " + std::to_string(static_cast<int>(opcode)));
}

}  // namespace

std::string_view ConsistencyName(Consistency consistency) {
  switch (consistency) {
    case Consistency::kAny: return "ANY";
    case Consistency::kOne: return "ONE";
    case Consistency::kTwo: return "TWO";
    case Consistency::kThree: return "THREE";
    case Consistency::kQuorum: return "QUORUM";
    case Consistency::kAll: return "ALL";
    case Consistency::kLocalQuorum: return "LOCAL_QUORUM";
    case Consistency::kEachQuorum: return "EACH_QUORUM";
    case Consistency::kSerial: return "SERIAL";
    case Consistency::kLocalSerial: return "LOCAL_SERIAL";
    case Consistency::kLocalOne: return "LOCAL_ONE";
  }
  return "";
}

std::string_view StartupRequest::Get(std::string_view name) const {
  auto found = std::ranges::find(options, name, [](const auto& option) { return option.first; });
  return found == options.end() ? std::string_view() : found->second;
}

Result<Request> DecodeRequest(const EnvelopeHead& head, std::string_view body) {
  Request request;
  request.version = head.version;
  request.stream = head.stream;
  request.tracing = (head.flags & kFlagTracing) != 0;
  Reading reading(head.version, body);
  if ((head.flags & kFlagPayload) != 0 && head.version >= 4) {
    ReadPayload(reading, request);
  }
  ReadMessage(head.opcode, reading, request);
  if (!reading.problem.empty()) {
    return Malformed(reading.problem);
  }
  if (!reading.in.ok()) {
    auto name = OpcodeName(head.opcode);
    return Malformed("Not enough bytes to read the body of " + std::string(name.value_or("")));
  }
  return request;
}

}  // namespace orrery::cassandra
