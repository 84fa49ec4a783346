// DataType: a type of CQL. A small immutable value; copies share their parameters.
//
// What is inside a frozen type is frozen too, tuples and vectors always are, and so are the
// collections and user types inside of any other type: the factories see to that.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cql/type_id.h"
#include "cql/wire.h"

namespace orrery::cql {

class DataType {
 public:
  // How deep types may lie in each other, how many there may be in one type all in all, and how
  // many fields it may have.
  static constexpr int kNestingMax = 32;
  static constexpr size_t kPartsMax = 32'767;
  static constexpr size_t kFieldsMax = 32'767;
  static constexpr size_t kDimensionMax = 8'192;

  struct Field;

  DataType() : DataType(TypeId::kBlob) {}
  // REQUIRES: a type without parameters.
  DataType(TypeId id);  // NOLINT: `DataType type = TypeId::kInt` is meant to work
  static DataType List(DataType element, bool frozen = false);
  static DataType Set(DataType element, bool frozen = false);
  static DataType Map(DataType key, DataType value, bool frozen = false);
  static DataType Tuple(std::vector<DataType> elements);
  static DataType Udt(std::string keyspace, std::string name, std::vector<Field> fields,
                      bool frozen = false);
  static DataType Vector(DataType element, uint32_t dimension);
  static DataType Custom(std::string class_name);
  // The type without parameters that CQL calls so, in any case; `varchar` is text.
  static std::optional<DataType> ByName(std::string_view name);

  TypeId id() const { return id_; }
  bool is_collection() const {
    return id_ == TypeId::kList || id_ == TypeId::kSet || id_ == TypeId::kMap;
  }
  bool frozen() const { return frozen_; }
  // Whether its parts are cells of their own: a collection or user type that is not frozen.
  bool multi_cell() const { return (is_collection() || id_ == TypeId::kUdt) && !frozen_; }
  DataType Frozen() const;

  // Of a list, set or vector one; of a map key and value; of a tuple or user type each field.
  const std::vector<DataType>& parameters() const;
  const DataType& element() const { return parameters().front(); }  // also the key of a map
  const DataType& mapped() const { return parameters().back(); }    // REQUIRES: a map
  uint32_t dimension() const;                                       // REQUIRES: a vector
  // Of a user type.
  const std::string& keyspace() const;
  const std::string& name() const;  // also the class of a custom type
  const std::vector<std::string>& field_names() const;
  // The place of a field; nothing if there is none.
  std::optional<size_t> FieldIndex(std::string_view field) const;

  // How many levels of types there are, and how many types: 1 and 1 of a type without parameters.
  int height() const;
  size_t part_count() const;

  // Whether the type is, or holds, this one.
  bool Contains(TypeId id) const;
  // The number of bytes of every value in a vector; nothing if they differ.
  std::optional<size_t> FixedSize() const;

  // The parameters count, and so does frozen.
  bool operator==(const DataType& other) const;

  // As system_schema shows it: frozen<list<int>>, map<text, frozen<tuple<int, text>>>.
  std::string ToCql() const;
  // As a class of Cassandra: org.apache.cassandra.db.marshal.Int32Type.
  std::string ToClassName() const;
  // The [option] of result metadata. Types that a version does not know go as custom ones.
  void AppendOption(int version, WireWriter& writer) const;

  // For the catalog and for operations between nodes.
  void Encode(Encoder& encoder) const;
  // On malformed input the decoder fails, and the type is blob.
  static DataType Decode(Decoder& decoder);

 private:
  struct Body;
  DataType(TypeId id, bool frozen, std::shared_ptr<const Body> body)
      : id_(id), frozen_(frozen), body_(std::move(body)) {}
  static DataType Make(TypeId id, bool frozen, Body body);
  static DataType DecodeNested(Decoder& decoder, int depth);

  TypeId id_;
  bool frozen_ = false;
  std::shared_ptr<const Body> body_;  // null: no parameters
};

struct DataType::Field {
  std::string name;
  DataType type;
};

}  // namespace orrery::cql
