#include "net/cluster_tls.h"

#include <cctype>
#include <fstream>
#include <iterator>
#include <utility>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/log.h"
#include "base/random.h"

namespace orrery::net {

namespace {

constexpr long kDaySeconds = 24L * 3600;
constexpr long kSkewSeconds = kDaySeconds;  // between the clocks of two nodes
constexpr long kNodeSeconds = 7 * kDaySeconds;
constexpr Duration kRenewAfter = std::chrono::hours(24);
constexpr long kAuthoritySeconds = 100L * 365 * kDaySeconds;
constexpr size_t kSecretFileBytesMax = 4096;
constexpr const char* kAuthorityName = "orrery cluster";
constexpr const char* kNodeName = "node";

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Number = std::unique_ptr<BIGNUM, Freer<BN_clear_free>>;

std::unexpected<Status> Failed(Code code, const std::string& what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return Error(code, "cannot " + what + ": " + (reason != nullptr ? reason : "unknown error"));
}

// Bytes that are the same wherever the secret is.
bool Derive(std::string_view secret, unsigned char* out, size_t size) {
  std::unique_ptr<EVP_KDF, Freer<EVP_KDF_free>> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  std::unique_ptr<EVP_KDF_CTX, Freer<EVP_KDF_CTX_free>> context(EVP_KDF_CTX_new(kdf.get()));
  char digest[] = "SHA256";
  char salt[] = "orrery cluster, version 1";
  char info[] = "key of the certificate authority";
  OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<char*>(secret.data()),
                                        secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt, sizeof(salt) - 1),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, sizeof(info) - 1),
      OSSL_PARAM_construct_end()};
  return context != nullptr && EVP_KDF_derive(context.get(), out, size, params) == 1;
}

// The key pair whose private number is `number`, 1 .. order - 1.
Key KeyOf(const EC_GROUP* group, const BIGNUM* number) {
  std::unique_ptr<EC_POINT, Freer<EC_POINT_free>> point(EC_POINT_new(group));
  unsigned char public_bytes[65];
  if (point == nullptr ||
      EC_POINT_mul(group, point.get(), number, nullptr, nullptr, nullptr) != 1 ||
      EC_POINT_point2oct(group, point.get(), POINT_CONVERSION_UNCOMPRESSED, public_bytes,
                         sizeof(public_bytes), nullptr) != sizeof(public_bytes)) {
    return nullptr;
  }
  std::unique_ptr<OSSL_PARAM_BLD, Freer<OSSL_PARAM_BLD_free>> builder(OSSL_PARAM_BLD_new());
  if (builder == nullptr ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_PRIV_KEY, number) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, public_bytes,
                                       sizeof(public_bytes)) != 1) {
    return nullptr;
  }
  std::unique_ptr<OSSL_PARAM, Freer<OSSL_PARAM_free>> params(
      OSSL_PARAM_BLD_to_param(builder.get()));
  std::unique_ptr<EVP_PKEY_CTX, Freer<EVP_PKEY_CTX_free>> context(
      EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr));
  EVP_PKEY* key = nullptr;
  if (params == nullptr || context == nullptr || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, params.get()) != 1) {
    return nullptr;
  }
  return Key(key);
}

Key AuthorityKey(std::string_view secret) {
  unsigned char bytes[48];  // more than the order has, so that no remainder is likelier
  bool derived = Derive(secret, bytes, sizeof(bytes));
  Number number(derived ? BN_secure_new() : nullptr);
  bool read = number != nullptr && BN_bin2bn(bytes, sizeof(bytes), number.get()) != nullptr;
  OPENSSL_cleanse(bytes, sizeof(bytes));
  std::unique_ptr<EC_GROUP, Freer<EC_GROUP_free>> group(
      EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
  std::unique_ptr<BN_CTX, Freer<BN_CTX_free>> scratch(BN_CTX_secure_new());
  if (!read || group == nullptr || scratch == nullptr) {
    return nullptr;
  }
  Number below(BN_dup(EC_GROUP_get0_order(group.get())));
  if (below == nullptr || BN_sub_word(below.get(), 1) != 1 ||
      BN_mod(number.get(), number.get(), below.get(), scratch.get()) != 1 ||
      BN_add_word(number.get(), 1) != 1) {
    return nullptr;
  }
  BN_set_flags(number.get(), BN_FLG_CONSTTIME);
  return KeyOf(group.get(), number.get());
}

bool SetName(X509_NAME* name, const char* text) {
  return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>(text), -1, -1, 0) == 1;
}

