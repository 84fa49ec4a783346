// Restrictions: what WHERE says of the key of a table, and what is left to be filtered.
//
// Compiled once for a statement, bound to values for each execution.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/expression.h"
#include "cql/filter.h"
#include "cql/schema.h"
#include "cql/term.h"
#include "rows/rows.h"
#include "types/epk.h"

namespace orrery::cassandra {

// What a statement is executed with.
struct Binding {
  std::span<const cql::MarkerValue> values;
  cql::FunctionContext& context;
};

// What the terms of a statement are prepared with.
struct Preparation {
  const cql::Table& table;
  const cql::TypeScope& types;
  cql::MarkerSpecs& markers;

  cql::Receiver Of(const cql::Column& column) const {
    return {table.keyspace, table.name, column.name, column.type};
  }
  Result<cql::Term> Prepare(const cql::Expression& expression, const cql::Receiver& for_) const {
    return cql::PrepareTerm(expression, for_, markers, cql::TermScope(types, &table));
  }
};

// Of one column, or of several that stand in a tuple.
struct Restriction {
  enum class Kind : uint8_t { kNone, kEqual, kIn, kSlice };
  Kind kind = Kind::kNone;
  size_t columns = 1;
  bool tuple = false;             // terms are tuples
  std::vector<cql::Term> values;  // of kEqual one, of kIn those in parentheses
  std::optional<cql::Term> in;    // of kIn: one marker for all, a list
  std::optional<cql::Term> lower;
  std::optional<cql::Term> upper;
  bool lower_closed = false;
  bool upper_closed = false;
};

// A value of a partition key column, if it can be one.
Result<std::string> CheckPart(const cql::Table& table, std::string bytes);
// Whether a clustering key, as cql/ordered_value.h has it, is not too long.
Status CheckClustering(std::string_view key);

class Restrictions {
 public:
  // kFilter: everything is filtered, but for token(), which is left to Range().
  enum class Use : uint8_t { kSelect, kUpdate, kDelete, kFilter };
  static Result<Restrictions> Compile(const cql::Where& where, const Preparation& in, Use use);

  // Whether it names partitions; else a part of the ring.
  bool names_partitions() const { return names_partitions_; }
  // Whether it names more than one, or may.
  bool many_partitions() const;
  bool restricts_partition_key() const;
  bool has_token() const { return token_.has_value(); }
  // How many clustering columns are restricted, from the first on; all of them by equality?
  size_t clustering_columns() const { return clustering_columns_; }
  bool names_rows() const { return names_rows_; }
  bool many_rows() const;
  // What is looked at row by row.
  const std::vector<cql::Filter>& filters() const { return filters_; }
  // Of SELECT: whether what is wanted cannot be found by the key alone.
  bool needs_filtering() const { return needs_filtering_; }
  // Whether an index finds all that is filtered.
  bool IsIndexed() const;
  // By which rows of unnamed partitions are found, instead of looking at all of them.
  struct IndexUse {
    std::string index;
    cql::IndexTargetKind kind = cql::IndexTargetKind::kSimple;
    cql::Filter filter;
  };
  const std::optional<IndexUse>& index() const { return index_; }
  // Markers that make up the partition key, in its order; empty if some are missing.
  std::vector<uint16_t> KeyMarkers() const;

  // The serialized partition keys, without doubles. REQUIRES: names_partitions().
  Result<std::vector<std::string>> PartitionKeys(const Binding& binding) const;
  // The part of the ring. REQUIRES: !names_partitions().
  Result<types::EpkRange> Range(const Binding& binding) const;
  // The rows of each partition, in order; none: all of them.
  Result<std::vector<rows::RowSpan>> Spans(const Binding& binding) const;

 private:
  Status Add(const cql::Relation& relation, const Preparation& in);
  Status AddColumn(const cql::Relation& relation, const cql::Column& column, const Preparation& in);
  Status AddTuple(const cql::Relation& relation, const Preparation& in);
  Status AddToken(const cql::Relation& relation, const Preparation& in);
  Status Finish(Use use);
  Status FinishClustering(Use use);
  void ChooseIndex();
  // A value of a partition key column.
  Result<std::string> BindPart(const cql::Term& term, const Binding& binding,
                               const cql::Column& column) const;
  // Null: none.
  const cql::Index* IndexFor(const cql::Filter& filter) const;

  const cql::Table* table_ = nullptr;
  std::vector<Restriction> partition_;                // one for each partition key column
  std::vector<Restriction> clustering_;               // one for each clustering column
  std::vector<std::vector<cql::Filter>> as_filters_;  // the same, to be filtered
  std::optional<Restriction> token_;
  std::vector<cql::Filter> filters_;
  std::optional<IndexUse> index_;
  bool names_partitions_ = false;
  bool names_rows_ = false;
  bool needs_filtering_ = false;
  size_t clustering_columns_ = 0;
};

}  // namespace orrery::cassandra
