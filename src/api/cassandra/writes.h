// INSERT, UPDATE and DELETE: compiled once, bound to values for each execution.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/cassandra/restrictions.h"
#include "base/status.h"
#include "cql/ast.h"
#include "cql/schema.h"
#include "cql/term.h"
#include "rows/rows.h"

namespace orrery::cassandra {

// What one statement does to one partition.
struct BoundWrite {
  std::string partition_key;
  std::vector<rows::RowChange> changes;
  std::vector<rows::RowCondition> conditions;
};

// A term of IF, before it is bound.
struct ConditionTerm {
  const cql::Column* column = nullptr;
  cql::Comparison comparison = cql::Comparison::kEqual;
  rows::CellCondition::Part part = rows::CellCondition::Part::kAll;
  std::optional<cql::Term> element;
  uint32_t field = 0;
  std::vector<cql::Term> values;
  bool in_marker = false;
};

class WritePlan {
 public:
  // The table must outlive it.
  static Result<WritePlan> Compile(const cql::Insert& insert, const Preparation& in);
  static Result<WritePlan> Compile(const cql::Update& update, const Preparation& in);
  static Result<WritePlan> Compile(const cql::Delete& deletion, const Preparation& in);

  const cql::Table& table() const { return *table_; }
  bool conditional() const { return if_exists_ || if_not_exists_ || !conditions_.empty(); }
  bool if_not_exists() const { return if_not_exists_; }
  bool has_timestamp() const { return timestamp_.has_value(); }
  bool counts() const { return counts_; }
  std::vector<uint16_t> KeyMarkers() const;
  // The columns that the answer to a condition shows; all if it is IF NOT EXISTS or IF EXISTS.
  std::vector<const cql::Column*> ShownColumns() const;

  struct Defaults {
    std::optional<int64_t> timestamp;  // of the request, or of the batch
    std::optional<int32_t> now;        // of the request: seconds since 1970 that a TTL counts from
  };
  // One for each partition.
  Result<std::vector<BoundWrite>> Bind(const Binding& binding, const Defaults& defaults) const;

 private:
  enum class Action : uint8_t {
    kSet,       // the whole value
    kAdd,       // to a collection or counter
    kSubtract,  // from a collection or counter
    kPrepend,
    kSetElement,
    kSetField,
    kDelete,
    kDeleteElement,
    kDeleteField,
  };
  struct Cell {
    Action action = Action::kSet;
    const cql::Column* column = nullptr;
    std::optional<cql::Term> element;
    size_t field = 0;
    std::optional<cql::Term> value;
  };
  // Where the rows are whose cells are written; the static one too.
  struct Place {
    std::vector<std::string> partitions;
    std::vector<rows::RowSpan> spans;
  };

  Status AddAssignment(const cql::Assignment& assignment, const Preparation& in);
  Status AddDeletion(const cql::Deletion& deletion, const Preparation& in);
  Status AddUsing(const cql::Using& with, const Preparation& in);
  Status AddConditions(const cql::Conditions& conditions, const Preparation& in);
  Status AddCondition(const cql::Relation& relation, const Preparation& in);
  Status CheckPlace(const Preparation& in);
  bool only_static() const;

  // Sets when it was written, and for how long.
  Status BindTimes(const Binding& binding, const Defaults& defaults, rows::RowChange& change) const;
  Result<int32_t> BindTtl(const Binding& binding) const;
  Result<std::optional<int64_t>> BindTimestamp(const Binding& binding,
                                               const Defaults& defaults) const;
  Result<Place> BindPlace(const Binding& binding) const;
  Result<std::vector<BoundWrite>> BindJson(const Binding& binding, const Defaults& defaults) const;
  Result<std::vector<BoundWrite>> Assemble(const Place& place, rows::RowChange statics,
                                           rows::RowChange regulars, const Binding& binding) const;
  Status BindCell(const Cell& cell, const Binding& binding, rows::RowChange& change) const;
  Result<std::vector<rows::CellCondition>> BindConditions(const Binding& binding) const;

  const cql::Table* table_ = nullptr;
  enum class Kind : uint8_t { kInsert, kUpdate, kDelete } kind_ = Kind::kInsert;
  Restrictions where_;
  std::vector<Cell> cells_;
  std::optional<cql::Term> json_;
  bool default_unset_ = false;
  std::optional<cql::Term> timestamp_;
  std::optional<cql::Term> ttl_;
  bool if_not_exists_ = false;
  bool if_exists_ = false;
  std::vector<ConditionTerm> conditions_;
  bool counts_ = false;
};

// The cells that a whole value of a column is; null: it is deleted.
void AppendCells(const cql::Column& column, std::optional<std::string_view> value,
                 std::vector<rows::CellChange>& cells);

}  // namespace orrery::cassandra
