#include "cql/data_type.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cql/letters.h"
#include "cql/quoted.h"

namespace orrery::cql {

struct DataType::Body {
  std::vector<DataType> parameters;
  std::vector<std::string> field_names;
  std::string keyspace;
  std::string name;
  uint32_t dimension = 0;
  int height = 1;
  size_t part_count = 1;
};

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.db.marshal.";

std::string Hex(std::string_view text) { return Lower(ToHex(text)); }

const std::string kNoText;
const std::vector<std::string> kNoNames;
const std::vector<DataType> kNoTypes;

}  // namespace

DataType::DataType(TypeId id) : id_(id) { ORRERY_CHECK(FindNativeType(id) != nullptr); }

DataType DataType::Make(TypeId id, bool frozen, Body body) {
  for (DataType& parameter : body.parameters) {
    parameter = parameter.Frozen();
    body.height = std::max(body.height, parameter.height() + 1);
    // A type may stand in another many times, so the sum can grow beyond all bounds.
    body.part_count = std::min<size_t>(body.part_count + parameter.part_count(), UINT32_MAX);
  }
  return DataType(id, frozen, std::make_shared<const Body>(std::move(body)));
}

DataType DataType::List(DataType element, bool frozen) {
  return Make(TypeId::kList, frozen, {.parameters = {std::move(element)}});
}

DataType DataType::Set(DataType element, bool frozen) {
  return Make(TypeId::kSet, frozen, {.parameters = {std::move(element)}});
}

DataType DataType::Map(DataType key, DataType value, bool frozen) {
  return Make(TypeId::kMap, frozen, {.parameters = {std::move(key), std::move(value)}});
}

DataType DataType::Tuple(std::vector<DataType> elements) {
  return Make(TypeId::kTuple, true, {.parameters = std::move(elements)});
}

DataType DataType::Udt(std::string keyspace, std::string name, std::vector<Field> fields,
                       bool frozen) {
  Body body{.keyspace = std::move(keyspace), .name = std::move(name)};
  for (Field& field : fields) {
    body.field_names.push_back(std::move(field.name));
    body.parameters.push_back(std::move(field.type));
  }
  return Make(TypeId::kUdt, frozen, std::move(body));
}

DataType DataType::Vector(DataType element, uint32_t dimension) {
  return Make(TypeId::kVector, true, {.parameters = {std::move(element)}, .dimension = dimension});
}

DataType DataType::Custom(std::string class_name) {
  return Make(TypeId::kCustom, false, {.name = std::move(class_name)});
}

std::optional<DataType> DataType::ByName(std::string_view name) {
  const NativeType* found = FindNativeType(name);
  return found == nullptr ? std::nullopt : std::optional<DataType>(found->id);
}

DataType DataType::Frozen() const {
  bool has_form = is_collection() || id_ == TypeId::kUdt;
  return has_form ? DataType(id_, true, body_) : *this;
}

const std::vector<DataType>& DataType::parameters() const {
  return body_ == nullptr ? kNoTypes : body_->parameters;
}
int DataType::height() const { return body_ == nullptr ? 1 : body_->height; }
size_t DataType::part_count() const { return body_ == nullptr ? 1 : body_->part_count; }
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
  const NativeType* native = FindNativeType(id_);
  return native == nullptr || native->fixed_size == 0 ? std::nullopt
                                                      : std::optional(native->fixed_size);
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
    case TypeId::kCustom: return QuotedString(name());
    case TypeId::kVector:
      return "vector<" + element().ToCql() + ", " + std::to_string(dimension()) + ">";
    case TypeId::kList: text = listed("list"); break;
    case TypeId::kSet: text = listed("set"); break;
    case TypeId::kMap: text = listed("map"); break;
    case TypeId::kTuple: text = listed("tuple"); break;
    case TypeId::kUdt: text = QuotedTypeName(name()); break;
    default: return std::string(FindNativeType(id_)->cql);
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
    default: return std::string(kPackage) + std::string(FindNativeType(id_)->java);
  }
  return frozen_ ? std::string(kPackage) + "FrozenType(" + text + ")" : text;
}

void DataType::AppendOption(int version, WireWriter& writer) const {
  const NativeType* native = FindNativeType(id_);
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
  if (FindNativeType(id_) != nullptr) {
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
  if (FindNativeType(id) != nullptr && decoder.ok()) {
    return id;
  }
  Body body;
  body.keyspace = decoder.Bytes();
  body.name = decoder.Bytes();
  body.dimension = static_cast<uint32_t>(decoder.Varint());
  uint64_t count = decoder.Varint();
  for (uint64_t i = 0; i < count && decoder.ok() && depth < kNestingMax; ++i) {
    std::string_view name = decoder.Bytes();
    if (id == TypeId::kUdt) {
      body.field_names.emplace_back(name);
    }
    body.parameters.push_back(DecodeNested(decoder, depth + 1));
  }
  bool good = decoder.ok() && body.parameters.size() == count;
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
  return Make(id, frozen, std::move(body));
}

}  // namespace orrery::cql
