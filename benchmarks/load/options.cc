#include "load/options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <string_view>
#include <vector>

namespace orrery::load {
namespace {

constexpr std::string_view kCommands[] = {"http",       "sql-setup", "sql-read",   "sql-write",
                                          "sql-upsert", "sql-mixed", "etcd-setup", "etcd-read",
                                          "etcd-write", "cql-setup", "cql-read",   "cql-write",
                                          "cql-insert", "cql-mixed", "cql-scan"};
// The server accepts a signature for 15 minutes, and all are made before the run.
constexpr double kSecondsMax = 600;

struct Option {
  std::string_view name;
  std::string_view what;
  std::function<bool(std::string_view)> set;  // false: not such a value
};

template <typename T>
std::function<bool(std::string_view)> Number(T& value, T least) {
  return [&value, least](std::string_view text) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= least;
  };
}

std::function<bool(std::string_view)> Text(std::string& value) {
  return [&value](std::string_view text) {
    value = text;
    return !text.empty();
  };
}

std::function<bool(std::string_view)> List(std::vector<int>& values, int least) {
  return [&values, least](std::string_view text) {
    for (size_t comma = 0; comma != std::string_view::npos;) {
      comma = text.find(',');
      if (!Number<int>(values.emplace_back(), least)(text.substr(0, comma))) {
        return false;
      }
      text.remove_prefix(comma == std::string_view::npos ? 0 : comma + 1);
    }
    return true;
  };
}

std::vector<Option> OptionTable(Options& options) {
  SqlOptions& sql = options.sql;
  auto indexing = [&sql](std::string_view text) {
    sql.index = text == "default";
    return sql.index || text == "none";
  };
  return {
      {"--host", "name or IPv4 address of the server (127.0.0.1)", Text(sql.endpoint.host)},
      {"--port", "(8081)", Number<uint16_t>(sql.endpoint.port, 1)},
      {"--path", "http: what to get (/)", Text(options.path)},
      {"--key", "account key in base64 (the emulator's)", Text(sql.key)},
      {"--database", "(bench)", Text(sql.database)},
      {"--container", "(items)", Text(sql.container)},
      {"--items", "size of the data set (100000)", Number<uint64_t>(sql.items, 1)},
      {"--keys", "different partition keys (one per item)", Number<uint64_t>(sql.keys, 1)},
      {"--bytes", "size of an item (1024)", Number<size_t>(sql.item_bytes, 1)},
      {"--throughput", "sql-setup: RU/s of the container (1000000)",
       Number<uint64_t>(sql.throughput, 1)},
      {"--indexing", "sql-setup: none or default (none)", indexing},
      {"--row-bytes", "cql-setup, cql-scan: value in each row of the table for scans (100)",
       Number<size_t>(options.row_bytes, 1)},
      {"--consistency", "cql: the number of a level (10: LOCAL_ONE; 6: LOCAL_QUORUM; 8: SERIAL)",
       Number<uint16_t>(options.consistency, 0)},
      {"--read-share", "sql-mixed, cql-mixed: share of reads, the rest upserts (0.5)",
       Number<double>(options.read_share, 0)},
      {"--connections", "busy connections, over all threads (32)",
       Number<int>(options.connections, 1)},
      {"--idle", "further connections that only stay open (0)", Number<int>(options.idle, 0)},
      {"--threads", "threads of the generator (1)", Number<int>(options.threads, 1)},
      {"--seconds", "measured time, at most 600 (10)", Number<double>(options.seconds, 0.1)},
      {"--warmup", "seconds before it (2)", Number<double>(options.warmup, 0)},
      {"--rate", "requests a second, open loop (0: closed loop)", Number<double>(options.rate, 0)},
      {"--pid", "processes of the server, a,b,c; their CPU and memory are summed",
       List(options.pids, 1)},
      {"--ports", "spread the load over these ports of the host, a,b,c (--port)",
       List(options.ports, 1)},
      {"--metrics-port", "where GET /metrics tells the allocations (sql: --port)",
       Number<uint16_t>(options.metrics_port, 1)},
      {"--streams", "etcd, cql: calls at once on each connection (4)",
       Number<int>(options.streams, 1)},
      {"--kill", "end this process (-9) after the warm-up, tell when writes are back",
       Number<int>(options.kill, 1)},
  };
}

Status Validate(const Options& options) {
  if (std::ranges::find(kCommands, options.command) == std::end(kCommands)) {
    return Status(Code::kInvalidArgument, "unknown command: " + options.command);
  }
  if (options.seconds + options.warmup > kSecondsMax) {
    return Status(Code::kInvalidArgument, "--seconds and --warmup are more than 600 together");
  }
  const bool streams = options.command.starts_with("etcd") || options.command.starts_with("cql");
  if (streams && (options.rate > 0 || options.idle > 0)) {
    return Status(Code::kInvalidArgument, "etcd and cql have no --rate and no --idle");
  }
  if (options.threads > options.connections) {
    return Status(Code::kInvalidArgument, "more --threads than --connections");
  }
  return Status::Ok();
}

}  // namespace

std::string Usage() {
  Options defaults;
  std::string text = "usage: load <command> [--option value]...\n\ncommands:";
  for (std::string_view command : kCommands) {
    text += ' ';
    text += command;
  }
  text += "\n\n";
  for (const Option& option : OptionTable(defaults)) {
    text += "  ";
    text += option.name;
    text.append(16 - option.name.size(), ' ');
    text += option.what;
    text += '\n';
  }
  return text + "  --json          print one line of JSON\n";
}

Result<Options> ParseOptions(int argc, char** argv) {
  Options options;
  if (argc < 2) {
    return Error(Code::kInvalidArgument, "no command given");
  }
  options.command = argv[1];
  std::vector<Option> table = OptionTable(options);
  for (int i = 2; i < argc; ++i) {
    std::string_view name = argv[i];
    if (name == "--json") {
      options.json = true;
      continue;
    }
    auto option = std::ranges::find(table, name, &Option::name);
    if (option == table.end() || i + 1 == argc || !option->set(argv[i + 1])) {
      return Error(Code::kInvalidArgument,
                   "not an option, or without a valid value: " + std::string(name));
    }
    ++i;
  }
  ORRERY_TRY_STATUS(Validate(options));
  for (int port : options.ports) {
    options.endpoints.push_back({options.sql.endpoint.host, static_cast<uint16_t>(port)});
  }
  if (options.endpoints.empty()) {
    options.endpoints.push_back(options.sql.endpoint);
  }
  return options;
}

}  // namespace orrery::load
