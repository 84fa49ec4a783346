// Compiler: makes nodes of expressions. Inside of cql/ only; term.h and selection.h are the doors.
//
// What an expression is depends on what is wanted: 1 may be an int or a timestamp. So there are two
// walks. TypeOf and Test look upwards: which type is it, would it do? Compile goes down with the
// type that is wanted. What TypeOf finds is kept, so that deep expressions cost no more than flat
// ones.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/expression.h"
#include "cql/functions.h"
#include "cql/node.h"
#include "cql/resolve_type.h"
#include "cql/schema.h"

namespace orrery::cql {

// What may stand only in a selection: columns, steps into them, aggregates.
class SelectionScope {
 public:
  virtual ~SelectionScope() = default;
  virtual bool Knows(const Expression& expression) const = 0;
  // REQUIRES of both: Knows. Nothing: it cannot be told, or is wrong.
  virtual std::optional<DataType> TypeOf(const Expression& expression) = 0;
  virtual Result<NodePtr> Compile(const Expression& expression) = 0;
};

class Compiler {
 public:
  // `table` may be null. What is given must outlive the compiler.
  Compiler(const TypeScope& types, const Table* table, MarkerSpecs& markers,
           SelectionScope* selection = nullptr)
      : types_(types), table_(table), markers_(markers), selection_(selection) {}

  // A value of the type that the receiver wants.
  Result<NodePtr> Compile(const Expression& expression, const Receiver& receiver);
  // A value of the type that it has by itself; the type of `place` does not count.
  Result<NodePtr> CompileAny(const Expression& expression, const Receiver& place);

  // The type that it has whatever is wanted; nothing if that is open or it is wrong.
  std::optional<DataType> TypeOf(const Expression& expression);
  // The same; of constants the type that they have if none is wanted.
  std::optional<DataType> GuessOf(const Expression& expression);
  // Whether it would do where the type is wanted. Where that is not easily told it would.
  Fit Test(const Expression& expression, const DataType& type);
  // What a call may know of it. REQUIRES: the expression and the compiler outlive it.
  Argument ArgumentOf(const Expression& expression);

 private:
  using Types = std::unordered_map<const Expression*, std::optional<DataType>>;

  // compile_types.cc
  std::optional<DataType> FindType(const Expression& expression);
  std::optional<DataType> FindGuess(const Expression& expression);
  Fit TestParts(const Expression& expression, const DataType& type);
  Fit TestFields(const Expression& expression, const DataType& type);
  Result<FunctionPtr> FindCall(const Expression& call, std::optional<DataType> wanted);

  // Of operators. `leaf` is the type of constants, if they can be of it.
  std::optional<DataType> OperandType(const Expression& expression,
                                      const std::optional<DataType>& leaf);
  std::optional<DataType> ChainType(const Expression& chain, const std::optional<DataType>& leaf);

  // compile.cc
  Result<NodePtr> CompileConstant(const Expression& constant, const Receiver& receiver);
  Result<NodePtr> CompileMarker(const Expression& marker, const Receiver& receiver);
  Result<NodePtr> CompileList(const Expression& list, const Receiver& receiver);
  Result<NodePtr> CompileSet(const Expression& set, const Receiver& receiver);
  Result<NodePtr> CompileMap(const Expression& map, const Receiver& receiver);
  Result<NodePtr> CompileTuple(const Expression& tuple, const Receiver& receiver);
  Result<NodePtr> CompileUser(const Expression& user, const Receiver& receiver);
  Result<NodePtr> CompileHint(const Expression& hint, const Receiver& receiver);
  // These have types of their own; `wanted` only helps to choose.
  Result<NodePtr> CompileOwn(const Expression& expression, const Receiver& place,
                             const std::optional<DataType>& wanted);
  Result<NodePtr> CompileCall(const Expression& call, const Receiver& place,
                              const std::optional<DataType>& wanted);
  Result<NodePtr> CompileCast(const Expression& cast, const Receiver& place);
  Result<NodePtr> CompileOperation(const Expression& expression, const Receiver& place,
                                   const std::optional<DataType>& wanted);
  Result<NodePtr> CompileOperand(const Expression& expression, const Receiver& place,
                                 const std::optional<DataType>& leaf);
  Result<NodePtr> CompileChain(const Expression& chain, const Receiver& place,
                               const std::optional<DataType>& leaf);

  const TypeScope& types_;
  const Table* const table_;
  MarkerSpecs& markers_;
  SelectionScope* const selection_;
  Types known_;
  Types guesses_;
};

// The sign of a joint.
char SignOf(Operator joint);
// Without the parentheses around it.
const Expression& Bare(const Expression& expression);
bool IsConstant(ExpressionKind kind);  // null too
// What a constant is if no type is wanted. REQUIRES: one that is not null.
DataType NaturalType(const Expression& constant);

}  // namespace orrery::cql
