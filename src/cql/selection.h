// Selection: what SELECT gives of each row, or of each group of rows.
//
// Prepared once, then immutable and shared by threads. What is selected is found in four ways:
//   plain()        only columns: the caller copies them by their places
//   Evaluate       one row in, one row out
//   Aggregator     with aggregates or GROUP BY: many rows in, one row out for each group
//   JSON           any of them, with one column of text at the end
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cql/aggregate.h"
#include "cql/ast.h"
#include "cql/binding.h"
#include "cql/node.h"
#include "cql/resolve_type.h"
#include "cql/row_input.h"
#include "cql/schema.h"

namespace orrery::cql {

class Selection {
 public:
  // `fixed` tells of a column whether WHERE gives it one value, which GROUP BY may then leave out.
  // kInvalidArgument in Cassandra's words.
  static Result<Selection> Prepare(const Select& select, const Table& table, MarkerSpecs& markers,
                                   const TypeScope& scope,
                                   const std::function<bool(const Column&)>& fixed = {});

  // Names and types as clients see them.
  const std::vector<Receiver>& columns() const { return columns_; }
  // The places in Table::columns of what is selected; null if there is more to do than to copy.
  const std::vector<uint16_t>* plain() const { return plain_ ? &*plain_ : nullptr; }
  // Of each of Table::columns, whether its value is needed.
  const std::vector<bool>& needed() const { return needed_; }
  bool needs_times() const { return needs_times_; }  // RowInput::times
  // Whether an Aggregator is needed.
  bool grouped() const { return !aggregates_.empty() || !group_by_.empty(); }
  bool has_aggregates() const { return !aggregates_.empty(); }
  bool has_group_by() const { return !group_by_.empty(); }
  bool json() const { return json_; }
  // Whether nothing is needed but the partition key; but that and static columns.
  bool only_partition_key() const { return only_partition_key_; }
  bool only_static() const { return only_static_; }

  // One value for each of columns(): views into the row, the selection and the markers, or owned.
  // REQUIRES: not grouped().
  Status Evaluate(const RowInput& row, const Bindings& bindings, std::vector<Bound>& out) const;

 private:
  friend class Aggregator;
  friend class SelectionBuilder;
  struct Part {
    std::string name;
    NodePtr node;
    bool aggregated = false;  // an aggregate is in it
  };
  struct AggregatePart {
    AggregatePtr function;
    NodePtr argument;  // null: count(*)
  };
  void ToJson(std::vector<Bound>& row) const;

  std::vector<Receiver> columns_;
  std::optional<std::vector<uint16_t>> plain_;
  std::vector<bool> needed_;
  bool needs_times_ = false;
  bool json_ = false;
  bool only_partition_key_ = false;
  bool only_static_ = false;
  std::vector<Part> parts_;
  std::vector<AggregatePart> aggregates_;
  std::vector<NodePtr> group_by_;
};

// Aggregator: the groups of one execution. Rows of a group must follow each other, as those with a
// common beginning of the primary key do. What is no aggregate is taken from the first row of the
// group.
class Aggregator {
 public:
  using Sink = std::function<Status(std::vector<Bound>& row)>;

  // What is given must outlive it. REQUIRES: selection.grouped().
  Aggregator(const Selection& selection, const Bindings& bindings, Sink sink);

  // Gives the group before to the sink if the row begins another one.
  Status Add(const RowInput& row);
  // Gives the last group. Without GROUP BY there is always one.
  Status Finish();

 private:
  Status Begin(const RowInput& row);
  Status Emit();
  // The values of GROUP BY.
  Result<std::vector<std::optional<std::string>>> KeyOf(const RowInput& row) const;
  bool SameKey(const std::vector<std::optional<std::string>>& key) const;

  const Selection& selection_;
  const Bindings bindings_;
  const Sink sink_;
  bool in_group_ = false;
  std::vector<std::optional<std::string>> key_;
  std::vector<std::unique_ptr<AggregateState>> states_;
  // Of the first row: the values of parts without aggregates, and all columns for the others.
  std::vector<std::optional<std::string>> first_parts_;
  std::vector<std::optional<std::string>> first_row_;
};

}  // namespace orrery::cql
