// Node: an expression whose types are checked, ready to be computed. Inside of cql/ only.
//
// Immutable, so threads may share it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/row_input.h"

namespace orrery::cql {

struct Function;

// What a computation may look at.
struct NodeInputs {
  std::span<const MarkerValue> markers;
  FunctionContext& context;
  const RowInput* row = nullptr;  // of a selection
  // What the aggregates of a selection came to.
  std::span<const std::optional<std::string>> aggregates = {};
};

class Node {
 public:
  explicit Node(DataType type) : type_(std::move(type)) {}
  virtual ~Node() = default;
  const DataType& type() const { return type_; }
  virtual bool constant() const { return false; }
  virtual int marker() const { return -1; }
  virtual Result<Bound> Evaluate(const NodeInputs& inputs) const = 0;

 private:
  const DataType type_;
};
using NodePtr = std::shared_ptr<const Node>;

NodePtr ConstantNode(DataType type, std::optional<std::string> value);
NodePtr MarkerNode(DataType type, uint16_t marker);
// A list, set, map or vector; the parts of a map are key, value, key, value.
NodePtr CollectionNode(DataType type, std::vector<NodePtr> parts);
// A tuple or user type, as many parts as fields. Null parts are null.
NodePtr FieldsNode(DataType type, std::vector<NodePtr> parts);
NodePtr CallNode(std::shared_ptr<const Function> function, std::vector<NodePtr> arguments);
// The same value, seen as another type.
NodePtr RetypedNode(DataType type, NodePtr node);

// Of selections only.
NodePtr ColumnNode(DataType type, uint16_t column);
NodePtr AggregateNode(DataType type, size_t aggregate);
NodePtr ElementNode(NodePtr collection, NodePtr key);
// A bound that is null was left out.
NodePtr SliceNode(NodePtr collection, NodePtr lower, NodePtr upper);
NodePtr FieldNode(NodePtr value, size_t field);

// A node that is constant already, or is made so now.
Result<NodePtr> Folded(NodePtr node);

}  // namespace orrery::cql
