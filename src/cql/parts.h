// Parts of collections, tuples and user types, found in the serialized form. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cql/data_type.h"

namespace orrery::cql {

// The place of a part among those that it can be found by: the entries of a map, the elements of a
// set, list or vector. `key` is a key, an element, or of a list and a vector the index, an int.
// Nothing if it is not there.
std::optional<size_t> PlaceOf(const DataType& type, std::string_view bytes, std::string_view key);
// Of a map the value at the key, of a set the element itself, of a list or vector the one at the
// index; nothing if there is none.
std::optional<std::string_view> FindPart(const DataType& type, std::string_view bytes,
                                         std::string_view key);
// The places [first, last) of a map or set whose keys are between two, which count. A bound that is
// missing is none.
struct PlaceRange {
  size_t first = 0;
  size_t last = 0;
};
PlaceRange PlacesBetween(const DataType& type, std::string_view bytes,
                         std::optional<std::string_view> lower,
                         std::optional<std::string_view> upper);
// The map or set of those. REQUIRES: a map or a set.
std::string SliceOf(const DataType& type, std::string_view bytes,
                    std::optional<std::string_view> lower, std::optional<std::string_view> upper);
// The field of a tuple or user type; nothing if it is null.
std::optional<std::string_view> FieldOf(const DataType& type, std::string_view bytes, size_t field);

}  // namespace orrery::cql
