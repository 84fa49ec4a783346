#include "cql/node.h"

#include "cql/functions.h"
#include "cql/parts.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

bool AllConstant(const std::vector<NodePtr>& nodes) {
  for (const NodePtr& node : nodes) {
    if (node != nullptr && !node->constant()) {
      return false;
    }
  }
  return true;
}

class Constant final : public Node {
 public:
  Constant(DataType type, std::optional<std::string> value)
      : Node(std::move(type)), value_(std::move(value)) {}
  bool constant() const override { return true; }
  Result<Bound> Evaluate(const NodeInputs&) const override {
    return value_ ? Bound::View(std::string_view(*value_)) : Bound();
  }

 private:
  const std::optional<std::string> value_;
};

class Marker final : public Node {
 public:
  Marker(DataType type, uint16_t marker)
      : Node(std::move(type)),
        marker_(marker),
        has_order_(this->type().Contains(TypeId::kSet) || this->type().Contains(TypeId::kMap)) {}
  int marker() const override { return marker_; }
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    const MarkerValue& value = inputs.markers[marker_];
    if (value.kind != MarkerValue::Kind::kValue) {
      return value.kind == MarkerValue::Kind::kNull ? Bound() : Bound::Unset();
    }
    ORRERY_TRY_STATUS(ValidateValue(type(), value.bytes));
    return has_order_ ? Bound::Own(CanonicalValue(type(), value.bytes)) : Bound::View(value.bytes);
  }

 private:
  const uint16_t marker_;
  const bool has_order_;
};

class Collection final : public Node {
 public:
  Collection(DataType type, std::vector<NodePtr> parts)
      : Node(std::move(type)), parts_(std::move(parts)) {}
  bool constant() const override { return AllConstant(parts_); }
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    std::string out;
    PartWriter writer(type(), out);
    for (const NodePtr& part : parts_) {
      ORRERY_TRY(Bound value, part->Evaluate(inputs));
      if (value.is_unset()) {
        return Invalid("unset value is not supported inside collections");
      }
      if (value.is_null()) {
        return Invalid("null is not supported inside collections");
      }
      writer.Add(value.bytes());
    }
    writer.Finish();
    bool ordered = type().id() == TypeId::kSet || type().id() == TypeId::kMap;
    return Bound::Own(ordered ? CanonicalValue(type(), out) : std::move(out));
  }

 private:
  const std::vector<NodePtr> parts_;
};

class Fields final : public Node {
 public:
  Fields(DataType type, std::vector<NodePtr> parts)
      : Node(std::move(type)), parts_(std::move(parts)) {}
  bool constant() const override { return AllConstant(parts_); }
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    std::string out;
    PartWriter writer(type(), out);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i] == nullptr) {
        writer.Add(std::nullopt);
        continue;
      }
      ORRERY_TRY(Bound value, parts_[i]->Evaluate(inputs));
      if (value.is_unset()) {
        return type().id() == TypeId::kUdt
                   ? Invalid("Invalid unset value for field '" + type().field_names()[i] +
                             "' of user defined type " + type().name())
                   : Invalid("Invalid unset value for tuple field number " + std::to_string(i));
      }
      writer.Add(value.value());
    }
    writer.Finish();
    return Bound::Own(std::move(out));
  }

 private:
  const std::vector<NodePtr> parts_;
};

class Call final : public Node {
 public:
  Call(FunctionPtr function, std::vector<NodePtr> arguments)
      : Node(function->result), function_(std::move(function)), arguments_(std::move(arguments)) {}
  bool constant() const override { return function_->pure && AllConstant(arguments_); }
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    std::vector<Bound> bound;
    bound.reserve(arguments_.size());
    std::vector<MaybeView> values;
    values.reserve(arguments_.size());
    for (const NodePtr& argument : arguments_) {
      ORRERY_TRY(Bound value, argument->Evaluate(inputs));
      if (value.is_unset()) {
        return Invalid("Invalid unset value for argument in call to function " + function_->name);
      }
      if (value.is_null() && !function_->takes_null) {
        return Bound();
      }
      bound.push_back(std::move(value));
      values.push_back(bound.back().value());
    }
    ORRERY_TRY(MaybeBytes result, function_->run(values, inputs.context));
    return Bound::Own(std::move(result));
  }

 private:
  const FunctionPtr function_;
  const std::vector<NodePtr> arguments_;
};

class Retyped final : public Node {
 public:
  Retyped(DataType type, NodePtr node) : Node(std::move(type)), node_(std::move(node)) {}
  bool constant() const override { return node_->constant(); }
  int marker() const override { return node_->marker(); }
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    return node_->Evaluate(inputs);
  }

 private:
  const NodePtr node_;
};

