#include "cql/data_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace orrery::cql {

struct DataType::Body {
  std::vector<DataType> parameters;
  std::vector<std::string> field_names;
  std::string keyspace;
  std::string name;
  uint32_t dimension = 0;
};

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.db.marshal.";

struct Native {
  TypeId id;
  std::string_view cql;
  std::string_view java;
  int since;    // the first version of the protocol that has a number for it
  size_t size;  // of every value; 0: they differ
};

constexpr Native kNatives[] = {
    {TypeId::kAscii, "ascii", "AsciiType", 3, 0},
    {TypeId::kBigint, "bigint", "LongType", 3, 8},
    {TypeId::kBlob, "blob", "BytesType", 3, 0},
    {TypeId::kBoolean, "boolean", "BooleanType", 3, 1},
    {TypeId::kCounter, "counter", "CounterColumnType", 3, 0},
    {TypeId::kDecimal, "decimal", "DecimalType", 3, 0},
    {TypeId::kDouble, "double", "DoubleType", 3, 8},
    {TypeId::kFloat, "float", "FloatType", 3, 4},
    {TypeId::kInt, "int", "Int32Type", 3, 4},
    {TypeId::kTimestamp, "timestamp", "TimestampType", 3, 8},
    {TypeId::kUuid, "uuid", "UUIDType", 3, 16},
    {TypeId::kText, "text", "UTF8Type", 3, 0},
    {TypeId::kVarint, "varint", "IntegerType", 3, 0},
    {TypeId::kTimeuuid, "timeuuid", "TimeUUIDType", 3, 16},
    {TypeId::kInet, "inet", "InetAddressType", 3, 0},
    {TypeId::kDate, "date", "SimpleDateType", 4, 0},
    {TypeId::kTime, "time", "TimeType", 4, 0},
    {TypeId::kSmallint, "smallint", "ShortType", 4, 0},
    {TypeId::kTinyint, "tinyint", "ByteType", 4, 0},
    {TypeId::kDuration, "duration", "DurationType", 5, 0},
};

const Native* FindNative(TypeId id) {
  const auto* found = std::ranges::find(kNatives, id, &Native::id);
  return found == std::end(kNatives) ? nullptr : found;
}

// The words that stand in a CQL statement as a name only in quotes.
constexpr auto kReserved = std::to_array<std::string_view>(
    {"add",    "allow",       "alter",  "and",          "apply",    "asc",      "authorize",
     "batch",  "begin",       "by",     "columnfamily", "create",   "default",  "delete",
     "desc",   "describe",    "drop",   "entries",      "execute",  "from",     "full",
     "grant",  "if",          "in",     "index",        "infinity", "insert",   "into",
     "is",     "keyspace",    "limit",  "materialized", "mbean",    "mbeans",   "modify",
     "nan",    "norecursive", "not",    "null",         "of",       "on",       "or",
     "order",  "primary",     "rename", "replace",      "revoke",   "schema",   "select",
     "set",    "table",       "to",     "token",        "truncate", "unlogged", "unset",
     "update", "use",         "using",  "view",         "where",    "with"});

std::string Hex(std::string_view text) {
  std::string hex = ToHex(text);
  std::ranges::transform(hex, hex.begin(), [](unsigned char c) { return std::tolower(c); });
  return hex;
}

const std::string kNoText;
const std::vector<std::string> kNoNames;
const std::vector<DataType> kNoTypes;

}  // namespace

std::string QuoteName(std::string_view name) {
  bool plain =
      !name.empty() && name[0] >= 'a' && name[0] <= 'z' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
      });
  if (plain && !std::ranges::binary_search(kReserved, name)) {
    return std::string(name);
  }
  std::string quoted = "\"";
  for (char c : name) {
    quoted.append(c == '"' ? 2 : 1, c);
  }
  return quoted + '"';
}

DataType::DataType(TypeId id) : id_(id) { ORRERY_CHECK(FindNative(id) != nullptr); }

DataType DataType::List(DataType element, bool frozen) {
  auto body = std::make_shared<Body>(Body{.parameters = {element.Frozen()}});
  return DataType(TypeId::kList, frozen, std::move(body));
}

DataType DataType::Set(DataType element, bool frozen) {
  auto body = std::make_shared<Body>(Body{.parameters = {element.Frozen()}});
  return DataType(TypeId::kSet, frozen, std::move(body));
}

