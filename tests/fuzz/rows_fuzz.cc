// Any bytes as rows and as deletions: what is read is merged, in two groupings, and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "cql/row.h"
#include "cql/row_format.h"

namespace {

using namespace orrery::cql;

std::string Merge(std::string_view a, std::string_view b) {
  std::vector<std::string_view> operands = {b};
  return MergeRows(a, operands);
}

// Of counters and values in one column no order is promised.
bool HasCounters(std::string_view row) {
  PartReader reader(row);
  while (reader.Next()) {
    if (reader.part().kind == PartKind::kCounter) {
      return true;
    }
  }
  return false;
}

void Check(const std::vector<std::string_view>& parts) {
  bool rows = true;
  bool deletions = true;
  bool counters = false;
  for (std::string_view part : parts) {
    auto row = ReadRow(part, 100);
    rows = rows && row;
    counters = counters || HasCounters(part);
    ORRERY_CHECK(row || row.error().code() == orrery::Code::kCorruption);
    ORRERY_CHECK(!row || NewestIn(part));
    auto parsed = Deletions::Parse(part);
    deletions = deletions && parsed;
    ORRERY_CHECK(!parsed || parsed->At(part) >= parsed->partition());
  }
  std::string together = MergeRows(std::nullopt, parts);
  ORRERY_CHECK(ReadRow(together, 100).has_value() == rows);
  ORRERY_CHECK(Deletions::Parse(together).has_value() == deletions);
  if (parts.size() != 3 || (!rows && !deletions) || counters) {
    return;
  }
  ORRERY_CHECK(Merge(Merge(parts[0], parts[1]), parts[2]) == together);
  ORRERY_CHECK(Merge(parts[0], Merge(parts[1], parts[2])) == together);
  ORRERY_CHECK(Merge(parts[2], Merge(parts[1], parts[0])) == together);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Each part stands behind a byte with its size; the third takes the rest.
  std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> parts;
  while (!input.empty() && parts.size() < 2) {
    size_t length = static_cast<uint8_t>(input[0]);
    parts.push_back(input.substr(1, length));
    input.remove_prefix(1);
    input.remove_prefix(std::min(length, input.size()));
  }
  parts.push_back(input);
  Check(parts);
  return 0;
}
