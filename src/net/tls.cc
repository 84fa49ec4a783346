#include "net/tls.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include "base/check.h"

namespace orrery::net {

namespace {

int SocketOf(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

bool TryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a reset connection would raise SIGPIPE.
int WriteSocket(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t sent = ::send(SocketOf(bio), from, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && TryAgain()) {
    BIO_set_retry_write(bio);
  }
  return static_cast<int>(sent);
}

int ReadSocket(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t got = ::recv(SocketOf(bio), to, static_cast<size_t>(size), 0);
  if (got < 0 && TryAgain()) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  ORRERY_CHECK(method != nullptr);
  BIO_meth_set_write(method, WriteSocket);
  BIO_meth_set_read(method, ReadSocket);
  BIO_meth_set_ctrl(method, Control);
  return method;
}

const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = MakeSocketMethod();
  return method;
}

// Clients that prefer HTTP/2 are told that we speak HTTP/1.1.
int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* in, unsigned in_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  int found = SSL_select_next_proto(&chosen, out_size, kOurs, sizeof(kOurs) - 1, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

std::string LastError() {
  unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason != nullptr ? reason : "unknown error";
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Make(TlsRole role) {
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(role == TlsRole::kServer ? TLS_server_method() : TLS_client_method());
  if (raw == nullptr) {
    return Error(Code::kInternal, "cannot make a TLS context: " + LastError());
  }
  auto context = std::make_shared<const TlsContext>(raw, role);
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(
      raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(raw, 1);  // one recv for a record's head and body
  // Sessions are resumed by tickets alone: no cache to bound.
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  return context;
}

Result<std::shared_ptr<const TlsContext>> TlsContext::Load(const std::string& certificate_file,
                                                           const std::string& key_file) {
  ORRERY_TRY(std::shared_ptr<const TlsContext> context, Make(TlsRole::kServer));
  SSL_CTX* raw = context->get();
  SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(raw, certificate_file.c_str()) != 1) {
    return Error(Code::kUnavailable,
                 "cannot use certificate " + certificate_file + ": " + LastError());
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return Error(Code::kUnavailable, "cannot use key " + key_file + ": " + LastError());
  }
  return context;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

TlsSession::TlsSession(const TlsContext& context, int socket) : session_(SSL_new(context.get())) {
  BIO* bio = BIO_new(SocketMethod());
  ORRERY_CHECK(session_ != nullptr && bio != nullptr);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(session_, bio, bio);
  if (context.role() == TlsRole::kServer) {
    SSL_set_accept_state(session_);
  } else {
    SSL_set_connect_state(session_);
  }
}

TlsSession::~TlsSession() { SSL_free(session_); }

Step TlsSession::Handshake() {
  ERR_clear_error();
  return StepOf(SSL_do_handshake(session_));
}

Step TlsSession::Read(char* to, size_t size) {
  ERR_clear_error();
  size_t bytes = 0;
  int result = SSL_read_ex(session_, to, size, &bytes);
  return result == 1 ? Step{bytes, Next::kGoOn} : StepOf(result);
}

Step TlsSession::Write(std::string_view from) {
  ERR_clear_error();
  size_t bytes = 0;
  int result = SSL_write_ex(session_, from.data(), from.size(), &bytes);
  return result == 1 ? Step{bytes, Next::kGoOn} : StepOf(result);
}

void TlsSession::Shutdown() {
  // After a fatal error OpenSSL must not be called again.
  if (!broken_ && SSL_is_init_finished(session_)) {
    ERR_clear_error();
    SSL_shutdown(session_);
  }
}

std::string TlsSession::failure() const {
  long verified = SSL_get_verify_result(session_);
  if (verified != X509_V_OK) {
    return X509_verify_cert_error_string(verified);
  }
  const char* reason = error_ != 0 ? ERR_reason_error_string(error_) : nullptr;
  return reason != nullptr ? reason : "";
}

Step TlsSession::StepOf(int result) {
  if (result == 1) {
    return {};
  }
  switch (SSL_get_error(session_, result)) {
    case SSL_ERROR_WANT_READ: return {0, Next::kAwaitReadable};
    case SSL_ERROR_WANT_WRITE: return {0, Next::kAwaitWritable};
    case SSL_ERROR_ZERO_RETURN: return {0, Next::kClosed};
    default:
      broken_ = true;
      error_ = ERR_peek_error();
      ERR_clear_error();
      return {0, Next::kClosed};
  }
}

}  // namespace orrery::net
