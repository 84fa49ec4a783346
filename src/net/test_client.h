// What the tests of net/ share: a running server, and a client with a blocking socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "net/http_server.h"
#include "runtime/worker.h"

struct ssl_st;

namespace orrery::net {

struct ClientReply {
  int status = 0;  // 0: the connection ended before a reply
  std::map<std::string, std::string> headers;
  std::string body;
};

class TestClient {
 public:
  explicit TestClient(uint16_t port);
  ~TestClient();
  TestClient(const TestClient&) = delete;

  // Trusts only the certificate of that file, for `name`; false if the handshake fails.
  bool StartTls(const std::string& certificate_file, const std::string& name);

  void Send(std::string_view bytes);
  // Waits for one reply. One to HEAD, and one without content-length, has no body.
  ClientReply Receive(bool head_request = false);
  // Waits for exactly these many bytes; fewer at the end of the connection.
  std::string ReceiveBytes(size_t count);
  // Whether the server ends the connection, with no bytes before it.
  bool IsClosed();
  ClientReply Get(const std::string& target);
  void SetReceiveBuffer(int bytes);

 private:
  bool Fill();
  int socket_;
  ssl_st* tls_ = nullptr;
  std::string pending_;
};

// Pool and server; stops both at its end.
class RunningServer {
 public:
  RunningServer(HttpOptions options, HttpHandler handler, size_t workers = 1);
  ~RunningServer();

  HttpServer& operator*() { return server_; }
  HttpServer* operator->() { return &server_; }
  uint16_t port() const { return server_.port(); }
  void Stop(Duration grace);

 private:
  runtime::WorkerPool pool_;
  HttpServer server_;
};

// Replies with method, target and body of the request.
runtime::Task<> Echo(const HttpRequest& request, HttpReply& reply);

// Waits for a condition; false if it does not come within ten seconds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace orrery::net
