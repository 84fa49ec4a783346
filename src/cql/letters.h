// Letters and digits of ASCII, without regard to the locale.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace orrery::cql {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
constexpr char Upper(char c) { return IsLower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
constexpr bool IsLetter(char c) { return IsLower(Lower(c)); }

inline std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    c = Lower(c);
  }
  return lower;
}

constexpr bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return Lower(x) == Lower(y); });
}

}  // namespace orrery::cql
