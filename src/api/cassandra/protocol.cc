#include "api/cassandra/protocol.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "cql/letters.h"

namespace orrery::cassandra {
namespace {

constexpr size_t kOldHeadBytes = 8;  // of versions 1 and 2

std::string VersionName(int version) {
  return std::to_string(version) + "/v" + std::to_string(version);
}

std::string SupportedVersions() {
  std::string text;
  for (int version = kVersionMin; version <= kVersionMax; ++version) {
    text += (text.empty() ? "" : ", ") + VersionName(version);
  }
  return text;
}

std::string NameOf(Opcode opcode) {
  auto name = OpcodeName(opcode);
  return name ? std::string(*name) : std::to_string(static_cast<int>(opcode));
}

}  // namespace

Protocol::Protocol(const ProtocolOptions& options) : options_(options) {}

std::span<char> Protocol::Room(size_t least) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  }
  if (capacity_ - end_ < least && begin_ > 0) {
    std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (capacity_ - end_ < least) {
    size_t capacity = std::max(capacity_ * 2, end_ + least);
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (end_ > 0) {
      std::memcpy(larger.get(), in_.get(), end_);
    }
    in_ = std::move(larger);
    capacity_ = capacity;
  }
  return {in_.get() + end_, capacity_ - end_};
}

void Protocol::Received(size_t bytes) {
  ORRERY_CHECK(bytes <= capacity_ - end_);
  end_ += bytes;
  if (closing_) {
    begin_ = end_;
  }
}

void Protocol::Receive(std::string_view bytes) {
  std::ranges::copy(bytes, Room(bytes.size()).begin());
  Received(bytes.size());
}

void Protocol::ReleaseBuffers() {
  if (begin_ == end_) {
    in_.reset();
    capacity_ = begin_ = end_ = 0;
  }
  auto release = [](std::string& buffer) {
    if (buffer.empty()) {
      std::string().swap(buffer);
    }
  };
  if (segment_at_ == segment_.size()) {
    segment_.clear();
    segment_at_ = 0;
  }
  plain_.clear();
  for (std::string* buffer : {&segment_, &large_, &plain_, &out_, &envelopes_}) {
    release(*buffer);
  }
}

size_t Protocol::BytesMax() const {
  return state_ == State::kReady ? options_.frame_bytes_max
                                 : std::min(options_.startup_bytes_max, options_.frame_bytes_max);
}

// --- In ---------------------------------------------------------------------------------------

std::optional<Request> Protocol::Next() {
  while (!closing_ && state_ != State::kStarting) {
    auto envelope = NextEnvelope();
    if (!envelope) {
      break;
    }
    if (auto request = Accept(*envelope)) {
      return request;
    }
  }
  return std::nullopt;
}

std::optional<Protocol::Envelope> Protocol::NextEnvelope() {
  if (segments_) {
    return NextInSegments();
  }
  for (;;) {
    size_t skipped = std::min(skip_, end_ - begin_);
    begin_ += skipped;
    skip_ -= skipped;
    if (skip_ > 0) {
      return std::nullopt;
    }
    size_t used = 0;
    auto envelope = TakeEnvelope(input(), &used);
    begin_ += used;
    if (envelope || used == 0 || closing_) {
      return envelope;
    }
  }
}

std::optional<Protocol::Envelope> Protocol::NextInSegments() {
  if (std::exchange(large_done_, false)) {
    large_.clear();
  }
  while (!closing_) {
    if (segment_at_ < segment_.size()) {
      size_t used = 0;
      auto envelope = TakeEnvelope(std::string_view(segment_).substr(segment_at_), &used);
      segment_at_ += used;
      if (envelope) {
        return envelope;
      }
      if (used == 0 || skip_ > segment_.size() - segment_at_) {
        Close();  // an envelope is cut off
        break;
      }
      segment_at_ += std::exchange(skip_, 0);
      continue;
    }
    bool self_contained = false;
    if (!TakeSegment(&self_contained)) {
      break;
    }
    if (!self_contained) {
      if (auto envelope = TakePart()) {
        return envelope;
      }
    } else if (skip_ > 0 || !large_.empty()) {
      Close();  // in the middle of another envelope
    }
  }
  return std::nullopt;
}

std::optional<Protocol::Envelope> Protocol::TakePart() {
  std::string_view part = segment_;
  segment_at_ = segment_.size();
  if (skip_ > 0) {
    if (part.size() > skip_) {
      Close();
    }
    skip_ -= std::min(skip_, part.size());
    return std::nullopt;
  }
  large_.append(part);
  size_t used = 0;
  auto envelope = TakeEnvelope(large_, &used);
  if (envelope) {
    large_done_ = true;
    if (used == large_.size()) {
      return envelope;
    }
    Close();  // something follows it
  } else if (used > 0) {
    size_t more = large_.size() - used;
    large_.clear();
    if (more > skip_) {
      Close();
    }
    skip_ -= std::min(skip_, more);
  }
  return std::nullopt;
}

