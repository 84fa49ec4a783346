// JSON and BSON of any bytes: what is accepted must survive the way out and back.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "types/document.h"

namespace orrery::types {
namespace {

void FuzzJson(std::string_view text) {
  auto first = Document::FromJson(text);
  if (!first) {
    return;
  }
  ORRERY_CHECK(Document::FromBson(std::string(first->bson())));
  auto second = Document::FromJson(first->ToJson());
  ORRERY_CHECK(second);
  ORRERY_CHECK(DeepEqual(first->root(), second->root()));
  ORRERY_CHECK(second->ToJson() == first->ToJson());
}

void FuzzJsonValue(std::string_view text) {
  auto first = ParseJsonValue(text);
  if (!first) {
    return;
  }
  std::string json;
  AppendJson(first->Get("v"), json);
  auto second = ParseJsonValue(json);
  ORRERY_CHECK(second);
  ORRERY_CHECK(DeepEqual(first->root(), second->root()));
}

void FuzzBson(std::string_view bytes) {
  auto document = Document::FromBson(std::string(bytes));
  if (!document) {
    return;
  }
  DocumentBuilder copy;
  ValueIterator members(document->bson());
  while (members.Next()) {
    copy.Append(members.name(), members.value());
  }
  ORRERY_CHECK(copy.Finish().bson() == document->bson());
  // Extended JSON may nest a little deeper than its BSON.
  auto again = Document::FromJson(document->ToJson());
  ORRERY_CHECK(again || again.error().code() == Code::kTooLarge);
}

}  // namespace
}  // namespace orrery::types

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  orrery::types::FuzzJson(input);
  orrery::types::FuzzJsonValue(input);
  orrery::types::FuzzBson(input);
  std::string repaired;
  orrery::types::AppendJsonString(input, repaired);
  ORRERY_CHECK(orrery::types::ParseJsonValue(repaired));
  return 0;
}
