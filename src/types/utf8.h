// UTF-8, one code point at a time. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::types {

inline constexpr uint32_t kNotUtf8 = UINT32_MAX;

// Takes one code point off the front. If there is none (overlong forms and surrogates are none) it
// takes one byte and gives kNotUtf8. REQUIRES: !text.empty().
uint32_t TakeCodePoint(std::string_view& text);

// REQUIRES: a code point that is not a surrogate.
void AppendCodePoint(uint32_t code_point, std::string& out);

}  // namespace orrery::types
