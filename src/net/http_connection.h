// HttpConnection: one client, served by one coroutine. HttpConnections: all of one worker.
//
// The path of a request: wait until the socket is readable, take an Exchange (the buffers of a
// request and its reply) from the worker's spare ones, one recv, parse, call the handler in place,
// append the reply, and when no further complete request is in the buffer one send. An idle
// connection holds no Exchange, so its cost is the socket and the coroutine.
//
// No timers: each connection writes down until when it may wait, and a tick of the worker (every
// 250 ms, or finer if a timeout is short) drops those that are late. A deadline is never early and
// at most two ticks late.
//
// All of it lives on the worker, except what says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "base/time.h"
#include "net/http_server.h"
#include "net/http_stream.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

struct HttpExchange;
class HttpConnection;

class HttpConnections {
 public:
  HttpConnections(runtime::Worker& worker, const HttpOptions& options, const HttpHandler& handler);
  ~HttpConnections();  // REQUIRES: drained, with all passes gone
  HttpConnections(const HttpConnections&) = delete;

  // Serves a client from now on; owns the socket. Thread-safe.
  void Accept(int socket, bool loopback, std::shared_ptr<const TlsContext> tls,
              runtime::Gate::Pass pass);
  // How many there are. Thread-safe.
  size_t size() const { return size_.load(std::memory_order_relaxed); }

  // Drops late connections, until Drain() and then the last connection's end.
  runtime::Task<> Tick(runtime::Gate::Pass pass);
  // Closes all that answer nothing now; the others get until `deadline` to finish their reply.
  void Drain(Instant deadline);

 private:
  friend class HttpConnection;

  void Join(HttpConnection& connection);
  void Leave(HttpConnection& connection);
  std::unique_ptr<HttpExchange> TakeExchange();
  void GiveBack(std::unique_ptr<HttpExchange> exchange);
  // A moment that is at least `wait` away.
  Instant After(Duration wait) const { return now_ + wait + tick_; }

  runtime::Worker& worker_;
  const HttpOptions& options_;
  const HttpHandler& handler_;
  const Duration tick_;
  Instant now_;  // as of the last tick
  boost::asio::steady_timer timer_;
  HttpConnection* first_ = nullptr;
  std::vector<std::unique_ptr<HttpExchange>> spare_;
  bool draining_ = false;
  Instant drain_deadline_;

  std::atomic<size_t> size_ = 0;  // any thread
};

class HttpConnection {
 public:
  HttpConnection(HttpConnections& all, int socket, bool loopback,
                 std::shared_ptr<const TlsContext> tls, runtime::Gate::Pass pass);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;

  // Serves the client to the end.
  static runtime::Task<> Serve(std::unique_ptr<HttpConnection> self);

 private:
  friend class HttpConnections;

  // What the connection does; decides what its deadline means and what Drain() does to it.
  enum class Phase : uint8_t { kHandshake, kIdle, kReading, kAnswering, kWriting, kLingering };

  // The life of the connection, and its request loop: the hot path.
  runtime::Task<> Run();
  runtime::Task<bool> Handshake();
  // Gets bytes into the buffer, if there are any now.
  Step Receive();
  // Writes down what the connection waits for; an idle one gives its buffers back.
  void BeforeWaitForRequest();
  // Whether a complete request is there. If the bytes are no request, queues the error's reply.
  bool NextRequest();
  void Refuse(int status, std::string_view code, std::string_view message);
  // Makes the reply to a request whose handler threw.
  void Fail(std::exception_ptr failure);
  void AppendReply();

  // Sends what is queued. Flushed() tries without waiting: false if something is left.
  bool Flushed();
  runtime::Task<> Flush();
  // Reads and forgets what the client still sends, so that a reset does not overtake the last
  // reply.
  runtime::Task<> Linger();
  // The connection may wait this long, and while draining no longer than all may.
  void SetDeadline(Duration wait);
  // Ends the connection from outside its coroutine.
  void Drop();

  runtime::Gate::Pass pass_;  // first: everything else is gone before Stop() goes on
  HttpConnections& all_;
  HttpConnection* next_ = nullptr;
  HttpConnection* previous_ = nullptr;
  Instant deadline_ = Instant::max();
  HttpStream stream_;
  std::unique_ptr<HttpExchange> exchange_;
  Phase phase_ = Phase::kHandshake;
  Next blocked_on_ = Next::kGoOn;  // what the last write waits for
  const bool loopback_;
  bool joined_ = false;
  bool closing_ = false;    // no request after this one
  bool linger_ = false;     // the client may still be sending
  bool continued_ = false;  // 100 Continue was said for this request
  bool broken_ = false;     // nothing can be read or written any more
  uint8_t burst_ = 0;       // requests since the coroutine last waited
};

}  // namespace orrery::net
