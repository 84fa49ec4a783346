// Service: what the requests of Cassandra's clients mean. Turns statements into changes of the
// catalog and operations on partitions; knows no nodes, no storage.
//
// Thread-safe: every worker calls Handle() for the connections that it has.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/cassandra/access.h"
#include "api/cassandra/batch_keeper.h"
#include "api/cassandra/derived_builder.h"
#include "api/cassandra/failures.h"
#include "api/cassandra/passwords.h"
#include "api/cassandra/prepared.h"
#include "api/cassandra/schema_cache.h"
#include "api/cassandra/schema_events.h"
#include "api/cassandra/selects.h"
#include "api/cassandra/server.h"
#include "api/cassandra/traces.h"
#include "api/cassandra/writes.h"
#include "base/random.h"
#include "base/time.h"
#include "cql/ast.h"
#include "cql/define.h"
#include "cql/system_schema.h"
#include "model/catalog.h"
#include "partition/router.h"

namespace orrery::cassandra {

struct ServiceOptions {
  // Clients must say who they are: the account's name and one of its keys, or a role and its
  // password. Without it all may do everything.
  bool authenticate = false;
  std::string account = "orrery";
  // The nodes, as clients see them. Thread-safe.
  std::function<cql::ClusterView()> cluster;
  // Waits until the catalog has what was done through other nodes before. Null: it is alone.
  std::function<runtime::Task<>()> catch_up;
  // Told of every request when it ends, with a status as HTTP has them. May be null. Thread-safe.
  std::function<void(std::string_view operation, int status, double charge, Duration took)> observe;
};

// What comes with a statement.
struct Execution {
  Client& client;
  int version;
  const QueryParameters& parameters;
  std::vector<cql::MarkerValue> values;
  // From version 5 on: whether the columns are those that the client has.
  std::optional<std::string_view> result_metadata_id;
  // The columns that the answer to a condition shows if it does not hold.
  std::vector<const cql::Column*> shown;
  // A definition was not done because somebody else changed the same thing meanwhile.
  bool overtaken = false;
  // Of the password that the statement has, once it is computed.
  std::optional<std::string> password_hash;
};

class Service final : public Handler {
 public:
  Service(model::Catalog& catalog, const SchemaCache& schemas, partition::Router& router,
          BatchKeeper& batches, DerivedBuilder& builder, Passwords& passwords, const Clock& clock,
          Random& random, ServiceOptions options);

  runtime::Task<Response> Handle(Client& client, Request request) override;
  // What clients are told of the schema.
  SchemaEvents& events() { return events_; }

 private:
  runtime::Task<Response> Answer(Client& client, const Request& request);
  std::array<char, 16> KeepTrace(const Client& client, const Request& request,
                                 const Response& response, Duration took);
  // Who a client is, and what it may do (login.cc).
  runtime::Task<Response> Authenticate(Client& client, const AuthResponseRequest& request,
                                       int version);
  // As of now. REQUIRES: the client is a role. Good until it is asked again.
  const RoleAccess& AccessOf(Client& client);
  // When the catalog has caught up: what is missing may have been granted through another node.
  runtime::Task<Status> CheckAgain(Client& client, std::function<Status(const RoleAccess&)> check);
  runtime::Task<Response> Prepare(Client& client, const PrepareRequest& request, int version);
  runtime::Task<Response> Execute(Client& client, const ExecuteRequest& request, int version);
  runtime::Task<Response> Query(Client& client, const QueryRequest& request, int version);
  runtime::Task<Response> Batch(Client& client, const BatchRequest& request, int version);

  // Tries again when the catalog has caught up: it may name what was made through another node.
  runtime::Task<CompileResult> CompileNow(std::string_view text, std::string_view keyspace);
  runtime::Task<Response> Run(const Compiled& compiled, Execution& execution);
  // Of a client that is a role: if it may.
  runtime::Task<Response> RunChecked(const Compiled& compiled, Execution& execution);
  runtime::Task<Response> RunAllowed(const Compiled& compiled, Execution& execution);
  runtime::Task<Response> RunWrite(const WritePlan& plan, Execution& execution);
  runtime::Task<Response> RunSelect(const SelectPlan& plan, Execution& execution);
  std::vector<cql::SystemRow> RowsOfSystem(const cql::Table& table) const;
  runtime::Task<Response> RunBatchText(const BatchPlan& plan, Execution& execution);
  Response RunUse(const cql::UseStatement& use, Execution& execution);
  Response RunDescribe(const cql::Describe& describe, Execution& execution);

  // Writes of one statement or of a batch, by table and partition (service_writes.cc).
  struct PartitionWrite {
    const WritePlan* plan;  // of the first statement
    BoundWrite write;
    std::shared_ptr<const model::Container> container;
  };
  // Takes the changes and the conditions out of it.
  runtime::Task<BatchKeeper::Written> Write(PartitionWrite& write);
  runtime::Task<Response> WriteAll(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                   Execution& execution);
  Status CheckParts(const std::vector<PartitionWrite>& writes) const;
  // All of it is done in the end, or nothing.
  runtime::Task<Response> WriteLogged(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                      Execution& execution);
  static std::vector<std::string> WarningsOf(const std::vector<PartitionWrite>& writes,
                                             BatchRequest::Type type);
  // One statement of a batch.
  struct BatchPart {
    const WritePlan* plan;
    std::span<const cql::MarkerValue> values;
  };
  static std::vector<const cql::Column*> ShownOf(const std::vector<BatchPart>& parts);
  runtime::Task<Response> RunParts(const std::vector<BatchPart>& parts, BatchRequest::Type type,
                                   const WritePlan::Defaults& defaults, Execution& execution);
  // Adds the writes of one statement to those of its partitions.
  Status Gather(const WritePlan& plan, const SchemaView& view, const Binding& binding,
                const WritePlan::Defaults& defaults, std::vector<PartitionWrite>& writes);
  Result<Response> ConditionAnswer(const std::vector<PartitionWrite>& writes,
                                   const rows::WriteAnswer& answer, Execution& execution) const;

