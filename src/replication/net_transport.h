// NetTransport: the Transport of a process: connections to the other nodes (net/peer.h).
//
// Each worker has a connection of its own to each node that it sends to. Worker 0 keeps one to
// every node that SetPeers names, so that the end of a process is noticed at once, without traffic.
//
// Thread-safe, except Start and Stop. Calls come from workers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "net/peer.h"
#include "replication/transport.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::replication {

// All are called on a worker. Frames of one worker of one node come in order while their
// connection lives. `from` of a call is 0 if the caller is not a member yet: it may only ask to
// become one; its frames are dropped.
struct NetHandlers {
  std::function<void(NodeId from, std::string frame)> on_frame;
  std::function<runtime::Task<std::string>(NodeId from, std::string request)> on_call;
  std::function<void(NodeId node, net::PeerEvent event)> on_event;  // each change, on worker 0
};

class NetTransport final : public Transport {
 public:
  NetTransport(runtime::WorkerPool& workers, net::PeerOptions options, NetHandlers handlers);
  ~NetTransport() override;  // REQUIRES: stopped, or never started and no peers set

  Status Start(const std::string& address, uint16_t port);  // 0: any free one
  uint16_t port() const { return server_->port(); }
  // Ends all connections; after it no handler is called. REQUIRES: not on a worker
  void Stop();

  // What new connections say of this node; 0 is unknown. Set before the peers are.
  void SetIdentity(uint64_t cluster, NodeId node);
  // The nodes there are, each as host:port. Connections to others, and to old addresses, end. This
  // node itself may be among them, and is left out.
  void SetPeers(const std::map<NodeId, std::string>& peers);

  void Send(NodeId to, std::string frame) override;
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request) override;
  void EndCalls(NodeId to) override;
  // To whoever listens there, over a connection for this call alone.
  runtime::Task<Result<std::string>> CallAddress(std::string host_port, std::string request);

  const net::PeerCounters& counters() const { return *options_.counters; }

 private:
  struct Peer {
    std::string address;
    std::shared_ptr<net::PeerClient> client;
  };
  std::shared_ptr<net::PeerClient> Find(NodeId node);
  std::shared_ptr<net::PeerClient> Connect(NodeId node, const std::string& address);
  void OnFrame(NodeId from, std::string frame);

  runtime::WorkerPool& workers_;
  const net::PeerOptions options_;
  const NetHandlers handlers_;
  std::unique_ptr<net::PeerServer> server_;

  std::mutex mutex_;
  bool stopped_ = false;
  std::map<NodeId, Peer> peers_;
  std::vector<std::shared_ptr<net::PeerClient>> closing_;  // until Stop, or until they are over
};

}  // namespace orrery::replication
