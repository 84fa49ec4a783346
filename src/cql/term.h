// Terms: what stands for a value of a wanted type, in VALUES, SET, WHERE, IF, USING and LIMIT.
//
// PrepareTerm checks types once, and computes what does not depend on markers or the time; Bind
// gives the value at each execution. Both fail with kInvalidArgument in Cassandra's words.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/expression.h"
#include "cql/resolve_type.h"

namespace orrery::cql {

class Node;
struct Table;

// Immutable; copies share what they are made of. Threads may share it.
class Term {
 public:
  Term();  // null
  explicit Term(std::shared_ptr<const Node> node);

  const DataType& type() const;
  // Whether Bind gives the same at every time, whatever the markers are.
  bool constant() const;
  // Of a marker and nothing else its place; -1 of all others.
  int marker() const { return marker_; }

  // Of a marker or a constant it is a view: into `values`, or into the term. What markers bring is
  // checked, and sets and maps in it are put in order. REQUIRES: a value for each marker.
  Result<Bound> Bind(std::span<const MarkerValue> values, FunctionContext& context) const;

 private:
  std::shared_ptr<const Node> node_;
  int marker_ = -1;
};

// Where a term stands.
struct TermScope {
  TermScope(const TypeScope& types, const Table* table = nullptr)  // NOLINT: a TypeScope will do
      : types(types), table(table) {}
  const TypeScope& types;
  const Table* table;  // whose partition key token() takes; may be null
};

// What each marker is for goes to its place in `markers`. REQUIRES: there is a place for each.
Result<Term> PrepareTerm(const Expression& expression, const Receiver& receiver,
                         MarkerSpecs& markers, const TermScope& scope);

// The receivers of special places. `of` is the one of the column.
Receiver InReceiver(const Receiver& of);  // in(c), list<type>: one marker for all values
Receiver ElementReceiver(const Receiver& of, bool key);    // key(m), value(m), idx(l), value(l)
Receiver FieldReceiver(const Receiver& of, size_t field);  // u.f of a user type, t[0] of a tuple
Receiver LimitReceiver(const Receiver& of);                // [limit], int
Receiver PerPartitionLimitReceiver(const Receiver& of);    // [per_partition_limit], int
Receiver TimestampReceiver(const Receiver& of);            // [timestamp], bigint
Receiver TtlReceiver(const Receiver& of);                  // [ttl], int
Receiver JsonReceiver(const Receiver& of);                 // [json], text
Receiver TokenReceiver(const Receiver& of);                // partition key token, bigint

}  // namespace orrery::cql