class ColumnValue final : public Node {
 public:
  ColumnValue(DataType type, uint16_t column) : Node(std::move(type)), column_(column) {}
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    return inputs.row == nullptr ? Bound() : Bound::View(inputs.row->values[column_]);
  }

 private:
  const uint16_t column_;
};

class Aggregate final : public Node {
 public:
  Aggregate(DataType type, size_t aggregate) : Node(std::move(type)), aggregate_(aggregate) {}
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    const std::optional<std::string>& value = inputs.aggregates[aggregate_];
    return value ? Bound::View(std::string_view(*value)) : Bound();
  }

 private:
  const size_t aggregate_;
};

// A part of a value that is about to go: a view only if the whole was one.
Bound PartOf(const Bound& whole, std::optional<std::string_view> part) {
  return part && whole.owns() ? Bound::Own(std::string(*part)) : Bound::View(part);
}

class Element final : public Node {
 public:
  Element(NodePtr collection, NodePtr key)
      : Node(collection->type().parameters().back()),
        collection_(std::move(collection)),
        key_(std::move(key)) {}
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    ORRERY_TRY(Bound whole, collection_->Evaluate(inputs));
    ORRERY_TRY(Bound key, key_->Evaluate(inputs));
    if (key.is_unset()) {
      return Invalid("Invalid unset value for element selection");
    }
    if (!whole.has_value() || !key.has_value()) {
      return Bound();
    }
    return PartOf(whole, FindPart(collection_->type(), whole.bytes(), key.bytes()));
  }

 private:
  const NodePtr collection_;
  const NodePtr key_;
};

class Slice final : public Node {
 public:
  Slice(NodePtr collection, NodePtr lower, NodePtr upper)
      : Node(collection->type()),
        collection_(std::move(collection)),
        lower_(std::move(lower)),
        upper_(std::move(upper)) {}
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    ORRERY_TRY(Bound whole, collection_->Evaluate(inputs));
    Bound lower;
    Bound upper;
    if (lower_ != nullptr) {
      ORRERY_TRY(lower, lower_->Evaluate(inputs));
    }
    if (upper_ != nullptr) {
      ORRERY_TRY(upper, upper_->Evaluate(inputs));
    }
    if (!whole.has_value()) {
      return Bound();
    }
    return Bound::Own(SliceOf(type(), whole.bytes(), lower.value(), upper.value()));
  }

 private:
  const NodePtr collection_;
  const NodePtr lower_;
  const NodePtr upper_;
};

class Field final : public Node {
 public:
  Field(NodePtr value, size_t field)
      : Node(value->type().parameters()[field]), value_(std::move(value)), field_(field) {}
  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    ORRERY_TRY(Bound whole, value_->Evaluate(inputs));
    if (!whole.has_value()) {
      return Bound();
    }
    return PartOf(whole, FieldOf(value_->type(), whole.bytes(), field_));
  }

 private:
  const NodePtr value_;
  const size_t field_;
};

}  // namespace

NodePtr ConstantNode(DataType type, std::optional<std::string> value) {
  return std::make_shared<Constant>(std::move(type), std::move(value));
}
NodePtr MarkerNode(DataType type, uint16_t marker) {
  return std::make_shared<Marker>(std::move(type), marker);
}
NodePtr CollectionNode(DataType type, std::vector<NodePtr> parts) {
  return std::make_shared<Collection>(std::move(type), std::move(parts));
}
NodePtr FieldsNode(DataType type, std::vector<NodePtr> parts) {
  return std::make_shared<Fields>(std::move(type), std::move(parts));
}
NodePtr CallNode(std::shared_ptr<const Function> function, std::vector<NodePtr> arguments) {
  return std::make_shared<Call>(std::move(function), std::move(arguments));
}
NodePtr RetypedNode(DataType type, NodePtr node) {
  return node->type() == type ? node : std::make_shared<Retyped>(std::move(type), std::move(node));
}
NodePtr ColumnNode(DataType type, uint16_t column) {
  return std::make_shared<ColumnValue>(std::move(type), column);
}
NodePtr AggregateNode(DataType type, size_t aggregate) {
  return std::make_shared<Aggregate>(std::move(type), aggregate);
}
NodePtr ElementNode(NodePtr collection, NodePtr key) {
  return std::make_shared<Element>(std::move(collection), std::move(key));
}
NodePtr SliceNode(NodePtr collection, NodePtr lower, NodePtr upper) {
  return std::make_shared<Slice>(std::move(collection), std::move(lower), std::move(upper));
}
NodePtr FieldNode(NodePtr value, size_t field) {
  return std::make_shared<Field>(std::move(value), field);
}

Result<NodePtr> Folded(NodePtr node) {
  if (!node->constant()) {
    return node;
  }
  FunctionContext none;
  ORRERY_TRY(Bound value, node->Evaluate({.markers = {}, .context = none}));
  return ConstantNode(node->type(), std::move(value).TakeValue());
}

}  // namespace orrery::cql
