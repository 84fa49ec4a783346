// SelectionBuilder: compiles what SELECT names. Inside of cql/ only.
#pragma once

#include <functional>
#include <string>

#include "cql/compile.h"
#include "cql/selection.h"

namespace orrery::cql {

class SelectionBuilder final : public SelectionScope {
 public:
  SelectionBuilder(const Table& table, MarkerSpecs& markers, const TypeScope& scope);

  Result<Selection> Build(const Select& select, const std::function<bool(const Column&)>& fixed);

  bool Knows(const Expression& expression) const override;
  std::optional<DataType> TypeOf(const Expression& expression) override;
  Result<NodePtr> Compile(const Expression& expression) override;

 private:
  void AddAll();
  Status AddSelector(const Selector& selector);
  Status AddGroupBy(const Select& select, const std::function<bool(const Column&)>& fixed);
  void Finish(const Select& select);

  Receiver Place(std::string name, DataType type = TypeId::kBlob) const;
  Result<const Column*> FindColumn(std::string_view name) const;
  uint16_t PlaceOf(const Column& column) const;

  Result<NodePtr> CompileColumn(const Expression& expression);
  Result<NodePtr> CompileElement(const Expression& expression);
  Result<NodePtr> CompileField(const Expression& expression);
  Result<NodePtr> CompileTimes(const Expression& expression);
  Result<NodePtr> CompileAggregate(const Expression& expression);
  Result<NodePtr> CompileBound(const Expression& key, const NodePtr& whole, std::string name);
  std::optional<DataType> TypeOfTimes(const Expression& expression);

  const Table& table_;
  Compiler compiler_;
  Selection selection_;
  bool in_aggregate_ = false;
  bool aggregated_ = false;  // of the selector at hand
};

// The name of a result column without an alias.
std::string NameOf(const Expression& expression);

// selection_times.cc: writetime, maxwritetime and ttl.
enum class TimesKind : uint8_t { kWritetime, kMaxWritetime, kTtl };
struct TimesOf {
  TimesKind kind = TimesKind::kWritetime;
  uint16_t column = 0;
  DataType type;  // of the column
  // Of an element or a slice of a collection; a bound that is null was left out.
  NodePtr element;
  bool slice = false;
  NodePtr lower;
  NodePtr upper;
  std::optional<size_t> field;  // of a user type

  bool many() const { return type.multi_cell() && element == nullptr && !field; }
  // bigint or int; of many cells a list of them, but for maxwritetime.
  DataType ResultType() const;
};
NodePtr TimesNode(TimesOf times);

}  // namespace orrery::cql
