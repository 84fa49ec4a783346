// Which type an expression has, and whether it would do.
#include <algorithm>

#include "cql/compile.h"
#include "cql/number.h"
#include "cql/text.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

bool HasTypeOfItsOwn(ExpressionKind kind) {
  switch (kind) {
    case ExpressionKind::kHint:
    case ExpressionKind::kCast:
    case ExpressionKind::kCall:
    case ExpressionKind::kNegate:
    case ExpressionKind::kChain: return true;
    default: return kind > ExpressionKind::kTuple || kind == ExpressionKind::kColumn;
  }
}

}  // namespace

char SignOf(Operator joint) {
  switch (joint) {
    case Operator::kNone: return ' ';
    case Operator::kAdd: return '+';
    case Operator::kSubtract: return '-';
    case Operator::kMultiply: return '*';
    case Operator::kDivide: return '/';
    case Operator::kModulo: return '%';
  }
  return ' ';
}

const Expression& Bare(const Expression& expression) {
  const Expression* bare = &expression;
  while (bare->kind == ExpressionKind::kTuple && bare->children.size() == 1) {
    bare = &bare->children.front();
  }
  return *bare;
}

bool IsConstant(ExpressionKind kind) { return kind <= ExpressionKind::kDuration; }

DataType NaturalType(const Expression& constant) {
  switch (constant.kind) {
    case ExpressionKind::kInteger:
      return IntegerFromText<int32_t>(constant.text)   ? TypeId::kInt
             : IntegerFromText<int64_t>(constant.text) ? TypeId::kBigint
                                                       : TypeId::kVarint;
    case ExpressionKind::kFloat: return TypeId::kDouble;
    case ExpressionKind::kBoolean: return TypeId::kBoolean;
    case ExpressionKind::kUuid:
      return constant.text.size() > 14 && constant.text[14] == '1' ? TypeId::kTimeuuid
                                                                   : TypeId::kUuid;
    case ExpressionKind::kDuration: return TypeId::kDuration;
    case ExpressionKind::kString: return TypeId::kText;
    default: return TypeId::kBlob;
  }
}

std::optional<DataType> Compiler::TypeOf(const Expression& expression) {
  if (auto at = known_.find(&expression); at != known_.end()) {
    return at->second;
  }
  std::optional<DataType> type = FindType(expression);
  known_.emplace(&expression, type);
  return type;
}

std::optional<DataType> Compiler::GuessOf(const Expression& expression) {
  if (auto at = guesses_.find(&expression); at != guesses_.end()) {
    return at->second;
  }
  std::optional<DataType> type = TypeOf(expression);
  if (!type) {
    type = FindGuess(expression);
  }
  guesses_.emplace(&expression, type);
  return type;
}

std::optional<DataType> Compiler::FindType(const Expression& expression) {
  if (selection_ != nullptr && selection_->Knows(expression)) {
    return selection_->TypeOf(expression);
  }
  auto of_parts = [&](size_t first, size_t step) -> std::optional<DataType> {
    for (size_t i = first; i < expression.children.size(); i += step) {
      if (auto type = TypeOf(expression.children[i])) {
        return type;
      }
    }
    return std::nullopt;
  };
  switch (expression.kind) {
    case ExpressionKind::kHint:
    case ExpressionKind::kCast: {
      auto type = ResolveType(*expression.type, types_);
      return type ? std::optional(*type) : std::nullopt;
    }
    case ExpressionKind::kCall: {
      auto function = FindCall(expression, std::nullopt);
      return function && *function ? std::optional((*function)->result) : std::nullopt;
    }
    case ExpressionKind::kNegate:
    case ExpressionKind::kChain: return OperandType(expression, std::nullopt);
    case ExpressionKind::kList: {
      auto element = of_parts(0, 1);
      return element ? std::optional(DataType::List(*element)) : std::nullopt;
    }
    case ExpressionKind::kSet: {
      auto element = of_parts(0, 1);
      return element ? std::optional(DataType::Set(*element)) : std::nullopt;
    }
    case ExpressionKind::kMap: {
      auto key = of_parts(0, 2);
      auto value = of_parts(1, 2);
      return key && value ? std::optional(DataType::Map(*key, *value)) : std::nullopt;
    }
    case ExpressionKind::kTuple: {
      if (expression.children.size() == 1) {
        return TypeOf(expression.children.front());
      }
      std::vector<DataType> fields;
      for (const Expression& child : expression.children) {
        auto type = TypeOf(child);
        if (!type) {
          return std::nullopt;
        }
        fields.push_back(*std::move(type));
      }
      return DataType::Tuple(std::move(fields));
    }
    default: return std::nullopt;
  }
}

