#include <future>
#include <mutex>
#include <set>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"
#include "net/peer.h"
#include "net/peer_link.h"

namespace orrery::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using runtime::Task;

namespace {

constexpr auto kQuietly = asio::as_tuple(asio::use_awaitable);
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);
// Connections that have not said hello yet; one more is closed.
constexpr size_t kGreetingMax = 256;
// Of one connection: calls that are being handled, and their bytes; one more is not handled.
constexpr size_t kCallsMax = 2 * kInFlightMax;
constexpr size_t kCallsBytesMax = 256 << 20;
// The same reason is logged once in this time: peers try again and again.
constexpr Duration kSameReason = std::chrono::seconds(10);

Instant Now() { return SystemClock().Now(); }

// A connection of a peer, with what it has asked.
struct Caller {
  std::shared_ptr<PeerLink> link;
  std::shared_ptr<const PeerHandlers> handlers;
  size_t calls = 0;
  size_t bytes = 0;
  std::string refusal;  // why it does not want us
};

Task<> Answer(std::shared_ptr<Caller> caller, uint64_t id, std::string request) {
  PeerLink& link = *caller->link;
  if (link.closed()) {
    co_return;
  }
  size_t bytes = request.size();
  std::string answer;
  FrameKind kind = FrameKind::kAnswer;
  try {
    answer = co_await caller->handlers->on_call(link.peer(), std::move(request));
  } catch (const std::exception& e) {
    log::Error("call of a peer failed", {{"node", link.peer().ToString()}, {"what", e.what()}});
    kind = FrameKind::kFailed;
  }
  --caller->calls;
  caller->bytes -= bytes;
  if (!FitsFrame(answer.size())) {
    log::Error("answer to a peer is too large",
               {{"node", link.peer().ToString()}, {"bytes", std::to_string(answer.size())}});
    kind = FrameKind::kFailed;
    answer.clear();
  }
  if (!link.Send(kind, id, answer) && !link.closed()) {
    log::Warning("peer does not read its answers", {{"node", link.peer().ToString()}});
    link.Close();
  }
}

void HandleCall(const std::shared_ptr<Caller>& caller, PeerFrame& frame) {
  if (caller->calls >= kCallsMax || caller->bytes + frame.message.size() > kCallsBytesMax) {
    caller->link->Send(FrameKind::kNotHandled, frame.id, {});
    return;
  }
  ++caller->calls;
  caller->bytes += frame.message.size();
  caller->link->worker().Spawn(Answer(caller, frame.id, std::move(frame.message)));
}

// False: the connection is of no more use.
bool Handle(const std::shared_ptr<Caller>& caller, PeerFrame& frame) {
  NodeId from = caller->link->peer();
  switch (frame.kind) {
    case FrameKind::kCall: HandleCall(caller, frame); return true;
    case FrameKind::kOneWay:
      if (caller->handlers->on_frame) {
        caller->handlers->on_frame(from, std::move(frame.message));
      }
      return true;
    case FrameKind::kRefusal: caller->refusal = std::move(frame.message); return false;
    case FrameKind::kHello:
    case FrameKind::kAnswer:
    case FrameKind::kNotHandled:
    case FrameKind::kFailed: break;
  }
  log::Warning("peer sent a frame of an unknown kind", {{"node", from.ToString()}});
  return false;
}

// The same; what a handler throws ends nothing else.
bool HandleSafely(const std::shared_ptr<Caller>& caller, PeerFrame& frame) {
  try {
    return Handle(caller, frame);
  } catch (const std::exception& e) {
    log::Error("frame of a peer failed",
               {{"node", caller->link->peer().ToString()}, {"what", e.what()}});
    return true;
  }
}

Task<> Listen(std::shared_ptr<Caller> caller) {
  PeerFrame frame;
  do {
    while (caller->link->Take(frame)) {
      if (!HandleSafely(caller, frame)) {
        co_return;
      }
    }
  } while (co_await caller->link->Fill());
}

}  // namespace

struct PeerServer::Body : std::enable_shared_from_this<PeerServer::Body> {
  Body(runtime::WorkerPool& workers, PeerHandlers handlers, PeerOptions options)
      : workers(workers),
        handlers(std::make_shared<const PeerHandlers>(std::move(handlers))),
        options(std::move(options)) {}

  static Task<> Accept(std::shared_ptr<Body> self, runtime::Gate::Pass pass);
  void Admit(tcp::socket socket, runtime::Worker& worker);
  static Task<> Serve(std::shared_ptr<Body> self, std::shared_ptr<PeerLink> link,
                      std::string address, runtime::Gate::Pass pass);
  // From the welcome to the end.
  static Task<> Talk(std::shared_ptr<Body> self, std::shared_ptr<PeerLink> link,
                     std::string address, runtime::Gate::Pass pass);
  // The link at the worker where it should be.
  std::shared_ptr<PeerLink> InPlace(std::shared_ptr<PeerLink> link);
  void LogRefusal(const std::string& address, const std::string& why);

  runtime::WorkerPool& workers;
  const std::shared_ptr<const PeerHandlers> handlers;
  const PeerOptions options;
  runtime::Gate gate;
  uint16_t port = 0;
  // Worker 0.
  std::unique_ptr<tcp::acceptor> acceptor;
  bool stopping = false;

  std::mutex mutex;
  std::set<std::shared_ptr<PeerLink>> open;
  bool closing = false;
  size_t greeting = 0;
  std::string logged;
  Instant logged_at;
};

