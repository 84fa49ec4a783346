#include "cql/value_json.h"

#include <algorithm>
#include <cmath>

#include "cql/letters.h"
#include "cql/number.h"
#include "cql/time_text.h"
#include "cql/value.h"
#include "cql/value_text.h"
#include "types/document.h"

namespace orrery::cql {
namespace {

using MaybeBytes = std::optional<std::string>;

bool IsInteger(const Json& json) {
  return json.kind == Json::Kind::kNumber && json.text.find_first_of(".eE") == std::string::npos;
}

// The name that Cassandra's messages give to what JSON holds.
std::string KindName(const Json& json) {
  switch (json.kind) {
    case Json::Kind::kNull: return "null";
    case Json::Kind::kBool: return "Boolean";
    case Json::Kind::kString: return "String";
    case Json::Kind::kArray: return "ArrayList";
    case Json::Kind::kObject: return "LinkedHashMap";
    case Json::Kind::kNumber: break;
  }
  if (!IsInteger(json)) {
    return "Double";
  }
  if (json.text.size() < 10) {
    return "Integer";
  }
  return json.text.size() < 19 ? "Long" : "BigInteger";
}

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::unexpected<Status> Expected(std::string_view what, const Json& json) {
  return Invalid("Expected " + std::string(what) + ", but got a " + KindName(json) + ": " +
                 json.ToText());
}

Result<std::string> FromString(const DataType& type, const Json& json, std::string_view what) {
  if (json.kind != Json::Kind::kString) {
    return Expected(what, json);
  }
  return ValueFromText(type, json.text);
}

// A number of the right form, or its text in a string.
Result<std::string> FromInteger(const DataType& type, const Json& json, std::string_view what) {
  if (json.kind == Json::Kind::kString || IsInteger(json)) {
    return ValueFromText(type, json.text);
  }
  return Expected(what, json);
}

Result<std::string> FromNumber(const DataType& type, const Json& json, std::string_view what) {
  if (json.kind == Json::Kind::kString || json.kind == Json::Kind::kNumber) {
    return ValueFromText(type, json.text);
  }
  return Expected(what, json);
}

Result<std::string> FromExact(const DataType& type, const Json& json) {
  bool wanted = json.kind == Json::Kind::kString || json.kind == Json::Kind::kNumber;
  auto value = wanted ? ValueFromText(type, json.text) : Invalid("");
  if (!value) {
    return Invalid("Value '" + json.ToText() + "' is not a valid representation of a " +
                   type.ToCql() + " value");
  }
  return value;
}

Result<std::string> FromBlob(const Json& json) {
  if (json.kind != Json::Kind::kString) {
    return Expected("a hex string", json);
  }
  if (!json.text.starts_with("0x")) {
    return Invalid("String representation of blob is missing 0x prefix: " + json.text);
  }
  auto value = ValueFromText(TypeId::kBlob, json.text);
  if (!value) {
    return Invalid("Value '" + json.text +
                   "' is not a valid blob representation: " + value.error().message());
  }
  return value;
}

Result<std::string> FromBoolean(const Json& json) {
  if (json.kind == Json::Kind::kBool) {
    return BooleanBytes(json.boolean);
  }
  return FromString(TypeId::kBoolean, json, "a boolean value");
}

Result<std::string> FromList(const DataType& type, const Json& json) {
  bool set = type.id() == TypeId::kSet;
  if (json.kind != Json::Kind::kArray) {
    return Expected(set ? "a list (representing a set)" : "a list", json);
  }
  if (type.id() == TypeId::kVector && json.items.size() != type.dimension()) {
    return Invalid("List had " + std::to_string(json.items.size()) +
                   " elements, but vector requires " + std::to_string(type.dimension()));
  }
  std::string out;
  PartWriter writer(type, out);
  for (const Json& item : json.items) {
    ORRERY_TRY(MaybeBytes part, ValueFromJson(type.element(), item));
    if (!part) {
      return Invalid(std::string("Invalid null element in ") + (set ? "set" : "list"));
    }
    writer.Add(part);
  }
  writer.Finish();
  return set ? CanonicalValue(type, out) : out;
}

Result<std::string> FromMap(const DataType& type, const Json& json) {
  if (json.kind != Json::Kind::kObject) {
    return Expected("a map", json);
  }
  std::string out;
  PartWriter writer(type, out);
  for (const auto& [name, member] : json.members) {
    Json key{.kind = Json::Kind::kString, .text = name};
    ORRERY_TRY(MaybeBytes key_bytes, ValueFromJson(type.element(), key));
    ORRERY_TRY(MaybeBytes value, ValueFromJson(type.mapped(), member));
    if (!key_bytes) {
      return Invalid("Invalid null key in map");
    }
    if (!value) {
      return Invalid("Invalid null value in map");
    }
    writer.Add(key_bytes);
    writer.Add(value);
  }
  writer.Finish();
  return CanonicalValue(type, out);
}

Result<std::string> FromTuple(const DataType& type, const Json& json) {
  if (json.kind != Json::Kind::kArray) {
    return Expected("a list representation of a tuple", json);
  }
  size_t wanted = type.parameters().size();
  if (json.items.size() != wanted) {
    return Invalid(std::string("Tuple ") +
                   (json.items.size() > wanted ? "contains extra" : "is missing") +
                   " items (expected " + std::to_string(wanted) + "): " + json.ToText());
  }
  std::string out;
  PartWriter writer(type, out);
  for (size_t i = 0; i < wanted; ++i) {
    ORRERY_TRY(MaybeBytes part, ValueFromJson(type.parameters()[i], json.items[i]));
    writer.Add(part);
  }
  return out;
}

// A name in quotes of its own keeps its case.
std::string NameOf(std::string_view name) {
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    return std::string(name.substr(1, name.size() - 2));
  }
  return Lower(name);
}

Result<std::string> FromUdt(const DataType& type, const Json& json) {
  if (json.kind != Json::Kind::kObject) {
    return Expected("a map", json);
  }
  std::vector<const Json*> fields(type.parameters().size());
  for (const auto& [name, member] : json.members) {
    auto place = type.FieldIndex(NameOf(name));
    if (!place) {
      return Invalid("Unknown fields [" + NameOf(name) + "] in value of user defined type " +
                     type.name());
    }
    fields[*place] = &member;
  }
  std::string out;
  PartWriter writer(type, out);
  for (size_t i = 0; i < fields.size(); ++i) {
    MaybeBytes part;
    if (fields[i] != nullptr) {
      ORRERY_TRY(part, ValueFromJson(type.parameters()[i], *fields[i]));
    }
    writer.Add(part);
  }
  return out;
}

// A collection may also stand as JSON inside of a string, as it does in keys of maps.
Result<std::string> FromParts(const DataType& type, const Json& json) {
  if (json.kind == Json::Kind::kString) {
    auto inner = Json::Parse(json.text);
    if (!inner) {
      return Invalid("Could not decode JSON string '" + json.text +
                     "': " + inner.error().message());
    }
    return inner->kind == Json::Kind::kString ? Expected("a " + type.ToCql(), *inner)
                                              : FromParts(type, *inner);
  }
  switch (type.id()) {
    case TypeId::kMap: return FromMap(type, json);
    case TypeId::kTuple: return FromTuple(type, json);
    case TypeId::kUdt: return FromUdt(type, json);
    default: return FromList(type, json);
  }
}

Result<std::string> FromValue(const DataType& type, const Json& json) {
  switch (type.id()) {
    case TypeId::kCustom:
    case TypeId::kBlob: return FromBlob(json);
    case TypeId::kAscii: return FromString(type, json, "an ascii string");
    case TypeId::kText: return FromString(type, json, "a UTF-8 string");
    case TypeId::kBigint:
    case TypeId::kCounter: return FromInteger(type, json, "a bigint value");
    case TypeId::kInt: return FromInteger(type, json, "an int value");
    case TypeId::kSmallint: return FromInteger(type, json, "a short value");
    case TypeId::kTinyint: return FromInteger(type, json, "a byte value");
    case TypeId::kDouble: return FromNumber(type, json, "a double value");
    case TypeId::kFloat: return FromNumber(type, json, "a float value");
    case TypeId::kBoolean: return FromBoolean(json);
    case TypeId::kVarint:
    case TypeId::kDecimal: return FromExact(type, json);
    case TypeId::kUuid: return FromString(type, json, "a string representation of a uuid");
    case TypeId::kTimeuuid: return FromString(type, json, "a string representation of a timeuuid");
    case TypeId::kInet: return FromString(type, json, "a string representation of an inet value");
    case TypeId::kTimestamp:
      return FromInteger(type, json, "a long or a datestring representation of a timestamp value");
    case TypeId::kDate: return FromString(type, json, "a string representation of a date value");
    case TypeId::kTime: return FromString(type, json, "a string representation of a time value");
    case TypeId::kDuration: return FromString(type, json, "a string representation of a duration");
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kUdt:
    case TypeId::kTuple:
    case TypeId::kVector: return FromParts(type, json);
  }
  return Invalid("unknown type");
}

void AppendPartsJson(const DataType& type, std::string_view bytes, std::string& out) {
  bool named = type.id() == TypeId::kUdt;
  bool map = type.id() == TypeId::kMap;
  out.push_back(named || map ? '{' : '[');
  PartReader parts(type, bytes);
  size_t fields = named || type.id() == TypeId::kTuple ? type.parameters().size() : 0;
  for (size_t i = 0;; ++i) {
    bool there = parts.Next();
    if (!there && i >= fields) {
      break;
    }
    out += i == 0 ? "" : map && i % 2 == 1 ? ": " : ", ";
    if (named) {
      AppendJsonName(type.field_names()[i], out);
      out += ": ";
    }
    if (map && i % 2 == 0) {
      // A key is always a string.
      std::string key;
      AppendValueJson(parts.type(), parts.value(), key);
      if (key.starts_with('"')) {
        out += key;
      } else {
        types::AppendJsonString(key, out);
      }
    } else {
      AppendValueJson(fields > 0 ? type.parameters()[i] : parts.type(),
                      there ? parts.value() : std::nullopt, out);
    }
  }
  out.push_back(named || map ? '}' : ']');
}

}  // namespace

