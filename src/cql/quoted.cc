#include "cql/quoted.h"

#include <algorithm>

#include "cql/keywords.h"
#include "cql/letters.h"
#include "cql/type_id.h"

namespace orrery::cql {
namespace {

bool IsPlain(std::string_view name) {
  return !name.empty() && IsLower(name.front()) &&
         std::ranges::all_of(name, [](char c) { return IsLower(c) || IsDigit(c) || c == '_'; });
}

}  // namespace

std::string Quoted(std::string_view text, char quote) {
  std::string out(1, quote);
  for (char c : text) {
    out.append(c == quote ? 2 : 1, c);
  }
  out.push_back(quote);
  return out;
}

std::string QuotedString(std::string_view text) { return Quoted(text, '\''); }

std::string QuotedName(std::string_view name) {
  bool plain = IsPlain(name) && !IsReserved(FindKeyword(name));
  return plain ? std::string(name) : Quoted(name, '"');
}

std::string QuotedTypeName(std::string_view name) {
  return IsTypeWord(name) ? Quoted(name, '"') : QuotedName(name);
}

}  // namespace orrery::cql
