#include "net/http_server.h"

#include <mutex>
#include <utility>

#include <unistd.h>

#include "base/check.h"
#include "net/http_connection.h"
#include "net/listener.h"
#include "net/tls.h"
#include "runtime/gate.h"

namespace orrery::net {

using runtime::Gate;

struct HttpServer::Body {
  Body(runtime::WorkerPool& workers, HttpOptions opts, HttpHandler handle)
      : pool(workers),
        options(std::move(opts)),
        handler(std::move(handle)),
        listener(pool.at(0), options.address, options.port,
                 [this](int socket, bool loopback) { Welcome(socket, loopback); }) {}

  bool secure() const { return !options.certificate_file.empty() || !options.key_file.empty(); }
  size_t connections() const;
  Status LoadCertificate();
  void Welcome(int socket, bool loopback);
  // The worker that has the fewest connections gets the next one.
  HttpConnections& Emptiest();

  runtime::WorkerPool& pool;
  const HttpOptions options;
  const HttpHandler handler;
  Gate gate;  // the acceptor, the ticks and every connection
  std::vector<std::unique_ptr<HttpConnections>> connections_of;  // by worker
  bool running = false;

  std::mutex tls_mutex;
  std::shared_ptr<const TlsContext> tls;  // guarded by tls_mutex; null: plain

  // On worker 0.
  Listener listener;
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

void HttpServer::Body::Welcome(int socket, bool loopback) {
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
  Emptiest().Accept(socket, loopback, std::move(context), std::move(pass));
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
  ORRERY_RETURN_IF_ERROR(body.listener.Listen());
  for (size_t i = 0; i < body.pool.size(); ++i) {
    runtime::Worker& worker = body.pool.at(i);
    body.connections_of.push_back(
        std::make_unique<HttpConnections>(worker, body.options, body.handler));
    worker.Spawn(body.connections_of.back()->Tick(body.gate.Enter()));
  }
  body.running = true;
  body.pool.at(0).Spawn(body.listener.Accept(body.gate.Enter()));
  return Status::Ok();
}

uint16_t HttpServer::port() const { return body_->listener.port(); }
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
  body.pool.at(0).Post([&body] { body.listener.Close(); });
  Instant deadline = SystemClock().Now() + grace;
  for (size_t i = 0; i < body.pool.size(); ++i) {
    body.pool.at(i).Post([&body, i, deadline] { body.connections_of[i]->Drain(deadline); });
  }
  body.gate.Close();
  body.running = false;
}

}  // namespace orrery::net
