// Types and expressions.
//
//   sum      = product { ( '+' | '-' ) product }
//   product  = unary { ( '*' | '/' | '%' ) unary }
//   unary    = '-' unary | postfix
//   postfix  = primary { '.' name | '[' subscript ']' }                   steps only in selectors
//   primary  = constant | marker | '[' ... ']' | '{' ... '}' | '(' ... ')' | '(' type ')' primary
//            | CAST '(' sum AS type ')' | name '(' ... ')' | name         names only in selectors
#include <algorithm>
#include <charconv>

#include "cql/parser.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

}  // namespace

// ---- Types ----

TypeName Parser::Type() {
  Nesting nesting(*this);
  if (Is(kString)) {
    return {.id = TypeId::kCustom, .name = {{}, ExpectText(kString)}};
  }
  if (!NextIs(kLess)) {
    return NamedType();
  }
  if (Accept(Keyword::kFrozen)) {
    Expect(kLess);
    TypeName type = Type();
    Expect(kGreater);
    if (FindNativeType(type.id) != nullptr || type.id == TypeId::kCustom) {
      Fail("frozen<> is only allowed on collections, tuples, and user-defined types (got " +
           ToCql(type) + ")");
    }
    type.frozen = true;
    return type;
  }
  if (Accept(Keyword::kList)) {
    return TypeOf(TypeId::kList, 1);
  }
  if (Accept(Keyword::kSet)) {
    return TypeOf(TypeId::kSet, 1);
  }
  if (Accept(Keyword::kMap)) {
    return TypeOf(TypeId::kMap, 2);
  }
  if (Accept(Keyword::kTuple)) {
    return TypeOf(TypeId::kTuple, SIZE_MAX);
  }
  if (Accept(Keyword::kVector)) {
    return TypeOf(TypeId::kVector, 1);
  }
  return NamedType();
}

TypeName Parser::TypeOf(TypeId id, size_t arguments_max) {
  TypeName type{.id = id};
  Expect(kLess);
  do {
    type.arguments.push_back(Type());
  } while (type.arguments.size() < arguments_max && Accept(kComma));
  if (id == TypeId::kMap && type.arguments.size() < 2) {
    Expect(kComma);
  }
  if (id == TypeId::kVector) {
    Expect(kComma);
    std::string text = ExpectText(kInteger);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), type.dimension);
    if (error != std::errc()) {
      FailHere("a vector cannot have so many dimensions");
    }
  }
  Expect(kGreater);
  return type;
}

TypeName Parser::NamedType() {
  const NativeType* native = nullptr;
  if (Is(kName) && !NextIs(kDot)) {
    native = FindNativeType(TokenText(text_, token_));
  }
  if (native != nullptr) {
    Advance();
    return {.id = native->id};
  }
  return {.id = TypeId::kUdt, .name = UserType()};
}

// A name that no type of the language has, or may have one day.
QualifiedName Parser::UserType() {
  QualifiedName type;
  if (NextIs(kDot)) {
    type.keyspace = Name();
    Expect(kDot);
  }
  bool quoted = Is(kQuotedName);
  if (!quoted && IsName() && FindNativeType(TokenText(text_, token_)) != nullptr) {
    FailHere();
  }
  type.name = Name();
  if (!quoted && IsTypeWord(type.name)) {
    Fail("Invalid (reserved) user type name " + type.name);
  }
  return type;
}

std::vector<TypeName> Parser::TypeList() {
  std::vector<TypeName> types;
  Expect(kLeftParen);
  if (Accept(kRightParen)) {
    return types;
  }
  do {
    types.push_back(Type());
  } while (Accept(kComma));
  Expect(kRightParen);
  return types;
}

// ---- Expressions ----

Expression Parser::Term() {
  Columns outer = std::exchange(columns_, Columns::kNo);
  Expression term = Sum();
  columns_ = outer;
  return term;
}

