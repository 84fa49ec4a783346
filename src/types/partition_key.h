// PartitionKey: the value of an item's partition key, one component per path of the definition.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "types/document.h"

namespace orrery::types {

class KeyComponent {
 public:
  enum class Kind : uint8_t { kUndefined, kNull, kFalse, kTrue, kNumber, kString };

  KeyComponent() = default;  // undefined: the item has no such property
  static KeyComponent Null();
  static KeyComponent Bool(bool value);
  static KeyComponent Number(double value);
  static KeyComponent String(std::string value);

  Kind kind() const { return kind_; }
  double number() const { return number_; }
  const std::string& string() const { return string_; }
  bool operator==(const KeyComponent&) const = default;

 private:
  Kind kind_ = Kind::kUndefined;
  double number_ = 0;
  std::string string_;
};

struct PartitionKey {
  std::vector<KeyComponent> components;

  // Reads the JSON array of the header `x-ms-documentdb-partitionkey`: ["a"], [null], [{}] for
  // undefined, ["a",{},null] for several levels, [] for none (no components).
  static Result<PartitionKey> FromJson(std::string_view json);
  std::string ToJson() const;

  // For operations and log entries.
  void Encode(Encoder& encoder) const;
  static PartitionKey Decode(Decoder& decoder);

  // Appends the memcomparable form: byte order = order of values; no key is a prefix of another.
  void AppendOrdered(std::string& out) const;
  // Reads one back and advances `in`; false if it is malformed.
  static bool ReadOrdered(std::string_view& in, PartitionKey* key);

  // The largest component in bytes, for the limit of 2 KB.
  size_t LargestComponent() const;
  bool operator==(const PartitionKey&) const = default;
};

// kToken: of a Cassandra table, by the bytes of its partition key columns.
enum class KeyKind : uint8_t { kHash, kMultiHash, kRange, kToken };

// The partition key definition of a container.
struct PartitionKeyDefinition {
  std::vector<std::string> paths;  // "/a/b"; a level in quotes may hold any character: "/\"a-b\""
  KeyKind kind = KeyKind::kHash;
  int version = 2;

  // The paths as lists of property names. REQUIRES: Validate().ok().
  std::vector<std::vector<std::string>> SplitPaths() const;
  Status Validate() const;
  bool operator==(const PartitionKeyDefinition&) const = default;
};

// `/a/b` as a list of names. kInvalidArgument says what is wrong with it.
Result<std::vector<std::string>> SplitPropertyPath(std::string_view path);

// The key of an item. kInvalidArgument if a value on a path is an object or an array.
Result<PartitionKey> ExtractPartitionKey(const std::vector<std::vector<std::string>>& paths,
                                         Value item);

// Memcomparable strings, for keys: 00 becomes 00 FF, and the end is 00 01.
void AppendOrderedBytes(std::string_view bytes, std::string& out);
// Without the end, as a lower bound of everything that starts with these bytes.
void AppendOrderedPrefix(std::string_view bytes, std::string& out);
// Reads one back and advances `in`; false if it is malformed.
bool ReadOrderedBytes(std::string_view& in, std::string* bytes);

}  // namespace orrery::types
