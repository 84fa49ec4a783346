// The smaller parts of a CQL statement: names, types, expressions, relations. Plain values.
//
// Names are as they count: in lower case if they stood without quotes, letter by letter otherwise.
//
// An Expression is small and owns its children. Operators of one level of precedence that follow
// each other (1 + 2 - 3) make one node with many children, so the tree is never higher than
// kHeightMax and may be walked by recursion. Nothing is computed and no name is looked up: what the
// text means is for those who know the schema.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cql/type_id.h"

namespace orrery::cql {

inline constexpr int kNestingMax = 100;  // of parentheses, brackets, types, unary operators
inline constexpr int kHeightMax = 4 * kNestingMax;  // of an expression
inline constexpr size_t kMarkersMax = 65535;        // of a statement, as the protocol counts them
inline constexpr size_t kTokensMax = 500'000;       // what is read of a statement, all in all
inline constexpr size_t kTextBytesMax = 16 << 20;

// `name` or `keyspace.name`.
struct QualifiedName {
  std::string keyspace;  // empty: the session's
  std::string name;

  friend bool operator==(const QualifiedName&, const QualifiedName&) = default;
};

// A type as a statement wrote it, not yet looked up: resolve_type.h makes a DataType of it.
struct TypeName {
  TypeId id = TypeId::kBlob;
  bool frozen = false;              // frozen<...> stood around it, sense or not
  uint32_t dimension = 0;           // of a vector
  QualifiedName name;               // of a user type; of a custom one its class, without keyspace
  std::vector<TypeName> arguments;  // of a map key and value, of a tuple one or more

  friend bool operator==(const TypeName&, const TypeName&) = default;
};

enum class ExpressionKind : uint8_t {
  // Constants. `text` is as written, without quotes; a sign before a number belongs to it.
  kNull,
  kString,
  kInteger,
  kFloat,  // 1.5, 1e3, NaN, Infinity, -Infinity
  kBoolean,
  kUuid,
  kBlob,      // 0x0aff
  kDuration,  // 1y2mo3w4d5h6m7s8ms9us10ns, P1Y2M3DT4H5M6S, P3W, P0001-02-03T04:05:06

  kMarker,  // text: the name, or empty for `?`; marker: its place in the statement

  kColumn,  // text

  // Collections and tuples. One parenthesised expression may be just that, or a tuple of one: the
  // type that is wanted tells. So does it of kSet without children: {} is also a map.
  kList,   // children: elements; a vector is written so too
  kSet,    // children: elements
  kMap,    // children: key, value, key, value...
  kUser,   // children: kColumn (the name of a field), value...; in a selector it may mean a map
  kTuple,  // children: fields

  // Steps into a value. `children` begin with what they are applied to.
  kElement,  // a[1]: value, index or key
  kSlice,    // a[1..2]: value, lower, upper; kAbsent for a bound that is left out
  kField,    // a.b: value; text: the field
  kAbsent,

  kCall,          // keyspace, text: the function; children: arguments. Also token(...).
  kCountRows,     // count(*), and count of a constant: count(1)
  kWritetime,     // children: a column or a step into one
  kMaxWritetime,  // "
  kTtl,           // "
  kCast,          // CAST(a AS type): a; type
  kHint,          // (type) a: a; type
  kNegate,        // children: the operand
  kChain,         // children: operands, from the left; the joint of each but the first
};

enum class Operator : uint8_t { kNone, kAdd, kSubtract, kMultiply, kDivide, kModulo };

struct Expression {
  ExpressionKind kind = ExpressionKind::kNull;
  Operator joint = Operator::kNone;  // the operator before it, in a chain
  uint16_t height = 1;
  uint16_t marker = 0;
  std::string text;
  std::string keyspace;
  std::optional<TypeName> type;
  std::vector<Expression> children;

  friend bool operator==(const Expression&, const Expression&) = default;
};

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,           // values: those in parentheses, or one marker for all of them (in_marker)
  kContains,     // values: one
  kContainsKey,  // values: one
  kLike,         // values: one
  kBetween,      // values: lower, upper
  kIsNotNull,    // values: none
};

enum class RelationTarget : uint8_t {
  kColumn,   // a
  kTuple,    // (a, b)
  kToken,    // token(a, b)
  kElement,  // a[1]
  kField,    // a.b; only in conditions
};

// A term of WHERE or of IF.
struct Relation {
  RelationTarget target = RelationTarget::kColumn;
  Comparison comparison = Comparison::kEqual;
  bool in_marker = false;
  std::vector<std::string> columns;   // one but for kTuple and kToken
  std::optional<Expression> element;  // of kElement
  std::string field;                  // of kField
  std::vector<Expression> values;

  friend bool operator==(const Relation&, const Relation&) = default;
};

// expr(index, 'value'): a condition in the language of a custom index.
struct IndexRelation {
  QualifiedName index;
  Expression value;

  friend bool operator==(const IndexRelation&, const IndexRelation&) = default;
};

struct Where {
  std::vector<Relation> relations;  // all must hold
  std::vector<IndexRelation> index_relations;

  bool empty() const { return relations.empty() && index_relations.empty(); }
  friend bool operator==(const Where&, const Where&) = default;
};

}  // namespace orrery::cql