Expression Parser::Sum() {
  Expression left = Product();
  if (!Is(kPlus) && !Is(kMinus)) {
    return left;
  }
  Expression chain{.kind = ExpressionKind::kChain};
  chain.children.push_back(std::move(left));
  while (Is(kPlus) || Is(kMinus)) {
    if (Is(kPlus) && columns_ == Columns::kNo && IsName(next_)) {
      Token after = AfterNext();
      if (after.kind != kLeftParen && after.kind != kDot) {
        break;  // list = [1] + list: for the assignment to take
      }
    }
    Operator joint = Is(kPlus) ? Operator::kAdd : Operator::kSubtract;
    Advance();
    chain.children.push_back(Product());
    chain.children.back().joint = joint;
  }
  return chain.children.size() == 1 ? std::move(chain.children.front())
                                    : Measured(std::move(chain));
}

Expression Parser::Product() {
  Expression left = Unary();
  if (!Is(kStar) && !Is(kSlash) && !Is(kPercent)) {
    return left;
  }
  Expression chain{.kind = ExpressionKind::kChain};
  chain.children.push_back(std::move(left));
  while (Is(kStar) || Is(kSlash) || Is(kPercent)) {
    Operator joint = Is(kStar)    ? Operator::kMultiply
                     : Is(kSlash) ? Operator::kDivide
                                  : Operator::kModulo;
    Advance();
    chain.children.push_back(Unary());
    chain.children.back().joint = joint;
  }
  return Measured(std::move(chain));
}

Expression Parser::Unary() {
  if (!Accept(kMinus)) {
    return Postfix();
  }
  Nesting nesting(*this);
  if (Is(kInteger) || Is(kFloat) || Is(kDuration) || Is(Keyword::kInfinity)) {
    Expression number = ConstantTerm();
    number.text.insert(0, "-");
    return number;
  }
  if (Is(Keyword::kNan)) {
    return ConstantTerm();
  }
  Expression node{.kind = ExpressionKind::kNegate};
  node.children.push_back(Unary());
  return Measured(std::move(node));
}

Expression Parser::Postfix() {
  Expression value = Primary();
  if (value.kind <= ExpressionKind::kMarker) {
    return value;
  }
  while (columns_ == Columns::kYes && (Is(kDot) || Is(kLeftBracket))) {
    if (Is(kLeftBracket)) {
      value = Subscript(std::move(value));
      continue;
    }
    Advance();
    Expression node{.kind = ExpressionKind::kField, .text = Name()};
    node.children.push_back(std::move(value));
    value = Measured(std::move(node));
  }
  return value;
}

// a[1], a[1..2], a[..2], a[1..]
Expression Parser::Subscript(Expression base) {
  Nesting nesting(*this);
  Expression absent{.kind = ExpressionKind::kAbsent};
  Expect(kLeftBracket);
  Expression node{.kind = ExpressionKind::kElement};
  node.children.push_back(std::move(base));
  node.children.push_back(Is(kRange) ? absent : Term());
  if (Accept(kRange)) {
    node.kind = ExpressionKind::kSlice;
    node.children.push_back(Is(kRightBracket) ? absent : Term());
  }
  Expect(kRightBracket);
  return Measured(std::move(node));
}

Expression Parser::Primary() {
  Nesting nesting(*this);
  if (failed_) {
    return {};
  }
  if (IsConstant()) {
    return ConstantTerm();
  }
  if (Is(kQuestion) || Is(kColon)) {
    return Marker();
  }
  if (Is(kLeftBracket)) {
    return Brackets();
  }
  if (Is(kLeftBrace)) {
    return Braces();
  }
  if (Is(kLeftParen)) {
    return Parentheses();
  }
  if (IsCall()) {
    return Call();
  }
  if (columns_ == Columns::kYes) {
    return {.kind = ExpressionKind::kColumn, .text = Name()};
  }
  // A name where none is good: the trouble is that no '(' follows it.
  if (IsName()) {
    Advance();
  }
  FailHere();
  return {};
}

