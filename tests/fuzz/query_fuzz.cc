// Any text goes through the parser, and what parses is asked about an item.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "query/query.h"
#include "types/document.h"

namespace {

constexpr std::string_view kItem = R"({"id":"a","n":5,"d":2.5,"s":"Hello","t":true,"nul":null,)"
                                   R"("tags":["red",3],"o":{"x":[1,{"y":2}]}})";
constexpr std::string_view kParameters =
    R"([{"name":"@a","value":1},{"name":"@b","value":["x",{}]}])";

void Ask(const orrery::Result<orrery::query::Query>& query, orrery::types::Value item) {
  if (query) {
    query->Matches(item);
    return;
  }
  // A refusal is always the JSON that clients read.
  if (!orrery::types::Document::FromJson(query.error().message())) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using orrery::query::Query;
  static const auto item = orrery::types::Document::FromJson(kItem);
  static const auto parameters = orrery::types::ParseJsonValue(kParameters);
  std::string_view text(reinterpret_cast<const char*>(data), size);
  Ask(Query::Parse(text, parameters->Get("v")), item->root());
  Ask(Query::ParseCondition(text), item->root());
  return 0;
}
