#include "api/cassandra/server.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "api/cassandra/connection.h"
#include "base/check.h"
#include "net/listener.h"
#include "net/tls.h"
#include "runtime/gate.h"

namespace orrery::cassandra {

using runtime::Gate;

struct CassandraServer::Body {
  Body(runtime::WorkerPool& workers, ServerOptions opts, Handler& handle)
      : pool(workers),
        options(std::move(opts)),
        handler(handle),
        address(options.address),
        listener(MakeListener(address, options.port)) {}

  std::unique_ptr<net::Listener> MakeListener(const std::string& where, uint16_t on) {
    return std::make_unique<net::Listener>(
        pool.at(0), where, on, [this](int socket, bool loopback) { Welcome(socket, loopback); });
  }
  // In place of the listener that was closed.
  Status ListenAt(const std::string& where);

  bool secure() const { return !options.certificate_file.empty() || !options.key_file.empty(); }
  size_t connections() const;
  Status LoadCertificate();
  void Welcome(int socket, bool loopback);
  // The worker that has the fewest connections gets the next one.
  Connections& Emptiest();

  runtime::WorkerPool& pool;
  const ServerOptions options;
  Handler& handler;
  Gate gate;  // the listener, the ticks and every connection
  std::vector<std::unique_ptr<Connections>> connections_of;  // by worker
  bool running = false;

  std::mutex tls_mutex;
  std::shared_ptr<const net::TlsContext> tls;  // guarded by tls_mutex; null: plain

  std::atomic<uint16_t> port = 0;

  // On worker 0.
  std::string address;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<net::Listener> former;  // closed; its task may not have ended yet
  size_t turn = 0;
};

size_t CassandraServer::Body::connections() const {
  size_t all = 0;
  for (const auto& set : connections_of) {
    all += set->size();
  }
  return all;
}

Status CassandraServer::Body::LoadCertificate() {
  auto loaded = net::TlsContext::Load(options.certificate_file, options.key_file);
  if (!loaded) {
    return loaded.error();
  }
  std::lock_guard lock(tls_mutex);
  tls = std::move(*loaded);
  return Status::Ok();
}

void CassandraServer::Body::Welcome(int socket, bool loopback) {
  Gate::Pass pass = gate.Enter();
  if (!pass || connections() >= options.connections_max) {
    ::close(socket);
    return;
  }
  std::shared_ptr<const net::TlsContext> context;
  if (secure()) {
    std::lock_guard lock(tls_mutex);
    context = tls;
  }
  Emptiest().Accept(socket, loopback, std::move(context), std::move(pass));
}

Connections& CassandraServer::Body::Emptiest() {
  // Among equals in turn.
  size_t first = turn++;
  Connections* best = connections_of[first % connections_of.size()].get();
  for (size_t i = 1; i < connections_of.size(); ++i) {
    Connections* other = connections_of[(first + i) % connections_of.size()].get();
    if (other->size() < best->size()) {
      best = other;
    }
  }
  return *best;
}

CassandraServer::CassandraServer(runtime::WorkerPool& workers, ServerOptions options,
                                 Handler& handler)
    : body_(std::make_unique<Body>(workers, std::move(options), handler)) {}

CassandraServer::~CassandraServer() { ORRERY_CHECK(!body_->running); }

Status CassandraServer::Start() {
  Body& body = *body_;
  if (body.secure()) {
    ORRERY_RETURN_IF_ERROR(body.LoadCertificate());
  }
  ORRERY_RETURN_IF_ERROR(body.listener->Listen());
  body.port = body.listener->port();
  for (size_t i = 0; i < body.pool.size(); ++i) {
    runtime::Worker& worker = body.pool.at(i);
    body.connections_of.push_back(
        std::make_unique<Connections>(worker, body.options, body.handler));
    worker.Spawn(body.connections_of.back()->Tick(body.gate.Enter()));
  }
  body.running = true;
  body.pool.at(0).Spawn(body.listener->Accept(body.gate.Enter()));
  return Status::Ok();
}

Status CassandraServer::Body::ListenAt(const std::string& where) {
  auto next = MakeListener(where, port);
  ORRERY_RETURN_IF_ERROR(next->Listen());
  former = std::exchange(listener, std::move(next));
  address = where;
  if (Gate::Pass pass = gate.Enter()) {
    pool.at(0).Spawn(listener->Accept(std::move(pass)));
  }
  return Status::Ok();
}

Status CassandraServer::MoveTo(std::string address) {
  Body& body = *body_;
  // Of two addresses one may include the other, and a port is taken by who listens on it.
  body.listener->Close();
  Status moved = body.ListenAt(address);
  if (!moved.ok()) {
    ORRERY_RETURN_IF_ERROR(body.ListenAt(body.address));
  }
  return moved;
}

uint16_t CassandraServer::port() const { return body_->port; }
size_t CassandraServer::connections() const { return body_->connections(); }

Status CassandraServer::ReloadCertificate() {
  return body_->secure() ? body_->LoadCertificate()
                         : Status(Code::kInvalidArgument, "the server has no certificate");
}

void CassandraServer::Publish(EventKind kind, std::function<Response(int version)> event) {
  Body& body = *body_;
  auto shared = std::make_shared<const std::function<Response(int)>>(std::move(event));
  for (size_t i = 0; i < body.connections_of.size(); ++i) {
    auto pass = std::make_shared<Gate::Pass>(body.gate.Enter());
    if (*pass) {
      body.pool.at(i).Post(
          [&body, i, kind, shared, pass] { body.connections_of[i]->Publish(kind, *shared); });
    }
  }
}

void CassandraServer::Stop(Duration grace) {
  Body& body = *body_;
  if (!body.running) {
    return;
  }
  body.pool.at(0).Post([&body] { body.listener->Close(); });
  Instant deadline = SystemClock().Now() + grace;
  for (size_t i = 0; i < body.pool.size(); ++i) {
    body.pool.at(i).Post([&body, i, deadline] { body.connections_of[i]->Drain(deadline); });
  }
  body.gate.Close();
  body.running = false;
}

}  // namespace orrery::cassandra
