// Statements that were parsed and looked up, and those that clients keep by their ids.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "api/cassandra/selects.h"
#include "api/cassandra/writes.h"
#include "base/status.h"
#include "cql/ast.h"
#include "cql/binding.h"

namespace orrery::cassandra {

struct BatchPlan {
  cql::BatchKind kind = cql::BatchKind::kLogged;
  std::vector<WritePlan> writes;
  std::optional<cql::Term> timestamp;
};

// Immutable; shared by threads. Plans point into the schema.
struct Compiled {
  cql::Parsed parsed;
  std::string text;
  std::string keyspace;  // of the session
  std::shared_ptr<const cql::Schema> schema;
  cql::MarkerSpecs markers;
  std::variant<std::monostate, WritePlan, SelectPlan, BatchPlan> plan;

  std::vector<uint16_t> KeyMarkers() const;
};

struct CompileError {
  bool syntax = false;
  Status status;
};
using CompileResult = std::expected<std::shared_ptr<const Compiled>, CompileError>;
CompileResult Compile(std::string_view text, std::string_view keyspace,
                      std::shared_ptr<const cql::Schema> schema);

// The table that a statement names. kInvalidArgument in Cassandra's words if there is none.
Result<const cql::Table*> FindTable(const cql::QualifiedName& name, std::string_view keyspace,
                                    const cql::Schema& schema);

// The same on all nodes. Nobody can find another text with the id of a given one: who executes an
// id does so with their own rights, whoever prepared it.
std::string StatementId(std::string_view keyspace, std::string_view text);

// The ones used last stay. Thread-safe.
class PreparedStatements {
 public:
  static constexpr size_t kCountMax = 20'000;
  static constexpr size_t kBytesMax = 64 << 20;  // of their texts

  std::shared_ptr<const Compiled> Find(std::string_view id);
  // In place of the same text that was compiled before; another text under the id stays.
  void Keep(std::string id, std::shared_ptr<const Compiled> statement);

 private:
  struct Entry {
    std::string id;
    std::shared_ptr<const Compiled> statement;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view id) const { return std::hash<std::string_view>()(id); }
  };
  std::mutex mutex_;
  std::list<Entry> entries_;  // those used last are first
  std::unordered_map<std::string, std::list<Entry>::iterator, Hash, std::equal_to<>> by_id_;
  size_t bytes_ = 0;
};

}  // namespace orrery::cassandra
