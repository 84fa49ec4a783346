#include "net/peer_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/log.h"
#include "net/cluster_tls.h"

namespace orrery::net {

using runtime::Task;

namespace {

constexpr uint32_t kMagic = 0x4f525259;  // "ORRY"
constexpr size_t kReceiveBytes = 64 << 10;
constexpr size_t kHelloBytesMax = 1024;  // a frame before the other side is known
constexpr size_t kBytesKept = 256 << 10;
// After so many bytes in one go, others get their turn.
constexpr size_t kBurstBytes = 1 << 20;
// A connection whose other side does not acknowledge what was sent is broken after this.
constexpr unsigned kUnacknowledgedMillis = 10'000;
constexpr int kProbeAfterSeconds = 5;

void Shrink(std::string& text) {
  if (text.capacity() > kBytesKept) {
    text = std::string();
  }
}

void Watch(int socket) {
  int on = 1;
  int idle = kProbeAfterSeconds;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &on, sizeof(on));
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnacknowledgedMillis,
               sizeof(kUnacknowledgedMillis));
}

std::shared_ptr<const TlsContext> ContextFor(const PeerOptions& options, TlsRole role) {
  if (options.tls == nullptr) {
    return nullptr;
  }
  return role == TlsRole::kServer ? options.tls->server() : options.tls->client();
}

Status Objection(std::string text) { return Status(Code::kForbidden, std::move(text)); }

}  // namespace

void AppendFrame(std::string& out, FrameKind kind, uint64_t id, std::string_view message) {
  Encoder encoder(out);
  encoder.U32(static_cast<uint32_t>(message.size() + kFrameHead - 4));
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.U64(id);
  encoder.Raw(message);
}

PeerLink::PeerLink(runtime::Worker& worker, int socket, TlsRole role, const PeerOptions& options)
    : worker_(worker),
      role_(role),
      options_(options),
      stream_(worker, socket, ContextFor(options, role)),
      in_(std::make_unique_for_overwrite<char[]>(kReceiveBytes)) {
  Watch(socket);
}

PeerLink::PeerLink(runtime::Worker& worker, PeerLink&& other)
    : worker_(worker),
      role_(other.role_),
      options_(other.options_),
      stream_(worker, std::move(other.stream_)),
      peer_(other.peer_),
      worker_there_(other.worker_there_),
      closed_(std::exchange(other.closed_, true)),
      greeted_(true),
      in_(std::move(other.in_)),
      begin_(other.begin_),
      end_(other.end_) {}

Task<Status> PeerLink::Greet(NodeId expected) {
  if (closed_ || !stream_.Open()) {
    co_return Status(Code::kUnavailable, "the connection was closed");
  }
  boost::asio::steady_timer timer(worker_.context(), options_.connect_timeout);
  timer.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    std::shared_ptr<PeerLink> self = weak.lock();
    if (!error && self != nullptr && !self->greeted_) {
      self->late_ = true;
      self->Close();
    }
  });
  if (stream_.secure()) {
    Status secured = co_await Handshake();
    if (!secured.ok()) {
      co_return secured;
    }
  }
  // The side that was called answers only a hello that it accepts.
  if (role_ == TlsRole::kClient) {
    Send(FrameKind::kHello, 0, MakeHello());
  }
  Status checked = co_await ReceiveHello(expected);
  if (!checked.ok()) {
    co_return checked;
  }
  greeted_ = true;
  co_return Status::Ok();
}

bool PeerLink::Welcome() {
  return !closed_ && stream_.Open() && Send(FrameKind::kHello, 0, MakeHello());
}

Task<Status> PeerLink::ReceiveHello(NodeId expected) {
  PeerFrame frame;
  while (!Take(frame)) {
    if (!co_await Fill()) {
      co_return Ended("the connection was closed before a hello");
    }
  }
  if (frame.kind == FrameKind::kRefusal) {
    co_return Objection("the other side refused: " + frame.message);
  }
  Status checked = frame.kind == FrameKind::kHello ? CheckHello(frame.message, expected)
                                                   : Objection("it did not begin with a hello");
  if (!checked.ok()) {
    Send(FrameKind::kRefusal, 0, checked.message());
    Flush();  // now, as far as the socket takes it
  }
  co_return checked;
}

// Why the stream came to its end.
Status PeerLink::Ended(const char* otherwise) const {
  std::string why = stream_.failure();
  return Status(Code::kUnavailable, late_  ? "no hello came in time"
                                    : bad_ ? "what came is no frame"
                                    : why.empty()
                                        ? otherwise
                                        : "TLS failed (the same secret or authority?): " + why);
}

Task<Status> PeerLink::Handshake() {
  Step step = stream_.Handshake();
  while (step.next != Next::kGoOn) {
    if (step.next == Next::kClosed) {
      co_return Ended("the connection was closed during the TLS handshake");
    }
    co_await stream_.Wait(step.next);
    step = stream_.Handshake();
  }
  co_return Status::Ok();
}

std::string PeerLink::MakeHello() const {
  std::string hello;
  Encoder encoder(hello);
  encoder.U32(kMagic);
  encoder.U8(options_.protocol_major);
  encoder.U8(kPeerProtocolMinor);
  encoder.U64(options_.identity->cluster.load());
  encoder.U32(options_.identity->node.load());
  encoder.U32(static_cast<uint32_t>(worker_.index()));  // since minor 1
  return hello;
}

