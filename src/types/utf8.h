// UTF-8, one code point at a time. Pure functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace orrery::types {

inline constexpr uint32_t kNotUtf8 = UINT32_MAX;

// Takes one code point off the front. If there is none (overlong forms and surrogates are none) it
// takes one byte and gives kNotUtf8. REQUIRES: !text.empty().
uint32_t TakeCodePoint(std::string_view& text);

// Whether all of it is code points. Most texts are short and plain, for which the call would be the
// larger part.
bool IsUtf8(const char* at, const char* end);
inline bool IsUtf8(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  for (uint64_t eight = 0; end - at >= 8; at += 8) {
    std::memcpy(&eight, at, 8);
    if ((eight & 0x8080808080808080) != 0) {
      return IsUtf8(at, end);
    }
  }
  for (; at < end; ++at) {
    if (static_cast<uint8_t>(*at) >= 0x80) {
      return IsUtf8(at, end);
    }
  }
  return true;
}

// REQUIRES: a code point that is not a surrogate.
void AppendCodePoint(uint32_t code_point, std::string& out);

}  // namespace orrery::types
