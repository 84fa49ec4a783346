#include "api/cassandra/prepared.h"

#include "cql/parse.h"
#include "cql/schema_document.h"
#include "cql/system_tables.h"
#include "net/http_server.h"

namespace orrery::cassandra {

namespace {

constexpr size_t kIdBytes = 16;  // as in Cassandra

cql::TypeScope ScopeFor(const cql::Table& table, const cql::Schema& schema) {
  const cql::Keyspace* keyspace = schema.FindKeyspace(table.keyspace);
  return keyspace != nullptr ? cql::ScopeOf(*keyspace)
                             : cql::TypeScope{.keyspace = table.keyspace, .find = {}};
}

template <typename T>
Result<WritePlan> PlanWrite(const T& what, Compiled& out) {
  ORRERY_TRY(const cql::Table* table, FindTable(what.table, out.keyspace, *out.schema));
  if (cql::IsSystemKeyspace(table->keyspace)) {
    return Error(Code::kForbidden, table->keyspace + " keyspace is not user-modifiable.");
  }
  if (table->view) {
    return Error(Code::kInvalidArgument, "Cannot directly modify a materialized view");
  }
  const cql::TypeScope scope = ScopeFor(*table, *out.schema);
  return WritePlan::Compile(what, {*table, scope, out.markers});
}

// Compiles what a statement with a table in it means.
class Compiler {
 public:
  explicit Compiler(Compiled& out) : out_(out), schema_(*out.schema) {}

  Status operator()(const cql::Insert& what) { return Write(what); }
  Status operator()(const cql::Update& what) { return Write(what); }
  Status operator()(const cql::Delete& what) { return Write(what); }

  Status operator()(const cql::Select& what) {
    auto table = FindTable(what.table, out_.keyspace, schema_);
    if (!table) {
      return table.error();
    }
    const bool of_system = cql::IsSystemKeyspace((*table)->keyspace);
    const cql::TypeScope scope = ScopeFor(**table, schema_);
    auto plan = SelectPlan::Compile(what, {**table, scope, out_.markers}, of_system);
    if (!plan) {
      return plan.error();
    }
    out_.plan = std::move(*plan);
    return Status::Ok();
  }

  Status operator()(const cql::Batch& what) {
    BatchPlan batch{.kind = what.kind};
    if (what.using_.ttl) {
      return Status(Code::kInvalidArgument, "Global TTL on the BATCH statement is not supported.");
    }
    for (const auto& change : what.changes) {
      auto plan = std::visit(
          [&](const auto& each) -> Result<WritePlan> { return PlanWrite(each, out_); }, change);
      if (!plan) {
        return plan.error();
      }
      if (what.using_.timestamp && plan->has_timestamp()) {
        return Status(Code::kInvalidArgument,
                      "Timestamp must be set either on BATCH or individual statements");
      }
      batch.writes.push_back(std::move(*plan));
    }
    if (what.using_.timestamp) {
      const cql::TypeScope none{.keyspace = out_.keyspace, .find = nullptr};
      const cql::Receiver receiver{.keyspace = out_.keyspace, .table = "", .name = "", .type = {}};
      auto term = cql::PrepareTerm(*what.using_.timestamp, cql::TimestampReceiver(receiver),
                                   out_.markers, none);
      if (!term) {
        return term.error();
      }
      batch.timestamp = std::move(*term);
    }
    out_.plan = std::move(batch);
    return Status::Ok();
  }

  // All others are looked up when they run.
  template <typename T>
  Status operator()(const T&) {
    return Status::Ok();
  }

 private:
  template <typename T>
  Status Write(const T& what) {
    auto plan = PlanWrite(what, out_);
    if (!plan) {
      return plan.error();
    }
    out_.plan = std::move(*plan);
    return Status::Ok();
  }

  Compiled& out_;
  const cql::Schema& schema_;
};

}  // namespace

Result<const cql::Table*> FindTable(const cql::QualifiedName& name, std::string_view keyspace,
                                    const cql::Schema& schema) {
  const std::string_view in = name.keyspace.empty() ? keyspace : std::string_view(name.keyspace);
  if (in.empty()) {
    return Error(Code::kInvalidArgument,
                 "No keyspace has been specified. USE a keyspace, or explicitly specify "
                 "keyspace.tablename");
  }
  if (const cql::Table* table = cql::FindSystemTable(in, name.name)) {
    return table;
  }
  if (schema.FindKeyspace(in) == nullptr && !cql::IsSystemKeyspace(in)) {
    return Error(Code::kInvalidArgument, "Keyspace " + std::string(in) + " does not exist");
  }
  const cql::Table* table = schema.FindTable(in, name.name);
  if (table == nullptr) {
    return Error(Code::kInvalidArgument, "unconfigured table " + name.name);
  }
  return table;
}

CompileResult Compile(std::string_view text, std::string_view keyspace,
                      std::shared_ptr<const cql::Schema> schema) {
  auto parsed = cql::Parse(text);
  if (!parsed) {
    return std::unexpected(CompileError{.syntax = true, .status = parsed.error()});
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->parsed = std::move(*parsed);
  compiled->text = text;
  compiled->keyspace = keyspace;
  compiled->schema = std::move(schema);
  compiled->markers.resize(compiled->parsed.markers.size());
  Status status = std::visit(Compiler(*compiled), compiled->parsed.statement);
  if (!status.ok()) {
    return std::unexpected(CompileError{.syntax = false, .status = std::move(status)});
  }
  return compiled;
}

std::vector<uint16_t> Compiled::KeyMarkers() const {
  if (const auto* write = std::get_if<WritePlan>(&plan)) {
    return write->KeyMarkers();
  }
  if (const auto* select = std::get_if<SelectPlan>(&plan)) {
    return select->where().names_partitions() ? select->where().KeyMarkers()
                                              : std::vector<uint16_t>();
  }
  return {};
}

std::string StatementId(std::string_view keyspace, std::string_view text) {
  return net::Sha256(std::string(keyspace) + '\0' + std::string(text)).substr(0, kIdBytes);
}

std::shared_ptr<const Compiled> PreparedStatements::Find(std::string_view id) {
  std::lock_guard lock(mutex_);
  auto found = by_id_.find(id);
  if (found == by_id_.end()) {
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->statement;
}

void PreparedStatements::Keep(std::string id, std::shared_ptr<const Compiled> statement) {
  std::lock_guard lock(mutex_);
  if (auto found = by_id_.find(id); found != by_id_.end()) {
    std::shared_ptr<const Compiled>& kept = found->second->statement;
    if (kept->text == statement->text && kept->keyspace == statement->keyspace) {
      kept = std::move(statement);
    }
    return;
  }
  bytes_ += statement->text.size();
  entries_.push_front({id, std::move(statement)});
  by_id_[std::move(id)] = entries_.begin();
  while (entries_.size() > 1 && (entries_.size() > kCountMax || bytes_ > kBytesMax)) {
    bytes_ -= entries_.back().statement->text.size();
    by_id_.erase(entries_.back().id);
    entries_.pop_back();
  }
}

}  // namespace orrery::cassandra
