// Rows as documents: how an API of documents sees a table. Pure functions.
//
//   document := {"id": id, then a member for each column, in their order, as toJson() shows it}
//   id       := value ("|" value)*: of the clustering columns; without those, of the partition key
//             | "~": of a partition that has nothing but static columns
//   value    := its text, with ~ and two hex digits for what cannot stand in a link or ends a value
//             | "~x" and its bytes in hex, where the text would not read back as the same
//             | "~_": zero bytes
//
// So an id names a row inside of its partition, and is found again by what it says.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/row_values.h"
#include "cql/schema.h"

namespace orrery::cql {

// The names of the members, by the places of the columns. A column with a name that documents need
// for themselves (`id`, `_ts`...) gets underscores behind it, until nothing else has that name; but
// one `id` that is the whole primary key and a uuid is the same as the document's.
std::vector<std::string> MemberNames(const Table& table);

// `names` are MemberNames; all values are those of one row, by place.
std::string RowId(const Table& table, std::span<const RowValues::Value> values);
// `"id":"7","p":1,"c":7`, without the braces.
void AppendRowMembers(const Table& table, std::span<const std::string> names,
                      std::span<const RowValues::Value> values, std::string& out);

// What an id says: a row, by its clustering columns as keys have them, or the static row alone.
struct NamedRow {
  bool only_static = false;
  std::string clustering;
};
// Nothing if no row can have this id. Of a table without clustering columns every id names the one
// row of the partition. Who has found the row compares its id: some texts mean the same value.
std::optional<NamedRow> RowOfId(const Table& table, std::string_view id);

// The serialized partition key that a JSON array of the values of its columns means.
// kInvalidArgument says what is wrong.
Result<std::string> PartitionKeyFromJson(const Table& table, std::string_view json);

}  // namespace orrery::cql
