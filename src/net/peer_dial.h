// Dial: one attempt to connect to a peer: the address of its name, TCP, TLS and hello.
//
// On one worker only; held by shared pointers, because a name may be answered after all is over.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/peer.h"
#include "net/peer_link.h"

namespace orrery::net {

// Where a client connects to.
struct PeerTarget {
  std::string host;
  uint16_t port = 0;
  PeerOptions options;
  PeerWatch watch;
  std::string Name() const;
};

struct Dialed {
  std::shared_ptr<PeerLink> link;  // null: it failed
  bool refused = false;            // nobody listens there
  std::string why;
};

class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(runtime::Worker& worker, std::shared_ptr<const PeerTarget> target);
  runtime::Task<Dialed> Run();
  void Cancel() { End("cancelled"); }

 private:
  using Endpoints = std::vector<boost::asio::ip::tcp::endpoint>;
  // Empty: there is none, and `why_` says so.
  runtime::Task<Endpoints> Resolve();
  void Resolved(Endpoints endpoints);
  runtime::Task<boost::system::error_code> Connect(Endpoints endpoints);
  runtime::Task<Dialed> Greet();
  void End(const char* why);

  runtime::Worker& worker_;
  const std::shared_ptr<const PeerTarget> target_;
  boost::asio::steady_timer timer_;
  boost::asio::ip::tcp::resolver resolver_;
  boost::asio::ip::tcp::socket socket_;
  std::function<void(Endpoints)> on_resolved_;  // while a name is looked up
  std::shared_ptr<PeerLink> link_;
  bool over_ = false;  // cancelled or done
  std::string why_;
};

}  // namespace orrery::net