DataType DataType::Map(DataType key, DataType value, bool frozen) {
  auto body = std::make_shared<Body>(Body{.parameters = {key.Frozen(), value.Frozen()}});
  return DataType(TypeId::kMap, frozen, std::move(body));
}

DataType DataType::Tuple(std::vector<DataType> elements) {
  for (DataType& element : elements) {
    element = element.Frozen();
  }
  auto body = std::make_shared<Body>(Body{.parameters = std::move(elements)});
  return DataType(TypeId::kTuple, true, std::move(body));
}

DataType DataType::Udt(std::string keyspace, std::string name, std::vector<Field> fields,
                       bool frozen) {
  auto body = std::make_shared<Body>();
  body->keyspace = std::move(keyspace);
  body->name = std::move(name);
  for (Field& field : fields) {
    body->field_names.push_back(std::move(field.name));
    body->parameters.push_back(field.type.Frozen());
  }
  return DataType(TypeId::kUdt, frozen, std::move(body));
}

DataType DataType::Vector(DataType element, uint32_t dimension) {
  auto body =
      std::make_shared<Body>(Body{.parameters = {element.Frozen()}, .dimension = dimension});
  return DataType(TypeId::kVector, true, std::move(body));
}

DataType DataType::Custom(std::string class_name) {
  auto body = std::make_shared<Body>(Body{.name = std::move(class_name)});
  return DataType(TypeId::kCustom, false, std::move(body));
}

std::optional<DataType> DataType::ByName(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "varchar") {
    return TypeId::kText;
  }
  const auto* found = std::ranges::find(kNatives, lower, &Native::cql);
  return found == std::end(kNatives) ? std::nullopt : std::optional<DataType>(found->id);
}

DataType DataType::Frozen() const {
  bool has_form = is_collection() || id_ == TypeId::kUdt;
  return has_form ? DataType(id_, true, body_) : *this;
}

const std::vector<DataType>& DataType::parameters() const {
  return body_ == nullptr ? kNoTypes : body_->parameters;
}
uint32_t DataType::dimension() const { return body_ == nullptr ? 0 : body_->dimension; }
const std::string& DataType::keyspace() const {
  return body_ == nullptr ? kNoText : body_->keyspace;
}
const std::string& DataType::name() const { return body_ == nullptr ? kNoText : body_->name; }
const std::vector<std::string>& DataType::field_names() const {
  return body_ == nullptr ? kNoNames : body_->field_names;
}

std::optional<size_t> DataType::FieldIndex(std::string_view field) const {
  auto found = std::ranges::find(field_names(), field);
  if (found == field_names().end()) {
    return std::nullopt;
  }
  return static_cast<size_t>(found - field_names().begin());
}

bool DataType::Contains(TypeId id) const {
  return id_ == id || std::ranges::any_of(parameters(),
                                          [id](const DataType& type) { return type.Contains(id); });
}

std::optional<size_t> DataType::FixedSize() const {
  if (id_ == TypeId::kVector) {
    auto one = element().FixedSize();
    return one ? std::optional(*one * dimension()) : std::nullopt;
  }
  const Native* native = FindNative(id_);
  return native == nullptr || native->size == 0 ? std::nullopt : std::optional(native->size);
}

bool DataType::operator==(const DataType& other) const {
  if (id_ != other.id_ || frozen_ != other.frozen_) {
    return false;
  }
  if (body_ == other.body_) {
    return true;
  }
  return keyspace() == other.keyspace() && name() == other.name() &&
         dimension() == other.dimension() && field_names() == other.field_names() &&
         parameters() == other.parameters();
}

std::string DataType::ToCql() const {
  auto listed = [this](std::string_view name) {
    std::string text = std::string(name) + "<";
    for (size_t i = 0; i < parameters().size(); ++i) {
      text += (i == 0 ? "" : ", ") + parameters()[i].ToCql();
    }
    return text + ">";
  };
  std::string text;
  switch (id_) {
    case TypeId::kCustom: return "'" + name() + "'";
    case TypeId::kVector:
      return "vector<" + element().ToCql() + ", " + std::to_string(dimension()) + ">";
    case TypeId::kList: text = listed("list"); break;
    case TypeId::kSet: text = listed("set"); break;
    case TypeId::kMap: text = listed("map"); break;
    case TypeId::kTuple: text = listed("tuple"); break;
    case TypeId::kUdt: text = QuoteName(name()); break;
    default: return std::string(FindNative(id_)->cql);
  }
  return frozen_ ? "frozen<" + text + ">" : text;
}