bool Protocol::TakeSegment(bool* self_contained) {
  auto head = ReadSegmentHead(input(), compression_ == Compression::kLz4);
  if (!head) {
    Close();
    return false;
  }
  if (!*head || input().size() < (*head)->bytes()) {
    return false;
  }
  if (!ReadSegmentPayload(**head, input(), segment_).ok()) {
    Close();
    return false;
  }
  begin_ += (*head)->bytes();
  segment_at_ = 0;
  *self_contained = (*head)->self_contained;
  return true;
}

std::optional<Protocol::Envelope> Protocol::TakeEnvelope(std::string_view bytes, size_t* used) {
  *used = 0;
  if (bytes.empty()) {
    return std::nullopt;
  }
  int version = bytes[0] & 0x7F;
  if (version < kVersionMin || version > kVersionMax) {
    RefuseVersion(bytes);
    return std::nullopt;
  }
  if (bytes.size() < kEnvelopeHeadBytes) {
    return std::nullopt;
  }
  EnvelopeHead head = ReadEnvelopeHead(bytes);
  if (!CheckHead(head)) {
    return std::nullopt;
  }
  if (head.length > BytesMax()) {
    std::string message = "Request is too big: length " + std::to_string(head.length) +
                          " exceeds maximum allowed length " + std::to_string(BytesMax()) + ".";
    if (state_ != State::kReady) {
      Fail(head.stream, std::move(message));
      return std::nullopt;
    }
    Refuse(head.stream, std::move(message), ErrorCode::kInvalid);
    skip_ = head.length;
    *used = kEnvelopeHeadBytes;
    return std::nullopt;
  }
  if (bytes.size() - kEnvelopeHeadBytes < head.length) {
    return std::nullopt;
  }
  *used = kEnvelopeHeadBytes + head.length;
  return Envelope{head, bytes.substr(kEnvelopeHeadBytes, head.length)};
}

bool Protocol::RefuseVersion(std::string_view bytes) {
  int version = bytes[0] & 0x7F;
  bool old = version < kVersionMin;
  if (bytes.size() < (old ? kOldHeadBytes : kEnvelopeHeadBytes)) {
    return false;
  }
  int16_t stream = old ? static_cast<int8_t>(bytes[2]) : ReadEnvelopeHead(bytes).stream;
  if (version_ == 0) {
    version_ = old ? kVersionMin : kVersionMax;
  }
  Fail(stream, "Invalid or unsupported protocol version (" + std::to_string(version) +
                   "); supported versions are (" + SupportedVersions() + ")");
  return true;
}

bool Protocol::CheckHead(const EnvelopeHead& head) {
  if (version_ == 0) {
    version_ = head.version;
  }
  if (head.response) {
    Fail(head.stream, "Wrong protocol direction (expected REQUEST, got RESPONSE) for opcode " +
                          NameOf(head.opcode));
    return false;
  }
  if (head.version != version_) {
    Fail(head.stream, "Invalid message version. Got " + VersionName(head.version) +
                          " but previous messages on this connection had version " +
                          VersionName(version_));
    return false;
  }
  return true;
}

bool Protocol::CheckOrder(const EnvelopeHead& head) {
  if (head.opcode == Opcode::kOptions) {
    return true;
  }
  std::string_view expected;
  switch (state_) {
    case State::kOpen:
      expected = head.opcode == Opcode::kStartup ? "" : ", expecting STARTUP or OPTIONS";
      break;
    case State::kAuthenticating:
      expected = head.opcode == Opcode::kAuthResponse ? "" : ", expecting SASL_RESPONSE";
      break;
    case State::kStarting:
    case State::kReady:
      expected = head.opcode == Opcode::kStartup || head.opcode == Opcode::kAuthResponse
                     ? ", the connection is ready"
                     : "";
      break;
  }
  if (expected.empty()) {
    return true;
  }
  Refuse(head.stream, "Unexpected message " + NameOf(head.opcode) + std::string(expected));
  return false;
}