void AppendValueJson(const DataType& type, std::optional<std::string_view> bytes,
                     std::string& out) {
  if (!bytes) {
    out += "null";
    return;
  }
  switch (type.id()) {
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap:
    case TypeId::kUdt:
    case TypeId::kTuple:
    case TypeId::kVector: return AppendPartsJson(type, *bytes, out);
    case TypeId::kCustom:
    case TypeId::kBlob: out += '"' + BlobToText(*bytes) + '"'; return;
    case TypeId::kDouble:
    case TypeId::kFloat: {
      bool finite =
          bytes->empty() ||
          std::isfinite(type.id() == TypeId::kFloat ? ReadFloat(*bytes) : ReadDouble(*bytes));
      out += bytes->empty() ? "\"\"" : finite ? ValueToText(type, *bytes) : "null";
      return;
    }
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kInt:
    case TypeId::kSmallint:
    case TypeId::kTinyint:
    case TypeId::kVarint:
    case TypeId::kDecimal:
    case TypeId::kBoolean: out += bytes->empty() ? "\"\"" : ValueToText(type, *bytes); return;
    case TypeId::kTimestamp:
      out += '"' + (bytes->empty() ? "" : TimestampToText(ReadBigint(*bytes), ' ')) + '"';
      return;
    case TypeId::kAscii:
    case TypeId::kText:
    case TypeId::kUuid:
    case TypeId::kTimeuuid:
    case TypeId::kInet:
    case TypeId::kDate:
    case TypeId::kTime:
    case TypeId::kDuration: types::AppendJsonString(ValueToText(type, *bytes), out); return;
  }
}

