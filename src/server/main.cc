#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include "base/log.h"
#include "server/commands.h"
#include "server/node.h"
#include "server/settings.h"
#include "server/simulate.h"

namespace orrery::server {
namespace {

struct StartOptions {
  std::string config;
  std::vector<std::string> sets;
  std::string data;
  std::string listen;
  std::string port;
  std::string cluster_listen;
  std::string join;
  bool dev = false;
};

Status LoadSettings(const StartOptions& options, Settings& settings) {
  settings.dev = options.dev;
  if (!options.config.empty()) {
    ORRERY_RETURN_IF_ERROR(LoadFile(settings, options.config));
  }
  ORRERY_RETURN_IF_ERROR(LoadEnvironment(settings));
  for (const std::string& set : options.sets) {
    size_t at = set.find('=');
    if (at == std::string::npos) {
      return Status(Code::kInvalidArgument, "--set takes section.key=value, not '" + set + "'");
    }
    ORRERY_RETURN_IF_ERROR(Set(settings, set.substr(0, at), set.substr(at + 1)));
  }
  for (auto [name, value] :
       {std::pair<std::string_view, const std::string&>{"server.data", options.data},
        {"server.listen", options.listen},
        {"server.port", options.port},
        {"cluster.listen", options.cluster_listen},
        {"cluster.join", options.join}}) {
    if (!value.empty()) {
      ORRERY_RETURN_IF_ERROR(Set(settings, name, value));
    }
  }
  if (!settings.cluster_join.empty() && settings.cluster_listen.empty()) {
    settings.cluster_listen = "127.0.0.1:0";
  }
  return CheckSettings(settings);
}

sigset_t ServerSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

// Whether one of them is waiting that ends the server.
bool StopWanted() {
  sigset_t waiting;
  sigemptyset(&waiting);
  sigpending(&waiting);
  return sigismember(&waiting, SIGINT) == 1 || sigismember(&waiting, SIGTERM) == 1;
}

// Connections must never take the file descriptors that the stores need: without one the log fails.
constexpr uint64_t kFilesOfStores = 1536;

Status FitFileLimit(Settings& settings) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Status::Ok();
  }
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < kFilesOfStores + 64) {
    return Status(Code::kInvalidArgument,
                  "the limit of open files is " + std::to_string(limit.rlim_cur) + "; at least " +
                      std::to_string(kFilesOfStores + 64) + " are needed (ulimit -n)");
  }
  settings.connections_max =
      std::min<uint64_t>(settings.connections_max, limit.rlim_cur - kFilesOfStores);
  return Status::Ok();
}

// Until SIGINT or SIGTERM, or until it is no part of its cluster any more. A changed certificate or
// key is taken when it is seen, or at once on SIGHUP; one that does not fit yet (its other half is
// still to come) is tried again.
void WaitForTheEnd(Node& node, const sigset_t& signals) {
  auto changed = [&node] {
    std::error_code none;
    return std::max(std::filesystem::last_write_time(node.certificate_file(), none),
                    std::filesystem::last_write_time(node.key_file(), none));
  };
  auto loaded = changed();
  auto tried = loaded;
  while (true) {
    timespec interval{.tv_sec = 1};
    int signal = sigtimedwait(&signals, nullptr, &interval);
    if (signal == SIGINT || signal == SIGTERM) {
      return;
    }
    if (node.removed()) {
      log::Error("the end", {{"why", std::string(cluster::kRemovedText)}});
      return;
    }
    if (node.certificate_file().empty() || (signal != SIGHUP && changed() == loaded)) {
      continue;
    }
    auto now = changed();
    Status status = node.ReloadCertificate();
    if (status.ok()) {
      loaded = now;
    }
    if (status.ok() || now != tried) {
      log::Info("certificate read again", {{"result", status.ToString()}});
    }
    tried = now;
  }
}

int RunStart(const StartOptions& options) {
  Settings settings;
  Status status = LoadSettings(options, settings);
  if (status.ok()) {
    status = FitFileLimit(settings);
  }
  if (!status.ok()) {
    std::fprintf(stderr, "orrery: %s\n", status.message().c_str());
    return 2;
  }
  log::SetLevel(settings.log_level);
  sigset_t signals = ServerSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  Node node(settings, StopWanted);
  if (Status status = node.Start(); !status.ok()) {
    std::fprintf(stderr, "orrery: cannot start: %s\n", status.message().c_str());
    return 1;
  }
  std::string cassandra = std::to_string(node.cassandra_port());
  if (IsCluster(settings)) {
    log::Info("ready", {{"endpoint", node.endpoint()},
                        {"cassandra", cassandra},
                        {"cluster", node.cluster_address()},
                        {"data", settings.data},
                        {"version", ORRERY_VERSION}});
  } else {
    log::Info("ready", {{"endpoint", node.endpoint()},
                        {"cassandra", cassandra},
                        {"data", settings.data},
                        {"version", ORRERY_VERSION}});
  }
  WaitForTheEnd(node, signals);
  log::Info("stopping");
  node.Stop();
  return node.removed() ? 1 : 0;
}

