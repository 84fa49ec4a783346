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

// Until SIGINT or SIGTERM. A changed certificate or key is taken when it is seen, or at once on
// SIGHUP; one that does not fit yet (its other half is still to come) is tried again.
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
  Node node(settings);
  if (Status status = node.Start(); !status.ok()) {
    std::fprintf(stderr, "orrery: cannot start: %s\n", status.message().c_str());
    return 1;
  }
  log::Info("ready",
            {{"endpoint", node.endpoint()}, {"data", settings.data}, {"version", ORRERY_VERSION}});
  WaitForTheEnd(node, signals);
  log::Info("stopping");
  node.Stop();
  return 0;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Orrery: a multi-model database that behaves as the Azure Cosmos DB documents describe.");
  app.require_subcommand(1);
  int code = 0;
  StartOptions start_options;
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
  start->callback([&] { code = RunStart(start_options); });

  CommandOptions options;
  auto command = [&](const char* name, const char* help, int (*run)(const CommandOptions&)) {
    CLI::App* sub = app.add_subcommand(name, help);
    sub->add_option("--data", options.data, "Data folder of the server")
        ->envname("ORRERY_SERVER_DATA");
    sub->callback([&code, &options, run] { code = run(options); });
    return sub;
  };
  CLI::App* status =
      command("status", "Show databases, containers and their partitions", RunStatus);
  status->add_option("--endpoint", options.endpoint,
                     "URL of the server; else what the data folder says");
  status->add_flag("--json", options.json, "As JSON");
  CLI::App* keys =
      command("keys", "Print the account keys, or make a new one without a restart", RunKeys);
  keys->add_option("--regenerate", options.regenerate,
                   "primary, secondary, primaryReadOnly or secondaryReadOnly");
  keys->add_option("--endpoint", options.endpoint,
                   "URL of the server; else what the data folder says");
  CLI::App* backup = command("backup", "Take a consistent copy of a running server", RunBackup);
  backup
      ->add_option("folder", options.folder,
                   "A folder that does not exist yet, on the server's machine")
      ->required();
  backup->add_option("--endpoint", options.endpoint,
                     "URL of the server; else what the data folder says");
  CLI::App* restore = command("restore", "Make a data folder from a backup", RunRestore);
  restore->add_option("folder", options.folder, "The backup")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_subcommand("version", "Print the version")->callback([] {
    std::printf("orrery %s\n", ORRERY_VERSION);
  });

  CLI11_PARSE(app, argc, argv);
  return code;
}

}  // namespace
}  // namespace orrery::server

int main(int argc, char** argv) { return orrery::server::Main(argc, argv); }
