// Strings as the language sees them: UTF-8, counted and cut by code points. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery::query {

size_t CountCodePoints(std::string_view text);

// Where the code point of that number begins, in bytes; the size of the text if there is none.
size_t ByteOffset(std::string_view text, size_t code_points);

// The first place of `wanted` at or after `from`, in bytes, or npos. Linear in both.
// REQUIRES: from <= text.size().
size_t FindText(std::string_view text, std::string_view wanted, size_t from = 0);

// One code point for one code point, without regard to language.
std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);

}  // namespace orrery::query
