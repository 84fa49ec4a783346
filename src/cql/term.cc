#include "cql/term.h"

#include "cql/compile.h"
#include "cql/node.h"

namespace orrery::cql {
namespace {

Receiver Named(const Receiver& of, std::string name, DataType type) {
  return {of.keyspace, of.table, std::move(name), std::move(type)};
}

}  // namespace

Term::Term() : node_(ConstantNode(TypeId::kBlob, std::nullopt)) {}

Term::Term(std::shared_ptr<const Node> node) : node_(std::move(node)), marker_(node_->marker()) {}

const DataType& Term::type() const { return node_->type(); }

bool Term::constant() const { return node_->constant(); }

Result<Bound> Term::Bind(std::span<const MarkerValue> values, FunctionContext& context) const {
  return node_->Evaluate({.markers = values, .context = context});
}

Result<Term> PrepareTerm(const Expression& expression, const Receiver& receiver,
                         MarkerSpecs& markers, const TermScope& scope) {
  Compiler compiler(scope.types, scope.table, markers);
  ORRERY_TRY(NodePtr node, compiler.Compile(expression, receiver));
  return Term(std::move(node));
}

Receiver InReceiver(const Receiver& of) {
  return Named(of, "in(" + of.name + ")", DataType::List(of.type));
}

Receiver ElementReceiver(const Receiver& of, bool key) {
  bool list = of.type.id() == TypeId::kList || of.type.id() == TypeId::kVector;
  if (key && list) {
    return Named(of, "idx(" + of.name + ")", TypeId::kInt);
  }
  const auto& types = of.type.parameters();
  return Named(of, (key ? "key(" : "value(") + of.name + ")", key ? types.front() : types.back());
}

Receiver FieldReceiver(const Receiver& of, size_t field) {
  std::string name = of.type.id() == TypeId::kUdt ? of.name + "." + of.type.field_names()[field]
                                                  : of.name + "[" + std::to_string(field) + "]";
  return Named(of, std::move(name), of.type.parameters()[field]);
}

Receiver LimitReceiver(const Receiver& of) { return Named(of, "[limit]", TypeId::kInt); }
Receiver PerPartitionLimitReceiver(const Receiver& of) {
  return Named(of, "[per_partition_limit]", TypeId::kInt);
}
Receiver TimestampReceiver(const Receiver& of) { return Named(of, "[timestamp]", TypeId::kBigint); }
Receiver TtlReceiver(const Receiver& of) { return Named(of, "[ttl]", TypeId::kInt); }
Receiver JsonReceiver(const Receiver& of) { return Named(of, "[json]", TypeId::kText); }
Receiver TokenReceiver(const Receiver& of) {
  return Named(of, "partition key token", TypeId::kBigint);
}

}  // namespace orrery::cql
