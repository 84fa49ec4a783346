// Listener: accepts connections on one address, for a server that spreads them over its workers.
//
// One acceptor hands out all connections. The kernel's way, a listening socket per worker, spreads
// by a hash: of 32 connections one worker may get 20, and the busier worker then sets the pace; it
// would also let a second process bind the same port unseen.
//
// Lives on one worker; Listen() and port() may be used before that worker accepts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

// The address of who is at the other end, as 4 or 16 bytes; empty if there is nobody any more.
std::string PeerAddress(int socket);

class Listener {
 public:
  // Gets a socket that does not block, and owns it; `loopback`: the peer is on this machine.
  using Welcome = std::function<void(int socket, bool loopback)>;

  Listener(runtime::Worker& worker, std::string address, uint16_t port, Welcome welcome);
  ~Listener();

  // Binds and listens; kUnavailable says why it cannot. Port 0: any free one.
  Status Listen();
  uint16_t port() const;  // the one that was bound
  // Accepts until Close(). Spawned on the worker.
  runtime::Task<> Accept(runtime::Gate::Pass pass);
  // On the worker.
  void Close();

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::net
