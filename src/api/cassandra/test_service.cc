#include "api/cassandra/test_service.h"

#include "cql/value.h"
#include "cql/wire.h"
#include "rows/purge_rows.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {

namespace {

// The type of a column, as far as tests need it.
cql::DataType ReadType(cql::WireReader& in) {
  switch (in.Short()) {
    case 0x01: return cql::TypeId::kAscii;
    case 0x02: return cql::TypeId::kBigint;
    case 0x04: return cql::TypeId::kBoolean;
    case 0x05: return cql::TypeId::kCounter;
    case 0x07: return cql::TypeId::kDouble;
    case 0x09: return cql::TypeId::kInt;
    case 0x0B: return cql::TypeId::kTimestamp;
    case 0x0C: return cql::TypeId::kUuid;
    case 0x0D: return cql::TypeId::kText;
    case 0x0F: return cql::TypeId::kTimeuuid;
    case 0x20: return cql::DataType::List(ReadType(in));
    case 0x22: return cql::DataType::Set(ReadType(in));
    case 0x21: {
      cql::DataType key = ReadType(in);
      return cql::DataType::Map(key, ReadType(in));
    }
    default: return cql::TypeId::kBlob;
  }
}

}  // namespace

std::string TestService::TextOf(const Response& response) {
  state_.reset();
  charge_ = 0;
  warnings_ = response.warnings;
  for (const auto& [name, value] : response.payload) {
    if (name == "RequestCharge") {
      charge_ = cql::ReadDouble(value);
    }
  }
  cql::WireReader in(response.body);
  if (response.opcode == Opcode::kError) {
    char code[16];
    std::snprintf(code, sizeof(code), "%04x", static_cast<unsigned>(in.Int()));
    return "error " + std::string(code) + ": " + std::string(in.String());
  }
  switch (in.Int()) {
    case 1: return "void";
    case 2: break;
    case 3: return "keyspace";
    case 5: return "schema";
    default: return "?";
  }
  const int32_t flags = in.Int();
  const int32_t columns = in.Int();
  if ((flags & 2) != 0) {
    state_ = in.Bytes();
  }
  if ((flags & 1) != 0) {
    in.String();
    in.String();
  }
  std::vector<cql::DataType> types;
  for (int32_t i = 0; i < columns; ++i) {
    if ((flags & 1) == 0) {
      in.String();
      in.String();
    }
    in.String();
    types.push_back(ReadType(in));
  }
  std::string text;
  for (int32_t left = in.Int(); left > 0 && in.ok(); --left) {
    for (int32_t i = 0; i < columns; ++i) {
      auto value = in.Bytes();
      text += i == 0 ? "" : ", ";
      text += value ? cql::ValueToLiteral(types[static_cast<size_t>(i)], *value) : "null";
    }
    text += left > 1 ? "; " : "";
  }
  EXPECT_TRUE(in.done());
  return text;
}

void TestService::Purge(size_t keys_max) {
  auto run = [](std::shared_ptr<partition::Replica> replica,
                size_t keys_max) -> runtime::Task<partition::Reply> {
    rows::PurgeRows purge;
    purge.keys_max = keys_max;
    purge.target = {.container = replica->container(),
                    .partition = replica->id(),
                    .generation = replica->range().generation,
                    .schema_version = replica->schema()->version};
    co_return co_await replica->Execute(purge);
  };
  for (const auto& replica : node_.replicas().All()) {
    auto schema = replica->schema();
    if (static_cast<const model::Container&>(*schema).is_table()) {
      EXPECT_TRUE(node_.Run(run(replica, keys_max)).status.ok());
    }
  }
}

std::string TestService::Ask(std::string_view text, std::optional<int32_t> page_size,
                             std::optional<std::string> state) {
  return AskAs(client_, text, page_size, std::move(state));
}

std::string TestService::AskAs(Client& client, std::string_view text,
                               std::optional<int32_t> page_size, std::optional<std::string> state) {
  std::string kept(text);
  Request request{.version = 4, .message = {}, .bytes = {}};
  QueryRequest query{.text = kept, .parameters = {}};
  query.parameters.consistency = Consistency::kQuorum;
  query.parameters.page_size = page_size;
  if (state) {
    query.parameters.paging_state = *state;
  }
  request.message = std::move(query);
  return TextOf(node_.Run(service_->Handle(client, std::move(request))));
}

std::string TestService::AskWith(std::string_view text, QueryParameters parameters) {
  Request request{.version = 5,
                  .message = QueryRequest{.text = text, .parameters = std::move(parameters)},
                  .bytes = {}};
  return TextOf(node_.Run(service_->Handle(client_, std::move(request))));
}

void TestService::AskAtOnce(const std::vector<std::string>& texts) {
  std::vector<runtime::Task<Response>> tasks;
  for (const std::string& text : texts) {
    Request request{.version = 4, .message = {}, .bytes = {}};
    request.message = QueryRequest{.text = text, .parameters = {}};
    tasks.push_back(service_->Handle(client_, std::move(request)));
  }
  auto run = [](std::vector<runtime::Task<Response>> all) -> runtime::Task<bool> {
    co_await runtime::WhenAll(std::move(all));
    co_return true;
  };
  node_.Run(run(std::move(tasks)));
}

size_t TestService::CountBatches() {
  size_t count = 0;
  for (const auto& replica : node_.replicas().All()) {
    count += rows::FindBatches(replica->state(), replica->container(), replica->range().range, "",
                               1'000'000)
                 .size();
  }
  return count;
}

std::string TestService::LogIn(Client& client, std::string_view user, std::string_view password) {
  const std::string token =
      std::string(1, '\0') + std::string(user) + std::string(1, '\0') + std::string(password);
  Request request{.version = 4, .message = AuthResponseRequest{.token = token}, .bytes = {}};
  Response response = node_.Run(service_->Handle(client, std::move(request)));
  return response.opcode == Opcode::kAuthSuccess ? "welcome" : TextOf(response);
}

std::string TestService::AskBatch(Client& client, const std::vector<std::string>& texts) {
  BatchRequest batch;
  for (const std::string& text : texts) {
    batch.statements.push_back({.prepared = false, .text = text, .values = {}});
  }
  Request request{.version = 4, .message = std::move(batch), .bytes = {}};
  return TextOf(node_.Run(service_->Handle(client, std::move(request))));
}

}  // namespace orrery::cassandra
