// Any text goes through the parser of CQL; what parses is printed, and the print means the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cql/parse.h"
#include "cql/resolve_type.h"
#include "cql/statement_text.h"
#include "cql/text.h"

namespace {

using namespace orrery::cql;

void Check(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto parsed = Parse(text)) {
    std::string printed = StatementText(parsed->statement);
    auto again = Parse(printed);
    Check(again.has_value());
    Check(StatementText(again->statement) == printed);
    // Markers may have changed places: USING TTL ? AND TIMESTAMP ? is printed the other way round.
    Check(again->markers.size() == parsed->markers.size());
    Check(!parsed->markers.empty() || *again == *parsed);
  } else {
    Check(!parsed.error().message().empty());
  }
  if (auto type = ParseType(text)) {
    auto again = ParseType(ToCql(*type));
    Check(again && *again == *type);
    TypeScope scope{"ks", [](std::string_view name) {
                      return DataType::Udt("ks", std::string(name), {{"a", TypeId::kInt}});
                    }};
    if (auto resolved = ResolveType(*type, scope)) {
      auto same = ParseTypeText(resolved->ToCql(), scope);
      Check(same && *same == *resolved);
    }
  }
  if (auto term = ParseTerm(text)) {
    auto again = ParseTerm(ToCql(*term));
    Check(again && *again == *term);
  }
  return 0;
}
