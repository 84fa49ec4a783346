// Byte vectors by hand, for tests.
#pragma once

#include <string>
#include <string_view>

#include "api/cassandra/frame.h"

namespace orrery::cassandra {

// Hex with spaces, and text in single quotes: "0003 'abc'".
std::string FromParts(std::string_view parts);

std::string MakeEnvelope(int version, int16_t stream, Opcode opcode, std::string_view body,
                         uint8_t flags = 0);

}  // namespace orrery::cassandra
