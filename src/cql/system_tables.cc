#include "cql/system_tables.h"

#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/check.h"
#include "cql/define.h"
#include "cql/parse.h"
#include "types/murmur3.h"

namespace orrery::cql {
namespace {

struct Definition {
  std::string_view name;
  std::string_view comment;
  std::string_view columns;  // of a CREATE TABLE
};

// With the columns of Cassandra 4.0, in the order of its documents: they are sorted here.
constexpr Definition kSystem[] = {
    {"IndexInfo", "built column indexes",
     "table_name text, index_name text, value blob, PRIMARY KEY (table_name, index_name)"},
    {"available_ranges_v2",
     "available keyspace/ranges during bootstrap/replace that are ready to be served",
     "keyspace_name text PRIMARY KEY, full_ranges set<blob>, transient_ranges set<blob>"},
    {"batches", "batches awaiting replay",
     "id timeuuid PRIMARY KEY, mutations list<blob>, version int"},
    {"built_views", "built views",
     "keyspace_name text, view_name text, status_replicated boolean, "
     "PRIMARY KEY (keyspace_name, view_name)"},
    {"compaction_history", "week-long compaction history",
     "id uuid PRIMARY KEY, bytes_in bigint, bytes_out bigint, columnfamily_name text, "
     "compacted_at timestamp, keyspace_name text, rows_merged map<int, bigint>"},
    {"local", "information about the local node",
     "key text PRIMARY KEY, bootstrapped text, broadcast_address inet, broadcast_port int, "
     "cluster_name text, cql_version text, data_center text, gossip_generation int, host_id uuid, "
     "listen_address inet, listen_port int, native_protocol_version text, partitioner text, "
     "rack text, release_version text, rpc_address inet, rpc_port int, schema_version uuid, "
     "tokens set<text>, truncated_at map<uuid, blob>"},
    {"paxos", "in-progress paxos proposals",
     "row_key blob, cf_id uuid, in_progress_ballot timeuuid, most_recent_commit blob, "
     "most_recent_commit_at timeuuid, most_recent_commit_version int, proposal blob, "
     "proposal_ballot timeuuid, proposal_version int, PRIMARY KEY (row_key, cf_id)"},
    {"peer_events", "events related to peers",
     "peer inet PRIMARY KEY, hints_dropped map<uuid, int>"},
    {"peer_events_v2", "events related to peers",
     "peer inet, peer_port int, hints_dropped map<uuid, int>, PRIMARY KEY (peer, peer_port)"},
    {"peers", "information about known peers in the cluster",
     "peer inet PRIMARY KEY, data_center text, host_id uuid, preferred_ip inet, rack text, "
     "release_version text, rpc_address inet, schema_version uuid, tokens set<text>"},
    {"peers_v2", "information about known peers in the cluster",
     "peer inet, peer_port int, data_center text, host_id uuid, native_address inet, "
     "native_port int, preferred_ip inet, preferred_port int, rack text, release_version text, "
     "schema_version uuid, tokens set<text>, PRIMARY KEY (peer, peer_port)"},
    {"prepared_statements", "prepared statements",
     "prepared_id blob PRIMARY KEY, logged_keyspace text, query_string text"},
    {"repairs", "repairs",
     "parent_id timeuuid PRIMARY KEY, cfids set<uuid>, coordinator inet, coordinator_port int, "
     "last_update timestamp, participants set<inet>, participants_wp set<text>, "
     "ranges set<blob>, repaired_at timestamp, started_at timestamp, state int"},
    {"size_estimates",
     "per-table primary range size estimates, table is deprecated in favor of table_estimates",
     "keyspace_name text, table_name text, range_start text, range_end text, "
     "mean_partition_size bigint, partitions_count bigint, "
     "PRIMARY KEY (keyspace_name, table_name, range_start, range_end)"},
    {"sstable_activity", "historic sstable read rates",
     "keyspace_name text, columnfamily_name text, generation int, rate_120m double, "
     "rate_15m double, PRIMARY KEY ((keyspace_name, columnfamily_name, generation))"},
    {"table_estimates", "per-table range size estimates",
     "keyspace_name text, table_name text, range_type text, range_start text, range_end text, "
     "mean_partition_size bigint, partitions_count bigint, "
     "PRIMARY KEY (keyspace_name, table_name, range_type, range_start, range_end)"},
    {"transferred_ranges_v2", "record of transferred ranges for streaming operation",
     "operation text, keyspace_name text, peer inet, peer_port int, ranges set<blob>, "
     "PRIMARY KEY ((operation, keyspace_name), peer, peer_port)"},
    {"view_builds_in_progress", "views builds current progress",
     "keyspace_name text, view_name text, start_token text, end_token text, keys_built bigint, "
     "last_token text, PRIMARY KEY (keyspace_name, view_name, start_token, end_token)"},
};

constexpr Definition kSchema[] = {
    {"aggregates", "user defined aggregate definitions",
     "keyspace_name text, aggregate_name text, argument_types frozen<list<text>>, "
     "final_func text, initcond text, return_type text, state_func text, state_type text, "
     "PRIMARY KEY (keyspace_name, aggregate_name, argument_types)"},
    {"columns", "column definitions",
     "keyspace_name text, table_name text, column_name text, clustering_order text, "
     "column_name_bytes blob, kind text, position int, type text, "
     "PRIMARY KEY (keyspace_name, table_name, column_name)"},
    {"dropped_columns", "dropped column registry",
     "keyspace_name text, table_name text, column_name text, dropped_time timestamp, kind text, "
     "type text, PRIMARY KEY (keyspace_name, table_name, column_name)"},
    {"functions", "user defined function definitions",
     "keyspace_name text, function_name text, argument_types frozen<list<text>>, "
     "argument_names frozen<list<text>>, body text, called_on_null_input boolean, language text, "
     "return_type text, PRIMARY KEY (keyspace_name, function_name, argument_types)"},
    {"indexes", "secondary index definitions",
     "keyspace_name text, table_name text, index_name text, kind text, "
     "options frozen<map<text, text>>, PRIMARY KEY (keyspace_name, table_name, index_name)"},
    {"keyspaces", "keyspace definitions",
     "keyspace_name text PRIMARY KEY, durable_writes boolean, "
     "replication frozen<map<text, text>>"},
    {"tables", "table definitions",
     "keyspace_name text, table_name text, additional_write_policy text, "
     "bloom_filter_fp_chance double, caching frozen<map<text, text>>, cdc boolean, comment text, "
     "compaction frozen<map<text, text>>, compression frozen<map<text, text>>, "
     "crc_check_chance double, dclocal_read_repair_chance double, default_time_to_live int, "
     "extensions frozen<map<text, blob>>, flags frozen<set<text>>, gc_grace_seconds int, id uuid, "
     "max_index_interval int, memtable_flush_period_in_ms int, min_index_interval int, "
     "read_repair text, read_repair_chance double, speculative_retry text, "
     "PRIMARY KEY (keyspace_name, table_name)"},
    {"triggers", "trigger definitions",
     "keyspace_name text, table_name text, trigger_name text, options frozen<map<text, text>>, "
     "PRIMARY KEY (keyspace_name, table_name, trigger_name)"},
    {"types", "user defined type definitions",
     "keyspace_name text, type_name text, field_names frozen<list<text>>, "
     "field_types frozen<list<text>>, PRIMARY KEY (keyspace_name, type_name)"},
    {"views", "view definitions",
     "keyspace_name text, view_name text, additional_write_policy text, base_table_id uuid, "
     "base_table_name text, bloom_filter_fp_chance double, caching frozen<map<text, text>>, "
     "cdc boolean, comment text, compaction frozen<map<text, text>>, "
     "compression frozen<map<text, text>>, crc_check_chance double, "
     "dclocal_read_repair_chance double, default_time_to_live int, "
     "extensions frozen<map<text, blob>>, gc_grace_seconds int, id uuid, "
     "include_all_columns boolean, max_index_interval int, memtable_flush_period_in_ms int, "
     "min_index_interval int, read_repair text, read_repair_chance double, "
     "speculative_retry text, where_clause text, PRIMARY KEY (keyspace_name, view_name)"},
};

constexpr Definition kVirtualSchema[] = {
    {"columns", "virtual column definitions",
     "keyspace_name text, table_name text, column_name text, clustering_order text, "
     "column_name_bytes blob, kind text, position int, type text, "
     "PRIMARY KEY (keyspace_name, table_name, column_name)"},
    {"keyspaces", "virtual keyspace definitions", "keyspace_name text PRIMARY KEY"},
    {"tables", "virtual table definitions",
     "keyspace_name text, table_name text, comment text, "
     "PRIMARY KEY (keyspace_name, table_name)"},
};

constexpr Definition kAuth[] = {
    {"network_permissions", "user network permissions",
     "role text PRIMARY KEY, dcs frozen<set<text>>"},
    {"resource_role_permissons_index", "index of db roles with permissions granted on a resource",
     "resource text, role text, PRIMARY KEY (resource, role)"},
    {"role_members", "role memberships lookup table",
     "role text, member text, PRIMARY KEY (role, member)"},
    {"role_permissions", "permissions granted to db roles",
     "role text, resource text, permissions set<text>, PRIMARY KEY (role, resource)"},
    {"roles", "role definitions",
     "role text PRIMARY KEY, can_login boolean, is_superuser boolean, member_of set<text>, "
     "salted_hash text"},
};

constexpr Definition kTraces[] = {
    {"events", "tracing events",
     "session_id uuid, event_id timeuuid, activity text, source inet, source_elapsed int, "
     "source_port int, thread text, PRIMARY KEY (session_id, event_id)"},
    {"sessions", "tracing sessions",
     "session_id uuid PRIMARY KEY, client inet, command text, coordinator inet, "
     "coordinator_port int, duration int, parameters map<text, text>, request text, "
     "started_at timestamp"},
};

constexpr std::string_view kVirtualKeyspace = "system_virtual_schema";

struct SystemKeyspace {
  std::string_view name;
  std::string_view strategy;
  std::string_view copies;  // empty: the strategy knows no number
  std::span<const Definition> tables;
  Options options;  // of each table
};

// An id that is the same on every node, in the form of a uuid made of a name.
std::string NameUuid(std::string_view keyspace, std::string_view table) {
  types::Hash128 hash = types::Murmur128(std::string(keyspace) + "." + std::string(table));
  std::string id;
  Encoder encoder(id);
  encoder.U64(hash.first);
  encoder.U64(hash.second);
  id[6] = static_cast<char>((id[6] & 0x0F) | 0x30);
  id[8] = static_cast<char>((id[8] & 0x3F) | 0x80);
  return id;
}

Table MakeTable(const SystemKeyspace& keyspace, const Definition& definition) {
  std::string text = "CREATE TABLE \"" + std::string(definition.name) + "\" (" +
                     std::string(definition.columns) + ")";
  auto parsed = Parse(text);
  ORRERY_CHECK(parsed.has_value());
  auto table = DefineTable(std::get<CreateTable>(parsed->statement),
                           Keyspace{.name = std::string(keyspace.name)},
                           NameUuid(keyspace.name, definition.name));
  ORRERY_CHECK(table.has_value());
  table->options = keyspace.options;
  table->options.push_back({"comment", std::string(definition.comment)});
  return *table;
}

Keyspace MakeKeyspace(const SystemKeyspace& system) {
  Keyspace keyspace{.name = std::string(system.name)};
  keyspace.replication.emplace_back("class",
                                    "org.apache.cassandra.locator." + std::string(system.strategy));
  if (!system.copies.empty()) {
    keyspace.replication.emplace_back("replication_factor", system.copies);
  }
  for (const Definition& definition : system.tables) {
    keyspace.tables.emplace(definition.name, MakeTable(system, definition));
  }
  return keyspace;
}

std::map<std::string, Keyspace, std::less<>> MakeKeyspaces() {
  const Option hour{"memtable_flush_period_in_ms", "3600000"};
  const SystemKeyspace all[] = {
      {"system", "LocalStrategy", "", kSystem, {{"gc_grace_seconds", "0"}, hour}},
      {"system_schema", "LocalStrategy", "", kSchema, {{"gc_grace_seconds", "604800"}, hour}},
      {kVirtualKeyspace, "LocalStrategy", "", kVirtualSchema, {}},
      {"system_auth", "SimpleStrategy", "1", kAuth, {{"gc_grace_seconds", "7776000"}}},
      {"system_traces", "SimpleStrategy", "2", kTraces, {{"gc_grace_seconds", "0"}}},
  };
  std::map<std::string, Keyspace, std::less<>> keyspaces;
  for (const SystemKeyspace& system : all) {
    keyspaces.emplace(system.name, MakeKeyspace(system));
  }
  return keyspaces;
}

}  // namespace

const std::map<std::string, Keyspace, std::less<>>& SystemKeyspaces() {
  static const auto keyspaces = MakeKeyspaces();
  return keyspaces;
}

bool IsSystemKeyspace(std::string_view name) {
  return SystemKeyspaces().contains(name) || name == "system_distributed" ||
         name == "system_views" || name == "system_cluster_metadata" || name == "system_metrics";
}

bool IsVirtualKeyspace(std::string_view name) { return name == kVirtualKeyspace; }

const Table* FindSystemTable(std::string_view keyspace, std::string_view table) {
  auto space = SystemKeyspaces().find(keyspace);
  if (space == SystemKeyspaces().end()) {
    return nullptr;
  }
  auto found = space->second.tables.find(table);
  return found == space->second.tables.end() ? nullptr : &found->second;
}

}  // namespace orrery::cql
