// What the statements that define a schema mean: from a statement and what there is to what there
// will be. Pure functions; the rules and the words of errors are Cassandra's.
//
// They see one keyspace. Whether it is there, is the system's, or is the same as when the result is
// put in its place, is for the caller. IF [NOT] EXISTS of a part (a column, a field, an index) is
// heeded here, and so is that of a type or index: what it makes harmless gives the same value as
// before.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cql/ast.h"
#include "cql/schema.h"

namespace orrery::cql {

struct DefineError {
  enum class Kind : uint8_t {
    kSyntax,   // a property that does not exist or has no such value
    kInvalid,  // against a rule
    kConfig,   // a value of a property that cannot be
    kExists,   // the name is taken, and IF NOT EXISTS was not said
  };
  Kind kind = Kind::kInvalid;
  std::string message;
};

template <typename T>
using Defined = std::expected<T, DefineError>;

// ---- Keyspaces: define_keyspace.cc ----

// `data_centers` are those of the cluster: replication_factor of a NetworkTopologyStrategy means
// each of them. Others may be named too, as replication only is shown.
Defined<Keyspace> DefineKeyspace(const CreateKeyspace& create,
                                 std::span<const std::string> data_centers = {});
Defined<Keyspace> AlteredKeyspace(const AlterKeyspace& alter, Keyspace before,
                                  std::span<const std::string> data_centers = {});

// ---- Tables: define_table.cc, alter_table.cc ----

// `table_id` is 16 bytes of a uuid, for one that the statement does not give itself.
Defined<Table> DefineTable(const CreateTable& create, const Keyspace& in, std::string table_id);
// `now` in microseconds: when columns are dropped, unless the statement says so.
Defined<Table> AlteredTable(const AlterTable& alter, const Table& before, const Keyspace& in,
                            int64_t now);

// Checks options of WITH and puts them, as they are shown, in place of those that the table has.
// default_time_to_live goes to Table::default_ttl.
Defined<void> ApplyOptions(const Options& options, Table& table);
// cosmosdb_provisioned_throughput of a keyspace or a table, in RU/s.
Defined<std::optional<int32_t>> GivenThroughput(const Options& options);

// ---- User types: define_type.cc ----

Defined<DataType> DefineType(const CreateType& create, const Keyspace& in);
// What the keyspace is with the changed type, which its tables and other types know too.
Defined<Keyspace> AlteredType(const AlterType& alter, const Keyspace& before);
// Fails while something uses the type; nothing if there is none and IF EXISTS is said.
Defined<void> CheckDropType(const DropType& drop, const Keyspace& in);

// The keyspace with another definition of a user type, in all places where it stands.
Keyspace WithType(Keyspace keyspace, const DataType& type);
// The type with tuples in place of user types, as dropped columns keep it: these may go.
DataType WithoutUserTypes(const DataType& type);
bool UsesUserType(const DataType& type, std::string_view name);

// ---- Views: define_view.cc ----

Defined<Table> DefineView(const CreateView& create, const Table& base, const Keyspace& in,
                          std::string id);
Defined<Table> AlteredView(const AlterView& alter, const Table& before);
std::vector<const Table*> ViewsOf(const Keyspace& keyspace, std::string_view base);
// What a view is when its table is as it will be: one of all columns gets those that are new.
Table ViewAfter(const Table& view, const Table& base);

// ---- Indexes: define_index.cc ----

Defined<Table> DefineIndex(const CreateIndex& create, const Table& before, const Keyspace& in);
// The table that has the index, without it. Nothing if there is none and IF EXISTS is said.
Defined<std::optional<Table>> WithoutIndex(const DropIndex& drop, const Keyspace& in);
// Null: there is none.
const Table* FindIndexedTable(const Keyspace& keyspace, std::string_view index);

}  // namespace orrery::cql
