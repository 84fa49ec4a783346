#include "net/http_server.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "net/http_connection.h"
#include "net/tls.h"
#include "runtime/gate.h"

namespace orrery::net {

using boost::asio::ip::tcp;
using runtime::Gate;
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

struct HttpServer::Body {
  Body(runtime::WorkerPool& workers, HttpOptions opts, HttpHandler handle)
      : pool(workers),
        options(std::move(opts)),
        handler(std::move(handle)),
        acceptor(pool.at(0).context()),
        pause(pool.at(0).context()) {}

  bool secure() const { return !options.certificate_file.empty() || !options.key_file.empty(); }
  size_t connections() const;
  Status LoadCertificate();
  Status Listen();
  Task<> Accept(Gate::Pass pass);
  // Accepts what is there; false once nothing more is to be accepted.
  Task<bool> AcceptAll();
  void Welcome(int socket, const sockaddr_storage& peer);
  // One acceptor hands each connection to the worker that has the fewest. The kernel's way, a
  // listening socket per worker, spreads by a hash: of 32 connections one worker may get 20, and
  // the busier worker then sets the pace; it would also let a second process bind the same port
  // unseen.
  HttpConnections& Emptiest();

  runtime::WorkerPool& pool;
  const HttpOptions options;
  const HttpHandler handler;
  Gate gate;  // the acceptor, the ticks and every connection
  std::vector<std::unique_ptr<HttpConnections>> connections_of;  // by worker
  uint16_t port = 0;
  bool running = false;

  std::mutex tls_mutex;
  std::shared_ptr<const TlsContext> tls;  // guarded by tls_mutex; null: plain

  // On worker 0.
  tcp::acceptor acceptor;
  boost::asio::steady_timer pause;
  size_t turn = 0;
};

size_t HttpServer::Body::connections() const {
  size_t all = 0;
  for (const auto& set : connections_of) {
    all += set->size();
  }
  return all;
}

Status HttpServer::Body::LoadCertificate() {
  auto loaded = TlsContext::Load(options.certificate_file, options.key_file);
  if (!loaded) {
    return loaded.error();
  }
  std::lock_guard lock(tls_mutex);
  tls = std::move(*loaded);
  return Status::Ok();
}

Status HttpServer::Body::Listen() {
  boost::system::error_code ec;
  auto failed = [&](const char* what) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
    return Status(Code::kUnavailable, std::string("cannot ") + what + " " + options.address +
                                          " port " + std::to_string(options.port) + ": " +
                                          ec.message());
  };
  boost::asio::ip::address address = boost::asio::ip::make_address(options.address, ec);
  if (ec) {
    return failed("understand address");
  }
  tcp::endpoint endpoint(address, options.port);
  acceptor.open(endpoint.protocol(), ec);
  if (!ec && address.is_v6()) {
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

Task<> HttpServer::Body::Accept(Gate::Pass pass) {
  boost::system::error_code ec;
  do {
    co_await acceptor.async_wait(tcp::acceptor::wait_read,
                                 boost::asio::redirect_error(boost::asio::use_awaitable, ec));
  } while (acceptor.is_open() && co_await AcceptAll());
}

Task<bool> HttpServer::Body::AcceptAll() {
  for (int accepted = 0; accepted < kAcceptsAtOnce; ++accepted) {
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    int socket = ::accept4(acceptor.native_handle(), reinterpret_cast<sockaddr*>(&peer), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
      Welcome(socket, peer);
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

void HttpServer::Body::Welcome(int socket, const sockaddr_storage& peer) {
  Gate::Pass pass = gate.Enter();
  if (!pass || connections() >= options.connections_max) {
    ::close(socket);
    return;
  }
  std::shared_ptr<const TlsContext> context;
  if (secure()) {
    std::lock_guard lock(tls_mutex);
    context = tls;
  }
  Emptiest().Accept(socket, IsLoopback(peer), std::move(context), std::move(pass));
}

HttpConnections& HttpServer::Body::Emptiest() {
  // Among equals in turn.
  size_t first = turn++;
  HttpConnections* best = connections_of[first % connections_of.size()].get();
  for (size_t i = 1; i < connections_of.size(); ++i) {
    HttpConnections* other = connections_of[(first + i) % connections_of.size()].get();
    if (other->size() < best->size()) {
      best = other;
    }
  }
  return *best;
}

HttpServer::HttpServer(runtime::WorkerPool& workers, HttpOptions options, HttpHandler handler)
    : body_(std::make_unique<Body>(workers, std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { ORRERY_CHECK(!body_->running); }

Status HttpServer::Start() {
  Body& body = *body_;
  if (body.secure()) {
    ORRERY_RETURN_IF_ERROR(body.LoadCertificate());
  }
  ORRERY_RETURN_IF_ERROR(body.Listen());
  for (size_t i = 0; i < body.pool.size(); ++i) {
    runtime::Worker& worker = body.pool.at(i);
    body.connections_of.push_back(
        std::make_unique<HttpConnections>(worker, body.options, body.handler));
    worker.Spawn(body.connections_of.back()->Tick(body.gate.Enter()));
  }
  body.running = true;
  body.pool.at(0).Spawn(body.Accept(body.gate.Enter()));
  return Status::Ok();
}

uint16_t HttpServer::port() const { return body_->port; }
size_t HttpServer::connections() const { return body_->connections(); }

Status HttpServer::ReloadCertificate() {
  return body_->secure() ? body_->LoadCertificate()
                         : Status(Code::kInvalidArgument, "the server has no certificate");
}

void HttpServer::Stop(Duration grace) {
  Body& body = *body_;
  if (!body.running) {
    return;
  }
  body.pool.at(0).Post([&body] {
    boost::system::error_code ignored;
    body.acceptor.close(ignored);
    body.pause.cancel();
  });
  Instant deadline = SystemClock().Now() + grace;
  for (size_t i = 0; i < body.pool.size(); ++i) {
    body.pool.at(i).Post([&body, i, deadline] { body.connections_of[i]->Drain(deadline); });
  }
  body.gate.Close();
  body.running = false;
}

}  // namespace orrery::net
