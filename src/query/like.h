// The pattern of LIKE: % any characters, _ any one, [a-f] one of them, [^a-f] one not of them;
// after the escape character any character stands for itself.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::query {

inline constexpr uint32_t kNoEscape = UINT32_MAX;

// Needs no memory and no more time than the text times a constant. For that, a part between two %
// that has other wildcards is matched up to kFloatingBytesMax; a longer one matches nothing.
inline constexpr size_t kFloatingBytesMax = 1024;
bool LikeMatches(std::string_view text, std::string_view pattern, uint32_t escape = kNoEscape);

}  // namespace orrery::query
