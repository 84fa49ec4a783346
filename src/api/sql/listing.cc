#include "api/sql/listing.h"

#include <numeric>

#include "query/query.h"

namespace orrery::api::sql {

bool IsQuery(const Call& call) {
  return call.Flag("x-ms-documentdb-isquery") ||
         call.Header("content-type").starts_with("application/query+json");
}

Result<std::vector<size_t>> WantedOf(const Call& call, const std::vector<std::string>& resources) {
  std::vector<size_t> wanted(resources.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  if (!IsQuery(call)) {
    return wanted;
  }
  wanted.clear();
  ORRERY_TRY(types::Document request, types::Document::FromJson(call.request.body));
  types::Value text = request.Get("query");
  if (text.kind() != types::Kind::kString) {
    return Error(Code::kInvalidArgument, "The body of a query must hold its text as 'query'.");
  }
  ORRERY_TRY(query::Query query, query::Query::Parse(text.string(), request.Get("parameters")));
  for (size_t i = 0; i < resources.size(); ++i) {
    ORRERY_TRY(types::Document document, types::Document::FromJson(resources[i]));
    ORRERY_TRY(bool matches, query.Matches(document.root()));
    if (matches) {
      wanted.push_back(i);
    }
  }
  return wanted;
}

void AnswerList(Call& call, std::string_view envelope, std::string_view owner_rid,
                const std::vector<std::string>& resources) {
  auto wanted = WantedOf(call, resources);
  if (!wanted) {
    call.Fail(wanted.error());
    return;
  }
  std::vector<std::string> all;
  for (size_t place : *wanted) {
    all.push_back(resources[place]);
  }
  AnswerAll(call, envelope, owner_rid, all);
}

void AnswerAll(Call& call, std::string_view envelope, std::string_view owner_rid,
               const std::vector<std::string>& resources) {
  std::string& out = call.reply.body;
  out = "{\"_rid\":";
  types::AppendJsonString(owner_rid, out);
  out += ",\"";
  out += envelope;
  out += "\":[";
  for (size_t i = 0; i < resources.size(); ++i) {
    out += i == 0 ? "" : ",";
    out += resources[i];
  }
  out += "],\"_count\":" + std::to_string(resources.size()) + "}";
  call.reply.Add("x-ms-item-count", std::to_string(resources.size()));
  call.Succeed(200);
}

}  // namespace orrery::api::sql