bool AddExtension(X509* certificate, X509* issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

// A certificate with all but its extensions and its signature.
Certificate Begin(EVP_PKEY* key, const char* subject, time_t from, time_t to) {
  Certificate certificate(X509_new());
  uint8_t serial[8];
  SecretBytes(serial);
  serial[0] &= 0x7f;  // positive
  Number number(BN_bin2bn(serial, sizeof(serial), nullptr));
  if (certificate == nullptr || number == nullptr ||
      X509_set_version(certificate.get(), X509_VERSION_3) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate.get())) == nullptr ||
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), from) == nullptr ||
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), to) == nullptr ||
      X509_set_pubkey(certificate.get(), key) != 1 ||
      !SetName(X509_get_subject_name(certificate.get()), subject)) {
    return nullptr;
  }
  return certificate;
}

// Each node makes its own; they differ in nothing that counts when a signature is checked.
Certificate AuthorityCertificate(EVP_PKEY* key) {
  Certificate made = Begin(key, kAuthorityName, 0, kAuthoritySeconds);
  bool done =
      made != nullptr && X509_set_issuer_name(made.get(), X509_get_subject_name(made.get())) == 1 &&
      AddExtension(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      AddExtension(made.get(), made.get(), NID_key_usage, "critical,keyCertSign") &&
      AddExtension(made.get(), made.get(), NID_subject_key_identifier, "hash") &&
      X509_sign(made.get(), key, EVP_sha256()) > 0;
  return done ? std::move(made) : nullptr;
}

Certificate NodeCertificate(EVP_PKEY* key, X509* authority, EVP_PKEY* authority_key, time_t now) {
  Certificate made = Begin(key, kNodeName, now - kSkewSeconds, now + kNodeSeconds + kSkewSeconds);
  bool done = made != nullptr &&
              X509_set_issuer_name(made.get(), X509_get_subject_name(authority)) == 1 &&
              AddExtension(made.get(), authority, NID_basic_constraints, "critical,CA:FALSE") &&
              AddExtension(made.get(), authority, NID_key_usage, "critical,digitalSignature") &&
              AddExtension(made.get(), authority, NID_ext_key_usage, "serverAuth,clientAuth") &&
              AddExtension(made.get(), authority, NID_authority_key_identifier, "keyid") &&
              X509_sign(made.get(), authority_key, EVP_sha256()) > 0;
  return done ? std::move(made) : nullptr;
}

// A context that wants a certificate of the other side, in both roles.
Result<std::shared_ptr<const TlsContext>> MakeContext(TlsRole role) {
  ORRERY_TRY(std::shared_ptr<const TlsContext> context, TlsContext::Make(role));
  SSL_CTX* raw = context->get();
  SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  // The shortest key first: half the price of the default's.
  SSL_CTX_set_ciphersuites(raw,
                           "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                           "TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_num_tickets(raw, 0);  // each connection shows its certificate
  return context;
}

}  // namespace

struct ClusterTls::Source {
  // Of a secret.
  Key authority_key;
  Certificate authority;
  const Clock* clock = &kSystemClock;
  // Of files.
  std::string authority_file;
  std::string certificate_file;
  std::string key_file;

  Status Equip(SSL_CTX* context, X509* certificate, EVP_PKEY* key) const {
    ERR_clear_error();
    SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);  // the others have the authority's own
    if (X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get()) != 1 ||
        SSL_CTX_use_certificate(context, certificate) != 1 ||
        SSL_CTX_use_PrivateKey(context, key) != 1) {
      return Failed(Code::kInternal, "use the cluster's certificate").error();
    }
    return Status::Ok();
  }

  Status EquipFromFiles(SSL_CTX* context) const {
    ERR_clear_error();
    if (SSL_CTX_load_verify_file(context, authority_file.c_str()) != 1) {
      return Failed(Code::kUnavailable, "use authority " + authority_file).error();
    }
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1) {
      return Failed(Code::kUnavailable, "use certificate " + certificate_file).error();
    }
    if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(context) != 1) {
      return Failed(Code::kUnavailable, "use key " + key_file).error();
    }
    return Status::Ok();
  }
};