bool Parser::IsConstant() const {
  switch (token_.kind) {
    case kString:
    case kInteger:
    case kFloat:
    case kBlob:
    case kUuid:
    case kDuration: return !failed_;
    case kMinus:
      return NextIs(kInteger) || NextIs(kFloat) || NextIs(kDuration) ||
             NextIs(Keyword::kInfinity) || NextIs(Keyword::kNan);
    default:
      return Is(Keyword::kTrue) || Is(Keyword::kFalse) || Is(Keyword::kNan) ||
             Is(Keyword::kInfinity) || Is(Keyword::kNull);
  }
}

// REQUIRES: IsConstant(), and no sign.
Expression Parser::ConstantTerm() {
  Expression constant{.text = TokenText(text_, token_)};
  switch (token_.kind) {
    case kString: constant.kind = ExpressionKind::kString; break;
    case kInteger: constant.kind = ExpressionKind::kInteger; break;
    case kBlob: constant.kind = ExpressionKind::kBlob; break;
    case kUuid: constant.kind = ExpressionKind::kUuid; break;
    case kDuration: constant.kind = ExpressionKind::kDuration; break;
    default: constant.kind = ExpressionKind::kFloat; break;
  }
  if (Is(Keyword::kNull)) {
    constant = {.kind = ExpressionKind::kNull};
  } else if (Is(Keyword::kTrue) || Is(Keyword::kFalse)) {
    constant.kind = ExpressionKind::kBoolean;
  } else if (Is(Keyword::kNan)) {
    constant.text = "NaN";
  } else if (Is(Keyword::kInfinity)) {
    constant.text = "Infinity";
  }
  Advance();
  return constant;
}

Expression Parser::Marker() {
  if (markers_.size() == kMarkersMax) {
    FailHere("there are more than 65535 bind markers");
    return {};
  }
  Expression marker{.kind = ExpressionKind::kMarker,
                    .marker = static_cast<uint16_t>(markers_.size())};
  if (Accept(kColon)) {
    marker.text = Name();
  } else {
    Expect(kQuestion);
  }
  markers_.push_back(marker.text);
  return marker;
}

std::vector<Expression> Parser::List(TokenKind end) {
  std::vector<Expression> list;
  if (Accept(end)) {
    return list;
  }
  do {
    list.push_back(Sum());
  } while (Accept(kComma));
  Expect(end);
  return list;
}

Expression Parser::Brackets() {
  Expect(kLeftBracket);
  return Measured({.kind = ExpressionKind::kList, .children = List(kRightBracket)});
}

// {}, {1, 2}, {1: 2}, {field: 1}
Expression Parser::Braces() {
  Expect(kLeftBrace);
  Expression node{.kind = ExpressionKind::kSet};
  if (Accept(kRightBrace)) {
    return node;
  }
  if (IsName() && NextIs(kColon)) {
    node.kind = ExpressionKind::kUser;
  }
  do {
    if (node.kind == ExpressionKind::kUser) {
      node.children.push_back({.kind = ExpressionKind::kColumn, .text = Name()});
    } else {
      node.children.push_back(Sum());
    }
    if (node.children.size() == 1 && Is(kColon) && node.kind == ExpressionKind::kSet) {
      node.kind = ExpressionKind::kMap;
    }
    if (node.kind != ExpressionKind::kSet) {
      Expect(kColon);
      node.children.push_back(Sum());
    }
  } while (Accept(kComma));
  Expect(kRightBrace);
  return Measured(std::move(node));
}

Expression Parser::Parentheses() {
  if (IsName(next_) || next_.kind == kString || NextIs(Keyword::kSet)) {
    if (std::optional<Expression> hint = Hint()) {
      return *std::move(hint);
    }
  }
  Expect(kLeftParen);
  if (Is(kRightParen)) {
    FailHere();
  }
  return Measured({.kind = ExpressionKind::kTuple, .children = List(kRightParen)});
}

// (type) primary. If it is not that, nothing was read.
std::optional<Expression> Parser::Hint() {
  Lexer lexer = lexer_;
  Token token = token_;
  Token next = next_;
  guessing_ = true;
  Expect(kLeftParen);
  TypeName type = Type();
  Expect(kRightParen);
  guessing_ = false;
  // (a) - 1 is a subtraction if `a` may be a column.
  bool sign = columns_ == Columns::kNo || type.id != TypeId::kUdt;
  if (failed_ || !BeginsPrimary(sign)) {
    lexer_ = lexer;
    token_ = token;
    next_ = next;
    failed_ = false;
    return std::nullopt;
  }
  Expression node{.kind = ExpressionKind::kHint, .type = std::move(type)};
  node.children.push_back(Is(kMinus) ? Unary() : Primary());
  return Measured(std::move(node));
}

