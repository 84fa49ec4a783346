#include "query/error.h"

#include <algorithm>
#include <string>

#include "types/document.h"

namespace orrery::query {
namespace {

constexpr size_t kExcerptBytesMax = 64;

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

size_t Utf16Units(std::string_view text) {
  size_t units = 0;
  for (char byte : text) {
    bool pair = static_cast<unsigned char>(byte) >= 0xF0;
    units += IsContinuation(byte) ? 0 : pair ? 2 : 1;
  }
  return units;
}

}  // namespace

Status QueryError(Code code, std::string_view text, Span where, std::string_view id,
                  std::string_view message) {
  size_t start = Utf16Units(text.substr(0, where.start));
  size_t end = start + Utf16Units(text.substr(where.start, where.end - where.start));
  std::string out = R"({"errors":[{"severity":"Error","location":{"start":)";
  out += std::to_string(start) + R"(,"end":)" + std::to_string(end) + R"(},"code":)";
  types::AppendJsonString(id, out);
  out += R"(,"message":)";
  types::AppendJsonString(message, out);
  out += "}]}";
  return Status(code, std::move(out));
}

std::string_view Excerpt(std::string_view text, Span where) {
  std::string_view excerpt = text.substr(where.start, where.end - where.start);
  size_t size = std::min(excerpt.size(), kExcerptBytesMax);
  while (size > 0 && size < excerpt.size() && IsContinuation(excerpt[size])) {
    --size;
  }
  return excerpt.substr(0, size);
}

}  // namespace orrery::query
