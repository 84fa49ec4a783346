// PeerServer, PeerClient: messages between nodes, many in flight on one connection.
//
//   frame = length u32 (of what follows), request id u64, message
//
// A message and its answer are bytes to this folder. Frames over kFrameBytesMax close the
// connection. A request that was sent and whose connection broke has an unknown outcome; one that
// was not sent is unavailable. At most kInFlightMax requests wait on one connection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

inline constexpr size_t kFrameBytesMax = 32 << 20;
inline constexpr size_t kInFlightMax = 4096;

using PeerHandler = std::function<runtime::Task<std::string>(std::string)>;

class PeerServer {
 public:
  PeerServer(runtime::WorkerPool& workers, PeerHandler handler);
  ~PeerServer();
  Status Start(const std::string& address, uint16_t port);  // 0: any free one
  uint16_t port() const;
  void Stop();  // REQUIRES: not on a worker

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// One connection per worker to one peer, made when first needed and again after it broke.
class PeerClient {
 public:
  PeerClient(runtime::WorkerPool& workers, std::string address, uint16_t port);
  ~PeerClient();
  // From a worker; the answer comes on the same one.
  runtime::Task<Result<std::string>> Call(std::string message);
  void Stop();  // REQUIRES: not on a worker

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::net