bool Parser::BeginsPrimary(bool sign) const {
  switch (token_.kind) {
    case kQuestion:
    case kColon:
    case kLeftBracket:
    case kLeftBrace:
    case kLeftParen: return true;
    case kMinus: return sign;
    default:
      return IsConstant() || IsCall() ||
             (columns_ == Columns::kYes && IsName() && !Is(Keyword::kAs));
  }
}

bool Parser::IsCall() const {
  if (!IsName() && !Is(Keyword::kToken)) {
    return false;
  }
  if (NextIs(kLeftParen)) {
    return true;
  }
  if (!NextIs(kDot)) {
    return false;
  }
  Lexer ahead = lexer_;
  Token name = ahead.Next();
  return IsName(name) && ahead.Next().kind == kLeftParen;
}

Expression Parser::Call() {
  if (Is(Keyword::kCast) && NextIs(kLeftParen)) {
    return Cast();
  }
  if (columns_ == Columns::kNo || !NextIs(kLeftParen)) {
    return NamedCall();
  }
  switch (token_.keyword) {
    case Keyword::kWritetime: return CellCall(ExpressionKind::kWritetime);
    case Keyword::kMaxwritetime: return CellCall(ExpressionKind::kMaxWritetime);
    case Keyword::kTtl: return CellCall(ExpressionKind::kTtl);
    default: return NamedCall();
  }
}

Expression Parser::NamedCall() {
  bool count = Is(Keyword::kCount) && columns_ == Columns::kYes;
  Expression call{.kind = ExpressionKind::kCall};
  if (Accept(Keyword::kToken)) {
    call.text = "token";
  } else {
    QualifiedName name = Qualified();
    call.text = std::move(name.name);
    call.keyspace = std::move(name.keyspace);
  }
  Expect(kLeftParen);
  if (count && call.keyspace.empty() && Accept(kStar)) {
    Expect(kRightParen);
    return {.kind = ExpressionKind::kCountRows};
  }
  call.children = List(kRightParen);
  bool constant = call.children.size() == 1 && call.children[0].kind > ExpressionKind::kNull &&
                  call.children[0].kind < ExpressionKind::kMarker;
  if (count && call.keyspace.empty() && constant) {
    return {.kind = ExpressionKind::kCountRows};
  }
  return Measured(std::move(call));
}

Expression Parser::Cast() {
  Expect(Keyword::kCast);
  Expect(kLeftParen);
  Expression node{.kind = ExpressionKind::kCast};
  node.children.push_back(Sum());
  Expect(Keyword::kAs);
  node.type = Type();
  Expect(kRightParen);
  return Measured(std::move(node));
}

// writetime(c), ttl(c[1]): of a column, not of a value.
Expression Parser::CellCall(ExpressionKind kind) {
  Advance();
  Expect(kLeftParen);
  if (!IsName() || IsCall()) {
    FailHere();
  }
  Expression node{.kind = kind};
  node.children.push_back(Postfix());
  Expect(kRightParen);
  return Measured(std::move(node));
}

// Gives a new node its height.
Expression Parser::Measured(Expression node) {
  for (const Expression& child : node.children) {
    node.height = std::max<uint16_t>(node.height, child.height + 1);
  }
  if (node.height > kHeightMax) {
    FailHere("the statement is nested too deep");
  }
  return node;
}

// Of LIMIT, TIMESTAMP, TTL.
Expression Parser::IntegerOrMarker() {
  if (Is(kQuestion) || Is(kColon)) {
    return Marker();
  }
  if (Is(kInteger) || (Is(kMinus) && NextIs(kInteger))) {
    return Unary();
  }
  FailHere();
  return {};
}

}  // namespace orrery::cql
