// JSON of the admin endpoints, written piece by piece. Private to server/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "types/document.h"

namespace orrery::server {

// Begins the next element of a list or member of an object.
inline void Separate(std::string& out) {
  if (out.back() != '{' && out.back() != '[') {
    out += ',';
  }
}

inline void Field(std::string& out, std::string_view name, const std::string& value) {
  Separate(out);
  out += '"' + std::string(name) + "\":" + value;
}

inline void Flag(std::string& out, std::string_view name, bool value) {
  Field(out, name, value ? "true" : "false");
}

inline void Count(std::string& out, std::string_view name, uint64_t value) {
  Field(out, name, std::to_string(value));
}

inline std::string Quoted(std::string_view text) {
  std::string out;
  types::AppendJsonString(text, out);
  return out;
}

}  // namespace orrery::server
