// TlsContext: a certificate with its key, and what we accept of the other side. TlsSession: one
// connection's TLS.
//
// A session never waits: each step says how far it came, or which readiness of the socket to wait
// for. It reads and writes the socket itself, so nothing is copied between buffers of ours, and
// OpenSSL lets go of its own buffers while a connection is idle.
//
// A context is immutable and may be shared by threads; a session belongs to one worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace orrery::net {

enum class Next : uint8_t { kGoOn, kAwaitReadable, kAwaitWritable, kClosed };

// How far a read, a write or a handshake came. `bytes` is above zero only with kGoOn.
struct Step {
  size_t bytes = 0;
  Next next = Next::kGoOn;
};

enum class TlsRole : uint8_t { kServer, kClient };

class TlsContext {
 public:
  // Of an HTTP server.
  static Result<std::shared_ptr<const TlsContext>> Load(const std::string& certificate_file,
                                                        const std::string& key_file);
  // With what all contexts here have in common, and no certificate yet.
  static Result<std::shared_ptr<const TlsContext>> Make(TlsRole role);
  TlsContext(ssl_ctx_st* context, TlsRole role) : context_(context), role_(role) {}
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;

  ssl_ctx_st* get() const { return context_; }
  TlsRole role() const { return role_; }

 private:
  ssl_ctx_st* const context_;
  const TlsRole role_;
};

class TlsSession {
 public:
  // REQUIRES: `socket` does not block and outlives the session.
  TlsSession(const TlsContext& context, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;

  Step Handshake();
  Step Read(char* to, size_t size);
  Step Write(std::string_view from);
  // Says goodbye, if the socket takes it at once.
  void Shutdown();
  // Why a step ended with kClosed; empty if the other side just went.
  std::string failure() const;

 private:
  Step StepOf(int result);
  ssl_st* session_;
  bool broken_ = false;
  unsigned long error_ = 0;
};

}  // namespace orrery::net
