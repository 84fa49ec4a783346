// The frames of the native protocol, versions 3 to 5. Pure functions.
//
//   envelope := version u8 (high bit: response), flags u8, stream i16, opcode u8, length u32, body
//   segment  := head, CRC-24 of the head (3 bytes), payload, CRC-32 of the payload (4 bytes)
//   head     := plain, 3 bytes: payload size (17 bits), self-contained (1 bit)
//             | LZ4, 5 bytes: size as sent (17), size when decompressed or 0 for a payload that is
//               not compressed (17), self-contained (1)
//
// Envelopes are big endian, heads and checksums of segments little endian. Versions 3 and 4 send
// envelopes bare; version 5 does until STARTUP is answered, then all goes in segments. A
// self-contained segment holds whole envelopes, another one a part of one that is larger.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orrery::cassandra {

inline constexpr int kVersionMin = 3;
inline constexpr int kVersionMax = 5;
inline constexpr size_t kEnvelopeHeadBytes = 9;
inline constexpr size_t kSegmentPayloadMax = (1 << 17) - 1;

enum class Opcode : uint8_t {
  kError = 0x00,
  kStartup = 0x01,
  kReady = 0x02,
  kAuthenticate = 0x03,
  kOptions = 0x05,
  kSupported = 0x06,
  kQuery = 0x07,
  kResult = 0x08,
  kPrepare = 0x09,
  kExecute = 0x0A,
  kRegister = 0x0B,
  kEvent = 0x0C,
  kBatch = 0x0D,
  kAuthChallenge = 0x0E,
  kAuthResponse = 0x0F,
  kAuthSuccess = 0x10,
};
// STARTUP, QUERY...; nothing if there is none with this number.
std::optional<std::string_view> OpcodeName(Opcode opcode);

enum Flag : uint8_t {
  kFlagCompressed = 0x01,
  kFlagTracing = 0x02,
  kFlagPayload = 0x04,
  kFlagWarnings = 0x08,
  kFlagBeta = 0x10,
};

struct EnvelopeHead {
  uint8_t version = 0;  // without the high bit
  bool response = false;
  uint8_t flags = 0;
  int16_t stream = 0;
  Opcode opcode = Opcode::kError;
  uint32_t length = 0;
};
// REQUIRES: kEnvelopeHeadBytes.
EnvelopeHead ReadEnvelopeHead(std::string_view bytes);
void AppendEnvelopeHead(const EnvelopeHead& head, std::string& out);

struct SegmentHead {
  size_t head_bytes = 0;     // with its checksum
  size_t payload_bytes = 0;  // as sent
  size_t plain_bytes = 0;    // when decompressed; 0: it is not compressed
  bool self_contained = false;
  // The whole segment.
  size_t bytes() const { return head_bytes + payload_bytes + 4; }
};
// Nothing if more bytes are needed; kCorruption if the checksum is wrong.
Result<std::optional<SegmentHead>> ReadSegmentHead(std::string_view bytes, bool lz4);
// Replaces `payload` by what the segment holds. kCorruption if the checksum or the block is wrong.
// REQUIRES: `bytes` begins with the whole segment.
Status ReadSegmentPayload(const SegmentHead& head, std::string_view bytes, std::string& payload);

// Appends one segment. Compresses if `lz4` and that makes it smaller.
// REQUIRES: at most kSegmentPayloadMax bytes.
void AppendSegment(std::string_view payload, bool self_contained, bool lz4, std::string& out);
// Appends envelopes, given by the places where they end, in as few segments as possible.
void AppendSegments(std::string_view envelopes, std::span<const size_t> ends, bool lz4,
                    std::string& out);

}  // namespace orrery::cassandra
