#include "query/evaluator.h"

#include <array>
#include <cmath>
#include <compare>
#include <optional>
#include <string>
#include <vector>

#include "query/functions.h"
#include "query/like.h"
#include "query/numbers.h"
#include "query/string_functions.h"
#include "types/utf8.h"

namespace orrery::query {
namespace {

using types::Kind;
using types::Value;

// What `=` of values of different types gives. The reference says undefined, but then `c.name !=
// null` would be true for nothing, and every program that asks so would find nothing; the service
// answers false.
Value EqualAcrossTypes() { return Value::Bool(false); }

constexpr size_t kNodeWork = 20;

struct Context {
  Value item;
  Arena& arena;
};

Value Eval(const Node& node, const Context& context);

bool IsTrue(Value value) { return value.kind() == Kind::kBool && value.boolean(); }
bool IsFalse(Value value) { return value.kind() == Kind::kBool && !value.boolean(); }

Value Not(Value value) {
  return value.kind() == Kind::kBool ? Value::Bool(!value.boolean()) : Value();
}

Value And(Value a, Value b) {
  if (IsFalse(a) || IsFalse(b)) {
    return Value::Bool(false);
  }
  return IsTrue(a) && IsTrue(b) ? Value::Bool(true) : Value();
}

Value Or(Value a, Value b) {
  if (IsTrue(a) || IsTrue(b)) {
    return Value::Bool(true);
  }
  return IsFalse(a) && IsFalse(b) ? Value::Bool(false) : Value();
}

Value Equal(Value a, Value b) {
  if (!a.defined() || !b.defined()) {
    return {};
  }
  if (a.kind() != b.kind()) {
    return EqualAcrossTypes();
  }
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNull: return Value::Bool(true);
    case Kind::kBool: return Value::Bool(a.boolean() == b.boolean());
    case Kind::kNumber: return Value::Bool(CompareNumbers(a, b) == 0);
    case Kind::kString: return Value::Bool(a.string() == b.string());
    case Kind::kArray:
    case Kind::kObject: return Value::Bool(types::DeepEqual(a, b));
  }
  return {};
}

// Unordered if the language has no order for the two.
std::partial_ordering Order(Value a, Value b) {
  if (a.kind() != b.kind()) {
    return std::partial_ordering::unordered;
  }
  switch (a.kind()) {
    case Kind::kNull: return std::partial_ordering::equivalent;
    case Kind::kBool: return a.boolean() <=> b.boolean();
    case Kind::kNumber: return CompareNumbers(a, b);
    case Kind::kString: return a.string() <=> b.string();
    case Kind::kUndefined:
    case Kind::kArray:
    case Kind::kObject: break;
  }
  return std::partial_ordering::unordered;
}

Value Compare(Operator op, Value a, Value b) {
  std::partial_ordering order = Order(a, b);
  if (order == std::partial_ordering::unordered) {
    return {};
  }
  switch (op) {
    case Operator::kLess: return Value::Bool(order < 0);
    case Operator::kLessEqual: return Value::Bool(order <= 0);
    case Operator::kGreater: return Value::Bool(order > 0);
    default: return Value::Bool(order >= 0);
  }
}

Value Bitwise(Operator op, Value a, Value b) {
  int32_t left = ToInt32(a.number());
  int32_t right = ToInt32(b.number());
  uint32_t bits = static_cast<uint32_t>(left);
  uint32_t shift = static_cast<uint32_t>(right) & 31;
  switch (op) {
    case Operator::kBitOr: return Value::Integer(left | right);
    case Operator::kBitXor: return Value::Integer(left ^ right);
    case Operator::kBitAnd: return Value::Integer(left & right);
    case Operator::kShiftLeft: return Value::Integer(static_cast<int32_t>(bits << shift));
    case Operator::kShiftRight: return Value::Integer(left >> shift);
    default: return Value::Integer(bits >> shift);
  }
}

// Numbers are doubles here, as they are in the results of the service.
Value Arithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd: return NumberFrom(a + b);
    case Operator::kSubtract: return NumberFrom(a - b);
    case Operator::kMultiply: return NumberFrom(a * b);
    case Operator::kDivide: return b == 0 ? Value() : NumberFrom(a / b);
    default: return b == 0 ? Value() : NumberFrom(std::fmod(a, b));
  }
}

