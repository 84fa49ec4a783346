#include "api/cassandra/test_protocol.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "cql/wire.h"

namespace orrery::cassandra {

const std::string kStartup = FromParts("0001 000B 'CQL_VERSION' 0005 '3.0.0'");
const std::string kStartupLz4 =
    FromParts("0002 000B 'CQL_VERSION' 0005 '3.4.5' 000B 'COMPRESSION' 0003 'lz4'");
const std::string kStartupSnappy =
    FromParts("0002 000B 'CQL_VERSION' 0005 '3.4.5' 000B 'COMPRESSION' 0006 'snappy'");

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

std::unique_ptr<Protocol> Ready(int version, std::string_view startup,
                                const ProtocolOptions& options) {
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

std::string Segment(std::string_view payload, bool self_contained, bool lz4) {
  std::string out;
  AppendSegment(payload, self_contained, lz4, out);
  return out;
}

}  // namespace orrery::cassandra
