// ClusterTls: how the nodes of a cluster know each other: TLS 1.3, with certificates on both sides.
//
// From a secret: every node derives from it the same key of a certificate authority (HKDF-SHA256,
// P-256), and signs itself a certificate that lives for days and is made anew in time. Who does not
// have the secret can neither make such a certificate nor accept one. The secret should be random:
// one that can be guessed can be tried against any node's certificate.
//
// From files: an authority's certificates, and a certificate and a key of this node, good for
// clients and servers. The authority should sign nothing but the nodes of this cluster: host names
// are not compared.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "net/tls.h"

namespace orrery::net {

inline constexpr size_t kClusterSecretBytesMin = 16;

class ClusterTls {
 public:
  // `clock` gives the validity of our own certificates; others' are compared with the system's.
  static Result<std::shared_ptr<ClusterTls>> FromSecret(std::string_view secret,
                                                        const Clock& clock = kSystemClock);
  // The secret is the file's text without the white space at its ends.
  static Result<std::shared_ptr<ClusterTls>> FromSecretFile(const std::string& file);
  static Result<std::shared_ptr<ClusterTls>> FromFiles(const std::string& authority_file,
                                                       const std::string& certificate_file,
                                                       const std::string& key_file);
  ~ClusterTls();
  ClusterTls(const ClusterTls&) = delete;

  // For a new connection.
  std::shared_ptr<const TlsContext> server() { return Contexts().server; }
  std::shared_ptr<const TlsContext> client() { return Contexts().client; }
  // Reads the files again, or makes a new certificate; for new connections. On failure all stays.
  Status Reload();

 private:
  struct Source;
  struct Pair {
    std::shared_ptr<const TlsContext> server;
    std::shared_ptr<const TlsContext> client;
  };
  static inline const SystemClock kSystemClock;

  explicit ClusterTls(std::unique_ptr<Source> source);
  static Result<std::shared_ptr<ClusterTls>> Open(std::unique_ptr<Source> source);
  Result<Pair> MakePair() const;
  Pair Contexts();

  const std::unique_ptr<Source> source_;
  std::mutex mutex_;
  Pair pair_;
  Instant made_;
};

}  // namespace orrery::net
