#include "api/cassandra/test_bytes.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace orrery::cassandra {

std::string FromParts(std::string_view parts) {
  std::string bytes;
  std::string hex;
  bool quoted = false;
  for (char c : parts) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (quoted) {
      bytes.push_back(c);
    } else if (c != ' ') {
      hex.push_back(c);
      if (hex.size() == 2) {
        std::string byte;
        EXPECT_TRUE(FromHex(hex, &byte)) << parts;
        bytes += byte;
        hex.clear();
      }
    }
  }
  EXPECT_TRUE(hex.empty() && !quoted) << parts;
  return bytes;
}

std::string MakeEnvelope(int version, int16_t stream, Opcode opcode, std::string_view body,
                         uint8_t flags) {
  std::string out;
  AppendEnvelopeHead({.version = static_cast<uint8_t>(version),
                      .flags = flags,
                      .stream = stream,
                      .opcode = opcode,
                      .length = static_cast<uint32_t>(body.size())},
                     out);
  return out.append(body);
}

}  // namespace orrery::cassandra