void AddStart(CLI::App& app, StartOptions& start_options, int& code) {
  CLI::App* start = app.add_subcommand("start", "Start a server in the foreground");
  start->add_option("--config", start_options.config, "TOML file with settings")
      ->check(CLI::ExistingFile);
  start->add_option("--data", start_options.data, "Data folder");
  start->add_option("--listen", start_options.listen, "Address to listen on");
  start->add_option("--port", start_options.port, "Port of the SQL API");
  start->add_option("--cluster-listen", start_options.cluster_listen,
                    "host:port for the other nodes of a cluster");
  start->add_option("--join", start_options.join,
                    "host:port of a member: become part of its cluster");
  start->add_option("--set", start_options.sets, "section.key=value; may be repeated");
  start->add_flag(
      "--dev", start_options.dev,
      "For a laptop or CI: loopback only, plain HTTP, the emulator's publicly known key");
  start->footer(DescribeSettings());
  start->callback([&start_options, &code] { code = RunStart(start_options); });
}

// A subcommand that talks to a server (`asks`) or to its files.
CLI::App* AddCommand(CLI::App& parent, CommandOptions& options, int& code, const char* name,
                     const char* help, int (*run)(const CommandOptions&), bool asks = true) {
  CLI::App* sub = parent.add_subcommand(name, help);
  sub->add_option("--data", options.data, "Data folder of the server")
      ->envname("ORRERY_SERVER_DATA");
  if (asks) {
    sub->add_option("--endpoint", options.endpoint,
                    "URL of the server; else what the data folder says");
  }
  sub->callback([&code, &options, run] { code = run(options); });
  return sub;
}

void AddThroughput(CLI::App& app, CommandOptions& options, int& code) {
  CLI::App* throughput = app.add_subcommand(
      "throughput", "What a container may spend: show it, set buckets, spread it over partitions");
  throughput->require_subcommand(1);
  CLI::App* show = AddCommand(*throughput, options, code, "show",
                              "Show the throughput of a container", RunThroughputShow);
  CLI::App* buckets = AddCommand(
      *throughput, options, code, "buckets",
      "Set the throughput buckets of a container, each at most a percentage of it; others go",
      RunThroughputBuckets);
  CLI::App* redistribute = AddCommand(
      *throughput, options, code, "redistribute",
      "Give partitions another throughput; the container has the sum", RunThroughputRedistribute);
  for (CLI::App* sub : {show, buckets, redistribute}) {
    sub->add_option("container", options.container, "DATABASE/CONTAINER")->required();
  }
  buckets->add_option("buckets", options.amounts, "BUCKET=PERCENT; buckets are numbered 1 to 5");
  buckets->add_option("--default", options.default_bucket, "The bucket of requests that name none");
  buckets->add_flag("--none", options.none, "Take all buckets away");
  redistribute->add_option("partitions", options.amounts,
                           "PARTITION=RU; partitions as `orrery status` shows them");
  redistribute->add_flag("--equal", options.equal, "The same for all partitions");
}

// What the system does to partitions by itself, by hand.
void AddPartitions(CLI::App& app, CommandOptions& options, int& code) {
  auto command = [&](CLI::App& parent, const char* name, const char* help,
                     int (*run)(const CommandOptions&)) {
    return AddCommand(parent, options, code, name, help, run);
  };
  CLI::App* partition = app.add_subcommand("partition", "Split, merge or move a partition");
  partition->require_subcommand(1);
  CLI::App* split = command(*partition, "split", "Split it in two", RunPartitionSplit);
  split->add_option("--at", options.at,
                    "Where the second one begins, in hex; else where it halves the data");
  CLI::App* merge = command(*partition, "merge", "Merge it with the one behind it on the ring",
                            RunPartitionMerge);
  CLI::App* move =
      command(*partition, "move", "Move its replica from one node to another", RunPartitionMove);
  move->add_option("--from", options.from, "The node that gives it away")->required();
  move->add_option("--to", options.to, "The node that takes it")->required();
  for (CLI::App* change : {split, merge, move}) {
    change->add_option("id", options.partition, "Its id, as `orrery status` shows it")->required();
  }
  CLI::App* balancer =
      app.add_subcommand("balancer", "What splits, merges and moves partitions by itself");
  balancer->require_subcommand(1);
  command(*balancer, "pause", "Leave partitions as they are", RunBalancerPause);
  command(*balancer, "resume", "Go on", RunBalancerResume);
}

