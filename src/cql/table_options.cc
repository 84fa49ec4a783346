#include "cql/table_options.h"

#include "base/check.h"

namespace orrery::cql {
namespace {

constexpr TableOption kOptions[] = {
    {"additional_write_policy", OptionKind::kText, "99p"},
    {"bloom_filter_fp_chance", OptionKind::kDouble, "0.01"},
    {"caching", OptionKind::kMap, ""},
    {"cdc", OptionKind::kBoolean, "false"},
    {"comment", OptionKind::kText, ""},
    {"compaction", OptionKind::kMap, ""},
    {"compression", OptionKind::kMap, ""},
    {"crc_check_chance", OptionKind::kDouble, "1.0"},
    {kDefaultTtlOption, OptionKind::kInt, "0"},
    {"extensions", OptionKind::kMap, ""},
    {"gc_grace_seconds", OptionKind::kInt, "864000"},
    {"max_index_interval", OptionKind::kInt, "2048"},
    {"memtable_flush_period_in_ms", OptionKind::kInt, "0"},
    {"min_index_interval", OptionKind::kInt, "128"},
    {"read_repair", OptionKind::kText, "BLOCKING"},
    {"speculative_retry", OptionKind::kText, "99p"},
    {kCellTtlOption, OptionKind::kBoolean, "false", true},
    {kCellTimestampOption, OptionKind::kBoolean, "false", true},
    {kCellTombstonesOption, OptionKind::kBoolean, "false", true},
    {kThroughputOption, OptionKind::kInt, "400", true},
};

}  // namespace

std::span<const TableOption> TableOptionList() { return kOptions; }

const TableOption* FindTableOption(std::string_view name) {
  for (const TableOption& option : kOptions) {
    if (option.name == name) {
      return &option;
    }
  }
  return nullptr;
}

const Option* GivenOption(const Table& table, std::string_view name) {
  for (const Option& option : table.options) {
    if (option.name == name) {
      return &option;
    }
  }
  return nullptr;
}

std::string OptionText(const Table& table, std::string_view name) {
  if (name == kDefaultTtlOption) {
    return std::to_string(table.default_ttl);
  }
  const Option* given = GivenOption(table, name);
  if (given != nullptr && std::holds_alternative<std::string>(given->value)) {
    return std::get<std::string>(given->value);
  }
  const TableOption* option = FindTableOption(name);
  ORRERY_CHECK(option != nullptr && option->kind != OptionKind::kMap);
  return std::string(option->text);
}

StringMap OptionMap(const Table& table, std::string_view name) {
  const Option* given = GivenOption(table, name);
  if (given != nullptr && std::holds_alternative<StringMap>(given->value)) {
    return std::get<StringMap>(given->value);
  }
  return DefaultOptionMap(name);
}

StringMap DefaultOptionMap(std::string_view name) {
  if (name == "caching") {
    return {{"keys", "ALL"}, {"rows_per_partition", "NONE"}};
  }
  if (name == "compaction") {
    return {{"class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"},
            {"max_threshold", "32"},
            {"min_threshold", "4"}};
  }
  if (name == "compression") {
    return {{"chunk_length_in_kb", "16"},
            {"class", "org.apache.cassandra.io.compress.LZ4Compressor"}};
  }
  return {};
}

}  // namespace orrery::cql
