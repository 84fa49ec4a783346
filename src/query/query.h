// Query: the SQL query language, text -> syntax tree -> answer about one item. No I/O.
//
// What is here is the first piece, but a real one: lexer, parser and evaluator of
//   SELECT * FROM <alias> [WHERE <scalar expression>]
//   FROM <alias> [WHERE <scalar expression>]          (the condition of a patch)
// with the language's own rules for undefined, types and comparison. Other statements of the
// language are recognised and refused with kNotSupported, text that is not the language with
// kInvalidArgument.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "types/document.h"

namespace orrery::query {

inline constexpr size_t kTextBytesMax = 512 << 10;

struct SelectStatement;  // ast.h

class Query {
 public:
  // `parameters` is the array [{"name":"@a","value":1},...] of a query request, or Undefined.
  // The error's message is the JSON text that clients expect: {"errors":[{"severity":"Error",
  // "location":{"start":7,"end":11},"code":"SC1001","message":"..."}]}.
  static Result<Query> Parse(std::string_view text, types::Value parameters = {});
  // The condition of a patch request: `from c where c.a = 1`.
  static Result<Query> ParseCondition(std::string_view text);

  Query(Query&&) noexcept;
  Query& operator=(Query&&) noexcept;
  ~Query();

  // True if the WHERE clause gives exactly true for the item, or there is none. kInvalidArgument if
  // it takes more than about 50 ms to know: a condition must not hold a thread up.
  Result<bool> Matches(types::Value item) const;
  bool has_filter() const;
  const SelectStatement& statement() const { return *statement_; }

 private:
  explicit Query(std::unique_ptr<SelectStatement> statement);
  std::unique_ptr<SelectStatement> statement_;
};

// The reply to a query plan request for this query: `{"partitionedQueryExecutionInfoVersion":2,
// "queryInfo":{...every key...},"queryRanges":[...]}`, over the given range of the ring in hex.
std::string QueryPlanJson(const Query& query, std::string_view min_hex, std::string_view max_hex);

}  // namespace orrery::query
