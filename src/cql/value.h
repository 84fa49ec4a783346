// Values of CQL in their serialized form, as drivers send them. Pure functions.
//
// A value is a byte string; null is no value, and mostly an optional that is empty. Zero bytes are
// a value of their own in nearly every type ("empty"), below all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/data_type.h"

namespace orrery::cql {

// kInvalidArgument, in Cassandra's words, if the bytes are no value of the type. All other
// functions that take bytes REQUIRE that they were found good by this one.
Status ValidateValue(const DataType& type, std::string_view bytes);

// Below, at or above 0, in the order of clustering columns (ascending). Values that compare equal
// may differ in bytes: decimals 1.0 and 1.00, tuples with and without nulls at the end.
int CompareValues(const DataType& type, std::string_view a, std::string_view b);

// The same value with sets and maps sorted and without doubles (of equal keys the last one stays):
// what a driver binds need not be. To be used on every value that comes from outside and has them.
std::string CanonicalValue(const DataType& type, std::string_view bytes);

// Walks the parts of a list, set, vector, tuple, user type or map (key, value, key, value...).
class PartReader {
 public:
  PartReader(const DataType& type, std::string_view bytes);
  // False at the end, or if there is less than there should be.
  bool Next();
  const DataType& type() const { return *part_type_; }
  std::optional<std::string_view> value() const { return value_; }
  size_t index() const { return index_; }  // of the part, from 0
  // Of a collection; how many parts there are to be (of a map twice the entries).
  size_t count() const { return count_; }
  bool truncated() const { return truncated_; }
  size_t left() const { return in_.size(); }  // at the end: what is too much

 private:
  std::optional<std::string_view> Take();
  const DataType* of_;
  const DataType* part_type_ = nullptr;
  std::string_view in_;
  std::optional<std::string_view> value_;
  size_t index_ = 0;
  size_t started_ = 0;
  size_t count_ = 0;
  bool truncated_ = false;
};

// Builds a list, set, vector, tuple, user type or map, part by part in the order of PartReader.
// REQUIRES: for a vector exactly its parts, for a tuple or user type no more than its fields; nulls
// only in the last two.
class PartWriter {
 public:
  PartWriter(const DataType& type, std::string& out);
  void Add(std::optional<std::string_view> part);
  void Finish();

 private:
  const DataType& type_;
  std::string& out_;
  const size_t start_;
  size_t parts_ = 0;
};

// The fixed-size values. Reading REQUIRES as many bytes.
std::string BooleanBytes(bool value);
std::string TinyintBytes(int8_t value);
std::string SmallintBytes(int16_t value);
std::string IntBytes(int32_t value);
std::string BigintBytes(int64_t value);  // also counter, timestamp, time
std::string FloatBytes(float value);
std::string DoubleBytes(double value);
int16_t ReadSmallint(std::string_view bytes);
int32_t ReadInt(std::string_view bytes);
int64_t ReadBigint(std::string_view bytes);
float ReadFloat(std::string_view bytes);
double ReadDouble(std::string_view bytes);

}  // namespace orrery::cql
