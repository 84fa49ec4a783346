#include "cql/compile.h"

#include "cql/aggregate.h"
#include "cql/term.h"
#include "cql/text.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::unexpected<Status> WrongLiteral(std::string_view kind, const Receiver& receiver) {
  return Invalid("Invalid " + std::string(kind) + " literal for " + receiver.name + " of type " +
                 receiver.type.ToCql());
}

std::unexpected<Status> WrongPart(std::string_view kind, const Receiver& receiver,
                                  std::string_view part, const Expression& value,
                                  const DataType& type) {
  return Invalid("Invalid " + std::string(kind) + " literal for " + receiver.name + ": " +
                 std::string(part) + " " + ToCql(value) + " is not of type " + type.ToCql());
}

// The place of an argument of a function.
Receiver ArgumentReceiver(const Receiver& place, const Function& function, size_t argument) {
  return {place.keyspace, place.table,
          "arg" + std::to_string(argument) + "(" + FullName(function) + ")",
          function.arguments[argument]};
}

std::string TextOfPrefix(const Expression& chain, size_t count) {
  Expression prefix{.kind = ExpressionKind::kChain};
  prefix.children.assign(chain.children.begin(),
                         chain.children.begin() + static_cast<std::ptrdiff_t>(count));
  return ToCql(count == 1 ? chain.children.front() : prefix);
}

std::unexpected<Status> NoOperation(const Expression& chain, size_t right, bool ambiguous) {
  std::string sign(1, SignOf(chain.children[right].joint));
  std::string left = TextOfPrefix(chain, right);
  std::string text = ToCql(chain.children[right]);
  if (ambiguous) {
    return Invalid("Ambiguous '" + sign + "' operation with args " + left + " and " + text +
                   ": use type hint to disambiguate, example '(int) ?'");
  }
  return Invalid("the '" + sign + "' operation is not supported between " + left + " and " + text);
}

}  // namespace

Result<NodePtr> Compiler::Compile(const Expression& expression, const Receiver& receiver) {
  if (expression.kind == ExpressionKind::kMarker) {
    return CompileMarker(expression, receiver);
  }
  if (IsConstant(expression.kind)) {
    return CompileConstant(expression, receiver);
  }
  switch (expression.kind) {
    case ExpressionKind::kList: return CompileList(expression, receiver);
    case ExpressionKind::kSet: return CompileSet(expression, receiver);
    case ExpressionKind::kMap: return CompileMap(expression, receiver);
    case ExpressionKind::kUser: return CompileUser(expression, receiver);
    case ExpressionKind::kTuple:
      if (expression.children.size() == 1 && receiver.type.id() != TypeId::kTuple) {
        return Compile(expression.children.front(), receiver);
      }
      return CompileTuple(expression, receiver);
    case ExpressionKind::kHint: return CompileHint(expression, receiver);
    default: break;
  }
  ORRERY_TRY(NodePtr node, CompileOwn(expression, receiver, receiver.type));
  if (FitOf(receiver.type, node->type()) != Fit::kNo) {
    return RetypedNode(receiver.type, std::move(node));
  }
  if (expression.kind == ExpressionKind::kCall) {
    return Invalid("Type error: cannot assign result of function " +
                   (expression.keyspace.empty() ? "system" : expression.keyspace) + "." +
                   expression.text + " (type " + node->type().ToCql() + ") to " + receiver.name +
                   " (type " + receiver.type.ToCql() + ")");
  }
  return Invalid("Cannot assign value " + ToCql(expression) + " to " + receiver.name + " of type " +
                 receiver.type.ToCql());
}

Result<NodePtr> Compiler::CompileAny(const Expression& expression, const Receiver& place) {
  const Expression& bare = Bare(expression);
  bool own = selection_ != nullptr && selection_->Knows(bare);
  switch (bare.kind) {
    case ExpressionKind::kCast:
    case ExpressionKind::kCall:
    case ExpressionKind::kNegate:
    case ExpressionKind::kChain: own = true; break;
    default: break;
  }
  if (own) {
    return CompileOwn(bare, place, std::nullopt);
  }
  if (bare.kind == ExpressionKind::kHint) {
    ORRERY_TRY(DataType type, ResolveType(*bare.type, types_));
    return Compile(bare, {place.keyspace, place.table, place.name, std::move(type)});
  }
  std::optional<DataType> type = GuessOf(bare);
  if (!type) {
    return Invalid("Cannot infer type for term " + ToCql(expression) +
                   " in selection clause (try using a cast to force a type)");
  }
  return Compile(bare, {place.keyspace, place.table, place.name, *std::move(type)});
}

