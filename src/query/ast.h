// The syntax tree of a query.
//
// A Node is small and owns its children. Operators of one level of precedence that follow each
// other (a AND b AND c, 1 + 2 - 3) make one node with many children, and so do the steps of a path,
// so the tree is never deeper than the text is nested (kHeightMax) and may be walked by recursion.
//
// What can be computed without an item was computed by the parser: a node whose children are all
// constants is a constant itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "query/arena.h"
#include "types/document.h"

namespace orrery::query {

inline constexpr int kNestingMax = 128;  // of parentheses, unary operators, subexpressions
inline constexpr int kHeightMax = 1024;  // of the tree

enum class NodeKind : uint8_t {
  kConstant,     // value
  kItem,         // the alias of FROM
  kPath,         // children: what it starts from, then one name or index a step
  kUnary,        // children: the operand; op
  kChain,        // children: operands, from the left; the joint of each but the first
  kConditional,  // children: condition, then, else
  kIn,           // children: what is looked for, the list
  kBetween,      // children: value, lower, upper
  kLike,         // children: text, pattern; value: the escape character or Undefined
  kCall,         // children: arguments; function
  kArray,        // children: elements
  kObject,       // children: name, value, name, value...
};

enum class Operator : uint8_t {
  kNone,
  kCoalesce,
  kOr,
  kAnd,
  kNot,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kConcat,
  kBitOr,
  kBitXor,
  kBitAnd,
  kBitNot,
  kShiftLeft,
  kShiftRight,
  kShiftRightZero,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kNegate,
  kPlus,
};

struct Function;  // functions.h

struct Node {
  NodeKind kind = NodeKind::kConstant;
  Operator op = Operator::kNone;     // of kUnary
  Operator joint = Operator::kNone;  // the operator before it, in a chain
  bool negated = false;              // NOT IN, NOT BETWEEN, NOT LIKE
  int16_t height = 1;
  const Function* function = nullptr;
  types::Value value;  // a view into SelectStatement::constants
  std::vector<Node> children;
};

struct SelectStatement {
  std::string alias;             // what the item is called
  std::unique_ptr<Node> filter;  // null: no WHERE
  Arena constants;
};

}  // namespace orrery::query
