// PeerServer, PeerClient: messages between nodes, many in flight on one connection.
//
//   frame   = length u32 (of what follows), kind u8, request id u64, message
//   kind    = 1 hello, 2 call, 3 answer, 4 one way, 5 refusal, 6 not handled, 7 failed
//   hello   = magic u32, major u8, minor u8, cluster id u64, node id u32, worker u32 (since minor
//   1),
//             what later minors add
//   refusal = text; the connection ends
//
// A connection begins with TLS (if there is one) and a hello from each side. A newer major version,
// another cluster, or another node than the one that was called ends it, with a line in both logs.
// Then the side that connected sends calls and one-way frames, and the other one sends answers. The
// request id of a one-way frame is 0.
//
// The side that was called goes on with a connection at its worker of the same number as the one of
// the other side: what one worker of a node sends arrives at one worker, and a replica set has the
// same number on all nodes.
//
// Limits: a frame over kFrameBytesMax closes the connection. At most kInFlightMax calls wait for
// their answers on one connection, and `waiting_bytes_max` bytes for the socket (one frame always
// may): beyond that calls are refused (kUnavailable) and one-way frames dropped and counted. A peer
// that leaves `answer_bytes_max` bytes of answers unread is cut off. A call that was sent and whose
// connection broke, whose time is over, or which was ended, has an unknown outcome; one that was
// not sent is unavailable.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

class ClusterTls;

inline constexpr size_t kFrameBytesMax = 32 << 20;
inline constexpr size_t kInFlightMax = 4096;
inline constexpr uint8_t kPeerProtocolMajor = 1;
inline constexpr uint8_t kPeerProtocolMinor = 1;

// What this node says of itself in a hello. Zero: it does not know yet. May change at any time; new
// connections say what it is then.
struct PeerIdentity {
  std::atomic<uint64_t> cluster = 0;
  std::atomic<uint32_t> node = 0;
};

// Sums since the start; bytes are those of frames, without TLS.
struct PeerCounters {
  std::atomic<uint64_t> frames_sent = 0;
  std::atomic<uint64_t> bytes_sent = 0;
  std::atomic<uint64_t> frames_received = 0;
  std::atomic<uint64_t> bytes_received = 0;
  std::atomic<uint64_t> frames_dropped = 0;  // one-way frames
};

// What the connections of one node have in common.
struct PeerOptions {
  std::shared_ptr<ClusterTls> tls;  // null: plain TCP, for one machine
  std::shared_ptr<PeerIdentity> identity = std::make_shared<PeerIdentity>();
  std::shared_ptr<PeerCounters> counters = std::make_shared<PeerCounters>();
  uint8_t protocol_major = kPeerProtocolMajor;
  Duration call_timeout = std::chrono::seconds(10);
  Duration connect_timeout = std::chrono::seconds(3);  // with TLS and hello
  Duration retry_min = std::chrono::milliseconds(10);  // between attempts to connect; doubled
  Duration retry_max = std::chrono::seconds(1);
  size_t waiting_bytes_max = 64 << 20;  // calls and one-way frames of a connection
  size_t answer_bytes_max = 256 << 20;  // the same of answers
};

// All are called on the worker that owns the connection. `from` is 0 if the sender is not a member
// of the cluster yet: such a one may only ask to become one.
struct PeerHandlers {
  std::function<runtime::Task<std::string>(NodeId from, std::string request)> on_call;
  // In the order in which one connection brings them. May be empty.
  std::function<void(NodeId from, std::string frame)> on_frame;
  // A peer has connected. May be empty.
  std::function<void(NodeId from)> on_hello;
};

class PeerServer {
 public:
  PeerServer(runtime::WorkerPool& workers, PeerHandlers handlers, PeerOptions options = {});
  ~PeerServer();
  Status Start(const std::string& address, uint16_t port);  // 0: any free one
  uint16_t port() const;
  // After it no handler is called any more; calls that run go on, and their answers are lost.
  // REQUIRES: not on a worker
  void Stop();

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

enum class PeerEvent : uint8_t {
  kUp,       // connected
  kRefused,  // nobody listens there: the process is gone
  kBroken,   // not reachable, for any other reason
};

// Which node should answer (0: any), and who wants to know how it is. With `on_event` worker 0
// keeps a connection open and calls it, on worker 0, with each change.
struct PeerWatch {
  NodeId node;
  std::function<void(PeerEvent)> on_event;
};

// One connection per worker to one peer, made when first needed and again after it broke.
class PeerClient {
 public:
  // `host` is a name or an address.
  PeerClient(runtime::WorkerPool& workers, std::string host, uint16_t port,
             PeerOptions options = {}, PeerWatch watch = {});
  ~PeerClient();
  // From a worker; the answer comes on the same one.
  runtime::Task<Result<std::string>> Call(std::string message);
  // One way, in order with calls and others of the same worker; from elsewhere as if from worker 0.
  void Send(std::string message);
  // Calls that wait for an answer end soon, with kUnknownOutcome: nobody should wait for a peer
  // that has gone silent. The connections stay. Thread-safe.
  void EndCalls();
  // Whoever waits to try again does so now. Thread-safe.
  void Retry();
  // Ends all connections, soon. Thread-safe.
  void Close();
  // Whether it was closed and all is over: no event comes any more. Thread-safe.
  bool over() const;
  // Closes, and returns when all is over. REQUIRES: not on a worker
  void Stop();

 private:
  struct Body;
  std::shared_ptr<Body> body_;
};

struct HostPort {
  std::string host;
  uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};
// Of host:port; an IPv6 address stands in brackets.
Result<HostPort> ParseHostPort(std::string_view text);

}  // namespace orrery::net