Result<NodePtr> Compiler::CompileConstant(const Expression& constant, const Receiver& receiver) {
  if (constant.kind == ExpressionKind::kNull) {
    if (receiver.type.id() == TypeId::kCounter) {
      return Invalid("Invalid null value for counter increment/decrement");
    }
    return ConstantNode(receiver.type, std::nullopt);
  }
  if (!AcceptsConstant(receiver.type, constant.kind)) {
    return Invalid("Invalid " + std::string(ConstantKindName(constant.kind)) + " constant (" +
                   constant.text + ") for \"" + receiver.name + "\" of type " +
                   receiver.type.ToCql());
  }
  ORRERY_TRY(std::string value, ValueFromText(receiver.type, constant.text));
  return ConstantNode(receiver.type, std::move(value));
}

Result<NodePtr> Compiler::CompileMarker(const Expression& marker, const Receiver& receiver) {
  Receiver& spec = markers_[marker.marker];
  spec = receiver;
  if (!marker.text.empty()) {
    spec.name = marker.text;
  }
  return MarkerNode(receiver.type, marker.marker);
}

Result<NodePtr> Compiler::CompileList(const Expression& list, const Receiver& receiver) {
  bool vector = receiver.type.id() == TypeId::kVector;
  std::string_view kind = vector ? "vector" : "list";
  if (!vector && receiver.type.id() != TypeId::kList) {
    return WrongLiteral(kind, receiver);
  }
  if (vector && list.children.size() != receiver.type.dimension()) {
    return Invalid("Invalid vector literal for " + receiver.name + " of type " +
                   receiver.type.ToCql() + "; expected " +
                   std::to_string(receiver.type.dimension()) + " elements, but given " +
                   std::to_string(list.children.size()));
  }
  Receiver element = ElementReceiver(receiver, /*key=*/false);
  std::vector<NodePtr> parts;
  for (const Expression& child : list.children) {
    if (Test(child, element.type) == Fit::kNo) {
      return WrongPart(kind, receiver, "value", child, element.type);
    }
    ORRERY_TRY(NodePtr part, Compile(child, element));
    parts.push_back(std::move(part));
  }
  return Folded(CollectionNode(receiver.type, std::move(parts)));
}

Result<NodePtr> Compiler::CompileSet(const Expression& set, const Receiver& receiver) {
  if (receiver.type.id() == TypeId::kMap && set.children.empty()) {
    return CompileMap(set, receiver);
  }
  if (receiver.type.id() == TypeId::kUdt && set.children.empty()) {
    return CompileUser(set, receiver);
  }
  if (receiver.type.id() != TypeId::kSet) {
    return WrongLiteral("set", receiver);
  }
  Receiver element = ElementReceiver(receiver, /*key=*/false);
  std::vector<NodePtr> parts;
  for (const Expression& child : set.children) {
    if (Test(child, element.type) == Fit::kNo) {
      return WrongPart("set", receiver, "value", child, element.type);
    }
    ORRERY_TRY(NodePtr part, Compile(child, element));
    parts.push_back(std::move(part));
  }
  return Folded(CollectionNode(receiver.type, std::move(parts)));
}

Result<NodePtr> Compiler::CompileMap(const Expression& map, const Receiver& receiver) {
  if (receiver.type.id() != TypeId::kMap) {
    return WrongLiteral("map", receiver);
  }
  const Receiver sides[] = {ElementReceiver(receiver, /*key=*/true),
                            ElementReceiver(receiver, /*key=*/false)};
  std::vector<NodePtr> parts;
  for (const Expression& child : map.children) {
    bool key = parts.size() % 2 == 0;
    const Receiver& side = sides[key ? 0 : 1];
    if (Test(child, side.type) == Fit::kNo) {
      return WrongPart("map", receiver, key ? "key" : "value", child, side.type);
    }
    ORRERY_TRY(NodePtr part, Compile(child, side));
    parts.push_back(std::move(part));
  }
  return Folded(CollectionNode(receiver.type, std::move(parts)));
}

