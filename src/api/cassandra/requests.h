// Requests of the native protocol, decoded. Views point into the body of the envelope.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/cassandra/frame.h"
#include "base/status.h"

namespace orrery::cassandra {

enum class Consistency : uint16_t {
  kAny = 0x0,
  kOne = 0x1,
  kTwo = 0x2,
  kThree = 0x3,
  kQuorum = 0x4,
  kAll = 0x5,
  kLocalQuorum = 0x6,
  kEachQuorum = 0x7,
  kSerial = 0x8,
  kLocalSerial = 0x9,
  kLocalOne = 0xA,
};
// ANY, ONE...
std::string_view ConsistencyName(Consistency consistency);

// A value for a bind marker.
struct BoundValue {
  enum class Kind : uint8_t { kNull, kUnset, kBytes };
  Kind kind = Kind::kNull;
  std::string_view bytes;
  std::string_view name;  // only if the values of the request are named
};

struct QueryParameters {
  Consistency consistency = Consistency::kOne;
  std::vector<BoundValue> values;
  bool named = false;
  bool skip_metadata = false;
  std::optional<int32_t> page_size;
  std::optional<std::string_view> paging_state;
  std::optional<Consistency> serial_consistency;
  std::optional<int64_t> timestamp;  // microseconds
  std::optional<std::string_view> keyspace;
  std::optional<int32_t> now_in_seconds;
};

struct StartupRequest {
  std::vector<std::pair<std::string_view, std::string_view>> options;
  // Empty if it is not there.
  std::string_view Get(std::string_view name) const;
};
struct AuthResponseRequest {
  std::optional<std::string_view> token;
};
struct OptionsRequest {};
struct QueryRequest {
  std::string_view text;
  QueryParameters parameters;
};
struct PrepareRequest {
  std::string_view text;
  std::optional<std::string_view> keyspace;
};
struct ExecuteRequest {
  std::string_view id;
  std::optional<std::string_view> result_metadata_id;  // from version 5 on
  QueryParameters parameters;
};
struct BatchRequest {
  enum class Type : uint8_t { kLogged, kUnlogged, kCounter };
  struct Statement {
    bool prepared = false;
    std::string_view text;  // the id if it is prepared
    std::vector<BoundValue> values;
  };
  Type type = Type::kLogged;
  std::vector<Statement> statements;
  QueryParameters parameters;  // without values and pages
};
struct RegisterRequest {
  std::vector<std::string_view> events;  // TOPOLOGY_CHANGE, STATUS_CHANGE, SCHEMA_CHANGE
};

using RequestMessage =
    std::variant<OptionsRequest, StartupRequest, AuthResponseRequest, QueryRequest, PrepareRequest,
                 ExecuteRequest, BatchRequest, RegisterRequest>;

struct Request {
  int version = kVersionMin;
  int16_t stream = 0;
  bool tracing = false;
  // Custom payload; from version 4 on.
  std::vector<std::pair<std::string_view, std::optional<std::string_view>>> payload;
  RequestMessage message;
  // What the views point to; it may move.
  std::unique_ptr<char[]> bytes;
  size_t size = 0;  // of them
};

// Decodes the body of an envelope, which must outlive the message. kInvalidArgument is a protocol
// error; nothing else is returned.
Result<Request> DecodeRequest(const EnvelopeHead& head, std::string_view body);

}  // namespace orrery::cassandra
