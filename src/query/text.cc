#include "query/text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <locale.h>
#include <wctype.h>

#include "types/utf8.h"

namespace orrery::query {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The C library's table of letters. Made once, never changed.
locale_t Letters() {
  static const locale_t letters = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
  return letters;
}

uint32_t LowerOf(uint32_t code_point) {
  if (code_point < 0x80) {
    return code_point >= 'A' && code_point <= 'Z' ? code_point + ('a' - 'A') : code_point;
  }
  return Letters() == nullptr ? code_point : towlower_l(code_point, Letters());
}

uint32_t UpperOf(uint32_t code_point) {
  if (code_point < 0x80) {
    return code_point >= 'a' && code_point <= 'z' ? code_point - ('a' - 'A') : code_point;
  }
  return Letters() == nullptr ? code_point : towupper_l(code_point, Letters());
}

std::string Convert(std::string_view text, uint32_t (*convert)(uint32_t)) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    uint32_t code_point = types::TakeCodePoint(text);
    types::AppendCodePoint(code_point == types::kNotUtf8 ? 0xFFFD : convert(code_point), out);
  }
  return out;
}

}  // namespace

size_t CountCodePoints(std::string_view text) {
  return text.size() - static_cast<size_t>(std::ranges::count_if(text, IsContinuation));
}

size_t ByteOffset(std::string_view text, size_t code_points) {
  size_t at = 0;
  while (at < text.size() && code_points > 0) {
    ++at;
    while (at < text.size() && IsContinuation(text[at])) {
      ++at;
    }
    --code_points;
  }
  return at;
}

size_t FindText(std::string_view text, std::string_view wanted, size_t from) {
  // memmem is linear in glibc; string_view::find is not.
  const void* found = memmem(text.data() + from, text.size() - from, wanted.data(), wanted.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

std::string ToLower(std::string_view text) { return Convert(text, LowerOf); }
std::string ToUpper(std::string_view text) { return Convert(text, UpperOf); }

}  // namespace orrery::query
