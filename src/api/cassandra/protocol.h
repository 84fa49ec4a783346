// Protocol: one connection's side of the native protocol, without the socket.
//
// Bytes go in by Room() and Received(), requests come out of Next(); responses go in by Respond()
// and bytes come out of Output(). What concerns only the protocol is answered here: versions that
// we do not have, OPTIONS, messages out of their order, bodies that are malformed or too large.
//
//   kOpen             STARTUP or OPTIONS
//      | STARTUP was given out; nothing more is until it is answered
//   kStarting
//      | READY                    | AUTHENTICATE
//      |                       kAuthenticating    AUTH_RESPONSE or OPTIONS
//      |                          | AUTH_SUCCESS
//   kReady            everything but STARTUP
//
// The answer to STARTUP is still a bare envelope; in version 5 all that follows it, in both
// directions, is in segments. After a fault that ends the connection closing() is true: what is in
// Output() is still to be sent, what comes in is dropped.
//
// Lives on one worker, not thread-safe. No clock, no sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/cassandra/compression.h"
#include "api/cassandra/frame.h"
#include "api/cassandra/requests.h"
#include "api/cassandra/responses.h"

namespace orrery::cassandra {

struct ProtocolOptions {
  size_t frame_bytes_max = 16 << 20;  // the body of an envelope
  // The same before a client is authenticated.
  size_t startup_bytes_max = 64 << 10;
  // Bodies below this are sent as they are; version 3 and 4.
  size_t compress_bytes_min = 512;
  std::string cql_version = "3.4.5";
  bool lz4 = true;
  bool snappy = true;
};

class Protocol {
 public:
  enum class State : uint8_t { kOpen, kStarting, kAuthenticating, kReady };

  explicit Protocol(const ProtocolOptions& options);
  Protocol(const Protocol&) = delete;

  // A place for bytes from the socket, at least `least` of them, then how many came.
  std::span<char> Room(size_t least);
  void Received(size_t bytes);
  void Receive(std::string_view bytes);  // both at once
  // Whether bytes wait for others to come.
  bool holds_input() const { return begin_ != end_ || !large_.empty(); }
  // Gives back buffers that hold nothing, for a connection that is idle.
  void ReleaseBuffers();
  // The next request; nothing if more bytes are needed, or STARTUP is to be answered first.
  std::optional<Request> Next();

  // REQUIRES: each request once.
  void Respond(int16_t stream, const Response& response);
  // An event, to be sent only when ready.
  void Push(const Response& event) { Append(-1, event); }

  // What is to be sent, in its final form. The caller takes off what it sent, from the front.
  std::string& Output();
  bool has_output() const { return !out_.empty() || !envelopes_.empty(); }
  size_t output_bytes() const { return out_.size() + envelopes_.size(); }

  // Once it was agreed on; before that, the one that is spoken.
  int version() const { return version_ == 0 ? kVersionMax : version_; }
  State state() const { return state_; }
  bool closing() const { return closing_; }

 private:
  // A whole envelope, or what to do instead.
  struct Envelope {
    EnvelopeHead head;
    std::string_view body;
  };
  std::string_view input() const { return {in_.get() + begin_, end_ - begin_}; }
  std::optional<Envelope> NextEnvelope();
  std::optional<Envelope> NextInSegments();
  // Takes an envelope off the front of `bytes` and says by `used` how much of it is done with.
  std::optional<Envelope> TakeEnvelope(std::string_view bytes, size_t* used);
  bool TakeSegment(bool* self_contained);
  // Adds the last segment to an envelope that is larger than one.
  std::optional<Envelope> TakePart();
  bool CheckHead(const EnvelopeHead& head);
  bool CheckOrder(const EnvelopeHead& head);
  bool RefuseVersion(std::string_view bytes);
  std::optional<Request> Accept(const Envelope& envelope);
  bool Begin(const StartupRequest& startup, int16_t stream);
  size_t BytesMax() const;

  void Append(int16_t stream, const Response& response);
  // An error of the protocol as the answer; Fail also ends the connection.
  void Refuse(int16_t stream, std::string message, ErrorCode code = ErrorCode::kProtocolError);
  void Fail(int16_t stream, std::string message);
  void Close();

  const ProtocolOptions options_;
  State state_ = State::kOpen;
  int version_ = 0;  // 0: not yet known
  bool closing_ = false;
  bool segments_ = false;
  Compression wanted_ = Compression::kNone;  // by STARTUP, until it is answered
  Compression compression_ = Compression::kNone;
  int16_t startup_stream_ = 0;

  // What came in: [begin_, end_) of in_.
  std::unique_ptr<char[]> in_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t skip_ = 0;  // bytes of an envelope that was refused, still to come

  std::string segment_;  // the payload of the last one; if self-contained, read up to here:
  size_t segment_at_ = 0;
  std::string large_;        // the parts of an envelope that is larger than one
  bool large_done_ = false;  // it was given out
  std::string plain_;        // a body, decompressed

  // What goes out: bare bytes; then envelopes that are to be put into segments, and their ends.
  std::string out_;
  std::string envelopes_;
  std::vector<size_t> ends_;
};

}  // namespace orrery::cassandra