std::string DataType::ToClassName() const {
  auto listed = [this](std::string_view name, std::string text) {
    for (size_t i = 0; i < parameters().size(); ++i) {
      text += text.empty() ? "" : ",";
      text += field_names().empty() ? "" : Hex(field_names()[i]) + ":";
      text += parameters()[i].ToClassName();
    }
    return std::string(kPackage) + std::string(name) + "(" + text + ")";
  };
  std::string text;
  switch (id_) {
    case TypeId::kCustom: return name();
    case TypeId::kVector:
      return std::string(kPackage) + "VectorType(" + element().ToClassName() + ", " +
             std::to_string(dimension()) + ")";
    case TypeId::kList: text = listed("ListType", ""); break;
    case TypeId::kSet: text = listed("SetType", ""); break;
    case TypeId::kMap: text = listed("MapType", ""); break;
    case TypeId::kTuple: return listed("TupleType", "");
    case TypeId::kUdt: text = listed("UserType", keyspace() + "," + Hex(name())); break;
    default: return std::string(kPackage) + std::string(FindNative(id_)->java);
  }
  return frozen_ ? std::string(kPackage) + "FrozenType(" + text + ")" : text;
}

void DataType::AppendOption(int version, WireWriter& writer) const {
  const Native* native = FindNative(id_);
  bool custom = id_ == TypeId::kCustom || id_ == TypeId::kVector ||
                (native != nullptr && version < native->since);
  writer.Short(custom ? 0 : static_cast<uint16_t>(id_));
  if (custom) {
    writer.String(ToClassName());
    return;
  }
  if (id_ == TypeId::kUdt) {
    writer.String(keyspace());
    writer.String(name());
  }
  if (id_ == TypeId::kUdt || id_ == TypeId::kTuple) {
    writer.Short(static_cast<uint16_t>(parameters().size()));
  }
  for (size_t i = 0; i < parameters().size(); ++i) {
    if (id_ == TypeId::kUdt) {
      writer.String(field_names()[i]);
    }
    parameters()[i].AppendOption(version, writer);
  }
}

// type := id varint, frozen bool, then of a type with parameters:
//         keyspace bytes, name bytes, dimension varint, count varint, (field name bytes, type)*
void DataType::Encode(Encoder& encoder) const {
  encoder.Varint(static_cast<uint64_t>(id_));
  encoder.Bool(frozen_);
  if (FindNative(id_) != nullptr) {
    return;
  }
  encoder.Bytes(keyspace());
  encoder.Bytes(name());
  encoder.Varint(dimension());
  encoder.Varint(parameters().size());
  for (size_t i = 0; i < parameters().size(); ++i) {
    encoder.Bytes(field_names().empty() ? std::string_view() : field_names()[i]);
    parameters()[i].Encode(encoder);
  }
}

DataType DataType::Decode(Decoder& decoder) { return DecodeNested(decoder, 0); }

DataType DataType::DecodeNested(Decoder& decoder, int depth) {
  auto id = static_cast<TypeId>(decoder.Varint());
  bool frozen = decoder.Bool();
  if (FindNative(id) != nullptr && decoder.ok()) {
    return id;
  }
  auto body = std::make_shared<Body>();
  body->keyspace = decoder.Bytes();
  body->name = decoder.Bytes();
  body->dimension = static_cast<uint32_t>(decoder.Varint());
  uint64_t count = decoder.Varint();
  for (uint64_t i = 0; i < count && decoder.ok() && depth < kNestingMax; ++i) {
    std::string_view name = decoder.Bytes();
    if (id == TypeId::kUdt) {
      body->field_names.emplace_back(name);
    }
    body->parameters.push_back(DecodeNested(decoder, depth + 1));
  }
  bool good = decoder.ok() && body->parameters.size() == count;
  switch (id) {
    case TypeId::kCustom: good = good && count == 0; break;
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kVector: good = good && count == 1; break;
    case TypeId::kMap: good = good && count == 2; break;
    case TypeId::kTuple:
    case TypeId::kUdt: good = good && count <= kFieldsMax; break;
    default: good = false;
  }
  if (!good) {
    decoder.Fail();
    return TypeId::kBlob;
  }
  return DataType(id, frozen, std::move(body));
}

}  // namespace orrery::cql
