#include "load/signer.h"

#include <ctime>

#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace orrery::load {
namespace {

// Appends the base64 digit for the low six bits, percent-encoded where a URL needs it.
void AppendDigit(uint32_t six_bits, std::string& out) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  switch (char digit = kDigits[six_bits & 63]) {
    case '+': out += "%2B"; break;
    case '/': out += "%2F"; break;
    default: out += digit;
  }
}

}  // namespace

std::string HttpDate(int64_t unix_seconds) {
  std::time_t time = unix_seconds;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[40];
  size_t length = std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text, length);
}

Result<Signer> Signer::Make(std::string_view key, std::string date) {
  std::string bytes(key.size() / 4 * 3 + 3, '\0');
  int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                               reinterpret_cast<const unsigned char*>(key.data()),
                               static_cast<int>(key.size()));
  if (length <= 0) {
    return Error(Code::kInvalidArgument, "the key is not base64");
  }
  size_t padding = key.ends_with("==") ? 2 : key.ends_with('=') ? 1 : 0;
  bytes.resize(static_cast<size_t>(length) - padding);
  std::string lower = date;
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  }
  return Signer(std::move(bytes), std::move(date), std::move(lower));
}

Digest Signer::Sign(std::string_view verb, std::string_view type, std::string_view link) const {
  std::string text;
  text.reserve(verb.size() + type.size() + link.size() + lower_date_.size() + 5);
  for (std::string_view line : {verb, type, link, std::string_view(lower_date_)}) {
    text += line;
    text += '\n';
  }
  text += '\n';
  Digest digest;
  unsigned length = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(), &length);
  return digest;
}

void Signer::AppendAuthorization(const Digest& digest, std::string& out) {
  out += "type%3Dmaster%26ver%3D1.0%26sig%3D";
  // 32 bytes are ten groups of three, then two bytes that end in one '='.
  for (size_t i = 0; i < 30; i += 3) {
    uint32_t group = digest[i] << 16 | digest[i + 1] << 8 | digest[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) {
      AppendDigit(group >> shift, out);
    }
  }
  uint32_t rest = digest[30] << 16 | digest[31] << 8;
  for (int shift = 18; shift >= 6; shift -= 6) {
    AppendDigit(rest >> shift, out);
  }
  out += "%3D";
}

}  // namespace orrery::load
