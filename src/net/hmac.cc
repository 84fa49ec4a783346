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

// The two hashes of a key, taken up to where the message comes: half of the work of a short
// message. Each thread keeps those of the keys that it used last.
struct PreparedKey {
  std::string key;
  SHA256_CTX inner;
  SHA256_CTX outer;
};

void Begin(SHA256_CTX& context, const unsigned char (&block)[SHA256_CBLOCK], unsigned char pad) {
  unsigned char padded[SHA256_CBLOCK];
  for (size_t i = 0; i < sizeof(padded); ++i) {
    padded[i] = block[i] ^ pad;
  }
  SHA256_Init(&context);
  SHA256_Update(&context, padded, sizeof(padded));
  OPENSSL_cleanse(padded, sizeof(padded));
}

const PreparedKey& Prepare(std::string_view key) {
  constexpr size_t kKept = 4;
  thread_local PreparedKey kept[kKept];
  thread_local bool used[kKept] = {};
  thread_local size_t next = 0;
  for (size_t i = 0; i < kKept; ++i) {
    if (used[i] && EqualInConstantTime(kept[i].key, key)) {
      return kept[i];
    }
  }
  PreparedKey& prepared = kept[next];
  used[next] = true;
  next = (next + 1) % kKept;
  OPENSSL_cleanse(prepared.key.data(), prepared.key.size());
  prepared.key = key;
  unsigned char block[SHA256_CBLOCK] = {};
  if (key.size() > sizeof(block)) {
    SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), block);
  } else if (!key.empty()) {
    std::memcpy(block, key.data(), key.size());
  }
  Begin(prepared.inner, block, 0x36);
  Begin(prepared.outer, block, 0x5c);
  OPENSSL_cleanse(block, sizeof(block));
  return prepared;
}

}  // namespace

std::string Sha256(std::string_view message) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(message.data()), message.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

// RFC 2104: H(key ^ opad, H(key ^ ipad, message)), the key filled up with zeros to a block.
std::string HmacSha256(std::string_view key, std::string_view message) {
  const PreparedKey& prepared = Prepare(key);
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  SHA256_CTX context = prepared.inner;
  SHA256_Update(&context, message.data(), message.size());
  SHA256_Final(out, &context);
  context = prepared.outer;
  SHA256_Update(&context, digest.data(), digest.size());
  SHA256_Final(out, &context);
  return digest;
}

bool EqualInConstantTime(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace orrery::net
