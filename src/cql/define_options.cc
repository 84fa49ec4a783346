// The options of tables: what may be said, and how it is shown.
#include <algorithm>
#include <array>

#include "cql/define_parts.h"
#include "cql/number.h"
#include "cql/table_options.h"

namespace orrery::cql {
namespace {

constexpr int32_t kTtlMax = 20 * 365 * 24 * 60 * 60;

// Of other versions of Cassandra: read and forgotten, so that their schemas can be brought along.
constexpr std::array<std::string_view, 6> kIgnored = {"allow_auto_snapshot",
                                                      "dclocal_read_repair_chance",
                                                      "extensions",
                                                      "incremental_backups",
                                                      "memtable",
                                                      "read_repair_chance"};

bool IsIgnored(std::string_view name) {
  return std::ranges::find(kIgnored, name) != kIgnored.end();
}

Defined<std::string> TextOf(const Option& option) {
  if (const auto* text = std::get_if<std::string>(&option.value)) {
    return *text;
  }
  return Misspelt("Invalid value for property '" + option.name + "'. It should be a string");
}

Defined<int32_t> IntOf(const Option& option) {
  ORRERY_TRY(std::string text, TextOf(option));
  auto value = IntegerFromText<int32_t>(text);
  if (!value) {
    return Misspelt("Invalid integer value " + text + " for '" + option.name + "'");
  }
  return *value;
}

// ---- Values that are not maps ----

Defined<std::string> IntText(const Option& option) {
  ORRERY_TRY(int32_t value, IntOf(option));
  int32_t least = option.name == "min_index_interval" ? 1 : 0;
  if (value < least) {
    return Misconfigured(option.name + " must be greater than or equal to " +
                         std::to_string(least) + " (got " + std::to_string(value) + ")");
  }
  return std::to_string(value);
}

Defined<std::string> DoubleText(const Option& option) {
  ORRERY_TRY(std::string text, TextOf(option));
  auto value = DoubleFromText(text);
  if (!value) {
    return Misspelt("Invalid double value " + text + " for '" + option.name + "'");
  }
  // The least chance that Cassandra's bloom filters can have.
  constexpr double kLeastChance = 6.71e-5;
  if (option.name == "bloom_filter_fp_chance" && !(*value > kLeastChance && *value <= 1)) {
    return Misconfigured(option.name + " must be larger than " + DoubleToText(kLeastChance) +
                         " and less than or equal to 1.0 (got " + DoubleToText(*value) + ")");
  }
  if (option.name == "crc_check_chance" && !(*value >= 0 && *value <= 1)) {
    return Misconfigured(option.name +
                         " must be larger than or equal to 0 and smaller than or equal to 1.0 "
                         "(got " +
                         DoubleToText(*value) + ")");
  }
  return DoubleToText(*value);
}

Defined<std::string> BooleanText(const Option& option) {
  ORRERY_TRY(std::string text, TextOf(option));
  std::string lower = Lower(text);
  if (lower == "true" || lower == "yes" || lower == "1") {
    return "true";
  }
  if (lower == "false" || lower == "no" || lower == "0") {
    return "false";
  }
  return Misspelt("Invalid boolean value " + text + " for '" + option.name + "'");
}

// A number that ends so, in Cassandra's digits; nothing if it is none.
std::optional<std::string> NumberBefore(std::string_view text, std::string_view end) {
  if (!text.ends_with(end)) {
    return std::nullopt;
  }
  text.remove_suffix(end.size());
  auto value = DoubleFromText(text);
  if (!value || !(*value >= 0) || *value > 1e15) {
    return std::nullopt;
  }
  std::string digits = DoubleToText(*value);
  return digits.ends_with(".0") ? digits.substr(0, digits.size() - 2) : digits;
}

// ALWAYS, NEVER, 99p, 99percentile, 50ms, MIN(99p, 50ms); nothing if it is none of them.
std::optional<std::string> RetryPolicy(std::string_view text, bool may_combine) {
  std::string lower = Lower(text);
  std::erase(lower, ' ');
  if (lower == "always") {
    return "ALWAYS";
  }
  if (lower == "never" || lower == "none") {
    return "NEVER";
  }
  if (may_combine && lower.ends_with(')') &&
      (lower.starts_with("min(") || lower.starts_with("max("))) {
    size_t comma = lower.find(',');
    if (comma == std::string::npos) {
      return std::nullopt;
    }
    auto first = RetryPolicy(lower.substr(4, comma - 4), false);
    auto second = RetryPolicy(lower.substr(comma + 1, lower.size() - comma - 2), false);
    if (!first || !second) {
      return std::nullopt;
    }
    return (lower.starts_with("min") ? "MIN(" : "MAX(") + *first + "," + *second + ")";
  }
  if (auto wait = NumberBefore(lower, "ms")) {
    return *wait + "ms";
  }
  for (std::string_view end : {"percentile", "p"}) {
    auto percent = NumberBefore(lower, end);
    if (percent && DoubleFromText(*percent).value_or(101) < 100) {
      return *percent + "p";
    }
  }
  return std::nullopt;
}

Defined<std::string> PlainText(const Option& option) {
  ORRERY_TRY(std::string text, TextOf(option));
  if (option.name == "speculative_retry" || option.name == "additional_write_policy") {
    auto policy = RetryPolicy(text, true);
    if (!policy) {
      return Misconfigured("Invalid value " + text + " for option 'speculative_retry'");
    }
    return *policy;
  }
  if (option.name == "read_repair") {
    for (const char* strategy : {"BLOCKING", "NONE"}) {
      if (EqualsIgnoringCase(text, strategy)) {
        return strategy;
      }
    }
    return Misconfigured("Invalid value " + text + " for option 'read_repair'");
  }
  return text;
}

// ---- Maps ----

Defined<StringMap> Caching(const StringMap& given) {
  StringMap caching = {{"keys", "NONE"}, {"rows_per_partition", "NONE"}};
  for (const auto& [name, value] : given) {
    bool keys = name == "keys";
    if (!keys && name != "rows_per_partition") {
      return Misconfigured("Invalid caching sub-options [" + name +
                           "]: only 'keys' and 'rows_per_partition' are allowed");
    }
    std::string& shown = caching[keys ? 0 : 1].second;
    bool number = IntegerFromText<int32_t>(value).value_or(-1) >= 0;
    if (EqualsIgnoringCase(value, "ALL")) {
      shown = "ALL";
    } else if (EqualsIgnoringCase(value, "NONE")) {
      shown = "NONE";
    } else if (!keys && number) {
      shown = value == "0" ? "NONE" : value;
    } else {
      return Misconfigured("Invalid value '" + value + "' for caching sub-option '" + name + "':" +
                           (keys ? " only 'ALL' and 'NONE' are allowed"
                                 : " only 'ALL', 'NONE', and integer values are allowed"));
    }
  }
  return caching;
}

// The full name of a class in a package, if it is one of those that are known there.
std::optional<std::string> KnownClass(const std::string& name, std::string_view package,
                                      std::span<const std::string_view> known) {
  std::string_view simple = name;
  if (simple.starts_with(package)) {
    simple.remove_prefix(package.size());
  }
  if (std::ranges::find(known, simple) == known.end()) {
    return std::nullopt;
  }
  return std::string(package) + std::string(simple);
}

std::string Full(const std::string& name, std::string_view package) {
  return name.find('.') != std::string::npos ? name : std::string(package) + name;
}

Defined<StringMap> Compaction(StringMap given) {
  constexpr std::string_view kPackage = "org.apache.cassandra.db.compaction.";
  constexpr std::string_view kStrategies[] = {
      "SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "TimeWindowCompactionStrategy",
      "UnifiedCompactionStrategy"};
  auto at = std::ranges::find(given, "class", &StringMap::value_type::first);
  if (at == given.end()) {
    return Misconfigured("Missing sub-option 'class' for the 'compaction' option");
  }
  auto name = KnownClass(at->second, kPackage, kStrategies);
  if (!name) {
    return Misconfigured("Unable to find compaction strategy class '" + Full(at->second, kPackage) +
                         "'");
  }
  at->second = *name;
  bool thresholds = name->ends_with("SizeTieredCompactionStrategy") ||
                    name->ends_with("TimeWindowCompactionStrategy");
  const std::pair<std::string, std::string> defaults[] = {{"max_threshold", "32"},
                                                          {"min_threshold", "4"}};
  for (const auto& [option, value] : defaults) {
    const std::string* found = FindIn(given, option);
    if (found != nullptr && !IntegerFromText<int32_t>(*found)) {
      return Misconfigured("Invalid value " + *found + " for '" + option +
                           "' compaction sub-option - must be an integer");
    }
    if (found == nullptr && thresholds) {
      given.emplace_back(option, value);
    }
  }
  return given;
}

Defined<StringMap> Compression(StringMap given) {
  constexpr std::string_view kPackage = "org.apache.cassandra.io.compress.";
  constexpr std::string_view kCompressors[] = {
      "LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"};
  const StringMap off = {{"enabled", "false"}};
  // The names that they had before Cassandra 3.
  for (auto& [name, value] : given) {
    name = name == "sstable_compression" ? "class"
           : name == "chunk_length_kb"   ? "chunk_length_in_kb"
                                         : name;
  }
  std::ranges::sort(given);
  if (std::ranges::adjacent_find(given, {}, &StringMap::value_type::first) != given.end()) {
    return Misconfigured("An option of 'compression' is given by two of its names");
  }
  if (const std::string* enabled = FindIn(given, "enabled")) {
    if (!EqualsIgnoringCase(*enabled, "true")) {
      if (given.size() > 1) {
        return Misconfigured(
            "If the 'enabled' option is set to false no other options must be specified");
      }
      return off;
    }
    std::erase_if(given, [](const auto& entry) { return entry.first == "enabled"; });
  } else if (given.empty()) {
    return off;
  }
  auto at = std::ranges::find(given, "class", &StringMap::value_type::first);
  if (at == given.end()) {
    return Misconfigured("Missing sub-option 'class' for the 'compression' option.");
  }
  if (at->second.empty()) {
    return off;
  }
  auto name = KnownClass(at->second, kPackage, kCompressors);
  if (!name) {
    return Misconfigured("Could not create Compression for type " + Full(at->second, kPackage));
  }
  at->second = *name;
  const std::string* chunk = FindIn(given, "chunk_length_in_kb");
  if (chunk == nullptr) {
    given.emplace_back("chunk_length_in_kb", "16");
  } else if (IntegerFromText<int32_t>(*chunk).value_or(0) <= 0) {
    return Misconfigured("Invalid value for chunk_length_in_kb");
  }
  return given;
}

Defined<StringMap> MapOf(const Option& option) {
  const auto* given = std::get_if<StringMap>(&option.value);
  if (given == nullptr) {
    return Misspelt("Invalid value for property '" + option.name + "'. It should be a map.");
  }
  ORRERY_TRY_DEFINED(CheckNoNul(*given));
  auto map = option.name == "caching"      ? Caching(*given)
             : option.name == "compaction" ? Compaction(*given)
                                           : Compression(*given);
  if (map) {
    std::ranges::sort(*map);
  }
  return map;
}

// ---- All of them ----

Defined<void> ApplyOption(const Option& option, const TableOption& known, Table& table) {
  Option shown{option.name, {}};
  switch (known.kind) {
    case OptionKind::kMap: {
      ORRERY_TRY(shown.value, MapOf(option));
      break;
    }
    case OptionKind::kText: {
      ORRERY_TRY(shown.value, PlainText(option));
      break;
    }
    case OptionKind::kInt: {
      ORRERY_TRY(shown.value, IntText(option));
      break;
    }
    case OptionKind::kDouble: {
      ORRERY_TRY(shown.value, DoubleText(option));
      break;
    }
    case OptionKind::kBoolean: {
      ORRERY_TRY(shown.value, BooleanText(option));
      break;
    }
  }
  if (option.name == kDefaultTtlOption) {
    ORRERY_TRY(table.default_ttl, IntOf(option));
    if (table.default_ttl > kTtlMax) {
      return Misconfigured(option.name + " must be less than or equal to " +
                           std::to_string(kTtlMax) + " (got " + std::to_string(table.default_ttl) +
                           ")");
    }
    return {};
  }
  auto at = std::ranges::find(table.options, option.name, &Option::name);
  if (at != table.options.end()) {
    *at = std::move(shown);
  } else {
    table.options.push_back(std::move(shown));
  }
  return {};
}

}  // namespace

Defined<void> ApplyOptions(const Options& options, Table& table) {
  for (const Option& option : options) {
    if (FindTableOption(option.name) == nullptr && !IsIgnored(option.name)) {
      return Misspelt("Unknown property '" + option.name + "'");
    }
  }
  for (const Option& option : options) {
    if (!IsIgnored(option.name)) {
      ORRERY_TRY_DEFINED(ApplyOption(option, *FindTableOption(option.name), table));
    }
  }
  auto least = IntegerFromText<int32_t>(OptionText(table, "min_index_interval")).value_or(0);
  auto most = IntegerFromText<int32_t>(OptionText(table, "max_index_interval")).value_or(0);
  if (most < least) {
    return Misconfigured(
        "max_index_interval must be greater than or equal to min_index_interval (" +
        std::to_string(least) + ") (got " + std::to_string(most) + ")");
  }
  ORRERY_TRY_DEFINED(GivenThroughput(options));
  return {};
}

Defined<std::optional<int32_t>> GivenThroughput(const Options& options) {
  auto at = std::ranges::find(options, kThroughputOption, &Option::name);
  if (at == options.end()) {
    return std::nullopt;
  }
  ORRERY_TRY(int32_t throughput, IntOf(*at));
  if (throughput <= 0) {
    return Misconfigured(std::string(kThroughputOption) + " must be greater than 0 (got " +
                         std::to_string(throughput) + ")");
  }
  return throughput;
}

}  // namespace orrery::cql
