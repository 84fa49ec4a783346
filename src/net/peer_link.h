// PeerLink: one connection between two nodes, of either side: TLS, hello, frames.
//
// What is sent within one turn of the event loop goes out together. Lives on one worker, except
// that it may be made and destroyed elsewhere; held by shared pointers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_stream.h"
#include "net/peer.h"

namespace orrery::net {

enum class FrameKind : uint8_t {
  kHello = 1,
  kCall = 2,
  kAnswer = 3,
  kOneWay = 4,
  kRefusal = 5,
  kNotHandled = 6,  // instead of an answer: the call was not looked at
  kFailed = 7,      // instead of an answer: it may have been handled
};

struct PeerFrame {
  FrameKind kind = FrameKind::kHello;
  uint64_t id = 0;
  std::string message;
};

inline constexpr size_t kFrameHead = 13;
// REQUIRES: the message fits into a frame (FitsFrame).
void AppendFrame(std::string& out, FrameKind kind, uint64_t id, std::string_view message);
inline bool FitsFrame(size_t message_size) { return message_size + 9 <= kFrameBytesMax; }

class PeerLink : public std::enable_shared_from_this<PeerLink> {
 public:
  // Owns `socket`, which must not block; `role` says which side connected.
  PeerLink(runtime::Worker& worker, int socket, TlsRole role, const PeerOptions& options);

  // Goes on at another worker with what `other` was, which is of no more use. On the worker of
  // `other`. REQUIRES: `other` is of the side that was called, between Greet and Welcome.
  PeerLink(runtime::Worker& worker, PeerLink&& other);

  // TLS and hellos, within the time to connect. `expected`: the node that should answer; 0: any.
  // The side that was called has then heard the hello of the other one, and says its own by
  // Welcome.
  runtime::Task<Status> Greet(NodeId expected);
  // False: the link is closed.
  bool Welcome();
  NodeId peer() const { return peer_; }  // after Greet; 0: not a member
  // Of the other side, after Greet: the number of the worker that it is at there, if it tells.
  std::optional<uint32_t> worker_there() const { return worker_there_; }

  // False: too much waits already, or the link is closed.
  bool Send(FrameKind kind, uint64_t id, std::string_view message);
  // Frames that were made before, whatever their size.
  void SendFrames(std::string frames, size_t count);
  size_t waiting_bytes() const { return out_.size() - sent_ + waiting_.size(); }

  // Takes the next frame out of what was received; false: Fill() first.
  bool Take(PeerFrame& frame);
  // False: nothing more will come.
  runtime::Task<bool> Fill();

  void Close();
  bool closed() const { return closed_; }
  runtime::Worker& worker() { return worker_; }

 private:
  runtime::Task<Status> Handshake();
  runtime::Task<Status> ReceiveHello(NodeId expected);
  Status CheckHello(std::string_view hello, NodeId expected);
  Status Ended(const char* otherwise) const;
  std::string MakeHello() const;
  void StartFlush();
  void Flush();
  static runtime::Task<> FlushWhenReady(std::shared_ptr<PeerLink> self, Next ready);

  runtime::Worker& worker_;
  const TlsRole role_;
  const PeerOptions options_;
  HttpStream stream_;
  NodeId peer_;
  std::optional<uint32_t> worker_there_;
  bool closed_ = false;
  bool greeted_ = false;
  bool late_ = false;
  bool bad_ = false;

  std::string out_;  // being sent, from `sent_` on
  size_t sent_ = 0;
  std::string waiting_;
  bool flushing_ = false;

  std::unique_ptr<char[]> in_;
  size_t begin_ = 0;  // received and not yet used: [begin_, end_)
  size_t end_ = 0;
  // A frame larger than `in_`, of which `large_have_` bytes of its message are here.
  PeerFrame large_;
  size_t large_have_ = 0;
  bool in_large_ = false;
  size_t burst_bytes_ = 0;
};

}  // namespace orrery::net
