// HttpServer: HTTP/1.1 on one address, plain or TLS, served by all workers.
//
// Keep-alive, pipelining (answered in order, replies of one burst sent together), chunked request
// bodies, `Expect: 100-continue`. Sizes are checked before memory is taken: a head over
// `head_bytes_max` gets 431, a body over `body_bytes_max` 413, a malformed request 400, each with a
// JSON body, and the connection closes. A client that is slower than `request_timeout` from the
// first byte of a request to its end, that does not take its reply within `write_timeout`, or that
// is idle longer than `idle_timeout`, is dropped. Connections beyond `connections_max` are closed
// at once. An idle connection keeps no read buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

// Views into the connection's buffer; valid until the handler returns.
struct HttpRequest {
  std::string_view method;
  std::string_view target;  // as sent, with the query part
  std::string_view body;
  struct Header {
    std::string_view name;  // lower case
    std::string_view value;
  };
  std::vector<Header> headers;
  bool secure = false;
  bool loopback = false;  // the peer is on this machine

  // The first header with this (lower-case) name; empty if there is none.
  std::string_view Get(std::string_view name) const;
};

// Filled by the handler. The server adds the status line, content-length and connection.
struct HttpReply {
  int status = 200;
  std::string headers;  // complete lines, each ended by \r\n
  std::string body;
  bool close = false;

  void Add(std::string_view name, std::string_view value);
  void Clear();
};

// Runs on the worker of the connection.
using HttpHandler = std::function<runtime::Task<>(const HttpRequest&, HttpReply&)>;

struct HttpOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any free one
  size_t head_bytes_max = 16 << 10;
  size_t body_bytes_max = 4 << 20;
  size_t connections_max = 20'000;
  Duration request_timeout = std::chrono::seconds(30);
  Duration write_timeout = std::chrono::seconds(30);
  Duration idle_timeout = std::chrono::minutes(10);
  // Both empty: plain HTTP. PEM files; ReloadCertificate() reads them again.
  std::string certificate_file;
  std::string key_file;
};

class HttpServer {
 public:
  HttpServer(runtime::WorkerPool& workers, HttpOptions options, HttpHandler handler);
  ~HttpServer();  // REQUIRES: never started, or stopped

  // Binds and listens; kUnavailable says why it cannot.
  Status Start();
  uint16_t port() const;  // the one that was bound
  size_t connections() const;
  // New connections use the new certificate; on an error the old one stays.
  Status ReloadCertificate();
  // Stops listening, lets requests that run finish within `grace`, then closes everything. Blocks.
  // REQUIRES: not on a worker.
  void Stop(Duration grace);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

// Makes a self-signed certificate for localhost, 127.0.0.1, ::1 and `names` (valid for ten years)
// and its key, as PEM files; the key readable only by the owner.
Status MakeSelfSignedCertificate(const std::string& certificate_file, const std::string& key_file,
                                 const std::vector<std::string>& names);

// SHA-256.
std::string Sha256(std::string_view message);
// HMAC-SHA256, and a comparison whose time does not depend on where the inputs differ.
std::string HmacSha256(std::string_view key, std::string_view message);
bool EqualInConstantTime(std::string_view a, std::string_view b);

}  // namespace orrery::net
