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
    batches_ = std::make_unique<BatchKeeper>(node_.catalog(), node_.router(), node_.replicas(),
                                             node_.workers(), node_.clock());
    service_ = std::make_unique<Service>(node_.catalog(), node_.router(), *batches_, node_.clock(),
                                         random_, ServiceOptions());
  }

  // Rows as text: values as CQL writes them, with commas; rows with semicolons. Of others what came
  // back: "void", "schema", "error 2200: ...".
  std::string Ask(std::string_view text, std::optional<int32_t> page_size = {},
                  std::optional<std::string> state = {});
  // The paging state of the last answer; nothing: it was the last page.
  const std::optional<std::string>& state() const { return state_; }
  double charge() const { return charge_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  model::TestNode& node() { return node_; }
  std::shared_ptr<const cql::Schema> Schema() {
    auto look = [](SchemaCache& schemas) -> runtime::Task<std::shared_ptr<const cql::Schema>> {
      co_return schemas.Get()->schema;
    };
    SchemaCache schemas(node_.catalog());
    return node_.Run(look(schemas));
  }
  // As the node does now and then, whatever their age.
  runtime::Task<bool> LookForBatches() {
    co_await batches_->Look(Duration::zero());
    co_return true;
  }
  Client& client() { return client_; }

 private:
  std::string TextOf(const Response& response);

  model::TestNode node_;
  SystemRandom random_;
  std::unique_ptr<BatchKeeper> batches_;
  std::unique_ptr<Service> service_;
  Client client_;
  std::optional<std::string> state_;
  double charge_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace orrery::cassandra
