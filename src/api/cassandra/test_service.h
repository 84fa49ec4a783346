// A Service over a node in memory, asked in CQL; for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/service.h"
#include "cql/value_text.h"
#include "model/test_node.h"
#include "rows/rows.h"

namespace orrery::cassandra {

class TestService {
 public:
  TestService() : TestService(model::TestMachine()) {}
  explicit TestService(model::TestMachine machine, model::TestNodeOptions options = {})
      : node_(std::move(machine), std::move(options)) {
    schemas_ = std::make_unique<SchemaCache>(node_.catalog());
    batches_ = std::make_unique<BatchKeeper>(*schemas_, node_.router(), node_.replicas(),
                                             node_.workers(), node_.clock());
    builder_ = std::make_unique<DerivedBuilder>(node_.catalog(), *schemas_, node_.router(),
                                                node_.replicas(), *batches_, node_.workers(),
                                                node_.clock());
    passwords_ = std::make_unique<Passwords>(node_.workers());
    service_ =
        std::make_unique<Service>(node_.catalog(), *schemas_, node_.router(), *batches_, *builder_,
                                  *passwords_, node_.clock(), random_, ServiceOptions());
  }

  // Rows as text: values as CQL writes them, with commas; rows with semicolons. Of others what came
  // back: "void", "schema", "error 2200: ...".
  std::string Ask(std::string_view text, std::optional<int32_t> page_size = {},
                  std::optional<std::string> state = {});
  // The same of another client; of one that logged in.
  std::string AskAs(Client& client, std::string_view text, std::optional<int32_t> page_size = {},
                    std::optional<std::string> state = {});
  // With other parameters than QUORUM alone.
  std::string AskWith(std::string_view text, QueryParameters parameters);
  // "welcome", or the error.
  std::string LogIn(Client& client, std::string_view user, std::string_view password);
  // Many statements in one BATCH message, as texts.
  std::string AskBatch(Client& client, const std::vector<std::string>& texts);
  // All of them at once, without a look at the answers.
  void AskAtOnce(const std::vector<std::string>& texts);
  size_t CountContainers() { return node_.catalog().view()->containers_by_id.size(); }
  // Those that are kept to be done.
  size_t CountBatches();
  // The paging state of the last answer; nothing: it was the last page.
  const std::optional<std::string>& state() const { return state_; }
  double charge() const { return charge_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  model::TestNode& node() { return node_; }
  std::shared_ptr<const cql::Schema> Schema() {
    auto look = [](SchemaCache& schemas) -> runtime::Task<std::shared_ptr<const cql::Schema>> {
      co_return schemas.Get()->schema;
    };
    return node_.Run(look(*schemas_));
  }
  // As the node does now and then, whatever their age.
  runtime::Task<bool> LookForBatches() {
    co_await batches_->Look(Duration::zero());
    co_return true;
  }
  // The same for indexes and views that are not filled.
  runtime::Task<bool> FillDerived() {
    co_await builder_->Look();
    co_return true;
  }
  // Drops what is dead of all tables, so many keys at a time.
  void Purge(size_t keys_max = 2000);
  Client& client() { return client_; }
  Passwords& passwords() { return *passwords_; }
  runtime::Task<Response> Handle(Client& client, Request request) {
    return service_->Handle(client, std::move(request));
  }

 private:
  std::string TextOf(const Response& response);

  model::TestNode node_;
  SystemRandom random_;
  std::unique_ptr<SchemaCache> schemas_;
  std::unique_ptr<BatchKeeper> batches_;
  std::unique_ptr<DerivedBuilder> builder_;
  std::unique_ptr<Passwords> passwords_;
  std::unique_ptr<Service> service_;
  Client client_;
  std::optional<std::string> state_;
  double charge_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace orrery::cassandra
