// HttpStream: one connected socket, plain or TLS, with reads and writes that never wait.
//
// What cannot go on says what to wait for; Wait() does, through the worker's event loop. A
// plain read that emptied the socket is remembered, so that the next one asks for a wait without a
// system call. One task may wait to read while another waits to write.
//
// Lives on one worker, not thread-safe; it may be made and destroyed elsewhere.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "net/tls.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::net {

class HttpStream {
 public:
  // Owns `socket`, which must not block. `tls` may be null: plain.
  HttpStream(runtime::Worker& worker, int socket, std::shared_ptr<const TlsContext> tls);
  // Goes on at another worker with what `other` was, which is of no more use. On the worker of
  // `other`. REQUIRES: nobody waits there.
  HttpStream(runtime::Worker& worker, HttpStream&& other);
  ~HttpStream();
  HttpStream(const HttpStream&) = delete;

  // Joins the event loop, if it has not; false if it cannot. Before anything else, on the worker.
  bool Open();
  bool secure() const { return tls_context_ != nullptr; }

  Step Handshake();
  Step Read(char* to, size_t size);
  // Sends of `first`, then of `second`; `bytes` counts both.
  Step Write(std::string_view first, std::string_view second);
  // Returns when the socket is ready for what `next` names, or is broken: the next step tells.
  // REQUIRES: `next` is one of the two waits.
  runtime::Task<> Wait(Next next);

  // Says that nothing more will be sent.
  void FinishSending();
  // Ends every step and wait at once; with `discard`, what was not yet sent is thrown away.
  void Abort(bool discard);
  // Why TLS ended the stream; empty if it did not.
  std::string failure() const { return tls_ != nullptr ? tls_->failure() : std::string(); }

 private:
  Step ReadPlain(char* to, size_t size);
  Step WritePlain(std::string_view first, std::string_view second);

  int socket_;  // -1: another one has it
  runtime::Poller& poller_;
  runtime::Poller::Place place_ = 0;  // after Open()
  const std::shared_ptr<const TlsContext> tls_context_;
  std::unique_ptr<TlsSession> tls_;  // after Open(), if secure
  bool drained_ = false;
  bool aborted_ = false;
};

}  // namespace orrery::net
