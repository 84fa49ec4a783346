// Filters: whether a row is as WHERE or IF asks. For ALLOW FILTERING, and for conditional changes.
//
// In WHERE what is null never fits, and null cannot be asked for. In IF null is a value: c = null
// holds if the column has none, and so do c != 1 and c IN (null).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/expression.h"
#include "cql/resolve_type.h"
#include "cql/row_input.h"
#include "cql/schema.h"
#include "cql/term.h"

namespace orrery::cql {

// How it is written: <=, CONTAINS KEY.
std::string_view SignOf(Comparison comparison);
// Whether it bounds a range.
bool IsSlice(Comparison comparison);

// Whether a value stands to another as a comparison says: = != < <= > >= of values of one type,
// CONTAINS and CONTAINS KEY of a collection and a part. Pure. REQUIRES: one of these.
bool Holds(Comparison comparison, const DataType& type, std::string_view value,
           std::string_view operand);

class BoundFilter;

// One relation, its types checked. Immutable; threads may share it.
class Filter {
 public:
  enum class Use : uint8_t { kWhere, kCondition };

  // The table must outlive the filter. kInvalidArgument in Cassandra's words.
  static Result<Filter> Prepare(const Relation& relation, const Table& table, Use use,
                                MarkerSpecs& markers, const TypeScope& scope);

  // The places of the columns that it looks at.
  const std::vector<uint16_t>& columns() const { return columns_; }
  Comparison comparison() const { return comparison_; }
  RelationTarget target() const { return target_; }

  // Takes what markers bring. REQUIRES: the filter, the markers and the request outlive the result.
  Result<BoundFilter> Bind(const Bindings& bindings) const;

 private:
  friend class BoundFilter;
  Status Check(const Relation& relation) const;
  Status CheckTarget(const Relation& relation) const;
  Status SetTypes(const Relation& relation, MarkerSpecs& markers, const TermScope& scope);
  Status SetOperands(const Relation& relation, MarkerSpecs& markers, const TermScope& scope);
  Status AddOperand(const Expression& expression, const Receiver& receiver, MarkerSpecs& markers,
                    const TermScope& scope);
  Result<std::optional<std::string>> Checked(Bound value) const;
  std::string Names() const;

  const Table* table_ = nullptr;
  Use use_ = Use::kWhere;
  RelationTarget target_ = RelationTarget::kColumn;
  Comparison comparison_ = Comparison::kEqual;
  bool in_marker_ = false;
  std::vector<uint16_t> columns_;
  DataType type_;      // of what is compared: column, element, field, tuple of columns
  Receiver receiver_;  // of an operand
  size_t field_ = 0;   // of kField
  std::optional<Term> element_;
  std::vector<Term> operands_;
};

// A filter of one execution.
class BoundFilter {
 public:
  bool Matches(const RowInput& row) const;
  // What is compared with; and of m[element] = operand the element.
  const std::vector<std::optional<std::string>>& operands() const { return operands_; }
  const std::string& element() const { return element_; }

 private:
  friend class Filter;
  explicit BoundFilter(const Filter& filter) : filter_(&filter) {}
  bool MatchesTuple(const RowInput& row, Comparison comparison, std::string_view operand) const;
  bool MatchesValue(std::optional<std::string_view> value) const;
  bool MatchesOne(Comparison comparison, std::optional<std::string_view> value,
                  const std::optional<std::string>& operand) const;
  std::optional<std::string_view> ValueOf(const RowInput& row) const;

  const Filter* filter_;
  std::string element_;
  std::vector<std::optional<std::string>> operands_;
};

}  // namespace orrery::cql
