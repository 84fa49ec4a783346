#include "load/grpc_channel.h"

#include <algorithm>

namespace orrery::load {
namespace {

// RFC 9113, section 6.
enum FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kResetStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8
};
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr size_t kFrameHeadBytes = 9;
constexpr size_t kMessageHeadBytes = 5;  // "not compressed" and the length
constexpr uint32_t kReceiveWindow = 1 << 30;

void AppendBigEndian(uint64_t number, int bytes, std::string& out) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(number >> shift & 0xff);
  }
}

uint32_t BigEndian(std::string_view bytes) {
  uint32_t number = 0;
  for (char byte : bytes) {
    number = number << 8 | static_cast<uint8_t>(byte);
  }
  return number;
}

std::string WindowUpdate(uint32_t more) {
  std::string payload;
  AppendBigEndian(more, 4, payload);
  return payload;
}

// HPACK (RFC 7541): a literal that also enters the dynamic table. REQUIRES: under 127 bytes.
void AppendLiteral(uint8_t name_index, std::string_view value, std::string& out) {
  out += static_cast<char>(0x40 | name_index);
  if (name_index == 0) {
    out += "\x02te";
  }
  out += static_cast<char>(value.size());
  out += value;
}

}  // namespace

GrpcChannel::GrpcChannel(std::string path, std::string authority)
    : path_(std::move(path)), authority_(std::move(authority)) {
  out_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::string initial_window("\0\4", 2);
  AppendBigEndian(kReceiveWindow, 4, initial_window);
  AppendFrame(kSettings, 0, 0, initial_window);
  AppendFrame(kWindowUpdate, 0, 0, WindowUpdate(kReceiveWindow));
  receive_window_ = kReceiveWindow;
}

void GrpcChannel::AppendFrame(uint8_t type, uint8_t flags, uint32_t stream,
                              std::string_view payload) {
  AppendBigEndian(payload.size(), 3, out_);
  out_ += static_cast<char>(type);
  out_ += static_cast<char>(flags);
  AppendBigEndian(stream, 4, out_);
  out_ += payload;
}

bool GrpcChannel::MaySend(size_t message_bytes) const {
  return static_cast<int64_t>(message_bytes + kMessageHeadBytes) <= send_window_;
}

uint32_t GrpcChannel::Call(std::string_view message) {
  uint32_t stream = next_stream_;
  next_stream_ += 2;
  streams_.push_back({stream});
  std::string headers = "\x83\x86";  // :method POST, :scheme http
  if (stream == 1) {
    AppendLiteral(4, path_, headers);
    AppendLiteral(1, authority_, headers);
    AppendLiteral(31, "application/grpc", headers);
    AppendLiteral(0, "trailers", headers);
  } else {
    headers += "\xc1\xc0\xbf\xbe";  // the same four, from the dynamic table
  }
  AppendFrame(kHeaders, kEndHeaders, stream, headers);
  size_t bytes = kMessageHeadBytes + message.size();
  AppendBigEndian(bytes, 3, out_);
  out_ += static_cast<char>(kData);
  out_ += static_cast<char>(kEndStream);
  AppendBigEndian(stream, 4, out_);
  AppendBigEndian(message.size(), 5, out_);
  out_ += message;
  send_window_ -= static_cast<int64_t>(bytes);
  return stream;
}

Status GrpcChannel::Feed(std::string_view bytes, const Done& done) {
  received_ += bytes;
  std::string_view left = received_;
  while (left.size() >= kFrameHeadBytes) {
    size_t length = BigEndian(left.substr(0, 3));
    if (left.size() < kFrameHeadBytes + length) {
      break;
    }
    ORRERY_RETURN_IF_ERROR(TakeFrame(static_cast<uint8_t>(left[3]), static_cast<uint8_t>(left[4]),
                                     BigEndian(left.substr(5, 4)),
                                     left.substr(kFrameHeadBytes, length), done));
    left.remove_prefix(kFrameHeadBytes + length);
  }
  received_.erase(0, received_.size() - left.size());
  return Status::Ok();
}

Status GrpcChannel::TakeFrame(uint8_t type, uint8_t flags, uint32_t stream,
                              std::string_view payload, const Done& done) {
  switch (type) {
    case kData: CountReceived(stream, payload.size()); break;
    case kHeaders:
      if ((flags & kEndStream) != 0) {
        End(stream, true, done);
      }
      break;
    case kResetStream: End(stream, false, done); break;
    case kSettings:
      if ((flags & kAck) == 0) {
        AppendFrame(kSettings, kAck, 0, "");
      }
      break;
    case kPing:
      if ((flags & kAck) == 0) {
        AppendFrame(kPing, kAck, 0, payload);
      }
      break;
    case kWindowUpdate:
      if (stream == 0 && payload.size() == 4) {
        send_window_ += BigEndian(payload);
      }
      break;
    case kGoAway: return Status(Code::kUnavailable, "the server closes the connection");
    default: break;
  }
  return Status::Ok();
}

void GrpcChannel::CountReceived(uint32_t stream, size_t bytes) {
  auto found = std::ranges::find(streams_, stream, &Stream::id);
  if (found != streams_.end()) {
    found->received += bytes;
  }
  receive_window_ -= std::min<uint64_t>(bytes, receive_window_);
  if (receive_window_ < kReceiveWindow / 2) {
    AppendFrame(kWindowUpdate, 0, 0, WindowUpdate(kReceiveWindow / 2));
    receive_window_ += kReceiveWindow / 2;
  }
}

void GrpcChannel::End(uint32_t stream, bool ok, const Done& done) {
  auto found = std::ranges::find(streams_, stream, &Stream::id);
  if (found == streams_.end()) {
    return;
  }
  size_t received = found->received;
  *found = streams_.back();
  streams_.pop_back();
  bool message = received >= kMessageHeadBytes;
  done(stream, ok && message, message ? received - kMessageHeadBytes : 0);
}

}  // namespace orrery::load
