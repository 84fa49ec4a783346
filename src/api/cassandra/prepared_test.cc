#include "api/cassandra/prepared.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace orrery::cassandra {
namespace {

std::shared_ptr<const Compiled> Statement(std::string_view text, std::string_view keyspace = "k") {
  auto compiled = Compile(text, keyspace, std::make_shared<const cql::Schema>());
  EXPECT_TRUE(compiled);
  return *compiled;
}

// The first half of SHA-256 of "k", a zero byte and the text.
TEST(PreparedTest, AnIdIsACryptographicHash) {
  EXPECT_EQ(ToHex(StatementId("k", "SELECT * FROM t")), "1C74E000CFF567FCDB40180DDCFC1066");
}

TEST(PreparedTest, AnotherTextDoesNotTakeThePlaceOfAStatement) {
  PreparedStatements prepared;
  prepared.Keep("id", Statement("USE a"));
  prepared.Keep("id", Statement("USE b"));
  EXPECT_EQ(prepared.Find("id")->text, "USE a");
  prepared.Keep("id", Statement("USE a", "other"));
  EXPECT_EQ(prepared.Find("id")->keyspace, "k");
  auto again = Statement("USE a");
  prepared.Keep("id", again);
  EXPECT_EQ(prepared.Find("id"), again);
}

}  // namespace
}  // namespace orrery::cassandra
