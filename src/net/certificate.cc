#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "net/http_server.h"

namespace orrery::net {

namespace {

constexpr long kValidSeconds = 3650L * 24 * 3600;
constexpr long kSkewSeconds = 24L * 3600;  // for clients whose clock is behind
constexpr size_t kNameBytesMax = 253;

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freer<GENERAL_NAMES_free>>;
using Memory = std::unique_ptr<BIO, Freer<BIO_free_all>>;

Status Failed(const char* what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return Status(Code::kInternal, std::string("cannot ") + what + ": " +
                                     (reason != nullptr ? reason : "unknown error"));
}

bool IsHostName(const std::string& name) {
  auto allowed = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '*';
  };
  return !name.empty() && name.size() <= kNameBytesMax &&
         std::all_of(name.begin(), name.end(), allowed);
}

// Adds an IP address or a host name; false if it is neither.
bool AddName(GENERAL_NAMES* names, const std::string& name) {
  unsigned char address[sizeof(in6_addr)];
  int address_size = inet_pton(AF_INET, name.c_str(), address) == 1    ? 4
                     : inet_pton(AF_INET6, name.c_str(), address) == 1 ? 16
                                                                       : 0;
  if (address_size == 0 && !IsHostName(name)) {
    return false;
  }
  std::unique_ptr<GENERAL_NAME, Freer<GENERAL_NAME_free>> entry(GENERAL_NAME_new());
  ASN1_STRING* text =
      ASN1_STRING_type_new(address_size > 0 ? V_ASN1_OCTET_STRING : V_ASN1_IA5STRING);
  bool set = address_size > 0 ? ASN1_STRING_set(text, address, address_size)
                              : ASN1_STRING_set(text, name.data(), static_cast<int>(name.size()));
  GENERAL_NAME_set0_value(entry.get(), address_size > 0 ? GEN_IPADD : GEN_DNS, text);
  return set && sk_GENERAL_NAME_push(names, entry.release()) > 0;
}

bool AddExtension(X509* certificate, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetSerial(X509* certificate) {
  unsigned char bytes[16];
  SecretBytes(bytes);
  bytes[0] &= 0x7f;  // positive
  std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_bin2bn(bytes, sizeof(bytes), nullptr));
  return BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

// A server's certificate, not an authority's: some clients refuse the latter at the end of a chain.
bool Fill(X509* certificate, EVP_PKEY* key, GENERAL_NAMES* names) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  auto add = [subject](const char* field, const char* value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_ASC,
                                      reinterpret_cast<const unsigned char*>(value), -1, -1,
                                      0) == 1;
  };
  return X509_set_version(certificate, X509_VERSION_3) == 1 && SetSerial(certificate) &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kSkewSeconds) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), kValidSeconds) != nullptr &&
         X509_set_pubkey(certificate, key) == 1 && add("O", "Orrery") && add("CN", "localhost") &&
         X509_set_issuer_name(certificate, subject) == 1 &&
         AddExtension(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
         AddExtension(certificate, NID_key_usage, "critical,digitalSignature") &&
         AddExtension(certificate, NID_ext_key_usage, "serverAuth") &&
         AddExtension(certificate, NID_subject_key_identifier, "hash") &&
         X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  long size = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(size));
}

bool WriteAll(int file, std::string_view text) {
  while (!text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
  return true;
}

// Writes a new file beside `path`, never readable by more than `mode` says; gives its name.
Result<std::string> WriteBeside(const std::string& path, std::string_view text, mode_t mode) {
  std::string name = path + "." + std::to_string(SystemRandom().Next()) + ".new";
  int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) {
    return Error(Code::kUnavailable, "cannot create " + name + ": " + std::strerror(errno));
  }
  bool written = WriteAll(file, text) && ::fsync(file) == 0;
  int error = errno;
  ::close(file);
  if (!written) {
    ::unlink(name.c_str());
    return Error(Code::kUnavailable, "cannot write " + name + ": " + std::strerror(error));
  }
  return name;
}

Status WritePair(const std::string& certificate_file, std::string_view certificate,
                 const std::string& key_file, std::string_view key) {
  auto new_key = WriteBeside(key_file, key, 0600);
  if (!new_key) {
    return new_key.error();
  }
  auto new_certificate = WriteBeside(certificate_file, certificate, 0644);
  if (!new_certificate) {
    ::unlink(new_key->c_str());
    return new_certificate.error();
  }
  if (::rename(new_key->c_str(), key_file.c_str()) == 0 &&
      ::rename(new_certificate->c_str(), certificate_file.c_str()) == 0) {
    return Status::Ok();
  }
  Status failed(Code::kUnavailable, "cannot put " + certificate_file + " and " + key_file +
                                        " in place: " + std::strerror(errno));
  ::unlink(new_key->c_str());
  ::unlink(new_certificate->c_str());
  return failed;
}

}  // namespace

Status MakeSelfSignedCertificate(const std::string& certificate_file, const std::string& key_file,
                                 const std::vector<std::string>& names) {
  ERR_clear_error();
  Names all(GENERAL_NAMES_new());
  std::vector<std::string> wanted = {"localhost", "127.0.0.1", "::1"};
  for (const std::string& name : names) {
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) {
      wanted.push_back(name);
    }
  }
  for (const std::string& name : wanted) {
    if (!AddName(all.get(), name)) {
      return Status(Code::kInvalidArgument, "neither a host name nor an address: '" + name + "'");
    }
  }
  Key key(EVP_EC_gen("P-256"));
  Certificate certificate(X509_new());
  if (key == nullptr || certificate == nullptr || !Fill(certificate.get(), key.get(), all.get())) {
    return Failed("make a certificate");
  }
  Memory certificate_text(BIO_new(BIO_s_mem()));
  Memory key_text(BIO_new(BIO_s_secmem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
          1) {
    return Failed("write a certificate as text");
  }
  return WritePair(certificate_file, TextOf(certificate_text.get()), key_file,
                   TextOf(key_text.get()));
}

}  // namespace orrery::net