Result<MaybeBytes> ValueFromJson(const DataType& type, const Json& json) {
  if (json.kind == Json::Kind::kNull) {
    return MaybeBytes();
  }
  ORRERY_TRY(std::string value, FromValue(type, json));
  return MaybeBytes(std::move(value));
}

Result<MaybeBytes> ValueFromJson(const DataType& type, std::string_view json) {
  auto parsed = Json::Parse(json);
  if (!parsed) {
    return Invalid("Could not decode JSON string '" + std::string(json) +
                   "': " + parsed.error().message());
  }
  return ValueFromJson(type, *parsed);
}

Result<std::vector<Json::Member>> ParseJsonRow(std::string_view json) {
  auto parsed = Json::Parse(json);
  if (!parsed || parsed->kind != Json::Kind::kObject) {
    return Invalid("Could not decode JSON string as a map: " +
                   (parsed ? KindName(*parsed) : parsed.error().message()) +
                   ". (String was: " + std::string(json) + ")");
  }
  for (auto& [name, member] : parsed->members) {
    name = NameOf(name);
  }
  return std::move(parsed->members);
}

void AppendJsonName(std::string_view name, std::string& out) {
  bool upper = std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
  types::AppendJsonString(upper ? '"' + std::string(name) + '"' : std::string(name), out);
}

}  // namespace orrery::cql
