#include "server/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include <toml++/toml.h>

namespace orrery::server {

namespace {

Status SetNumber(uint64_t& target, std::string_view text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    return Status(Code::kInvalidArgument, "must be a whole number from " + std::to_string(least) +
                                              " to " + std::to_string(most));
  }
  target = value;
  return Status::Ok();
}

Status SetBool(bool& target, std::string_view text) {
  if (text != "true" && text != "false") {
    return Status(Code::kInvalidArgument, "must be true or false");
  }
  target = text == "true";
  return Status::Ok();
}

Status SetDurability(Settings& settings, std::string_view text) {
  if (text != "sync" && text != "periodic") {
    return Status(Code::kInvalidArgument, "must be \"sync\" or \"periodic\"");
  }
  settings.durability =
      text == "sync" ? storage::Durability::kSync : storage::Durability::kPeriodic;
  return Status::Ok();
}

Status SetLevel(Settings& settings, std::string_view text) {
  static constexpr std::pair<std::string_view, log::Level> kLevels[] = {
      {"debug", log::Level::kDebug},
      {"info", log::Level::kInfo},
      {"warning", log::Level::kWarning},
      {"error", log::Level::kError},
      {"off", log::Level::kOff}};
  for (const auto& [name, level] : kLevels) {
    if (name == text) {
      settings.log_level = level;
      return Status::Ok();
    }
  }
  return Status(Code::kInvalidArgument, "must be debug, info, warning, error or off");
}

Status SetConsistency(Settings& settings, std::string_view text) {
  auto level = api::sql::ParseConsistency(text);
  if (!level) {
    return level.error();
  }
  settings.consistency = *level;
  return Status::Ok();
}

Status SetRules(Settings& settings, std::string_view text) {
  if (text != "documents" && text != "current") {
    return Status(Code::kInvalidArgument, "must be \"documents\" or \"current\"");
  }
  settings.rules = text == "current" ? model::RuleSet::kCurrent : model::RuleSet::kDocuments;
  return Status::Ok();
}

Status SetReplicas(Settings& settings, std::string_view text) {
  if (text != "0" && text != "1" && text != "3" && text != "4") {
    return Status(Code::kInvalidArgument, "must be 0, 1, 3 or 4");
  }
  settings.cluster_replicas = static_cast<uint64_t>(text[0] - '0');
  return Status::Ok();
}

constexpr uint64_t kMost = 1'000'000'000'000;

struct Row {
  std::string_view name;
  std::string_view fallback;
  std::string_view meaning;
  Status (*set)(Settings&, std::string_view);
};

#define ORRERY_NUMBER(field, least, most) \
  [](Settings& s, std::string_view text) { return SetNumber(s.field, text, least, most); }
#define ORRERY_TEXT(field)                 \
  [](Settings& s, std::string_view text) { \
    s.field = text;                        \
    return Status::Ok();                   \
  }
#define ORRERY_BOOL(field) [](Settings& s, std::string_view text) { return SetBool(s.field, text); }

Status SetPort(Settings& settings, std::string_view text) {
  uint64_t port = 0;
  ORRERY_RETURN_IF_ERROR(SetNumber(port, text, 0, 65535));
  settings.port = static_cast<uint16_t>(port);
  return Status::Ok();
}

Status SetCassandraPort(Settings& settings, std::string_view text) {
  uint64_t port = 0;
  ORRERY_RETURN_IF_ERROR(SetNumber(port, text, 0, 65535));
  settings.cassandra_port = static_cast<uint16_t>(port);
  return Status::Ok();
}

Status SetWorkers(Settings& settings, std::string_view text) {
  uint64_t workers = 0;
  ORRERY_RETURN_IF_ERROR(SetNumber(workers, text, 0, 1024));
  settings.workers = workers;
  return Status::Ok();
}

const Row kRows[] = {
    {"server.data", "orrery-data", "the data folder", ORRERY_TEXT(data)},
    {"server.listen", "127.0.0.1", "the address to listen on", ORRERY_TEXT(listen)},
    {"server.port", "8081", "the port of the SQL API; 0: any free one", SetPort},
    {"server.workers", "0", "worker threads; 0: one per core", SetWorkers},
    {"server.connections_max", "20000", "connections beyond it are closed at once",
     ORRERY_NUMBER(connections_max, 1, 10'000'000)},
    {"server.certificate", "", "PEM file; empty: one is made at first start",
     ORRERY_TEXT(certificate)},
    {"server.key", "", "PEM file of the certificate's key", ORRERY_TEXT(key)},
    {"server.metrics_public", "false", "/metrics also for clients that are not on this machine",
     ORRERY_BOOL(metrics_public)},
    {"cassandra.enabled", "true", "serve clients of Cassandra", ORRERY_BOOL(cassandra)},
    {"cassandra.port", "",
     "the port of the Cassandra API; 0: any free one; empty: 9042, or any if server.port is 0",
     SetCassandraPort},
    {"cassandra.data_center", "datacenter1", "what drivers call localDataCenter",
     ORRERY_TEXT(cassandra_data_center)},
    {"cassandra.purge_interval_ms", "60000",
     "how often it is looked for what died more than gc_grace_seconds ago",
     ORRERY_NUMBER(cassandra_purge_interval_ms, 10, 86'400'000)},
    {"account.name", "orrery", "the id of the account", ORRERY_TEXT(account)},
    {"account.endpoint", "", "the URL told to clients; empty: the one they asked",
     ORRERY_TEXT(endpoint)},
    {"account.consistency", "Session",
     "default level: Strong, BoundedStaleness, Session, ConsistentPrefix, Eventual",
     SetConsistency},
    {"account.staleness_versions", "100",
     "how many writes of its partition a BoundedStaleness read may lack",
     ORRERY_NUMBER(staleness_versions, 10, 2'147'483'647)},
    {"account.staleness_s", "5", "how old a write that a BoundedStaleness read lacks may be",
     ORRERY_NUMBER(staleness_s, 5, 86'400)},
    {"storage.durability", "sync", "sync: acknowledged after fdatasync; periodic: after the write",
     SetDurability},
    {"storage.sync_interval_ms", "100", "how often periodic durability syncs",
     ORRERY_NUMBER(sync_interval_ms, 1, 3'600'000)},
    {"storage.cache_mb", "256", "block cache of the state store",
     ORRERY_NUMBER(cache_mb, 1, 1 << 20)},
    {"storage.write_buffer_mb", "128", "write buffer of the state; the log has twice as much",
     ORRERY_NUMBER(write_buffer_mb, 1, 1 << 16)},
    {"storage.free_reserve_mb", "256", "writes are refused while less is free on the disk",
     ORRERY_NUMBER(free_reserve_mb, 0, kMost)},
    {"throughput.strict", "false", "throttle also where nobody chose a throughput",
     ORRERY_BOOL(strict)},
    {"throughput.burst", "false", "partitions may save and spend unused RU", ORRERY_BOOL(burst)},
    {"limits.partition_throughput", "10000", "RU/s of one physical partition",
     ORRERY_NUMBER(partition_throughput, 1, kMost)},
    {"limits.partition_storage_mb", "30720", "a physical partition that reaches it is split",
     ORRERY_NUMBER(partition_storage_mb, 1, kMost >> 20)},
    {"limits.throughput_max", "1000000", "RU/s of one container",
     ORRERY_NUMBER(throughput_max, 400, kMost)},
    {"limits.control_throughput", "240", "RU/s of databases, containers and offers together",
     ORRERY_NUMBER(control_throughput, 1, kMost)},
    {"limits.resources_max", "500", "databases and containers together",
     ORRERY_NUMBER(resources_max, 1, 1'000'000)},
    {"balancer.interval_ms", "1000", "how often it is looked what to split, merge and move",
     ORRERY_NUMBER(balancer_interval_ms, 10, 3'600'000)},
    {"balancer.merge_after_s", "600", "neighbours that are small and cold for so long are merged",
     ORRERY_NUMBER(balancer_merge_after_s, 0, 1'000'000'000)},
    {"limits.rules", "documents",
     "documents: a container with a key is fixed below unlimited_throughput; current: never",
     SetRules},
    {"limits.unlimited_throughput", "1000", "RU/s from which a container with a key is unlimited",
     ORRERY_NUMBER(unlimited_throughput, 0, kMost)},
    {"limits.fixed_throughput", "10000", "RU/s of a fixed container",
     ORRERY_NUMBER(fixed_throughput, 400, kMost)},
    {"limits.fixed_container_mb", "10240", "what a fixed container holds",
     ORRERY_NUMBER(fixed_container_mb, 1, kMost)},
    {"limits.logical_partition_mb", "20480", "what a logical partition holds",
     ORRERY_NUMBER(logical_partition_mb, 1, kMost)},
    {"cluster.listen", "", "host:port for other nodes; empty: this node is alone",
     ORRERY_TEXT(cluster_listen)},
    {"cluster.advertise", "",
     "host:port by which other nodes reach this one; empty: cluster.listen",
     ORRERY_TEXT(cluster_advertise)},
    {"cluster.join", "", "host:port of a member, for the first start of a new node",
     ORRERY_TEXT(cluster_join)},
    {"cluster.join_timeout_s", "60", "how long a new node tries to join before it gives up",
     ORRERY_NUMBER(cluster_join_timeout_s, 1, 1'000'000'000)},
    {"cluster.secret", "", "what the nodes of the cluster have in common; at least 16 characters",
     ORRERY_TEXT(cluster_secret)},
    {"cluster.secret_file", "", "the same, in a file", ORRERY_TEXT(cluster_secret_file)},
    {"cluster.authority", "", "PEM file; with certificate and key, instead of a secret",
     ORRERY_TEXT(cluster_authority)},
    {"cluster.certificate", "", "PEM file, for other nodes", ORRERY_TEXT(cluster_certificate)},
    {"cluster.key", "", "PEM file of that certificate's key", ORRERY_TEXT(cluster_key)},
    {"cluster.zone", "", "replicas of a partition go to different zones",
     ORRERY_TEXT(cluster_zone)},
    {"cluster.replicas", "0", "replicas of a partition: 1, 3 or 4; 0: by the number of nodes",
     SetReplicas},
    {"cluster.replace_after_s", "300", "a node that is silent for longer is replaced",
     ORRERY_NUMBER(cluster_replace_after_s, 1, 1'000'000'000)},
    {"cluster.check_interval_s", "3600", "between two comparisons of the replicas of a set",
     ORRERY_NUMBER(cluster_check_interval_s, 1, 1'000'000'000)},
    {"cluster.election_timeout_ms", "1000", "a leader that is silent for longer is deposed",
     ORRERY_NUMBER(cluster_election_timeout_ms, 50, 60'000)},
    {"cluster.heartbeat_ms", "200", "between nodes; at most a third of the election time-out",
     ORRERY_NUMBER(cluster_heartbeat_ms, 10, 20'000)},
    {"cluster.lease_reads", "false",
     "Strong reads by lease: faster, but needs clocks of equal speed; a dead leader is replaced "
     "later",
     ORRERY_BOOL(cluster_lease_reads)},
    {"test.loopback_operations", "false",
     "send every operation through the encoder and a connection", ORRERY_BOOL(loopback_operations)},
    {"test.kill_at", "", "end as by kill -9 at this step of a split or merge",
     ORRERY_TEXT(kill_at)},
    {"log.level", "info", "debug, info, warning, error, off", SetLevel},
};

std::string EnvironmentName(std::string_view name) {
  std::string out = "ORRERY_";
  for (char c : name) {
    out += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

// A TOML value as the text that Set() takes.
Result<std::string> ToText(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) {
    return *text;
  }
  if (auto number = node.value_exact<int64_t>()) {
    return std::to_string(*number);
  }
  if (auto flag = node.value_exact<bool>()) {
    return *flag ? "true" : "false";
  }
  return Error(Code::kInvalidArgument, "must be a string, a whole number or a boolean");
}

}  // namespace

Status Set(Settings& settings, std::string_view name, std::string_view value) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      Status status = row.set(settings, value);
      return status.ok() ? status
                         : Status(Code::kInvalidArgument, "setting " + std::string(name) + " = '" +
                                                              std::string(value) +
                                                              "': " + status.message());
    }
  }
  return Status(Code::kInvalidArgument,
                "there is no setting '" + std::string(name) + "' (see orrery start --help)");
}

Status LoadFile(Settings& settings, const std::string& file) {
  try {
    toml::table table = toml::parse_file(file);
    for (const auto& [section, content] : table) {
      const toml::table* keys = content.as_table();
      if (keys == nullptr) {
        return Status(Code::kInvalidArgument,
                      file + ": '" + std::string(section.str()) + "' is not a section");
      }
      for (const auto& [key, node] : *keys) {
        std::string name = std::string(section.str()) + "." + std::string(key.str());
        auto text = ToText(node);
        Status status = text ? Set(settings, name, *text)
                             : Status(Code::kInvalidArgument,
                                      "setting " + name + ": " + text.error().message());
        if (!status.ok()) {
          return Status(Code::kInvalidArgument, file + ": " + status.message());
        }
      }
    }
  } catch (const toml::parse_error& e) {
    return Status(Code::kInvalidArgument, file + ": " + std::string(e.description()) + " (line " +
                                              std::to_string(e.source().begin.line) + ")");
  }
  return Status::Ok();
}

Status LoadEnvironment(Settings& settings) {
  for (const Row& row : kRows) {
    if (const char* value = std::getenv(EnvironmentName(row.name).c_str())) {
      ORRERY_RETURN_IF_ERROR(Set(settings, row.name, value));
    }
  }
  return Status::Ok();
}

bool IsLoopback(std::string_view address) {
  return address == "::1" || address == "localhost" || address.starts_with("127.");
}

namespace {

Status CheckCluster(const Settings& settings) {
  if (!IsCluster(settings)) {
    return settings.cluster_join.empty()
               ? Status::Ok()
               : Status(Code::kInvalidArgument, "cluster.join needs cluster.listen");
  }
  size_t colon = settings.cluster_listen.rfind(':');
  if (colon == std::string::npos) {
    return Status(Code::kInvalidArgument, "cluster.listen must be host:port");
  }
  if (settings.durability == storage::Durability::kPeriodic) {
    return Status(Code::kInvalidArgument,
                  "storage.durability = \"periodic\" is for a node that is alone: what a quorum "
                  "acknowledges must be on its disks");
  }
  int given = !settings.cluster_secret.empty() + !settings.cluster_secret_file.empty() +
              !settings.cluster_authority.empty();
  if (given > 1) {
    return Status(Code::kInvalidArgument,
                  "give one of cluster.secret, cluster.secret_file and cluster.authority");
  }
  if (settings.cluster_authority.empty() != settings.cluster_certificate.empty() ||
      settings.cluster_authority.empty() != settings.cluster_key.empty()) {
    return Status(Code::kInvalidArgument,
                  "cluster.authority, cluster.certificate and cluster.key go together");
  }
  if (given == 0 && !(settings.dev && IsLoopback(settings.cluster_listen.substr(0, colon)))) {
    return Status(Code::kInvalidArgument,
                  "nodes must know each other: set cluster.secret, cluster.secret_file or "
                  "cluster.authority (only --dev on loopback goes without)");
  }
  if (settings.cluster_heartbeat_ms * 3 > settings.cluster_election_timeout_ms) {
    return Status(Code::kInvalidArgument,
                  "cluster.heartbeat_ms must be at most a third of cluster.election_timeout_ms");
  }
  if (settings.loopback_operations) {
    return Status(Code::kInvalidArgument, "test.loopback_operations is for a node that is alone");
  }
  return Status::Ok();
}

}  // namespace

Status CheckSettings(const Settings& settings) {
  if (settings.dev && !IsLoopback(settings.listen)) {
    return Status(Code::kInvalidArgument,
                  "--dev uses a publicly known key and plain HTTP, so it listens on loopback "
                  "only; server.listen is " +
                      settings.listen);
  }
  if (settings.certificate.empty() != settings.key.empty()) {
    return Status(Code::kInvalidArgument, "server.certificate and server.key go together");
  }
  ORRERY_RETURN_IF_ERROR(CheckCluster(settings));
  if (settings.account.empty() || settings.account == "localhost") {
    return Status(Code::kInvalidArgument,
                  "account.name must not be empty or 'localhost': clients would ignore the "
                  "endpoints of such an account");
  }
  return Status::Ok();
}

std::string DescribeSettings() {
  std::string out =
      "Settings (TOML file: [section] key = value; environment: ORRERY_SECTION_KEY; flag: "
      "--set section.key=value):\n";
  for (const Row& row : kRows) {
    std::string line = "  " + std::string(row.name);
    line.resize(std::max<size_t>(line.size() + 1, 32), ' ');
    line += std::string(row.meaning);
    if (!row.fallback.empty()) {
      line += " [" + std::string(row.fallback) + "]";
    }
    out += line + "\n";
  }
  return out;
}

}  // namespace orrery::server