std::optional<Request> Protocol::Accept(const Envelope& envelope) {
  const EnvelopeHead& head = envelope.head;
  std::string_view body = envelope.body;
  if (head.stream < 0) {
    Refuse(head.stream, "Invalid stream id " + std::to_string(head.stream));
    return std::nullopt;
  }
  if (!CheckOrder(head)) {
    return std::nullopt;
  }
  if (!segments_ && (head.flags & kFlagCompressed) != 0) {
    auto plain = DecompressBody(compression_, body, BytesMax());
    if (!plain) {
      Refuse(head.stream, "The compressed body cannot be read: " + plain.error().message());
      return std::nullopt;
    }
    plain_ = std::move(*plain);
    body = plain_;
  }
  auto bytes = std::make_unique_for_overwrite<char[]>(body.size());
  std::ranges::copy(body, bytes.get());
  auto request = DecodeRequest(head, {bytes.get(), body.size()});
  if (!request) {
    Refuse(head.stream, request.error().message());
    return std::nullopt;
  }
  request->bytes = std::move(bytes);
  request->size = body.size();
  if (std::holds_alternative<OptionsRequest>(request->message)) {
    std::vector<std::string> compressions;
    if (options_.snappy && version_ < 5) {
      compressions.push_back("snappy");
    }
    if (options_.lz4) {
      compressions.push_back("lz4");
    }
    Append(head.stream, MakeSupported({{"CQL_VERSION", {options_.cql_version}},
                                       {"COMPRESSION", std::move(compressions)},
                                       {"PROTOCOL_VERSIONS", {"3/v3", "4/v4", "5/v5"}}}));
    return std::nullopt;
  }
  auto* startup = std::get_if<StartupRequest>(&request->message);
  if (startup != nullptr && !Begin(*startup, head.stream)) {
    return std::nullopt;
  }
  return std::move(*request);
}

bool Protocol::Begin(const StartupRequest& startup, int16_t stream) {
  std::string_view cql = startup.Get("CQL_VERSION");
  if (cql.empty()) {
    Refuse(stream, "Missing value CQL_VERSION in STARTUP message");
    return false;
  }
  if (!cql.starts_with("3.")) {
    Refuse(stream, "CQL version " + std::string(cql) +
                       " is not supported by the binary protocol (supported version are >= 3.0.0)");
    return false;
  }
  wanted_ = Compression::kNone;
  if (std::string_view name = startup.Get("COMPRESSION"); !name.empty()) {
    if (options_.lz4 && cql::EqualsIgnoringCase(name, "lz4")) {
      wanted_ = Compression::kLz4;
    } else if (options_.snappy && version_ < 5 && cql::EqualsIgnoringCase(name, "snappy")) {
      wanted_ = Compression::kSnappy;
    } else {
      Refuse(stream, "Unknown compression algorithm: " + std::string(name));
      return false;
    }
  }
  startup_stream_ = stream;
  state_ = State::kStarting;
  return true;
}

// --- Out --------------------------------------------------------------------------------------

void Protocol::Respond(int16_t stream, const Response& response) {
  Append(stream, response);
  bool ready = response.opcode == Opcode::kReady;
  if (state_ == State::kStarting && stream == startup_stream_) {
    if (ready || response.opcode == Opcode::kAuthenticate) {
      state_ = ready ? State::kReady : State::kAuthenticating;
      compression_ = wanted_;
      segments_ = version_ >= 5;
    } else {
      state_ = State::kOpen;
    }
  } else if (state_ == State::kAuthenticating && response.opcode == Opcode::kAuthSuccess) {
    state_ = State::kReady;
  }
}

void Protocol::Append(int16_t stream, const Response& response) {
  int version = this->version();
  EnvelopeHead head{.version = static_cast<uint8_t>(version),
                    .response = true,
                    .flags = response.flags(version),
                    .stream = stream,
                    .opcode = response.opcode};
  std::string& to = segments_ ? envelopes_ : out_;
  size_t start = to.size();
  to.resize(start + kEnvelopeHeadBytes);
  size_t body_start = to.size();
  response.AppendPrefix(version, to);
  to.append(response.body);
  size_t plain_bytes = to.size() - body_start;
  if (!segments_ && compression_ != Compression::kNone &&
      plain_bytes >= options_.compress_bytes_min) {
    std::string compressed;
    CompressBody(compression_, std::string_view(to).substr(body_start), compressed);
    if (compressed.size() < plain_bytes) {
      head.flags |= kFlagCompressed;
      to.replace(body_start, plain_bytes, compressed);
    }
  }
  head.length = static_cast<uint32_t>(to.size() - body_start);
  std::string bytes;
  AppendEnvelopeHead(head, bytes);
  to.replace(start, bytes.size(), bytes);
  if (segments_) {
    ends_.push_back(to.size());
  }
}

std::string& Protocol::Output() {
  if (!envelopes_.empty()) {
    AppendSegments(envelopes_, ends_, compression_ == Compression::kLz4, out_);
    envelopes_.clear();
    ends_.clear();
  }
  return out_;
}

void Protocol::Refuse(int16_t stream, std::string message, ErrorCode code) {
  Append(stream, MakeError(code, std::move(message), version()));
}

void Protocol::Fail(int16_t stream, std::string message) {
  Refuse(stream, std::move(message));
  Close();
}

void Protocol::Close() {
  closing_ = true;
  begin_ = end_;
}

}  // namespace orrery::cassandra
