#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "query/evaluator.h"
#include "query/functions.h"
#include "query/parser.h"
#include "query/text.h"

namespace orrery::query {

struct BinaryOperator {
  TokenKind token;
  Operator op;
  int level;
};

namespace {

using types::Value;
using enum TokenKind;

constexpr int kLowest = 1;
constexpr int kPredicate = 4;  // IN, BETWEEN, LIKE; NOT before them

constexpr BinaryOperator kBinaryOperators[] = {
    {kCoalesce, Operator::kCoalesce, 1},
    {kOr, Operator::kOr, 2},
    {kAnd, Operator::kAnd, 3},
    {kEqual, Operator::kEqual, 5},
    {kNotEqual, Operator::kNotEqual, 5},
    {kLess, Operator::kLess, 6},
    {kLessEqual, Operator::kLessEqual, 6},
    {kGreater, Operator::kGreater, 6},
    {kGreaterEqual, Operator::kGreaterEqual, 6},
    {kConcat, Operator::kConcat, 7},
    {kBar, Operator::kBitOr, 8},
    {kCaret, Operator::kBitXor, 9},
    {kAmpersand, Operator::kBitAnd, 10},
    {kShiftLeft, Operator::kShiftLeft, 11},
    {kShiftRight, Operator::kShiftRight, 11},
    {kShiftRightZero, Operator::kShiftRightZero, 11},
    {kPlus, Operator::kAdd, 12},
    {kMinus, Operator::kSubtract, 12},
    {kStar, Operator::kMultiply, 13},
    {kSlash, Operator::kDivide, 13},
    {kPercent, Operator::kModulo, 13},
};

const BinaryOperator* FindBinary(TokenKind token) {
  auto found = std::ranges::find(kBinaryOperators, token, &BinaryOperator::token);
  return found == std::end(kBinaryOperators) ? nullptr : found;
}

Operator UnaryOf(TokenKind token) {
  return token == kMinus   ? Operator::kNegate
         : token == kPlus  ? Operator::kPlus
         : token == kTilde ? Operator::kBitNot
         : token == kNot   ? Operator::kNot
                           : Operator::kNone;
}

bool IsPredicate(TokenKind token) { return token == kIn || token == kBetween || token == kLike; }

bool TakesSubquery(std::string_view name) {
  return SameWord(name, "EXISTS") || SameWord(name, "ARRAY") || SameWord(name, "ALL") ||
         SameWord(name, "FIRST") || SameWord(name, "LAST");
}

Node Constant(Value value) {
  Node node;
  node.value = value;
  return node;
}

// The operators of one level become one node: `(a + b) + c` is `a + b + c`.
bool Continues(const Node& left, const BinaryOperator& binary) {
  if (left.kind != NodeKind::kChain) {
    return false;
  }
  auto last = std::ranges::find(kBinaryOperators, left.children.back().joint, &BinaryOperator::op);
  return last->level == binary.level;
}

}  // namespace

Result<Node> Parser::Expression() {
  Nesting nesting(*this);
  if (nesting.too_deep()) {
    return Error(TooDeep());
  }
  ORRERY_TRY(Node condition, Binary(kLowest));
  if (!Accept(kQuestion)) {
    return condition;
  }
  Node node;
  node.kind = NodeKind::kConditional;
  node.children.push_back(std::move(condition));
  ORRERY_TRY(Node then, Expression());
  node.children.push_back(std::move(then));
  ORRERY_TRY_STATUS(Expect(kColon));
  ORRERY_TRY(Node otherwise, Expression());
  node.children.push_back(std::move(otherwise));
  return Finish(std::move(node));
}

// Operators of at least that level.
Result<Node> Parser::Binary(int least) {
  bool predicate = token_.kind == kNot && least <= kPredicate;
  Node left;
  if (predicate) {
    Nesting nesting(*this);
    if (nesting.too_deep()) {
      return Error(TooDeep());
    }
    Advance();
    ORRERY_TRY(Node operand, Binary(kPredicate));
    left.kind = NodeKind::kUnary;
    left.op = Operator::kNot;
    left.children.push_back(std::move(operand));
    ORRERY_TRY(left, Finish(std::move(left)));
  } else {
    ORRERY_TRY(left, Unary());
  }
  for (;;) {
    bool negated = token_.kind == kNot;
    if (IsPredicate(negated ? next_.kind : token_.kind)) {
      if (least > kPredicate) {
        return left;
      }
      // One only: the predicates have no order among themselves.
      if (std::exchange(predicate, true)) {
        return Error(SyntaxError());
      }
      ORRERY_TRY(left, Predicate(std::move(left)));
      continue;
    }
    const BinaryOperator* binary = FindBinary(token_.kind);
    if (binary == nullptr || binary->level < least) {
      return left;
    }
    Advance();
    ORRERY_TRY(Node right, Binary(binary->level + 1));
    ORRERY_TRY(left, Chain(*binary, std::move(left), std::move(right)));
  }
}

Result<Node> Parser::Predicate(Node left) {
  Node node;
  node.negated = Accept(kNot);
  node.children.push_back(std::move(left));
  if (Accept(kIn)) {
    node.kind = NodeKind::kIn;
    ORRERY_TRY_STATUS(Expect(kLeftParen));
    ORRERY_TRY_STATUS(List(kRightParen, node.children));
    return Finish(std::move(node));
  }
  if (Accept(kLike)) {
    return Like(std::move(node));
  }
  ORRERY_TRY_STATUS(Expect(kBetween));
  node.kind = NodeKind::kBetween;
  ORRERY_TRY(Node lower, Binary(kPredicate + 1));
  node.children.push_back(std::move(lower));
  ORRERY_TRY_STATUS(Expect(kAnd));
  ORRERY_TRY(Node upper, Binary(kPredicate + 1));
  node.children.push_back(std::move(upper));
  return Finish(std::move(node));
}

Result<Node> Parser::Like(Node node) {
  node.kind = NodeKind::kLike;
  ORRERY_TRY(Node pattern, Binary(kPredicate + 1));
  node.children.push_back(std::move(pattern));
  if (Accept(kEscape)) {
    if (token_.kind != kString || CountCodePoints(token_.text) != 1) {
      return Error(SyntaxError());
    }
    node.value = statement_.constants.Keep(std::move(token_.text));
    Advance();
  }
  return Finish(std::move(node));
}

Result<Node> Parser::Unary() {
  Operator op = UnaryOf(token_.kind);
  if (op == Operator::kNone) {
    return Postfix();
  }
  Nesting nesting(*this);
  if (nesting.too_deep()) {
    return Error(TooDeep());
  }
  Advance();
  ORRERY_TRY(Node operand, Unary());
  Node node;
  node.kind = NodeKind::kUnary;
  node.op = op;
  node.children.push_back(std::move(operand));
  return Finish(std::move(node));
}

Result<Node> Parser::Postfix() {
  ORRERY_TRY(Node base, Primary());
  if (token_.kind != kDot && token_.kind != kLeftBracket) {
    return base;
  }
  Node path;
  path.kind = NodeKind::kPath;
  path.children.push_back(std::move(base));
  for (;;) {
    if (Accept(kDot)) {
      if (token_.kind != kName && !IsSoftKeyword(token_.kind)) {
        return Error(SyntaxError());
      }
      path.children.push_back(Constant(statement_.constants.Keep(std::move(token_.text))));
      Advance();
    } else if (Accept(kLeftBracket)) {
      ORRERY_TRY(Node step, Expression());
      path.children.push_back(std::move(step));
      ORRERY_TRY_STATUS(Expect(kRightBracket));
    } else {
      return Finish(std::move(path));
    }
  }
}

Result<Node> Parser::Primary() {
  Value value;
  switch (token_.kind) {
    case kLeftParen: return Parenthesis();
    case kLeftBracket: return ArrayLiteral();
    case kLeftBrace: return ObjectLiteral();
    case kName: return Name();
    case kNumber: value = token_.number; break;
    case kString: value = statement_.constants.Keep(std::move(token_.text)); break;
    case kTrue:
    case kFalse: value = Value::Bool(token_.kind == kTrue); break;
    case kNull: value = Value::Null(); break;
    case kUndefined: break;
    case kParameter:
      // A parameter that is not given is undefined.
      if (auto found = parameters_.find(token_.text); found != parameters_.end()) {
        value = found->second;
      }
      break;
    default: return Error(SyntaxError());
  }
  Advance();
  return Constant(value);
}

Result<Node> Parser::Parenthesis() {
  Advance();
  Node inner;
  if (token_.kind == kSelect) {
    ORRERY_TRY_STATUS(Subquery());
  } else {
    ORRERY_TRY(inner, Expression());
  }
  ORRERY_TRY_STATUS(Expect(kRightParen));
  return inner;
}

Result<Node> Parser::Name() {
  if (next_.kind == kLeftParen) {
    return Call();
  }
  if (next_.kind == kDot && SameWord(token_.text, "udf")) {
    Refuse(token_.span, "A user-defined function");
    Advance();
    Advance();
    ORRERY_TRY_STATUS(Expect(kName));
    ORRERY_TRY_STATUS(Expect(kLeftParen));
    std::vector<Node> arguments;
    ORRERY_TRY_STATUS(Accept(kRightParen) ? Status::Ok() : List(kRightParen, arguments));
    return Node();
  }
  Node node;
  if (token_.text == statement_.alias) {
    node.kind = NodeKind::kItem;
  } else {
    Complain(token_.span, "SC2001", "Identifier '" + token_.text + "' could not be resolved.");
  }
  Advance();
  return node;
}

Result<Node> Parser::Call() {
  Token name = token_;
  Advance();
  Advance();
  Node node;
  node.kind = NodeKind::kCall;
  if (token_.kind == kSelect && TakesSubquery(name.text)) {
    ORRERY_TRY_STATUS(Subquery());
    ORRERY_TRY_STATUS(Expect(kRightParen));
    return Node();
  }
  ORRERY_TRY_STATUS(Accept(kRightParen) ? Status::Ok() : List(kRightParen, node.children));
  node.function = FindFunction(name.text);
  if (node.function == nullptr) {
    Complain(name.span, "SC2005",
             "'" + name.text + "' is not a recognized built-in function name.");
    return Node();
  }
  if (node.function->call == nullptr) {
    Refuse(name.span, "The function " + std::string(node.function->name));
    return Node();
  }
  if (node.children.size() < node.function->least || node.children.size() > node.function->most) {
    Complain(name.span, "SC2050",
             "The " + std::string(node.function->name) + " function does not take " +
                 std::to_string(node.children.size()) + " argument(s).");
    return Node();
  }
  return Finish(std::move(node));
}

Result<Node> Parser::ArrayLiteral() {
  Advance();
  Node node;
  node.kind = NodeKind::kArray;
  ORRERY_TRY_STATUS(Accept(kRightBracket) ? Status::Ok() : List(kRightBracket, node.children));
  return Finish(std::move(node));
}

Result<Node> Parser::ObjectLiteral() {
  Advance();
  Node node;
  node.kind = NodeKind::kObject;
  std::unordered_map<std::string_view, size_t> places;
  if (Accept(kRightBrace)) {
    return Finish(std::move(node));
  }
  do {
    bool named = token_.kind == kName || token_.kind == kString || IsSoftKeyword(token_.kind);
    if (!named || token_.text.contains('\0')) {
      return Error(SyntaxError());
    }
    Value name = statement_.constants.Keep(std::move(token_.text));
    Advance();
    ORRERY_TRY_STATUS(Expect(kColon));
    ORRERY_TRY(Node value, Expression());
    // Of two members of one name the last one wins.
    auto [place, fresh] = places.emplace(name.string(), node.children.size() + 1);
    if (fresh) {
      node.children.push_back(Constant(name));
      node.children.push_back(std::move(value));
    } else {
      node.children[place->second] = std::move(value);
    }
  } while (Accept(kComma));
  ORRERY_TRY_STATUS(Expect(kRightBrace));
  return Finish(std::move(node));
}

// One expression or more, and the token that ends them.
Status Parser::List(TokenKind end, std::vector<Node>& out) {
  do {
    Result<Node> element = Expression();
    if (!element) {
      return element.error();
    }
    out.push_back(std::move(*element));
  } while (Accept(kComma));
  return Expect(end);
}

// Computes what needs no item, and keeps the tree from growing too high.
Result<Node> Parser::Finish(Node node) {
  bool constant = true;
  for (const Node& child : node.children) {
    constant = constant && child.kind == NodeKind::kConstant;
    node.height = std::max<int16_t>(node.height, static_cast<int16_t>(child.height + 1));
  }
  if (node.height > kHeightMax) {
    return Error(TooDeep());
  }
  return constant ? Constant(Evaluate(node, {}, statement_.constants)) : std::move(node);
}

Result<Node> Parser::Chain(const BinaryOperator& binary, Node left, Node right) {
  right.joint = binary.op;
  if (Continues(left, binary)) {
    left.height = std::max<int16_t>(left.height, static_cast<int16_t>(right.height + 1));
    left.children.push_back(std::move(right));
    return left;
  }
  Node node;
  node.kind = NodeKind::kChain;
  node.children.push_back(std::move(left));
  node.children.push_back(std::move(right));
  return Finish(std::move(node));
}

}  // namespace orrery::query
