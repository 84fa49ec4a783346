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

#include "api/cassandra/batch_keeper.h"
#include "api/cassandra/failures.h"
#include "api/cassandra/prepared.h"
#include "api/cassandra/schema_cache.h"
#include "api/cassandra/schema_events.h"
#include "api/cassandra/selects.h"
#include "api/cassandra/server.h"
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
  // Clients must say who they are: the account's name, and one of its keys.
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
  // A definition was not done because somebody else changed the same thing meanwhile.
  bool overtaken = false;
};

class Service final : public Handler {
 public:
  Service(model::Catalog& catalog, partition::Router& router, BatchKeeper& batches,
          const Clock& clock, Random& random, ServiceOptions options);

  runtime::Task<Response> Handle(Client& client, Request request) override;
  // What clients are told of the schema.
  SchemaEvents& events() { return events_; }

 private:
  runtime::Task<Response> Answer(Client& client, const Request& request);
  Response Authenticate(Client& client, const AuthResponseRequest& request, int version);
  runtime::Task<Response> Prepare(Client& client, const PrepareRequest& request, int version);
  runtime::Task<Response> Execute(Client& client, const ExecuteRequest& request, int version);
  runtime::Task<Response> Query(Client& client, const QueryRequest& request, int version);
  runtime::Task<Response> Batch(Client& client, const BatchRequest& request, int version);

  runtime::Task<Response> Run(const Compiled& compiled, Execution& execution);
  runtime::Task<Response> RunWrite(const Compiled& compiled, const WritePlan& plan,
                                   Execution& execution);
  runtime::Task<Response> RunSelect(const Compiled& compiled, const SelectPlan& plan,
                                    Execution& execution);
  runtime::Task<Response> RunBatchText(const Compiled& compiled, const BatchPlan& plan,
                                       Execution& execution);
  Response RunUse(const cql::UseStatement& use, Execution& execution);
  Response RunDescribe(const cql::Describe& describe, Execution& execution);

  // Writes of one statement or of a batch, by table and partition (service_writes.cc).
  struct PartitionWrite {
    const WritePlan* plan;  // of the first statement
    BoundWrite write;
    std::shared_ptr<const model::Container> container;
  };
  struct Written {
    Status status;
    partition::RequestUnits charge;
    rows::WriteAnswer answer;
  };
  runtime::Task<Written> Write(const PartitionWrite& write);
  runtime::Task<Response> WriteAll(std::vector<PartitionWrite> writes, const Attempt& attempt,
                                   Execution& execution);
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
  // All others: not supported.
  template <typename T>
  runtime::Task<Response> Do(const T& what, Execution& execution);
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
  const Clock& clock_;
  Random& random_;
  const ServiceOptions options_;
  SchemaCache schemas_;
  PreparedStatements prepared_;
  SchemaEvents events_;
};

// Adds what the request cost.
void AddCharge(Response& response, partition::RequestUnits charge);

}  // namespace orrery::cassandra
