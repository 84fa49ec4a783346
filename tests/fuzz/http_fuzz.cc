// Arbitrary bytes in arbitrary pieces through the HTTP parser, as a connection feeds it: what is
// not used is shown again, and complete requests follow each other.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/http_parser.h"

namespace {

using orrery::net::HttpParser;
using orrery::net::HttpRequest;

constexpr size_t kHeadBytesMax = 512;
constexpr size_t kBodyBytesMax = 1024;

// Touches every byte that a handler may look at.
void Look(const HttpRequest& request) {
  size_t head_bytes = request.method.size() + request.target.size();
  unsigned sum = 0;
  for (const HttpRequest::Header& header : request.headers) {
    head_bytes += header.name.size() + header.value.size();
    for (char c : header.name) {
      ORRERY_CHECK(c < 'A' || c > 'Z');
    }
    for (char c : header.value) {
      sum += static_cast<unsigned char>(c);
    }
  }
  for (char c : request.body) {
    sum += static_cast<unsigned char>(c);
  }
  ORRERY_CHECK(!request.method.empty() && head_bytes <= kHeadBytesMax);
  ORRERY_CHECK(request.body.size() <= kBodyBytesMax && sum < ~0u);
}

// Reads requests from the front of `held` until it needs more; false if the connection would close.
bool ReadAll(HttpParser& parser, std::string& held) {
  for (;;) {
    size_t used = 0;
    HttpParser::Outcome outcome = parser.Feed(held, &used);
    ORRERY_CHECK(used <= held.size());
    if (outcome == HttpParser::Outcome::kDone) {
      ORRERY_CHECK(used > 0);
      Look(parser.request());
      (void)parser.keep_alive();
      parser.Reset();
      held.erase(0, used);
      continue;
    }
    held.erase(0, used);
    (void)parser.awaits_continue();
    return outcome == HttpParser::Outcome::kMore && held.size() < kHeadBytesMax;
  }
}

}  // namespace

// The first byte seeds the sizes of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  uint32_t state = data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  HttpParser parser(kHeadBytesMax, kBodyBytesMax);
  std::string held;
  while (!rest.empty()) {
    state = state * 1664525 + 1013904223;
    size_t piece = data[0] == 0 ? rest.size() : 1 + (state >> 24) % 48;
    piece = std::min({piece, rest.size(), kHeadBytesMax - held.size()});
    held.append(rest.substr(0, piece));
    rest.remove_prefix(piece);
    if (!ReadAll(parser, held)) {
      return 0;
    }
  }
  return 0;
}