void AddCommands(CLI::App& app, CommandOptions& options, int& code) {
  auto command = [&](CLI::App& parent, const char* name, const char* help,
                     int (*run)(const CommandOptions&), bool asks = true) {
    return AddCommand(parent, options, code, name, help, run, asks);
  };
  CLI::App* status =
      command(app, "status",
              "Show the nodes of a cluster, databases, containers and their partitions", RunStatus);
  status->add_flag("--json", options.json, "As JSON");
  status->add_flag("--watch", options.watch, "Again every second, until it is interrupted");
  CLI::App* partitions = command(
      app, "partitions",
      "Show the partitions of a container: ranges, sizes, RU/s, and their largest and hottest keys",
      RunPartitions);
  partitions->add_option("container", options.container, "DATABASE/CONTAINER")->required();
  partitions->add_flag("--json", options.json, "As JSON");
  CLI::App* node = app.add_subcommand("node", "The nodes of a cluster; ask any of them");
  node->require_subcommand(1);
  CLI::App* list = command(*node, "list", "Show the nodes", RunNodeList);
  list->add_flag("--json", options.json, "As JSON");
  CLI::App* drain =
      command(*node, "drain", "Have all replicas of a node move to others", RunNodeDrain);
  CLI::App* undrain =
      command(*node, "undrain", "Take a drain back: the node takes replicas again", RunNodeUndrain);
  CLI::App* remove = command(*node, "remove",
                             "Take a node out of the cluster, for good: one that "
                             "is drained, or that does not come back",
                             RunNodeRemove);
  for (CLI::App* change : {drain, undrain, remove}) {
    change->add_option("id", options.node, "Its id, as `orrery node list` shows it")->required();
  }
  AddPartitions(app, options, code);
  CLI::App* keys =
      command(app, "keys", "Print the account keys, or make a new one without a restart", RunKeys);
  keys->add_option("--regenerate", options.regenerate,
                   "primary, secondary, primaryReadOnly or secondaryReadOnly");
  CLI::App* backup =
      command(app, "backup", "Take a consistent copy of a running server", RunBackup);
  backup
      ->add_option("folder", options.folder,
                   "A folder that does not exist yet, on the server's machine")
      ->required();
  CLI::App* restore =
      command(app, "restore", "Make a data folder from a backup", RunRestore, false);
  restore->add_option("folder", options.folder, "The backup")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_subcommand("version", "Print the version")->callback([] {
    std::printf("orrery %s\n", ORRERY_VERSION);
  });
}

void AddSimulate(CLI::App& app, SimulateOptions& options, int& code) {
  CLI::App* simulate = app.add_subcommand(
      "simulate", "Show what a partition key does to the partitions and nodes of a cluster");
  simulate
      ->add_option("--keys", options.keys,
                   "How data and requests are spread over the values of the partition key: "
                   "uniform, zipf, hot-tenant, time or growing")
      ->capture_default_str();
  simulate->add_option("--values", options.key_count, "How many values it has")
      ->capture_default_str();
  simulate->add_option("--size", options.size, "All data at the end: 500GB, 10TB, 30PB")
      ->capture_default_str();
  simulate->add_option("--demand", options.demand, "RU/s of requests")->capture_default_str();
  simulate->add_option("--throughput", options.throughput, "RU/s of the container")
      ->capture_default_str();
  simulate->add_option("--nodes", options.nodes, "At the begin")->capture_default_str();
  simulate->add_option("--zones", options.zones, "Node n is in zone n mod zones")
      ->capture_default_str();
  simulate->add_option("--node-size", options.node_size,
                       "What a node can hold; else half as much again as it will need");
  simulate->add_option("--days", options.days, "How long")->capture_default_str();
  simulate->add_option("--event", options.events,
                       "DAY:lose=N, DAY:add=N (nodes) or DAY:throughput=N; may be repeated");
  simulate->add_option("--seed", options.seed, "For other places of the values")
      ->capture_default_str();
  simulate->add_option("--svg", options.svg, "A file for a picture of it");
  simulate->add_flag("--json", options.json, "Every day, as JSON");
  simulate->callback([&options, &code] { code = RunSimulate(options); });
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Orrery: a multi-model database that behaves as the Azure Cosmos DB documents describe.");
  app.require_subcommand(1);
  int code = 0;
  StartOptions start_options;
  AddStart(app, start_options, code);
  CommandOptions options;
  AddCommands(app, options, code);
  AddThroughput(app, options, code);
  SimulateOptions simulate_options;
  AddSimulate(app, simulate_options, code);
  CLI11_PARSE(app, argc, argv);
  return code;
}

}  // namespace
}  // namespace orrery::server

int main(int argc, char** argv) { return orrery::server::Main(argc, argv); }
