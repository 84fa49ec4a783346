// CassandraServer: the native protocol on one address, plain or TLS, served by all workers.
//
// Requests of a connection run side by side, each as a task of the handler, and are answered as
// they finish. At `requests_max` requests or `request_bytes_max` bytes of them, or while the client
// does not take what is to be sent (`output_bytes_max`), nothing more is read from that client.
// Answers that are ready in the same turn of the event loop go out in one write. A client that is
// not ready within `startup_timeout`, that does not take its answers within `write_timeout`, that
// stops in the middle of a request for `request_timeout`, or that is idle longer than
// `idle_timeout`, is dropped. Connections beyond `connections_max` are closed at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/cassandra/protocol.h"
#include "api/cassandra/requests.h"
#include "api/cassandra/responses.h"
#include "base/status.h"
#include "base/time.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

struct RoleAccess;

// What a handler knows and keeps of one connection. Lives on its worker, as long as any request of
// it runs.
struct Client {
  int version = kVersionMax;
  bool secure = false;
  bool loopback = false;  // the peer is on this machine
  std::string address;    // of the peer, 4 or 16 bytes
  std::string keyspace;   // of USE
  std::string user;       // once authenticated
  // What a client may do that is a role. Null: everything.
  std::shared_ptr<const RoleAccess> access;
};

class Handler {
 public:
  virtual ~Handler() = default;
  // Answers a request; runs on the worker of the connection, many at once. STARTUP is to be
  // answered by READY or AUTHENTICATE, AUTH_RESPONSE by AUTH_SUCCESS, each or by an error. OPTIONS
  // and REGISTER do not come here.
  virtual runtime::Task<Response> Handle(Client& client, Request request) = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 9042;  // 0: any free one
  ProtocolOptions protocol;
  size_t connections_max = 20'000;
  size_t requests_max = 1024;
  size_t request_bytes_max = 64 << 20;
  size_t output_bytes_max = 8 << 20;
  Duration startup_timeout = std::chrono::seconds(30);
  Duration request_timeout = std::chrono::seconds(30);
  Duration write_timeout = std::chrono::seconds(30);
  // Drivers keep connections for hours and look after them themselves.
  Duration idle_timeout = std::chrono::hours(24);
  // Both empty: plain. PEM files; ReloadCertificate() reads them again.
  std::string certificate_file;
  std::string key_file;
};

enum class EventKind : uint8_t { kTopology, kStatus, kSchema };

class CassandraServer {
 public:
  // REQUIRES: the handler outlives the server.
  CassandraServer(runtime::WorkerPool& workers, ServerOptions options, Handler& handler);
  ~CassandraServer();  // REQUIRES: never started, or stopped

  // Binds and listens; kUnavailable says why it cannot.
  Status Start();
  uint16_t port() const;  // the one that was bound
  // Listens at another address instead, on the same port; connections stay. On an error it listens
  // where it did. REQUIRES: on worker 0, after Start().
  Status MoveTo(std::string address);
  size_t connections() const;
  // New connections use the new certificate; on an error the old one stays.
  Status ReloadCertificate();
  // Sends an event to all connections that registered for its kind, in their versions. Thread-safe.
  void Publish(EventKind kind, std::function<Response(int version)> event);
  // Stops listening, lets requests that run finish within `grace`, then closes everything. Blocks.
  // REQUIRES: not on a worker.
  void Stop(Duration grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::cassandra
