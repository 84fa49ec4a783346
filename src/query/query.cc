#include "query/query.h"

#include <utility>

#include "query/ast.h"
#include "query/evaluator.h"
#include "query/parser.h"

namespace orrery::query {

Result<Query> Query::Parse(std::string_view text, types::Value parameters) {
  ORRERY_TRY(auto statement, ParseStatement(Form::kQuery, text, parameters));
  return Query(std::move(statement));
}

Result<Query> Query::ParseCondition(std::string_view text) {
  ORRERY_TRY(auto statement, ParseStatement(Form::kCondition, text, {}));
  return Query(std::move(statement));
}

Query::Query(std::unique_ptr<SelectStatement> statement) : statement_(std::move(statement)) {}
Query::Query(Query&&) noexcept = default;
Query& Query::operator=(Query&&) noexcept = default;
Query::~Query() = default;

Result<bool> Query::Matches(types::Value item) const {
  if (statement_->filter == nullptr) {
    return true;
  }
  Arena arena;
  types::Value result = Evaluate(*statement_->filter, item, arena);
  if (arena.exhausted()) {
    return Error(Code::kInvalidArgument, "The condition takes too much work for one item.");
  }
  return result.kind() == types::Kind::kBool && result.boolean();
}

bool Query::has_filter() const { return statement_->filter != nullptr; }

std::string QueryPlanJson(const Query&, std::string_view min_hex, std::string_view max_hex) {
  std::string out =
      R"({"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None",)"
      R"("top":null,"offset":null,"limit":null,"orderBy":[],"orderByExpressions":[],)"
      R"("groupByExpressions":[],"groupByAliases":[],"aggregates":[],)"
      R"("groupByAliasToAggregateType":{},"rewrittenQuery":"","hasSelectValue":false,)"
      R"("dCountInfo":null,"hasNonStreamingOrderBy":false},"queryRanges":[{"min":)";
  types::AppendJsonString(min_hex, out);
  out += R"(,"max":)";
  types::AppendJsonString(max_hex, out);
  // A single point of the ring, one partition key, is a range that holds its end.
  out += R"(,"isMinInclusive":true,"isMaxInclusive":)";
  out += min_hex == max_hex ? "true" : "false";
  out += "}]}";
  return out;
}

}  // namespace orrery::query