Value Binary(Operator op, Value a, Value b, Arena& arena) {
  bool numbers = a.kind() == Kind::kNumber && b.kind() == Kind::kNumber;
  switch (op) {
    case Operator::kCoalesce: return a.defined() ? a : b;
    case Operator::kOr: return Or(a, b);
    case Operator::kAnd: return And(a, b);
    case Operator::kEqual: return Equal(a, b);
    case Operator::kNotEqual: return Not(Equal(a, b));
    case Operator::kLess:
    case Operator::kLessEqual:
    case Operator::kGreater:
    case Operator::kGreaterEqual: return Compare(op, a, b);
    case Operator::kConcat: return Concat(std::array{a, b}, arena);
    case Operator::kBitOr:
    case Operator::kBitXor:
    case Operator::kBitAnd:
    case Operator::kShiftLeft:
    case Operator::kShiftRight:
    case Operator::kShiftRightZero: return numbers ? Bitwise(op, a, b) : Value();
    case Operator::kAdd:
    case Operator::kSubtract:
    case Operator::kMultiply:
    case Operator::kDivide:
    case Operator::kModulo: return numbers ? Arithmetic(op, a.number(), b.number()) : Value();
    case Operator::kNone:
    case Operator::kNot:
    case Operator::kBitNot:
    case Operator::kNegate:
    case Operator::kPlus: break;
  }
  return {};
}

Value EvalUnary(const Node& node, const Context& context) {
  Value operand = Eval(node.children[0], context);
  if (node.op == Operator::kNot) {
    return Not(operand);
  }
  if (operand.kind() != Kind::kNumber) {
    return {};
  }
  if (node.op == Operator::kBitNot) {
    return Value::Integer(~ToInt32(operand.number()));
  }
  if (node.op == Operator::kPlus) {
    return operand;
  }
  bool exact = operand.is_integer() && operand.integer() != INT64_MIN;
  return exact ? Value::Integer(-operand.integer()) : Value::Double(-operand.number());
}

// True if nothing to the right can change the value.
bool Settled(Operator op, Value left) {
  return (op == Operator::kAnd && IsFalse(left)) || (op == Operator::kOr && IsTrue(left)) ||
         (op == Operator::kCoalesce && left.defined());
}

Value EvalChain(const Node& node, const Context& context) {
  Value left = Eval(node.children[0], context);
  for (size_t i = 1; i < node.children.size(); ++i) {
    const Node& right = node.children[i];
    if (!Settled(right.joint, left)) {
      left = Binary(right.joint, left, Eval(right, context), context.arena);
    }
  }
  return left;
}

Value Step(Value from, Value step) {
  if (from.kind() == Kind::kObject && step.kind() == Kind::kString) {
    return types::Member(from, step.string());
  }
  if (from.kind() == Kind::kArray) {
    std::optional<int64_t> index = WholeNumber(step);
    return index && *index >= 0 ? types::Element(from, static_cast<size_t>(*index)) : Value();
  }
  return {};
}

Value EvalPath(const Node& node, const Context& context) {
  Value value = Eval(node.children[0], context);
  for (size_t i = 1; i < node.children.size() && value.defined(); ++i) {
    context.arena.Spend(value.bson().size() / 16);  // members are skipped one by one
    value = Step(value, Eval(node.children[i], context));
  }
  return value;
}

Value EvalIn(const Node& node, const Context& context) {
  Value wanted = Eval(node.children[0], context);
  Value found = Value::Bool(false);
  for (size_t i = 1; i < node.children.size() && !IsTrue(found); ++i) {
    found = Or(found, Equal(wanted, Eval(node.children[i], context)));
  }
  return found;
}

