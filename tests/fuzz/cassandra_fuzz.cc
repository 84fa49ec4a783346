// Arbitrary bytes in arbitrary pieces through the native protocol, as a connection feeds it: bare,
// and inside of well-formed segments, so that what lies behind the checksums is reached too. And
// any bytes as a value of each type.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/cassandra/protocol.h"
#include "base/check.h"
#include "cql/ordered_value.h"
#include "cql/value.h"
#include "cql/value_json.h"
#include "cql/value_text.h"

namespace {

using orrery::cassandra::Opcode;
using orrery::cassandra::Protocol;
using orrery::cassandra::ProtocolOptions;
using orrery::cassandra::Request;
using orrery::cql::DataType;
using orrery::cql::TypeId;

constexpr size_t kBytesMax = 4096;

// What a handler may look at lies inside of the request.
size_t Look(const Request& request) {
  size_t sum = 0;
  auto touch = [&sum](std::string_view bytes) {
    for (char c : bytes) {
      sum += static_cast<unsigned char>(c);
    }
  };
  if (auto* query = std::get_if<orrery::cassandra::QueryRequest>(&request.message)) {
    touch(query->text);
    for (const auto& value : query->parameters.values) {
      touch(value.bytes);
      touch(value.name);
    }
    touch(query->parameters.paging_state.value_or(""));
  } else if (auto* batch = std::get_if<orrery::cassandra::BatchRequest>(&request.message)) {
    for (const auto& statement : batch->statements) {
      touch(statement.text);
      for (const auto& value : statement.values) {
        touch(value.bytes);
      }
    }
  }
  return sum;
}

void Serve(Protocol& protocol) {
  while (auto request = protocol.Next()) {
    ORRERY_CHECK(Look(*request) < SIZE_MAX);
    bool startup = std::holds_alternative<orrery::cassandra::StartupRequest>(request->message);
    protocol.Respond(request->stream,
                     startup ? orrery::cassandra::MakeReady() : orrery::cassandra::MakeVoid());
  }
  protocol.Output().clear();
}

void Feed(Protocol& protocol, std::string_view bytes, uint32_t state) {
  while (!bytes.empty() && !protocol.closing()) {
    state = state * 1664525 + 1013904223;
    size_t piece = std::min<size_t>(1 + (state >> 24) % 64, bytes.size());
    protocol.Receive(bytes.substr(0, piece));
    bytes.remove_prefix(piece);
    Serve(protocol);
    if (state % 7 == 0) {
      protocol.ReleaseBuffers();
    }
  }
}

// STARTUP in the version, with the compression that `choice` says.
void Start(Protocol& protocol, uint8_t version, uint8_t choice) {
  constexpr std::string_view kNames[] = {"", "lz4", "snappy", "LZ4"};
  std::string body;
  orrery::cql::WireWriter writer(body);
  writer.Short(2);
  writer.String("CQL_VERSION");
  writer.String("3.0.0");
  writer.String("COMPRESSION");
  writer.String(kNames[choice % 4]);
  std::string envelope;
  orrery::cassandra::AppendEnvelopeHead({.version = version,
                                         .opcode = Opcode::kStartup,
                                         .length = static_cast<uint32_t>(body.size())},
                                        envelope);
  protocol.Receive(envelope + body);
  Serve(protocol);
}

void FuzzProtocol(std::string_view input) {
  auto first = static_cast<uint8_t>(input[0]);
  ProtocolOptions options{.frame_bytes_max = kBytesMax, .startup_bytes_max = 512};
  Protocol protocol(options);
  uint8_t version = 3 + first % 4;  // 6: nothing before the input
  if (version <= 5) {
    Start(protocol, version, first >> 2);
  }
  if (version == 5 && (first & 0x80) != 0 && protocol.state() == Protocol::State::kReady) {
    bool lz4 = (first >> 2) % 2 == 1;
    std::string segments;
    size_t cut = input.size() / 2;
    orrery::cassandra::AppendSegment(input.substr(1, cut), (first & 0x40) == 0, lz4, segments);
    orrery::cassandra::AppendSegment(input.substr(std::min(1 + cut, input.size())),
                                     (first & 0x20) == 0, lz4, segments);
    Feed(protocol, segments, first);
  } else {
    Feed(protocol, input.substr(1), first);
  }
}

DataType TypeOf(uint8_t choice) {
  static const DataType address =
      DataType::Udt("ks", "t", {{"a", TypeId::kVarint}, {"b", TypeId::kText}}, true);
  static const DataType types[] = {
      DataType::List(TypeId::kDecimal, true),
      DataType::Set(TypeId::kTimeuuid, true),
      DataType::Map(TypeId::kText, address, true),
      DataType::Tuple({TypeId::kUuid, TypeId::kDouble, TypeId::kDuration}),
      DataType::Vector(TypeId::kFloat, 2),
      DataType::Vector(TypeId::kVarint, 2),
      address,
  };
  choice %= 28;
  if (choice >= 21) {
    return types[choice - 21];
  }
  return choice == 0 || choice == 0x0A ? TypeId::kBlob : static_cast<TypeId>(choice);
}

void FuzzValue(std::string_view input) {
  DataType type = TypeOf(static_cast<uint8_t>(input[0]));
  std::string_view bytes = input.substr(1);
  std::optional<std::string> again;
  std::string_view in = bytes;
  (void)orrery::cql::TakeOrderedValue(type, bytes.size() % 2 == 0, in, &again);
  (void)orrery::cql::ValueFromText(type, bytes);
  if (auto json = orrery::cql::ValueFromJson(type, bytes); json && *json) {
    ORRERY_CHECK(orrery::cql::ValidateValue(type, **json).ok());
  }
  if (!orrery::cql::ValidateValue(type, bytes).ok()) {
    return;
  }
  std::string canonical = orrery::cql::CanonicalValue(type, bytes);
  ORRERY_CHECK(orrery::cql::ValidateValue(type, canonical).ok());
  std::string ordered;
  orrery::cql::AppendOrderedValue(type, canonical, false, ordered);
  in = ordered;
  ORRERY_CHECK(orrery::cql::TakeOrderedValue(type, false, in, &again) && in.empty() && again);
  ORRERY_CHECK(orrery::cql::CompareValues(type, canonical, *again) == 0);
  std::string json;
  orrery::cql::AppendValueJson(type, canonical, json);
  ORRERY_CHECK(orrery::cql::Json::Parse(json).has_value());
  (void)orrery::cql::ValueToLiteral(type, canonical);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  std::string_view input(reinterpret_cast<const char*>(data), size);
  FuzzProtocol(input);
  FuzzValue(input);
  return 0;
}