Result<NodePtr> Compiler::CompileTuple(const Expression& tuple, const Receiver& receiver) {
  if (receiver.type.id() != TypeId::kTuple) {
    return WrongLiteral("tuple type", receiver);
  }
  size_t fields = receiver.type.parameters().size();
  if (tuple.children.size() > fields) {
    return Invalid("Invalid tuple literal for " + receiver.name + ": too many elements. Type " +
                   receiver.type.ToCql() + " expects " + std::to_string(fields) + " but got " +
                   std::to_string(tuple.children.size()));
  }
  std::vector<NodePtr> parts;
  for (const Expression& child : tuple.children) {
    Receiver field = FieldReceiver(receiver, parts.size());
    if (Test(child, field.type) == Fit::kNo) {
      return Invalid("Invalid tuple literal for " + receiver.name + ": component " +
                     std::to_string(parts.size()) + " is not of type " + field.type.ToCql());
    }
    ORRERY_TRY(NodePtr part, Compile(child, field));
    parts.push_back(std::move(part));
  }
  return Folded(FieldsNode(receiver.type, std::move(parts)));
}

Result<NodePtr> Compiler::CompileUser(const Expression& user, const Receiver& receiver) {
  if (receiver.type.id() == TypeId::kMap && selection_ != nullptr) {
    return CompileMap(user, receiver);  // {a: b} of columns
  }
  if (receiver.type.id() != TypeId::kUdt) {
    return WrongLiteral("user type", receiver);
  }
  std::vector<NodePtr> parts(receiver.type.parameters().size());
  for (size_t i = 0; i + 1 < user.children.size(); i += 2) {
    const std::string& name = user.children[i].text;
    std::optional<size_t> place = receiver.type.FieldIndex(name);
    if (!place) {
      return Invalid("Unknown field '" + name + "' in value of user defined type " +
                     receiver.type.name());
    }
    Receiver field = FieldReceiver(receiver, *place);
    if (Test(user.children[i + 1], field.type) == Fit::kNo) {
      return Invalid("Invalid user type literal for " + receiver.name + ": field " + name +
                     " is not of type " + field.type.ToCql());
    }
    ORRERY_TRY(parts[*place], Compile(user.children[i + 1], field));
  }
  return Folded(FieldsNode(receiver.type, std::move(parts)));
}

Result<NodePtr> Compiler::CompileHint(const Expression& hint, const Receiver& receiver) {
  ORRERY_TRY(DataType type, ResolveType(*hint.type, types_));
  const Expression& value = hint.children.front();
  if (Test(value, type) == Fit::kNo) {
    return Invalid("Cannot cast value " + ToCql(value) + " to type " + ToCql(*hint.type));
  }
  if (FitOf(receiver.type, type) == Fit::kNo) {
    return Invalid("Cannot assign value " + ToCql(hint) + " to " + receiver.name + " of type " +
                   receiver.type.ToCql());
  }
  ORRERY_TRY(NodePtr node,
             Compile(value, {receiver.keyspace, receiver.table, receiver.name, std::move(type)}));
  return RetypedNode(receiver.type, std::move(node));
}

Result<NodePtr> Compiler::CompileOwn(const Expression& expression, const Receiver& place,
                                     const std::optional<DataType>& wanted) {
  if (selection_ != nullptr && selection_->Knows(expression)) {
    return selection_->Compile(expression);
  }
  switch (expression.kind) {
    case ExpressionKind::kCall: return CompileCall(expression, place, wanted);
    case ExpressionKind::kCast: return CompileCast(expression, place);
    case ExpressionKind::kNegate:
    case ExpressionKind::kChain: return CompileOperation(expression, place, wanted);
    default: return Invalid(ToCql(expression) + " is not supported here");
  }
}

