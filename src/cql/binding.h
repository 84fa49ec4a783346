// What the markers of a statement want and get, and what expressions are computed from. Plain
// values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cql/data_type.h"

namespace orrery::cql {

// What a value is for: a column, a part of one, or something like `[limit]`.
struct Receiver {
  std::string keyspace;
  std::string table;
  std::string name;
  DataType type;
  bool operator==(const Receiver&) const = default;
};

// What each marker is for, in the order of the text; to be made with one place for each. The name
// is what drivers see: that of the marker itself if it has one.
using MarkerSpecs = std::vector<Receiver>;

// What a client sent for a marker; a view into its request.
struct MarkerValue {
  enum class Kind : uint8_t { kNull, kUnset, kValue };
  Kind kind = Kind::kNull;
  std::string_view bytes;
};

// A value, null, or nothing at all ("unset": what it was for stays as it is). Either it owns its
// bytes or they are in a term, a row or a request.
class Bound {
 public:
  enum class Kind : uint8_t { kNull, kUnset, kValue };

  Bound() = default;  // null
  static Bound Unset() {
    Bound bound;
    bound.kind_ = Kind::kUnset;
    return bound;
  }
  static Bound View(std::string_view bytes) {
    Bound bound;
    bound.kind_ = Kind::kValue;
    bound.view_ = bytes;
    return bound;
  }
  static Bound Own(std::string bytes) {
    Bound bound;
    bound.kind_ = Kind::kValue;
    bound.owns_ = true;
    bound.own_ = std::move(bytes);
    return bound;
  }
  static Bound View(std::optional<std::string_view> bytes) {
    return bytes ? View(*bytes) : Bound();
  }
  static Bound Own(std::optional<std::string> bytes) {
    return bytes ? Own(*std::move(bytes)) : Bound();
  }

  Kind kind() const { return kind_; }
  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_unset() const { return kind_ == Kind::kUnset; }
  bool has_value() const { return kind_ == Kind::kValue; }
  bool owns() const { return owns_; }
  // Nothing but for a value.
  std::string_view bytes() const { return owns_ ? std::string_view(own_) : view_; }
  std::optional<std::string_view> value() const {
    return has_value() ? std::optional(bytes()) : std::nullopt;
  }
  std::string Take() && { return owns_ ? std::move(own_) : std::string(view_); }
  std::optional<std::string> TakeValue() && {
    return has_value() ? std::optional(std::move(*this).Take()) : std::nullopt;
  }

 private:
  Kind kind_ = Kind::kNull;
  bool owns_ = false;
  std::string_view view_;
  std::string own_;
};

// What functions may ask for: the time of the request, and chance. One for each execution of a
// statement; not thread-safe.
struct FunctionContext {
  int64_t now_micros = 0;  // since 1970
  Random* random = nullptr;
  uint32_t time_uuids = 0;  // how many were made: they must differ, and go up
};

// What the markers of a statement are bound to, for one execution.
struct Bindings {
  std::span<const MarkerValue> markers;
  FunctionContext& context;
};

}  // namespace orrery::cql