  // Definitions (definitions.cc).
  runtime::Task<Response> Define(const cql::Statement& statement, Execution& execution);
  runtime::Task<Response> Do(const cql::CreateKeyspace& what, Execution& execution);
  runtime::Task<Response> Do(const cql::AlterKeyspace& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropKeyspace& what, Execution& execution);
  runtime::Task<Response> Do(const cql::CreateTable& what, Execution& execution);
  runtime::Task<Response> Do(const cql::AlterTable& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropTable& what, Execution& execution);
  runtime::Task<Response> Do(const cql::Truncate& what, Execution& execution);
  runtime::Task<Response> Do(const cql::CreateType& what, Execution& execution);
  runtime::Task<Response> Do(const cql::AlterType& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropType& what, Execution& execution);
  runtime::Task<Response> Do(const cql::CreateIndex& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropIndex& what, Execution& execution);
  runtime::Task<Response> Do(const cql::CreateView& what, Execution& execution);
  runtime::Task<Response> Do(const cql::AlterView& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropView& what, Execution& execution);
  // Roles and permissions (role_statements.cc).
  runtime::Task<Response> Do(const cql::CreateRole& what, Execution& execution);
  runtime::Task<Response> Do(const cql::AlterRole& what, Execution& execution);
  runtime::Task<Response> Do(const cql::DropRole& what, Execution& execution);
  runtime::Task<Response> Do(const cql::GrantRole& what, Execution& execution);
  runtime::Task<Response> Do(const cql::GrantPermissions& what, Execution& execution);
  runtime::Task<Response> Do(const cql::ListRoles& what, Execution& execution);
  runtime::Task<Response> Do(const cql::ListPermissions& what, Execution& execution);
  // The roles in place of those of the view.
  runtime::Task<Response> PutRoles(cql::Defined<cql::Roles> after,
                                   std::shared_ptr<const model::CatalogView> before,
                                   Execution& execution);
  // The hash that the statement gives, or that of its password.
  runtime::Task<Result<std::optional<std::string>>> HashOf(const cql::RoleOptions& options,
                                                           Execution& execution);
  // The role that made something may do everything with it.
  runtime::Task<> GrantToCreator(std::vector<std::string> resources, const Client& client);
  // All others: not supported.
  template <typename T>
  runtime::Task<Response> Do(const T& what, Execution& execution);
  runtime::Task<Status> TruncateContainer(const model::Container& container, Instant end);
  // The container of an index, which gets its name (derived_definitions.cc).
  runtime::Task<Status> CreateEntries(const cql::Table& table, cql::Index& index,
                                      const model::Container& of);
  runtime::Task<> DropEntries(const model::Container& entries);
  runtime::Task<Response> TellBase(const cql::Table& base, SchemaChange change,
                                   Execution& execution);
  // Empty indexes and views in place of those of a table, which are then filled: after TRUNCATE.
  runtime::Task<Status> RenewDerived(const std::string& keyspace, const std::string& name);
  // kPreconditionFailed: somebody changed one meanwhile.
  runtime::Task<Status> RenewViews(const SchemaView& view, const cql::Table& base);
  runtime::Task<Status> RenewIndexes(const SchemaView& view, const cql::Table& base);
  runtime::Task<Status> AlterViews(const cql::Keyspace& keyspace, const cql::Table& base);
  // The keyspace as it is to be, in place of the one that `before` says.
  runtime::Task<Response> PutKeyspace(const cql::Keyspace& keyspace, std::string if_match,
                                      SchemaChange change, Execution& execution);
  runtime::Task<Response> PutTable(const cql::Table& table, std::string if_match,
                                   Execution& execution);
  // Tells clients, and answers.
  Response Changed(const SchemaChange& change, int version);

  cql::ClusterView cluster() const {
    return options_.cluster ? options_.cluster() : cql::ClusterView();
  }
  cql::FunctionContext NewContext() {
    return {.now_micros = clock_.Wall().micros, .random = &random_};
  }
  // Values for the markers, in their order. kInvalidArgument: too few, or a name that is none.
  Result<std::vector<cql::MarkerValue>> ValuesFor(const Compiled& compiled,
                                                  const std::vector<BoundValue>& values,
                                                  bool named) const;

  model::Catalog& catalog_;
  partition::Router& router_;
  BatchKeeper& batches_;
  DerivedBuilder& builder_;
  Passwords& passwords_;
  const Clock& clock_;
  Random& random_;
  const ServiceOptions options_;
  const SchemaCache& schemas_;
  PreparedStatements prepared_;
  SchemaEvents events_;
  AccessTable access_;
  Traces traces_;
};

// What was wrong with a statement.
Response Refused(const CompileError& error, int version);
// Adds what the request cost.
void AddCharge(Response& response, partition::RequestUnits charge);

}  // namespace orrery::cassandra
