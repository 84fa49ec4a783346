#include "api/cassandra/frame.h"

#include <algorithm>

#include "api/cassandra/checksum.h"
#include "api/cassandra/compression.h"
#include "base/bytes.h"
#include "base/check.h"
#include "cql/wire.h"

namespace orrery::cassandra {
namespace {

constexpr size_t kPlainHead = 3;
constexpr size_t kLz4Head = 5;
constexpr size_t kCrc24Bytes = 3;
constexpr size_t kCrc32Bytes = 4;
// Below this a block saves less than it costs.
constexpr size_t kCompressBytesMin = 512;

uint64_t ReadLittle(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<uint8_t>(bytes[i]);
  }
  return value;
}

void AppendLittle(uint64_t value, size_t size, std::string& out) {
  for (size_t i = 0; i < size; ++i) {
    out.push_back(static_cast<char>(value >> (i * 8)));
  }
}

}  // namespace

std::optional<std::string_view> OpcodeName(Opcode opcode) {
  switch (opcode) {
    case Opcode::kError: return "ERROR";
    case Opcode::kStartup: return "STARTUP";
    case Opcode::kReady: return "READY";
    case Opcode::kAuthenticate: return "AUTHENTICATE";
    case Opcode::kOptions: return "OPTIONS";
    case Opcode::kSupported: return "SUPPORTED";
    case Opcode::kQuery: return "QUERY";
    case Opcode::kResult: return "RESULT";
    case Opcode::kPrepare: return "PREPARE";
    case Opcode::kExecute: return "EXECUTE";
    case Opcode::kRegister: return "REGISTER";
    case Opcode::kEvent: return "EVENT";
    case Opcode::kBatch: return "BATCH";
    case Opcode::kAuthChallenge: return "AUTH_CHALLENGE";
    case Opcode::kAuthResponse: return "AUTH_RESPONSE";
    case Opcode::kAuthSuccess: return "AUTH_SUCCESS";
  }
  return std::nullopt;
}

EnvelopeHead ReadEnvelopeHead(std::string_view bytes) {
  cql::WireReader reader(bytes);
  EnvelopeHead head;
  uint8_t version = reader.Byte();
  head.version = version & 0x7F;
  head.response = (version & 0x80) != 0;
  head.flags = reader.Byte();
  head.stream = static_cast<int16_t>(reader.Short());
  head.opcode = static_cast<Opcode>(reader.Byte());
  head.length = static_cast<uint32_t>(reader.Int());
  return head;
}

void AppendEnvelopeHead(const EnvelopeHead& head, std::string& out) {
  cql::WireWriter writer(out);
  writer.Byte(static_cast<uint8_t>(head.version | (head.response ? 0x80 : 0)));
  writer.Byte(head.flags);
  writer.Short(static_cast<uint16_t>(head.stream));
  writer.Byte(static_cast<uint8_t>(head.opcode));
  writer.Int(static_cast<int32_t>(head.length));
}

Result<std::optional<SegmentHead>> ReadSegmentHead(std::string_view bytes, bool lz4) {
  size_t size = lz4 ? kLz4Head : kPlainHead;
  if (bytes.size() < size + kCrc24Bytes) {
    return std::optional<SegmentHead>();
  }
  std::string_view head = bytes.substr(0, size);
  if (ReadLittle(bytes.substr(size, kCrc24Bytes)) != Crc24(head)) {
    return Error(Code::kCorruption, "the checksum of a segment's head is wrong");
  }
  uint64_t bits = ReadLittle(head);
  SegmentHead read{.head_bytes = size + kCrc24Bytes, .payload_bytes = bits & kSegmentPayloadMax};
  if (lz4) {
    read.plain_bytes = bits >> 17 & kSegmentPayloadMax;
    read.self_contained = (bits >> 34 & 1) != 0;
  } else {
    read.self_contained = (bits >> 17 & 1) != 0;
  }
  return read;
}

Status ReadSegmentPayload(const SegmentHead& head, std::string_view bytes, std::string& payload) {
  ORRERY_CHECK(bytes.size() >= head.bytes());
  std::string_view sent = bytes.substr(head.head_bytes, head.payload_bytes);
  std::string_view crc = bytes.substr(head.head_bytes + head.payload_bytes, kCrc32Bytes);
  if (ReadLittle(crc) != Crc32(sent)) {
    return Status(Code::kCorruption, "the checksum of a segment's payload is wrong");
  }
  if (head.plain_bytes == 0) {
    payload.assign(sent);
  } else if (!DecompressSegment(sent, head.plain_bytes, payload)) {
    return Status(Code::kCorruption, "a segment's payload is no LZ4 block of its size");
  }
  return Status::Ok();
}

void AppendSegment(std::string_view payload, bool self_contained, bool lz4, std::string& out) {
  ORRERY_CHECK(payload.size() <= kSegmentPayloadMax);
  size_t start = out.size();
  size_t head_bytes = lz4 ? kLz4Head : kPlainHead;
  size_t payload_start = start + head_bytes + kCrc24Bytes;
  out.resize(payload_start);
  bool small = payload.size() < kCompressBytesMin;
  bool compressed = lz4 && !small && CompressSegment(payload, out);
  if (!compressed) {
    out.append(payload);
  }
  std::string_view sent = std::string_view(out).substr(payload_start);
  uint64_t bits = sent.size();
  if (lz4) {
    bits |= static_cast<uint64_t>(compressed ? payload.size() : 0) << 17;
    bits |= static_cast<uint64_t>(self_contained) << 34;
  } else {
    bits |= static_cast<uint64_t>(self_contained) << 17;
  }
  uint32_t crc = Crc32(sent);
  std::string head;
  AppendLittle(bits, head_bytes, head);
  AppendLittle(Crc24(head), kCrc24Bytes, head);
  out.replace(start, head.size(), head);
  AppendLittle(crc, kCrc32Bytes, out);
}

void AppendSegments(std::string_view envelopes, std::span<const size_t> ends, bool lz4,
                    std::string& out) {
  size_t start = 0;
  for (size_t i = 0; i < ends.size();) {
    // As many whole ones as fit.
    size_t last = i;
    while (last + 1 < ends.size() && ends[last + 1] - start <= kSegmentPayloadMax) {
      ++last;
    }
    std::string_view payload = envelopes.substr(start, ends[last] - start);
    if (payload.size() <= kSegmentPayloadMax) {
      AppendSegment(payload, true, lz4, out);
    } else {
      for (; !payload.empty();
           payload.remove_prefix(std::min(payload.size(), kSegmentPayloadMax))) {
        AppendSegment(payload.substr(0, kSegmentPayloadMax), false, lz4, out);
      }
    }
    start = ends[last];
    i = last + 1;
  }
}

}  // namespace orrery::cassandra
