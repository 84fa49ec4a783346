// Settings: everything that can be set, from a TOML file, the environment and flags, in that order;
// the later wins. One table (settings.cc) names them all; an unknown or wrong one is an error that
// says so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/sql/service.h"
#include "base/log.h"
#include "base/status.h"
#include "model/catalog_evaluate.h"
#include "storage/store.h"

namespace orrery::server {

struct Settings {
  bool dev = false;
  std::string data = "orrery-data";

  std::string listen = "127.0.0.1";
  uint16_t port = 8081;
  size_t workers = 0;  // 0: one per core
  uint64_t connections_max = 20'000;
  std::string certificate;  // empty: one is made at first start
  std::string key;
  bool metrics_public = false;

  bool cassandra = true;
  std::optional<uint16_t> cassandra_port;  // none: 9042, or any if server.port is any
  std::string cassandra_data_center = "datacenter1";
  uint64_t cassandra_purge_interval_ms = 60'000;

  std::string account = "orrery";
  std::string endpoint;
  api::sql::Consistency consistency = api::sql::Consistency::kSession;
  uint64_t staleness_versions = 100;
  uint64_t staleness_s = 5;

  storage::Durability durability = storage::Durability::kSync;
  uint64_t sync_interval_ms = 100;
  uint64_t cache_mb = 256;
  uint64_t write_buffer_mb = 128;
  uint64_t free_reserve_mb = 256;

  bool strict = false;
  bool burst = false;

  uint64_t partition_throughput = 10'000;
  uint64_t partition_storage_mb = 30 << 10;
  uint64_t throughput_max = 1'000'000;
  uint64_t control_throughput = 240;
  uint64_t resources_max = 500;
  model::RuleSet rules = model::RuleSet::kDocuments;
  uint64_t unlimited_throughput = 1'000;
  uint64_t fixed_throughput = 10'000;
  uint64_t fixed_container_mb = 10 << 10;
  uint64_t logical_partition_mb = 20 << 10;

  uint64_t balancer_interval_ms = 1000;
  uint64_t balancer_merge_after_s = 600;

  // A cluster, if it listens for other nodes.
  std::string cluster_listen;     // host:port
  std::string cluster_advertise;  // host:port that others reach it by; empty: cluster_listen
  std::string cluster_join;       // host:port of any member
  uint64_t cluster_join_timeout_s = 60;
  std::string cluster_secret;
  std::string cluster_secret_file;
  std::string cluster_authority;
  std::string cluster_certificate;
  std::string cluster_key;
  std::string cluster_zone;
  uint64_t cluster_replicas = 0;
  uint64_t cluster_replace_after_s = 300;
  uint64_t cluster_check_interval_s = 3600;
  uint64_t cluster_election_timeout_ms = 1000;
  uint64_t cluster_heartbeat_ms = 200;
  bool cluster_lease_reads = false;

  bool loopback_operations = false;
  std::string kill_at;
  log::Level log_level = log::Level::kInfo;
};

// `name` is section.key. kInvalidArgument if there is none such, or the value does not fit.
Status Set(Settings& settings, std::string_view name, std::string_view value);
Status LoadFile(Settings& settings, const std::string& file);
// ORRERY_STORAGE_DURABILITY=periodic sets storage.durability.
Status LoadEnvironment(Settings& settings);
// What only makes sense together.
Status CheckSettings(const Settings& settings);
// One line for each: name, default, meaning.
std::string DescribeSettings();

inline bool IsCluster(const Settings& settings) { return !settings.cluster_listen.empty(); }

bool IsLoopback(std::string_view address);

}  // namespace orrery::server
