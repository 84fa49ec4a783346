#include "cql/row_document.h"

#include <algorithm>

#include "base/bytes.h"
#include "cql/json.h"
#include "cql/ordered_value.h"
#include "cql/partition_token.h"
#include "cql/value.h"
#include "cql/value_json.h"
#include "cql/value_text.h"
#include "types/document.h"

namespace orrery::cql {

namespace {

constexpr char kEscape = '~';
constexpr char kSeparator = '|';
constexpr std::string_view kOnlyStatic = "~";
constexpr std::string_view kEmptyValue = "~_";
constexpr std::string_view kHexValue = "~x";
constexpr std::string_view kReserved[] = {"id", "_rid", "_self", "_etag", "_attachments", "_ts"};

bool IsUuid(const DataType& type) {
  return type.id() == TypeId::kUuid || type.id() == TypeId::kTimeuuid;
}

// Whether the document's id is just the value of this column.
bool IsDocumentId(const Table& table, const Column& column) {
  return column.name == "id" && column.kind == ColumnKind::kPartitionKey &&
         table.partition_columns == 1 && table.clustering_columns == 0 && IsUuid(column.type);
}

// Clients put ids into links: these would end one, or be changed on the way.
bool NeedsEscape(std::string_view text, size_t at) {
  const auto c = static_cast<unsigned char>(text[at]);
  const bool at_end = at == 0 || at + 1 == text.size();
  return c < 0x20 || c == 0x7F || (c == ' ' && at_end) || (c == '.' && at == 0) ||
         std::string_view("~|/\\?#%").find(text[at]) != std::string_view::npos;
}

bool ReadsBack(const DataType& type, std::string_view text, std::string_view bytes) {
  if (type.id() == TypeId::kText || type.id() == TypeId::kAscii) {
    return true;
  }
  auto again = ValueFromText(type, text);
  return again && *again == bytes;
}

void AppendValue(const DataType& type, std::string_view bytes, std::string& out) {
  if (bytes.empty()) {
    out += kEmptyValue;
    return;
  }
  const std::string text = ValueToText(type, bytes);
  if (!ReadsBack(type, text, bytes)) {
    out += kHexValue;
    out += ToHex(bytes);
    return;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (NeedsEscape(text, i)) {
      out += kEscape;
      out += ToHex({&text[i], 1});
    } else {
      out += text[i];
    }
  }
}

// Undoes AppendValue.
std::optional<std::string> ReadValue(const DataType& type, std::string_view value) {
  std::string bytes;
  if (value == kEmptyValue) {
    return ValidateValue(type, bytes).ok() ? std::optional(bytes) : std::nullopt;
  }
  if (value.starts_with(kHexValue)) {
    const bool good = FromHex(value.substr(kHexValue.size()), &bytes) && !bytes.empty() &&
                      ValidateValue(type, bytes).ok();
    return good ? std::optional(bytes) : std::nullopt;
  }
  std::string text;
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] != kEscape) {
      text += value[i];
      continue;
    }
    std::string letter;
    if (value.size() - i < 3 || !FromHex(value.substr(i + 1, 2), &letter)) {
      return std::nullopt;
    }
    text += letter;
    i += 2;
  }
  auto read = ValueFromText(type, text);
  return read && ValidateValue(type, *read).ok() ? std::optional(std::move(*read)) : std::nullopt;
}

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

}  // namespace

std::vector<std::string> MemberNames(const Table& table) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) {
    std::string name = column.name;
    if (std::ranges::find(kReserved, name) != std::end(kReserved) && !IsDocumentId(table, column)) {
      do {
        name += '_';
      } while (table.Find(name) != nullptr);
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::string RowId(const Table& table, std::span<const RowValues::Value> values) {
  const bool clustered = table.clustering_columns > 0;
  const size_t begin = clustered ? table.partition_columns : 0;
  const size_t count = clustered ? table.clustering_columns : table.partition_columns;
  if (!values[begin]) {
    return std::string(kOnlyStatic);
  }
  std::string id;
  for (size_t i = begin; i < begin + count; ++i) {
    if (i > begin) {
      id += kSeparator;
    }
    AppendValue(table.columns[i].type, values[i].value_or(std::string_view()), id);
  }
  return id;
}

void AppendRowMembers(const Table& table, std::span<const std::string> names,
                      std::span<const RowValues::Value> values, std::string& out) {
  out += "\"id\":";
  types::AppendJsonString(RowId(table, values), out);
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (IsDocumentId(table, table.columns[i])) {
      continue;
    }
    out += ',';
    types::AppendJsonString(names[i], out);
    out += ':';
    AppendValueJson(table.columns[i].type, values[i], out);
  }
}

std::optional<NamedRow> RowOfId(const Table& table, std::string_view id) {
  NamedRow named;
  if (table.clustering_columns == 0) {
    return named;
  }
  if (id == kOnlyStatic) {
    named.only_static = true;
    return named;
  }
  const auto columns = table.clustering();
  for (size_t i = 0; i < columns.size(); ++i) {
    const size_t end = id.find(kSeparator);
    const bool last = i + 1 == columns.size();
    if (last != (end == std::string_view::npos)) {
      return std::nullopt;
    }
    auto value = ReadValue(columns[i].type, id.substr(0, end));
    if (!value) {
      return std::nullopt;
    }
    AppendOrderedValue(columns[i].type, *value, columns[i].descending, named.clustering);
    id.remove_prefix(last ? id.size() : end + 1);
  }
  return named;
}

Result<std::string> PartitionKeyFromJson(const Table& table, std::string_view json) {
  const auto columns = table.partition_key();
  auto parsed = Json::Parse(json);
  if (!parsed || parsed->kind != Json::Kind::kArray) {
    return Invalid("The partition key is not a JSON array.");
  }
  if (parsed->items.size() != columns.size()) {
    return Invalid("Partition key provided has " + std::to_string(parsed->items.size()) +
                   " components but the table is partitioned by " + std::to_string(columns.size()) +
                   ".");
  }
  std::vector<std::string> values;
  for (size_t i = 0; i < columns.size(); ++i) {
    auto value = ValueFromJson(columns[i].type, parsed->items[i]);
    if (!value) {
      return Invalid("Partition key column " + columns[i].name + ": " + value.error().message());
    }
    if (!*value) {
      return Invalid("Partition key column " + columns[i].name + " must have a value.");
    }
    values.push_back(std::move(**value));
  }
  return JoinedKey(values);
}

}  // namespace orrery::cql