std::optional<DataType> Compiler::FindGuess(const Expression& expression) {
  switch (expression.kind) {
    case ExpressionKind::kList:
    case ExpressionKind::kSet: {
      if (expression.children.empty()) {
        return std::nullopt;
      }
      auto element = GuessOf(expression.children.front());
      if (!element) {
        return std::nullopt;
      }
      return expression.kind == ExpressionKind::kList ? DataType::List(*element)
                                                      : DataType::Set(*element);
    }
    case ExpressionKind::kMap: {
      auto key = GuessOf(expression.children[0]);
      auto value = GuessOf(expression.children[1]);
      return key && value ? std::optional(DataType::Map(*key, *value)) : std::nullopt;
    }
    case ExpressionKind::kTuple: {
      if (expression.children.size() == 1) {
        return GuessOf(expression.children.front());
      }
      std::vector<DataType> fields;
      for (const Expression& child : expression.children) {
        auto type = GuessOf(child);
        if (!type) {
          return std::nullopt;
        }
        fields.push_back(*std::move(type));
      }
      return DataType::Tuple(std::move(fields));
    }
    default:
      return IsConstant(expression.kind) && expression.kind != ExpressionKind::kNull
                 ? std::optional(NaturalType(expression))
                 : std::nullopt;
  }
}

Fit Compiler::Test(const Expression& expression, const DataType& type) {
  switch (expression.kind) {
    case ExpressionKind::kNull: return type.id() == TypeId::kCounter ? Fit::kNo : Fit::kWeak;
    case ExpressionKind::kMarker: return Fit::kWeak;
    case ExpressionKind::kTuple:
      if (expression.children.size() == 1 && type.id() != TypeId::kTuple) {
        return Test(expression.children.front(), type);
      }
      return TestFields(expression, type);
    case ExpressionKind::kUser:
      return type.id() == TypeId::kMap && selection_ != nullptr ? TestParts(expression, type)
                                                                : TestFields(expression, type);
    case ExpressionKind::kList:
    case ExpressionKind::kSet:
    case ExpressionKind::kMap: return TestParts(expression, type);
    default: break;
  }
  if (IsConstant(expression.kind)) {
    return !AcceptsConstant(type, expression.kind)     ? Fit::kNo
           : NaturalType(expression).id() == type.id() ? Fit::kExact
                                                       : Fit::kWeak;
  }
  std::optional<DataType> known = TypeOf(expression);
  if (!known) {
    return Fit::kWeak;
  }
  Fit fit = FitOf(type, *known);
  bool operation =
      expression.kind == ExpressionKind::kChain || expression.kind == ExpressionKind::kNegate;
  if (fit == Fit::kNo && operation) {
    std::optional<DataType> other = OperandType(expression, type);
    return other && FitOf(type, *other) != Fit::kNo ? Fit::kWeak : Fit::kNo;
  }
  return fit;
}

