// Connection: one client of the native protocol. Connections: all of one worker.
//
// A reading coroutine takes bytes from the socket, has the Protocol make requests of them and
// starts a task for each. What a task answers is put into the Protocol's output. Output goes to the
// socket when the reader has started all that was there, or, for answers that come later, in the
// next turn of the loop; what the socket does not take at once a writing coroutine sends when it
// can. The object lives until reader, writer and all tasks have ended.
//
// No timers: each connection writes down until when it may wait, and a tick of the worker drops
// those that are late.
//
// All of it lives on the worker, except what says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "api/cassandra/protocol.h"
#include "api/cassandra/server.h"
#include "base/time.h"
#include "net/http_stream.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

class Connection;

class Connections {
 public:
  Connections(runtime::Worker& worker, const ServerOptions& options, Handler& handler);
  ~Connections();  // REQUIRES: drained, with all passes gone
  Connections(const Connections&) = delete;

  // Serves a client from now on; owns the socket. Thread-safe.
  void Accept(int socket, bool loopback, std::shared_ptr<const net::TlsContext> tls,
              runtime::Gate::Pass pass);
  // How many there are. Thread-safe.
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Drops late connections, until Drain() and then the last connection's end.
  runtime::Task<> Tick(runtime::Gate::Pass pass);
  // Closes all that answer nothing now; the others get until `deadline` to finish.
  void Drain(Instant deadline);
  void Publish(EventKind kind, const std::function<Response(int version)>& event);

 private:
  friend class Connection;
  Instant After(Duration wait) const { return now_ + wait + tick_; }

  runtime::Worker& worker_;
  const ServerOptions& options_;
  Handler& handler_;
  const Duration tick_;
  Instant now_;  // as of the last tick
  boost::asio::steady_timer timer_;
  Connection* first_ = nullptr;
  bool draining_ = false;
  Instant drain_deadline_;

  std::atomic<size_t> size_ = 0;  // any thread
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Connections& all, int socket, bool loopback,
             std::shared_ptr<const net::TlsContext> tls, runtime::Gate::Pass pass);
  ~Connection();
  Connection(const Connection&) = delete;

  // Serves the client until it goes.
  static runtime::Task<> Serve(std::shared_ptr<Connection> self);

 private:
  friend class Connections;

  runtime::Task<> Run();
  runtime::Task<bool> Handshake();
  // Whether another request may run.
  bool HasRoom() const;
  // Starts the requests that are in the buffers; false if some are left, as there is no room or
  // others are to have their turn.
  bool StartRequests();
  // Starts those that are left, when they may; false once the connection is to end.
  runtime::Task<bool> StartRest();
  void Start(Request request);
  static runtime::Task<> Answer(std::shared_ptr<Connection> self, Request request);
  void Finished(size_t bytes);
  void Register(const RegisterRequest& request);
  // What the connection now waits for, and how long it may.
  void SetDeadline();

  // Sends, or sees to it that it is sent.
  void Flush();
  void FlushSoon();
  static runtime::Task<> WriteRest(std::shared_ptr<Connection> self);
  // False if something is left; then blocked_on_ says what to wait for.
  bool Written();
  size_t unsent() const { return sending_.size() - sent_ + protocol_.output_bytes(); }
  // Reads and forgets what the client still sends, so that a reset does not overtake the last
  // answer.
  runtime::Task<> Linger();
  // Ends the connection if it was drained and nothing runs any more.
  void EndIfDrained();
  void Drop();
  void Wake();

  runtime::Gate::Pass pass_;  // first: everything else is gone before Stop() goes on
  Connections& all_;
  Connection* next_ = nullptr;
  Connection* previous_ = nullptr;
  Instant deadline_ = Instant::max();
  net::HttpStream stream_;
  Protocol protocol_;
  Client client_;
  uint8_t events_ = 0;  // one bit for each kind that the client wants

  size_t requests_ = 0;  // that run, and their bytes
  size_t request_bytes_ = 0;
  std::string sending_;  // what the socket is taking now
  size_t sent_ = 0;      // of it
  net::Next blocked_on_ = net::Next::kGoOn;
  std::function<void(bool)> wake_;  // of the reader, while it waits for room

  bool joined_ = false;
  bool open_ = false;      // any handshake is done
  bool reading_ = false;   // a part of a request is there; deadline_ counts from its first bytes
  bool starting_ = false;  // requests are being started: their answers are flushed after that
  bool flush_posted_ = false;
  bool writing_ = false;  // the writing coroutine runs
  bool broken_ = false;   // nothing can be read or written any more
  uint8_t burst_ = 0;     // requests since the reader last waited
  uint8_t quiet_ = 0;     // ticks since the reader began to wait for a request; 0: it does not
  Instant write_deadline_ = Instant::max();
  const Instant startup_deadline_;
};

}  // namespace orrery::cassandra