Status PeerLink::CheckHello(std::string_view hello, NodeId expected) {
  Decoder decoder(hello);
  uint32_t magic = decoder.U32();
  uint8_t major = decoder.U8();
  if (!decoder.ok() || magic != kMagic) {
    return Objection("that is no hello of a node");
  }
  if (major > options_.protocol_major) {
    return Objection("protocol " + std::to_string(major) + " is newer than " +
                     std::to_string(options_.protocol_major));
  }
  uint8_t minor = decoder.U8();  // what it adds comes last
  uint64_t cluster = decoder.U64();
  NodeId node(decoder.U32());
  if (!decoder.ok()) {
    return Objection("the hello is too short");
  }
  uint64_t ours = options_.identity->cluster.load();
  if (cluster != 0 && ours != 0 && cluster != ours) {
    return Objection("clusters differ: " + std::to_string(cluster) + " and " +
                     std::to_string(ours));
  }
  if (expected.value() != 0 && node != expected) {
    return Objection("node " + node.ToString() + " answers in place of node " +
                     expected.ToString());
  }
  peer_ = node;
  if (minor >= 1) {
    worker_there_ = decoder.U32();
    if (!decoder.ok()) {
      return Objection("the hello is too short");
    }
  }
  return Status::Ok();
}

bool PeerLink::Send(FrameKind kind, uint64_t id, std::string_view message) {
  size_t waits = waiting_bytes();
  size_t most = role_ == TlsRole::kClient ? options_.waiting_bytes_max : options_.answer_bytes_max;
  if (closed_ || (waits > 0 && waits + kFrameHead + message.size() > most)) {
    return false;
  }
  AppendFrame(waiting_, kind, id, message);
  options_.counters->frames_sent.fetch_add(1, std::memory_order_relaxed);
  options_.counters->bytes_sent.fetch_add(kFrameHead + message.size(), std::memory_order_relaxed);
  StartFlush();
  return true;
}

void PeerLink::SendFrames(std::string frames, size_t count) {
  if (closed_ || frames.empty()) {
    return;
  }
  options_.counters->frames_sent.fetch_add(count, std::memory_order_relaxed);
  options_.counters->bytes_sent.fetch_add(frames.size(), std::memory_order_relaxed);
  if (waiting_.empty()) {
    waiting_ = std::move(frames);
  } else {
    waiting_ += frames;
  }
  StartFlush();
}

void PeerLink::StartFlush() {
  if (!flushing_) {
    flushing_ = true;
    worker_.Post([self = shared_from_this()] { self->Flush(); });
  }
}

void PeerLink::Flush() {
  while (!closed_) {
    if (sent_ == out_.size()) {
      Shrink(out_);
      out_.clear();
      sent_ = 0;
      if (waiting_.empty()) {
        flushing_ = false;
        return;
      }
      std::swap(out_, waiting_);
    }
    Step step = stream_.Write(std::string_view(out_).substr(sent_), {});
    if (step.next == Next::kClosed) {
      Close();
    } else if (step.next != Next::kGoOn) {
      worker_.Spawn(FlushWhenReady(shared_from_this(), step.next));
      return;
    }
    sent_ += step.bytes;
  }
}

Task<> PeerLink::FlushWhenReady(std::shared_ptr<PeerLink> self, Next ready) {
  co_await self->stream_.Wait(ready);
  self->Flush();
}

bool PeerLink::Take(PeerFrame& frame) {
  if (closed_) {
    return false;
  }
  if (!in_large_) {
    size_t have = end_ - begin_;
    if (have < 4) {
      return false;
    }
    const char* at = in_.get() + begin_;
    size_t size = GetU32(at) + size_t{4};
    if (size < kFrameHead || size - 4 > (greeted_ ? kFrameBytesMax : kHelloBytesMax)) {
      bad_ = true;
      if (greeted_) {
        log::Warning("peer sent what is no frame", {{"node", peer_.ToString()}});
      }
      Close();
      return false;
    }
    if (have < kFrameHead || (have < size && size <= kReceiveBytes)) {
      return false;
    }
    frame.kind = static_cast<FrameKind>(at[4]);
    frame.id = GetU64(at + 5);
    size_t here = std::min(have, size);
    frame.message.assign(at + kFrameHead, here - kFrameHead);
    begin_ += here;
    if (here < size) {
      in_large_ = true;
      large_ = std::move(frame);
      large_have_ = here - kFrameHead;
      large_.message.resize(size - kFrameHead);
      return false;
    }
  } else if (large_have_ < large_.message.size()) {
    return false;
  } else {
    in_large_ = false;
    frame = std::move(large_);
  }
  PeerCounters& counters = *options_.counters;
  counters.frames_received.fetch_add(1, std::memory_order_relaxed);
  counters.bytes_received.fetch_add(kFrameHead + frame.message.size(), std::memory_order_relaxed);
  return true;
}

Task<bool> PeerLink::Fill() {
  if (burst_bytes_ >= kBurstBytes) {
    burst_bytes_ = 0;
    co_await runtime::Yield();
  }
  while (!closed_) {
    Step step;
    if (in_large_) {
      step = stream_.Read(large_.message.data() + large_have_, large_.message.size() - large_have_);
      large_have_ += step.bytes;
    } else {
      std::memmove(in_.get(), in_.get() + begin_, end_ - begin_);
      end_ -= std::exchange(begin_, 0);
      step = stream_.Read(in_.get() + end_, kReceiveBytes - end_);
      end_ += step.bytes;
    }
    if (step.bytes > 0) {
      burst_bytes_ += step.bytes;
      co_return true;
    }
    if (step.next == Next::kClosed) {
      break;
    }
    burst_bytes_ = 0;
    co_await stream_.Wait(step.next);
  }
  co_return false;
}

void PeerLink::Close() {
  if (!closed_) {
    closed_ = true;
    stream_.Abort(false);
  }
}

}  // namespace orrery::net