Fit Compiler::TestParts(const Expression& expression, const DataType& type) {
  bool empty_map = expression.kind == ExpressionKind::kSet && expression.children.empty() &&
                   type.id() == TypeId::kMap;
  bool right =
      empty_map ||
      (expression.kind == ExpressionKind::kList &&
       (type.id() == TypeId::kList ||
        (type.id() == TypeId::kVector && expression.children.size() == type.dimension()))) ||
      (expression.kind == ExpressionKind::kSet && type.id() == TypeId::kSet) ||
      ((expression.kind == ExpressionKind::kMap || expression.kind == ExpressionKind::kUser) &&
       type.id() == TypeId::kMap);
  if (!right) {
    return Fit::kNo;
  }
  Fit fit = expression.children.empty() ? Fit::kWeak : Fit::kExact;
  for (size_t i = 0; i < expression.children.size() && fit != Fit::kNo; ++i) {
    const DataType& part = type.parameters()[i % type.parameters().size()];
    fit = std::min(fit, Test(expression.children[i], part));
  }
  return fit;
}

Fit Compiler::TestFields(const Expression& expression, const DataType& type) {
  bool user = expression.kind == ExpressionKind::kUser;
  if (type.id() != (user ? TypeId::kUdt : TypeId::kTuple)) {
    return Fit::kNo;
  }
  if (!user && expression.children.size() > type.parameters().size()) {
    return Fit::kNo;
  }
  Fit fit = Fit::kExact;
  for (size_t i = 0; i < expression.children.size() && fit != Fit::kNo; i += user ? 2 : 1) {
    auto field = user ? type.FieldIndex(expression.children[i].text) : std::optional(i);
    if (!field) {
      return Fit::kNo;
    }
    fit = std::min(fit, Test(expression.children[user ? i + 1 : i], type.parameters()[*field]));
  }
  return fit;
}

Argument Compiler::ArgumentOf(const Expression& expression) {
  const Expression& bare = Bare(expression);
  return {.type = TypeOf(bare),
          .guess = GuessOf(bare),
          .fit = [this, &bare](const DataType& type) { return Test(bare, type); },
          .text = [&expression] { return ToCql(expression); }};
}

Result<FunctionPtr> Compiler::FindCall(const Expression& call, std::optional<DataType> wanted) {
  std::vector<Argument> arguments;
  for (const Expression& child : call.children) {
    arguments.push_back(ArgumentOf(child));
  }
  return FindFunction({.keyspace = call.keyspace,
                       .name = call.text,
                       .wanted = std::move(wanted),
                       .table = table_,
                       .selection = selection_ != nullptr},
                      arguments);
}

std::optional<DataType> Compiler::OperandType(const Expression& expression,
                                              const std::optional<DataType>& leaf) {
  const Expression& bare = Bare(expression);
  if (bare.kind == ExpressionKind::kChain) {
    return ChainType(bare, leaf);
  }
  if (bare.kind == ExpressionKind::kNegate) {
    auto type = OperandType(bare.children.front(), leaf);
    return type && FindNegation(*type) ? type : std::nullopt;
  }
  if (IsConstant(bare.kind) && bare.kind != ExpressionKind::kNull) {
    return leaf && AcceptsConstant(*leaf, bare.kind) ? *leaf : NaturalType(bare);
  }
  return HasTypeOfItsOwn(bare.kind) ? TypeOf(bare) : std::nullopt;
}

std::optional<DataType> Compiler::ChainType(const Expression& chain,
                                            const std::optional<DataType>& leaf) {
  std::optional<DataType> type = OperandType(chain.children.front(), leaf);
  for (size_t i = 1; i < chain.children.size() && type; ++i) {
    const Expression& right = Bare(chain.children[i]);
    bool time = type->id() == TypeId::kTimestamp || type->id() == TypeId::kDate;
    auto right_type = right.kind == ExpressionKind::kMarker && time
                          ? std::optional<DataType>(TypeId::kDuration)
                          : OperandType(right, leaf);
    FunctionPtr operation =
        right_type ? FindOperation(SignOf(chain.children[i].joint), *type, *right_type) : nullptr;
    type = operation ? std::optional(operation->result) : std::nullopt;
  }
  return type;
}

}  // namespace orrery::cql
