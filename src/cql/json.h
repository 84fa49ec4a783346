// Json: one JSON value, with numbers as they were written, so that decimals and big integers stay
// exact. types::Document keeps numbers as doubles, which is not enough here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orrery::cql {

struct Json {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  static constexpr int kNestingMax = 64;
  struct Member;

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // of a number as written, of a string unescaped
  std::vector<Json> items;
  std::vector<Member> members;  // of equal names only the last is kept

  // Strict, and nothing may follow. kInvalidArgument says what is wrong and where.
  static Result<Json> Parse(std::string_view text);
  std::string ToText() const;  // for messages
};

struct Json::Member {
  std::string name;
  Json value;
};

}  // namespace orrery::cql
