#include "cql/syntax_error.h"

#include <string>

#include <gtest/gtest.h>

#include "cql/parse.h"

namespace orrery::cql {
namespace {

std::string Message(std::string_view text) {
  Result<Parsed> parsed = Parse(text);
  return parsed ? "no error" : parsed.error().message();
}

TEST(SyntaxErrorTest, MessagesAreThoseOfCassandra) {
  struct Row {
    std::string_view text;
    std::string_view message;
  };
  const Row rows[] = {
      {"", "line 0:-1 no viable alternative at input '<EOF>'"},
      {" -- nothing", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"FOO", "line 1:0 no viable alternative at input 'FOO' ([FOO])"},
      {"SELECT * FORM t", "line 1:9 mismatched input 'FORM' expecting K_FROM (SELECT * [FORM]...)"},
      {"SELECT *", "line 0:-1 mismatched input '<EOF>' expecting K_FROM"},
      {"SELECT from t", "line 1:7 no viable alternative at input 'from' (SELECT [from]...)"},
      {"SELECT * FROM t\n  AND b = 1",
       "line 2:2 mismatched input 'AND' expecting EOF (SELECT * FROM t  [AND]...)"},
      {"CREATE KEYSPACE IF NOT EXISTS my-project WITH x = 1",
       "line 1:32 mismatched input '-' expecting K_WITH (... KEYSPACE IF NOT EXISTS my[-]...)"},
      {"CREATE TABLE order (a int)",
       "line 1:13 no viable alternative at input 'order' (CREATE TABLE [order]...)"},
      {"CREATE TABLE t (a int", "line 0:-1 mismatched input '<EOF>' expecting ')'"},
      {"DROP TABLE", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"UPDATE t SET a = 1", "line 0:-1 mismatched input '<EOF>' expecting K_WHERE"},
      {"SELECT '\u00e4\U0001F600' x FROM t",
       "line 1:13 mismatched input 'x' expecting K_FROM (SELECT '\u00e4\U0001F600' [x]...)"},
      {"SELECT # FROM t", "line 1:7 no viable alternative at character '#'"},
      {"SELECT a FROM t WHERE b = 'x", "line 1:28 mismatched character '<EOF>' expecting '''"},
      {"SELECT a FROM t WHERE b = $$x", "line 1:29 mismatched character '<EOF>' expecting '$'"},
      {"SELECT a /* b", "line 1:13 mismatched character '<EOF>' expecting '*'"},
      {"SELECT 1; SELECT 2", "line 1:8 mismatched input ';' expecting K_FROM (SELECT 1[;]...)"},
      {"USE a; USE b", "line 1:7 mismatched input 'USE' expecting EOF (USE a; [USE]...)"},
      {"CREATE KEYSPACE k WITH a = 1 AND a = 2", "Multiple definition for property 'a'"},
      {"UPDATE t SET a = b + 1 WHERE k = 1",
       "Only expressions of the form X = X +<value> are supported."},
      {"UPDATE t SET a = b - 1 WHERE k = 1",
       "Only expressions of the form X = X - <value> are supported."},
      {"UPDATE t SET a = b - {1} WHERE k = 1",
       "Only expressions of the form X = X -<value> are supported."},
      {"UPDATE t SET a = 1, a = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET a += 1, a = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET u.f = 1, u.g = 2, u.f = 3 WHERE k = 1",
       "Multiple incompatible setting of column u"},
      {"CREATE KEYSPACE k WITH a = {'b': 1, 'b': 2}", "Multiple definition for property b"},
      {"CREATE TABLE t (a frozen<int>)",
       "frozen<> is only allowed on collections, tuples, and user-defined types (got int)"},
      {"CREATE TABLE t (a enum)", "Invalid (reserved) user type name enum"},
      {"USE ?", "Bind variables cannot be used for keyspace names"},
      {"SELECT * FROM ?", "Bind variables cannot be used for table names"},
      {"UPDATE t SET a = [1] + b WHERE k = 1",
       "Only expressions of the form X = <value> + X are supported."},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Message(row.text), row.message) << row.text;
  }
}

TEST(SyntaxErrorTest, LongTokensAndTextsAreCut) {
  std::string name(100'000, 'a');
  EXPECT_LT(Message("SELECT a FROM t " + name + " b").size(), 700u);
  EXPECT_LT(Message("SELECT '" + name + "' FROM t b").size(), 700u);
}

TEST(SyntaxErrorTest, TextThatIsNotUtf8IsRefused) {
  EXPECT_EQ(Message("SELECT '\xff' FROM t"), "Cannot decode string as UTF8");
}

}  // namespace
}  // namespace orrery::cql
