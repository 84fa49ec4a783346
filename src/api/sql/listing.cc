#include "api/sql/listing.h"

#include "query/query.h"

namespace orrery::api::sql {

bool IsQuery(const Call& call) {
  return call.Flag("x-ms-documentdb-isquery") ||
         call.Header("content-type").starts_with("application/query+json");
}

namespace {

Result<std::vector<std::string>> Filter(std::string_view body,
                                        const std::vector<std::string>& resources) {
  ORRERY_TRY(types::Document request, types::Document::FromJson(body));
  types::Value text = request.Get("query");
  if (text.kind() != types::Kind::kString) {
    return Error(Code::kInvalidArgument, "The body of a query must hold its text as 'query'.");
  }
  ORRERY_TRY(query::Query query, query::Query::Parse(text.string(), request.Get("parameters")));
  std::vector<std::string> wanted;
  for (const std::string& resource : resources) {
    ORRERY_TRY(types::Document document, types::Document::FromJson(resource));
    ORRERY_TRY(bool matches, query.Matches(document.root()));
    if (matches) {
      wanted.push_back(resource);
    }
  }
  return wanted;
}

}  // namespace

void AnswerList(Call& call, std::string_view envelope, std::string_view owner_rid,
                const std::vector<std::string>& resources) {
  Result<std::vector<std::string>> wanted = resources;
  if (IsQuery(call)) {
    wanted = Filter(call.request.body, resources);
    if (!wanted) {
      call.Fail(wanted.error());
      return;
    }
  }
  std::string& out = call.reply.body;
  out = "{\"_rid\":";
  types::AppendJsonString(owner_rid, out);
  out += ",\"";
  out += envelope;
  out += "\":[";
  for (size_t i = 0; i < wanted->size(); ++i) {
    out += i == 0 ? "" : ",";
    out += (*wanted)[i];
  }
  out += "],\"_count\":" + std::to_string(wanted->size()) + "}";
  call.reply.Add("x-ms-item-count", std::to_string(wanted->size()));
  call.Succeed(200);
}

}  // namespace orrery::api::sql
