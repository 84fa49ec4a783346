#include "net/listener.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/log.h"

namespace orrery::net {

using boost::asio::ip::tcp;
using runtime::Task;

namespace {

constexpr int kBacklog = 4096;
// Connections accepted in one go before others get their turn.
constexpr int kAcceptsAtOnce = 64;
// How long to wait when the process or the machine has no room for another socket.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

bool IsLoopback(const sockaddr_storage& peer) {
  if (peer.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  if (peer.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
  }
  return false;
}

enum class AcceptError { kNoneThere, kThatOneGone, kNoRoom, kClosed };

AcceptError AcceptErrorOf(int error) {
  switch (error) {
    case EAGAIN: return AcceptError::kNoneThere;
    case EBADF:
    case EINVAL:
    case ENOTSOCK: return AcceptError::kClosed;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM: return AcceptError::kNoRoom;
    default: return AcceptError::kThatOneGone;  // its client gave up, or the network failed it
  }
}

}  // namespace

std::string PeerAddress(int socket) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    return {};
  }
  if (peer.ss_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in&>(peer).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof(v4)};
  }
  if (peer.ss_family == AF_INET6) {
    const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
    const size_t prefix = IN6_IS_ADDR_V4MAPPED(&v6) ? 12 : 0;
    return {reinterpret_cast<const char*>(&v6) + prefix, sizeof(v6) - prefix};
  }
  return {};
}

struct Listener::Body {
  Body(runtime::Worker& worker, std::string where, uint16_t on, Welcome to)
      : address(std::move(where)),
        wanted(on),
        welcome(std::move(to)),
        acceptor(worker.context()),
        pause(worker.context()) {}

  Status Listen();
  Task<> Accept(runtime::Gate::Pass pass);
  // Accepts what is there; false once nothing more is to be accepted.
  Task<bool> AcceptAll();

  const std::string address;
  const uint16_t wanted;
  const Welcome welcome;
  uint16_t port = 0;
  tcp::acceptor acceptor;
  boost::asio::steady_timer pause;
};

Status Listener::Body::Listen() {
  boost::system::error_code ec;
  auto failed = [&](const char* what) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    return Status(Code::kUnavailable, std::string("cannot ") + what + " " + address + " port " +
                                          std::to_string(wanted) + ": " + ec.message());
  };
  boost::asio::ip::address parsed = boost::asio::ip::make_address(address, ec);
  if (ec) {
    return failed("understand address");
  }
  tcp::endpoint endpoint(parsed, wanted);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec && parsed.is_v6()) {
    acceptor.set_option(boost::asio::ip::v6_only(false), ec);
  }
  // Only for addresses in TIME_WAIT: on Linux a port that someone listens on stays taken.
  if (!ec) {
    acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  }
  if (!ec) {
    acceptor.non_blocking(true, ec);
  }
  if (ec) {
    return failed("open a socket for");
  }
  acceptor.bind(endpoint, ec);
  if (ec) {
    return failed("bind");
  }
  acceptor.listen(kBacklog, ec);
  if (ec) {
    return failed("listen on");
  }
  port = acceptor.local_endpoint(ec).port();
  return ec ? failed("ask for the port of") : Status::Ok();
}

Task<> Listener::Body::Accept(runtime::Gate::Pass pass) {
  boost::system::error_code ec;
  do {
    co_await acceptor.async_wait(tcp::acceptor::wait_read,
                                 boost::asio::redirect_error(boost::asio::use_awaitable, ec));
  } while (acceptor.is_open() && co_await AcceptAll());
}

Task<bool> Listener::Body::AcceptAll() {
  for (int accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    int socket = ::accept4(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      welcome(socket, IsLoopback(peer));
      continue;
    }
    switch (AcceptErrorOf(errno)) {
      case AcceptError::kThatOneGone: continue;
      case AcceptError::kNoneThere: co_return true;
      case AcceptError::kClosed: co_return false;
      case AcceptError::kNoRoom: break;
    }
    log::Warning("cannot accept a connection", {{"why", std::strerror(errno)}});
    boost::system::error_code ignored;
    pause.expires_after(kAcceptPause);
    co_await pause.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    co_return acceptor.is_open();
  }
  co_return true;
}

Listener::Listener(runtime::Worker& worker, std::string address, uint16_t port, Welcome welcome)
    : body_(std::make_unique<Body>(worker, std::move(address), port, std::move(welcome))) {}

Listener::~Listener() = default;

Status Listener::Listen() { return body_->Listen(); }
uint16_t Listener::port() const { return body_->port; }
Task<> Listener::Accept(runtime::Gate::Pass pass) { return body_->Accept(std::move(pass)); }

void Listener::Close() {
  boost::system::error_code ignored;
  body_->acceptor.close(ignored);
  body_->pause.cancel();
}

}  // namespace orrery::net