Value EvalBetween(const Node& node, const Context& context) {
  Value value = Eval(node.children[0], context);
  Value lower = Compare(Operator::kGreaterEqual, value, Eval(node.children[1], context));
  Value upper = Compare(Operator::kLessEqual, value, Eval(node.children[2], context));
  return And(lower, upper);
}

Value EvalLike(const Node& node, const Context& context) {
  Value text = Eval(node.children[0], context);
  Value pattern = Eval(node.children[1], context);
  if (text.kind() != Kind::kString || pattern.kind() != Kind::kString) {
    return {};
  }
  if (!context.arena.Spend(text.string().size() *
                           (1 + std::min<size_t>(pattern.string().size(), 64)))) {
    return {};
  }
  uint32_t escape = kNoEscape;
  if (node.value.defined()) {
    std::string_view character = node.value.string();
    escape = types::TakeCodePoint(character);
  }
  return Value::Bool(LikeMatches(text.string(), pattern.string(), escape));
}

Value EvalCall(const Node& node, const Context& context) {
  std::array<Value, 3> few;
  std::vector<Value> many;
  std::span<Value> arguments(few.data(), std::min(few.size(), node.children.size()));
  if (node.children.size() > few.size()) {
    many.resize(node.children.size());
    arguments = many;
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    arguments[i] = Eval(node.children[i], context);
    if (!arguments[i].defined() && !node.function->sees_undefined) {
      return {};
    }
    context.arena.Spend(arguments[i].bson().size() * 2);
  }
  if (context.arena.exhausted()) {
    return {};
  }
  return node.function->call(arguments, context.arena);
}

// What a value takes inside an array or object, about.
size_t Size(Value value) {
  constexpr size_t kName = 16;
  bool nested = value.kind() == Kind::kArray || value.kind() == Kind::kObject;
  return kName + (nested                          ? value.bson().size()
                  : value.kind() == Kind::kString ? value.string().size()
                                                  : 8);
}

Value EvalArray(const Node& node, const Context& context) {
  types::DocumentBuilder builder;
  builder.BeginArray("v");
  for (const Node& child : node.children) {
    Value value = Eval(child, context);
    if (!context.arena.Reserve(Size(value))) {
      return {};
    }
    builder.Append({}, value);
  }
  builder.End();
  return context.arena.Keep(builder.Finish()).Get("v");
}

Value EvalObject(const Node& node, const Context& context) {
  types::DocumentBuilder builder;
  for (size_t i = 0; i + 1 < node.children.size(); i += 2) {
    Value name = node.children[i].value;
    Value value = Eval(node.children[i + 1], context);
    if (!context.arena.Reserve(Size(name) + Size(value))) {
      return {};
    }
    builder.Append(name.string(), value);
  }
  return context.arena.Keep(builder.Finish()).root();
}

Value Eval(const Node& node, const Context& context) {
  if (!context.arena.Spend(kNodeWork)) {
    return {};
  }
  auto negate = [&node](Value value) { return node.negated ? Not(value) : value; };
  switch (node.kind) {
    case NodeKind::kConstant: return node.value;
    case NodeKind::kItem: return context.item;
    case NodeKind::kPath: return EvalPath(node, context);
    case NodeKind::kUnary: return EvalUnary(node, context);
    case NodeKind::kChain: return EvalChain(node, context);
    case NodeKind::kConditional:
      return Eval(node.children[IsTrue(Eval(node.children[0], context)) ? 1 : 2], context);
    case NodeKind::kIn: return negate(EvalIn(node, context));
    case NodeKind::kBetween: return negate(EvalBetween(node, context));
    case NodeKind::kLike: return negate(EvalLike(node, context));
    case NodeKind::kCall: return EvalCall(node, context);
    case NodeKind::kArray: return EvalArray(node, context);
    case NodeKind::kObject: return EvalObject(node, context);
  }
  return {};
}

}  // namespace

Value Evaluate(const Node& node, Value item, Arena& arena) {
  return Eval(node, {.item = item, .arena = arena});
}

}  // namespace orrery::query