Result<NodePtr> Compiler::CompileCall(const Expression& call, const Receiver& place,
                                      const std::optional<DataType>& wanted) {
  if (selection_ == nullptr && IsAggregate(call.keyspace, call.text)) {
    return Invalid("Aggregation function are not supported in the where clause");
  }
  ORRERY_TRY(FunctionPtr function, FindCall(call, wanted));
  if (function == nullptr) {
    std::string name = ToCql(QualifiedName{call.keyspace, call.text});
    return Invalid(selection_ == nullptr ? "Unknown function " + name + " called"
                                         : "Unknown function '" + name + "'");
  }
  std::vector<NodePtr> arguments;
  for (const Expression& child : call.children) {
    ORRERY_TRY(NodePtr argument,
               Compile(Bare(child), ArgumentReceiver(place, *function, arguments.size())));
    arguments.push_back(std::move(argument));
  }
  return Folded(CallNode(std::move(function), std::move(arguments)));
}

Result<NodePtr> Compiler::CompileCast(const Expression& cast, const Receiver& place) {
  ORRERY_TRY(DataType type, ResolveType(*cast.type, types_));
  ORRERY_TRY(NodePtr value, CompileAny(cast.children.front(), place));
  ORRERY_TRY(FunctionPtr function, FindCast(value->type(), type));
  if (function == nullptr) {
    return value;
  }
  return Folded(CallNode(std::move(function), {std::move(value)}));
}

// Constants have their own type unless the result would not do: then they have that of the result.
Result<NodePtr> Compiler::CompileOperation(const Expression& expression, const Receiver& place,
                                           const std::optional<DataType>& wanted) {
  auto fits = [&](const std::optional<DataType>& leaf) {
    std::optional<DataType> type = OperandType(expression, leaf);
    return type && (!wanted || FitOf(*wanted, *type) != Fit::kNo);
  };
  bool as_wanted = wanted && !fits(std::nullopt) && fits(wanted);
  return CompileOperand(expression, place, as_wanted ? wanted : std::nullopt);
}

Result<NodePtr> Compiler::CompileOperand(const Expression& expression, const Receiver& place,
                                         const std::optional<DataType>& leaf) {
  const Expression& bare = Bare(expression);
  if (bare.kind == ExpressionKind::kChain) {
    return CompileChain(bare, place, leaf);
  }
  if (bare.kind == ExpressionKind::kNegate) {
    ORRERY_TRY(NodePtr operand, CompileOperand(bare.children.front(), place, leaf));
    FunctionPtr negation = FindNegation(operand->type());
    if (negation == nullptr) {
      return Invalid("the '-' operation is not supported on " + ToCql(bare.children.front()));
    }
    return Folded(CallNode(std::move(negation), {std::move(operand)}));
  }
  if (IsConstant(bare.kind) && bare.kind != ExpressionKind::kNull && leaf &&
      AcceptsConstant(*leaf, bare.kind)) {
    return CompileConstant(bare, {place.keyspace, place.table, place.name, *leaf});
  }
  if (bare.kind == ExpressionKind::kMarker) {
    return Invalid("Ambiguous operation with arg " + ToCql(bare) +
                   ": use type hint to disambiguate, example '(int) ?'");
  }
  return CompileAny(bare, place);
}

Result<NodePtr> Compiler::CompileChain(const Expression& chain, const Receiver& place,
                                       const std::optional<DataType>& leaf) {
  if (Bare(chain.children.front()).kind == ExpressionKind::kMarker) {
    return NoOperation(chain, 1, /*ambiguous=*/true);
  }
  ORRERY_TRY(NodePtr left, CompileOperand(chain.children.front(), place, leaf));
  for (size_t i = 1; i < chain.children.size(); ++i) {
    char sign = SignOf(chain.children[i].joint);
    const Expression& expression = Bare(chain.children[i]);
    NodePtr right;
    if (expression.kind == ExpressionKind::kMarker) {
      FunctionPtr shift = FindOperation(sign, left->type(), TypeId::kDuration);
      if (shift == nullptr) {
        return NoOperation(chain, i, /*ambiguous=*/true);
      }
      ORRERY_TRY(right, CompileMarker(expression, ArgumentReceiver(place, *shift, 1)));
    } else {
      ORRERY_TRY(right, CompileOperand(expression, place, leaf));
    }
    FunctionPtr operation = FindOperation(sign, left->type(), right->type());
    if (operation == nullptr) {
      return NoOperation(chain, i, /*ambiguous=*/false);
    }
    ORRERY_TRY(left, Folded(CallNode(std::move(operation), {std::move(left), std::move(right)})));
  }
  return left;
}

}  // namespace orrery::cql
