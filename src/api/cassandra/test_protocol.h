// A client's end of the protocol by hand, for tests. Apart from them: it would be compiled into the
// body of each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cassandra/protocol.h"
#include "api/cassandra/test_bytes.h"

namespace orrery::cassandra {

// Bodies of STARTUP. Not for the initial values of globals.
extern const std::string kStartup;
extern const std::string kStartupLz4;
extern const std::string kStartupSnappy;

struct Answer {
  EnvelopeHead head;
  std::string body;
};

// What the protocol has to send.
std::string Take(Protocol& protocol);
std::vector<Answer> Envelopes(std::string_view bytes);
std::vector<Answer> SegmentedEnvelopes(std::string_view bytes, bool lz4);
std::string ErrorText(const Answer& answer);

// A connection after STARTUP and READY.
std::unique_ptr<Protocol> Ready(int version, std::string_view startup = kStartup,
                                const ProtocolOptions& options = {});

std::string QueryBody(std::string_view text, int version);
std::string Query(int version, int16_t stream, std::string_view text);
std::string TextOf(const std::optional<Request>& request);
std::string Segment(std::string_view payload, bool self_contained = true, bool lz4 = false);

}  // namespace orrery::cassandra
