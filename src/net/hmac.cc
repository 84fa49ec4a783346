// OpenSSL 3 calls the SHA256_ functions deprecated, in favour of ones that look the algorithm up by
// name. Of a 64-byte key and a 120-byte message these here take 0.37 us, HMAC() 2.0 us and a kept
// EVP_MAC 0.7 us; every request pays it.
#define OPENSSL_SUPPRESS_DEPRECATED

#include <cstring>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "net/http_server.h"

namespace orrery::net {

namespace {

void Sha256(const unsigned char (&block)[SHA256_CBLOCK], std::string_view rest,
            unsigned char* digest) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, block, sizeof(block));
  SHA256_Update(&context, rest.data(), rest.size());
  SHA256_Final(digest, &context);
}

}  // namespace

// RFC 2104: H(key ^ opad, H(key ^ ipad, message)), the key filled up with zeros to a block.
std::string HmacSha256(std::string_view key, std::string_view message) {
  unsigned char block[SHA256_CBLOCK] = {};
  if (key.size() > sizeof(block)) {
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), block);
  } else if (!key.empty()) {
    std::memcpy(block, key.data(), key.size());
  }
  for (unsigned char& byte : block) {
    byte ^= 0x36;
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  Sha256(block, message, out);
  for (unsigned char& byte : block) {
    byte ^= 0x36 ^ 0x5c;
  }
  Sha256(block, digest, out);
  OPENSSL_cleanse(block, sizeof(block));
  return digest;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace orrery::net
