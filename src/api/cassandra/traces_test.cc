#include "api/cassandra/traces.h"

#include <gtest/gtest.h>

#include "cql/system_tables.h"
#include "cql/value.h"

namespace orrery::cassandra {
namespace {

const cql::Table& TableOf(std::string_view name) {
  return cql::SystemKeyspaces().at("system_traces").tables.find(name)->second;
}

TEST(TracesTest, RowsHaveTheColumnsOfTheirTables) {
  Traces traces;
  SeededRandom random(1);
  const auto id = traces.Keep({.started = WallTime{5'000'000},
                               .took = std::chrono::microseconds(70),
                               .client = std::string("\x0A\x01\x02\x03"),
                               .request = "Execute CQL3 query",
                               .parameters = {{"query", "SELECT 1"}},
                               .charge = 2.5,
                               .failed = false},
                              random);
  const cql::NodeView node{.host_id = {}, .address = std::string(4, '\x7F')};
  for (const char* name : {"sessions", "events"}) {
    for (const cql::SystemRow& row : traces.Rows(TableOf(name), node)) {
      ASSERT_EQ(row.size(), TableOf(name).columns.size());
      EXPECT_EQ(row[0], std::string(id.data(), id.size()));
      for (size_t i = 0; i < row.size(); ++i) {
        const cql::Column& column = TableOf(name).columns[i];
        EXPECT_TRUE(!row[i] || cql::ValidateValue(column.type, *row[i]).ok()) << column.name;
      }
    }
  }
  EXPECT_EQ(traces.Rows(TableOf("sessions"), node)[0][1], "\x0A\x01\x02\x03");
  EXPECT_EQ(traces.Rows(TableOf("events"), node).size(), 3u);
}

TEST(TracesTest, PasswordsAreNotKeptAndOldOnesGo) {
  Traces traces;
  SeededRandom random(1);
  for (size_t i = 0; i < Traces::kCountMax + 5; ++i) {
    traces.Keep({.request = "Execute CQL3 query",
                 .parameters = {{"query", "CREATE ROLE r WITH Password = 'secret' AND LOGIN"}}},
                random);
  }
  const auto rows = traces.Rows(TableOf("sessions"), {});
  EXPECT_EQ(rows.size(), Traces::kCountMax);
  EXPECT_EQ(rows[0][1], std::nullopt);
  EXPECT_EQ(rows[0][6]->find("secret"), std::string::npos);
  EXPECT_NE(rows[0][6]->find("CREATE ROLE r WITH Password *******"), std::string::npos);
}

}  // namespace
}  // namespace orrery::cassandra