ClusterTls::ClusterTls(std::unique_ptr<Source> source) : source_(std::move(source)) {}
ClusterTls::~ClusterTls() = default;

Result<std::shared_ptr<ClusterTls>> ClusterTls::Open(std::unique_ptr<Source> source) {
  std::shared_ptr<ClusterTls> opened(new ClusterTls(std::move(source)));
  ORRERY_TRY_STATUS(opened->Reload());
  return opened;
}

Result<std::shared_ptr<ClusterTls>> ClusterTls::FromSecret(std::string_view secret,
                                                           const Clock& clock) {
  if (secret.size() < kClusterSecretBytesMin) {
    return Error(Code::kInvalidArgument, "the secret of a cluster has at least " +
                                             std::to_string(kClusterSecretBytesMin) +
                                             " characters");
  }
  ERR_clear_error();
  auto source = std::make_unique<Source>();
  source->clock = &clock;
  source->authority_key = AuthorityKey(secret);
  if (source->authority_key != nullptr) {
    source->authority = AuthorityCertificate(source->authority_key.get());
  }
  if (source->authority == nullptr) {
    return Failed(Code::kInternal, "make a certificate authority of the cluster's secret");
  }
  return Open(std::move(source));
}

Result<std::shared_ptr<ClusterTls>> ClusterTls::FromSecretFile(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string secret(kSecretFileBytesMax + 1, '\0');
  in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<size_t>(in.gcount()));
  if (in.bad() || secret.empty() || secret.size() > kSecretFileBytesMax) {
    return Error(Code::kUnavailable, "cannot read a secret from " + file);
  }
  auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!secret.empty() && is_space(static_cast<unsigned char>(secret.back()))) {
    secret.pop_back();
  }
  std::string_view text = secret;
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  auto opened = FromSecret(text);
  OPENSSL_cleanse(secret.data(), secret.size());
  return opened;
}

Result<std::shared_ptr<ClusterTls>> ClusterTls::FromFiles(const std::string& authority_file,
                                                          const std::string& certificate_file,
                                                          const std::string& key_file) {
  auto source = std::make_unique<Source>();
  source->authority_file = authority_file;
  source->certificate_file = certificate_file;
  source->key_file = key_file;
  return Open(std::move(source));
}

Result<ClusterTls::Pair> ClusterTls::MakePair() const {
  Pair pair;
  ORRERY_TRY(pair.server, MakeContext(TlsRole::kServer));
  ORRERY_TRY(pair.client, MakeContext(TlsRole::kClient));
  Key key;
  Certificate certificate;
  if (source_->authority != nullptr) {
    ERR_clear_error();
    key.reset(EVP_EC_gen("P-256"));
    time_t now = source_->clock->Wall().seconds();
    if (key != nullptr) {
      certificate =
          NodeCertificate(key.get(), source_->authority.get(), source_->authority_key.get(), now);
    }
    if (certificate == nullptr) {
      return Failed(Code::kInternal, "make a certificate for this node");
    }
  }
  for (const auto& context : {pair.server, pair.client}) {
    ORRERY_TRY_STATUS(certificate != nullptr
                          ? source_->Equip(context->get(), certificate.get(), key.get())
                          : source_->EquipFromFiles(context->get()));
  }
  return pair;
}

Status ClusterTls::Reload() {
  Result<Pair> made = MakePair();
  if (!made) {
    return made.error();
  }
  std::lock_guard lock(mutex_);
  pair_ = std::move(*made);
  made_ = source_->clock->Now();
  return Status::Ok();
}

ClusterTls::Pair ClusterTls::Contexts() {
  bool renew = false;
  {
    std::lock_guard lock(mutex_);
    renew = source_->authority != nullptr && source_->clock->Now() - made_ >= kRenewAfter;
  }
  if (renew) {
    if (Status made = Reload(); !made.ok()) {
      log::Error("cluster certificate not renewed", {{"why", made.ToString()}});
    }
  }
  std::lock_guard lock(mutex_);
  return pair_;
}

}  // namespace orrery::net
