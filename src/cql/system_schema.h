// The rows of the system's tables: what drivers and tools read of the cluster and of the schema.
// Pure functions of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cql/schema.h"

namespace orrery::cql {

// What we say that we are. Drivers choose by these what they ask for.
inline constexpr std::string_view kReleaseVersion = "4.0.11";
inline constexpr std::string_view kCqlVersion = "3.4.5";
inline constexpr std::string_view kNativeProtocolVersion = "5";
inline constexpr std::string_view kPartitioner = "org.apache.cassandra.dht.Murmur3Partitioner";
inline constexpr std::string_view kSnitch = "org.apache.cassandra.locator.SimpleSnitch";

// A node as clients see it.
struct NodeView {
  std::string host_id;          // 16 bytes of a uuid
  std::string address;          // 4 or 16 bytes; where clients reach it
  int32_t native_port = 9042;   // where they do
  int32_t storage_port = 7000;  // tells nodes of one address apart in peers_v2
  std::string data_center = "datacenter1";
  std::string rack = "rack1";
  std::vector<int64_t> tokens;
  std::string schema_version;  // 16 bytes; empty: that of the Schema
  bool up = true;              // as far as the node knows that shows it
};

// The cluster as one node sees it.
struct ClusterView {
  std::string cluster_name = "Orrery";
  NodeView self;
  std::vector<NodeView> peers;    // all the others
  int32_t gossip_generation = 0;  // when the node started, in seconds since 1970
};

// Serialized values, in the order of Table::columns; nothing is null.
using SystemRow = std::vector<std::optional<std::string>>;

// Sorted by the whole primary key. None of tables that nothing is known of here: those of roles,
// traces and sizes. REQUIRES: a table of system_tables.h.
std::vector<SystemRow> SystemRows(const Table& table, const Schema& schema,
                                  const ClusterView& cluster);

// What an index is on, in the words of CREATE INDEX: v, keys(m), full("Odd").
std::string IndexTargetText(const Table& table, const Index& index);

}  // namespace orrery::cql