Task<> PeerServer::Body::Accept(std::shared_ptr<Body> self, runtime::Gate::Pass pass) {
  for (size_t next = 0;; ++next) {
    auto [error, socket] = co_await self->acceptor->async_accept(kQuietly);
    if (self->stopping) {
      co_return;
    }
    if (error) {
      // Out of file descriptors, or a peer that has already gone: the next one may do better.
      co_await runtime::Sleep(kAcceptPause);
      if (self->stopping) {
        co_return;
      }
      continue;
    }
    self->Admit(std::move(socket), self->workers.at(next));
  }
}

void PeerServer::Body::Admit(tcp::socket socket, runtime::Worker& worker) {
  boost::system::error_code error;
  std::string address = socket.remote_endpoint(error).address().to_string();
  socket.native_non_blocking(true, error);
  runtime::Gate::Pass pass = gate.Enter();
  std::shared_ptr<PeerLink> link;
  {
    std::lock_guard lock(mutex);
    if (error || !pass || greeting >= kGreetingMax) {
      return;
    }
    link = std::make_shared<PeerLink>(worker, socket.release(error), TlsRole::kServer, options);
    ++greeting;
    open.insert(link);
  }
  worker.Spawn(Serve(shared_from_this(), std::move(link), std::move(address), std::move(pass)));
}

Task<> PeerServer::Body::Serve(std::shared_ptr<Body> self, std::shared_ptr<PeerLink> link,
                               std::string address, runtime::Gate::Pass pass) {
  Status greeted = co_await link->Greet(NodeId());
  {
    std::lock_guard lock(self->mutex);
    --self->greeting;
  }
  if (greeted.ok()) {
    link = self->InPlace(std::move(link));
    runtime::Worker& worker = link->worker();
    worker.Spawn(Talk(self, std::move(link), std::move(address), std::move(pass)));
    co_return;
  }
  self->LogRefusal(address, greeted.message());
  link->Close();
  std::lock_guard lock(self->mutex);
  self->open.erase(link);
}

std::shared_ptr<PeerLink> PeerServer::Body::InPlace(std::shared_ptr<PeerLink> link) {
  runtime::Worker& here = link->worker();
  runtime::Worker& wanted = workers.at(link->worker_there().value_or(here.index()));
  std::lock_guard lock(mutex);
  if (&wanted == &here || closing) {
    return link;
  }
  auto moved = std::make_shared<PeerLink>(wanted, std::move(*link));
  open.erase(link);
  open.insert(moved);
  return moved;
}

Task<> PeerServer::Body::Talk(std::shared_ptr<Body> self, std::shared_ptr<PeerLink> link,
                              std::string address, runtime::Gate::Pass pass) {
  if (link->Welcome()) {
    if (self->handlers->on_hello) {
      self->handlers->on_hello(link->peer());
    }
    auto caller = std::make_shared<Caller>(link, self->handlers);
    co_await Listen(caller);
    if (!caller->refusal.empty()) {
      self->LogRefusal(address, "it refused our hello: " + caller->refusal);
    }
  }
  link->Close();
  std::lock_guard lock(self->mutex);
  self->open.erase(link);
}

void PeerServer::Body::LogRefusal(const std::string& address, const std::string& why) {
  std::lock_guard lock(mutex);
  Instant now = Now();
  if (why == logged && now - logged_at < kSameReason) {
    return;
  }
  logged = why;
  logged_at = now;
  log::Warning("connection of a peer refused", {{"from", address}, {"why", why}});
}

PeerServer::PeerServer(runtime::WorkerPool& workers, PeerHandlers handlers, PeerOptions options)
    : body_(std::make_shared<Body>(workers, std::move(handlers), std::move(options))) {}
PeerServer::~PeerServer() = default;
uint16_t PeerServer::port() const { return body_->port; }

Status PeerServer::Start(const std::string& address, uint16_t port) {
  boost::system::error_code error;
  tcp::endpoint where(asio::ip::make_address(address, error), port);
  auto acceptor = std::make_unique<tcp::acceptor>(body_->workers.at(0).context());
  if (!error) {
    acceptor->open(where.protocol(), error);
  }
  if (!error) {
    acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    acceptor->bind(where, error);
  }
  if (!error) {
    acceptor->listen(tcp::acceptor::max_listen_connections, error);
  }
  if (error) {
    return Status(Code::kUnavailable, "cannot listen on " + address + ": " + error.message());
  }
  body_->port = acceptor->local_endpoint().port();
  body_->acceptor = std::move(acceptor);
  body_->workers.at(0).Spawn(Body::Accept(body_, body_->gate.Enter()));
  return Status::Ok();
}

void PeerServer::Stop() {
  if (body_->acceptor == nullptr) {
    return;
  }
  // Each on its own worker: sockets are not thread-safe.
  std::promise<void> closed;
  body_->workers.at(0).Post([&] {
    boost::system::error_code ignored;
    body_->stopping = true;
    body_->acceptor->close(ignored);
    closed.set_value();
  });
  closed.get_future().get();
  {
    std::lock_guard lock(body_->mutex);
    body_->closing = true;
    for (const auto& link : body_->open) {
      link->worker().Post([link] { link->Close(); });
    }
  }
  body_->gate.Close();
  body_->acceptor.reset();
}

}  // namespace orrery::net
