#include "types/utf8.h"

#include <simdjson.h>

namespace orrery::types {
namespace {

struct Form {
  size_t size;      // 0: no sequence begins so
  uint32_t head;    // the bits of the first byte
  uint32_t lowest;  // below it the form is overlong
};

Form FormOf(unsigned char lead) {
  if (lead < 0x80) {
    return {1, lead, 0};
  }
  if (lead >= 0xC0 && lead < 0xE0) {
    return {2, lead & 0x1Fu, 0x80};
  }
  if (lead >= 0xE0 && lead < 0xF0) {
    return {3, lead & 0x0Fu, 0x800};
  }
  if (lead >= 0xF0 && lead < 0xF8) {
    return {4, lead & 0x07u, 0x10000};
  }
  return {0, 0, 0};
}

}  // namespace

uint32_t TakeCodePoint(std::string_view& text) {
  Form form = FormOf(static_cast<unsigned char>(text[0]));
  uint32_t code_point = form.head;
  bool good = form.size != 0 && form.size <= text.size();
  for (size_t i = 1; good && i < form.size; ++i) {
    unsigned char byte = static_cast<unsigned char>(text[i]);
    good = (byte & 0xC0) == 0x80;
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  good = good && code_point >= form.lowest && code_point <= 0x10FFFF && !surrogate;
  text.remove_prefix(good ? form.size : 1);
  return good ? code_point : kNotUtf8;
}

bool IsUtf8(const char* at, const char* end) { return simdjson::validate_utf8(at, end - at); }

void AppendCodePoint(uint32_t code_point, std::string& out) {
  auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  auto put_rest = [&](int shift) { put(0x80 | (code_point >> shift & 0x3F)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put_rest(0);
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put_rest(6);
    put_rest(0);
  } else {
    put(0xF0 | code_point >> 18);
    put_rest(12);
    put_rest(6);
    put_rest(0);
  }
}

}  // namespace orrery::types
