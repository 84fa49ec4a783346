#include "server/commands.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <thread>

#include <unistd.h>

#include "base/bytes.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "server/data_folder.h"
#include "server/print_status.h"
#include "types/document.h"

namespace orrery::server {

using types::Value;

namespace {

int Fail(const Status& status) {
  std::fprintf(stderr, "orrery: %s\n", status.message().c_str());
  return 1;
}

std::string HttpDate() {
  char text[40];
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return text;
}

std::string Lower(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

// One signed request to the admin endpoint `path`.
Result<std::string> Ask(const CommandOptions& options, const std::string& method,
                        const std::string& path, const std::string& body) {
  std::string endpoint = options.endpoint;
  if (endpoint.empty()) {
    ORRERY_TRY(endpoint, ReadServerFile(options.data));
  }
  ORRERY_TRY(model::AccountKeys keys, ReadKeysFile(options.data));
  // Names are signed as they are, and sent so that any of them fits into a path.
  std::string encoded;
  for (char c : path) {
    auto byte = static_cast<unsigned char>(c);
    bool plain = std::isalnum(byte) != 0 || std::string_view("/-_.~").contains(c);
    encoded += plain ? std::string(1, c) : "%" + ToHex(std::string_view(&c, 1));
  }
  std::string date = HttpDate();
  std::string text = Lower(method) + "\norrery\n" + path + "\n" + Lower(date) + "\n\n";
  std::string signature = ToBase64(net::HmacSha256(keys.keys[0], text));
  std::string escaped;
  for (char c : signature) {
    escaped += c == '+' ? "%2B" : c == '/' ? "%2F" : c == '=' ? "%3D" : std::string(1, c);
  }
  net::HttpCall call{.method = method,
                     .url = endpoint + (endpoint.ends_with('/') ? "" : "/") + encoded,
                     .headers = {{"x-ms-date", date},
                                 {"authorization", "type%3Dmaster%26ver%3D1.0%26sig%3D" + escaped}},
                     .body = body};
  std::string certificate = options.data + "/certificate.pem";
  if (std::filesystem::exists(certificate)) {
    call.trusted_certificate = certificate;
  }
  ORRERY_TRY(net::HttpAnswer answer, net::CallHttp(call));
  if (answer.status != 200) {
    auto parsed = types::Document::FromJson(answer.body);
    Value message = parsed ? parsed->Get("message") : Value();
    return Error(Code::kUnavailable, message.kind() == types::Kind::kString
                                         ? std::string(message.string())
                                         : "the server answered " + std::to_string(answer.status));
  }
  return answer.body;
}

}  // namespace

namespace {

int ShowStatus(const CommandOptions& options) {
  auto answer = Ask(options, "GET", "_orrery/status", "");
  if (!answer) {
    return Fail(answer.error());
  }
  if (options.watch && isatty(STDOUT_FILENO)) {
    std::printf("\x1b[H\x1b[2J");  // from the top of an empty screen
  }
  if (options.json) {
    std::printf("%s\n", answer->c_str());
    return 0;
  }
  auto status = types::Document::FromJson(*answer);
  if (!status) {
    return Fail(status.error());
  }
  PrintStatus(status->root());
  return 0;
}

}  // namespace

int RunStatus(const CommandOptions& options) {
  int code = ShowStatus(options);
  while (options.watch) {  // also while the server is away
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));
    code = ShowStatus(options);
  }
  return code;
}

int RunPartitions(const CommandOptions& options) {
  if (options.container.find('/') == std::string::npos) {
    return Fail(Status(Code::kInvalidArgument,
                       "wanted DATABASE/CONTAINER, found '" + options.container + "'"));
  }
  auto answer = Ask(options, "GET", "_orrery/partitions/" + options.container, "");
  if (!answer) {
    return Fail(answer.error());
  }
  if (options.json) {
    std::printf("%s\n", answer->c_str());
    return 0;
  }
  auto partitions = types::Document::FromJson(*answer);
  if (!partitions) {
    return Fail(partitions.error());
  }
  PrintPartitions(partitions->root());
  return 0;
}

int RunKeys(const CommandOptions& options) {
  if (!options.regenerate.empty()) {
    std::string body = "{\"key\":";
    types::AppendJsonString(options.regenerate, body);
    if (auto done = Ask(options, "POST", "_orrery/keys/regenerate", body + "}"); !done) {
      return Fail(done.error());
    }
  }
  auto keys = ReadKeysFile(options.data);
  if (!keys) {
    return Fail(keys.error());
  }
  std::printf("%s", KeysJson(*keys).c_str());
  return 0;
}

int RunNodeList(const CommandOptions& options) {
  auto answer = Ask(options, "GET", "_orrery/nodes", "");
  if (!answer) {
    return Fail(answer.error());
  }
  if (options.json) {
    std::printf("%s\n", answer->c_str());
    return 0;
  }
  auto nodes = types::Document::FromJson(*answer);
  if (!nodes) {
    return Fail(nodes.error());
  }
  PrintNodes(nodes->Get("nodes"));
  return 0;
}

int RunNodeDrain(const CommandOptions& options) {
  std::string path = "_orrery/nodes/" + std::to_string(options.node);
  if (auto done = Ask(options, "POST", path + "/drain", ""); !done) {
    return Fail(done.error());
  }
  std::printf(
      "node %u is being drained: its replicas move to other nodes. When `orrery node list` shows 0 "
      "replicas on it, stop it, then: orrery node remove %u\n",
      options.node, options.node);
  return 0;
}

int RunNodeUndrain(const CommandOptions& options) {
  std::string path = "_orrery/nodes/" + std::to_string(options.node);
  if (auto done = Ask(options, "POST", path + "/undrain", ""); !done) {
    return Fail(done.error());
  }
  std::printf("node %u takes replicas again\n", options.node);
  return 0;
}

int RunNodeRemove(const CommandOptions& options) {
  std::string path = "_orrery/nodes/" + std::to_string(options.node);
  if (auto done = Ask(options, "POST", path + "/remove", ""); !done) {
    return Fail(done.error());
  }
  std::printf(
      "node %u is removed, for good: it can come back only as a new node, with an empty "
      "data folder\n",
      options.node);
  return 0;
}

namespace {

int ChangePartition(const CommandOptions& options, const std::string& action,
                    const std::string& body, const char* done_text) {
  std::string path = "_orrery/partitions/" + std::to_string(options.partition) + "/" + action;
  if (auto done = Ask(options, "POST", path, body); !done) {
    return Fail(done.error());
  }
  std::printf("partition %s %s; `orrery status` shows how it stands\n",
              std::to_string(options.partition).c_str(), done_text);
  return 0;
}

int ChangeBalancer(const CommandOptions& options, const std::string& action,
                   const char* done_text) {
  if (auto done = Ask(options, "POST", "_orrery/balancer/" + action, ""); !done) {
    return Fail(done.error());
  }
  std::printf("%s\n", done_text);
  return 0;
}

struct ContainerName {
  std::string database;
  std::string container;
};

Result<ContainerName> NameOf(const CommandOptions& options) {
  size_t slash = options.container.find('/');
  if (slash == std::string::npos) {
    return Error(Code::kInvalidArgument, "name the container as DATABASE/CONTAINER");
  }
  return ContainerName{options.container.substr(0, slash), options.container.substr(slash + 1)};
}

// `[{"id":"1","<amount>":"20"}]` of 1=20; the server looks whether they are numbers.
Result<std::string> ListOf(const std::vector<std::string>& amounts, std::string_view amount) {
  std::string list = "[";
  for (const std::string& text : amounts) {
    size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return Error(Code::kInvalidArgument, "'" + text + "' is not of the form NUMBER=AMOUNT");
    }
    list += list.size() == 1 ? "{\"id\":" : ",{\"id\":";
    types::AppendJsonString(text.substr(0, equals), list);
    list += ",\"" + std::string(amount) + "\":";
    types::AppendJsonString(text.substr(equals + 1), list);
    list += '}';
  }
  return list + "]";
}

// Sends a change of the container's throughput, and shows what has become of it.
int ChangeThroughput(const CommandOptions& options, const std::string& what,
                     const std::string& members) {
  auto name = NameOf(options);
  if (!name) {
    return Fail(name.error());
  }
  std::string body = "{\"database\":";
  types::AppendJsonString(name->database, body);
  body += ",\"container\":";
  types::AppendJsonString(name->container, body);
  body += members + "}";
  if (auto done = Ask(options, "POST", "_orrery/throughput/" + what, body); !done) {
    return Fail(done.error());
  }
  return RunThroughputShow(options);
}

}  // namespace

int RunPartitionSplit(const CommandOptions& options) {
  std::string body = "{";
  if (!options.at.empty()) {
    body += "\"at\":";
    types::AppendJsonString(options.at, body);
  }
  return ChangePartition(options, "split", body + "}", "is being split");
}

int RunPartitionMerge(const CommandOptions& options) {
  return ChangePartition(options, "merge", "", "is being merged with the one behind it");
}

int RunPartitionMove(const CommandOptions& options) {
  std::string body =
      "{\"from\":" + std::to_string(options.from) + ",\"to\":" + std::to_string(options.to) + "}";
  return ChangePartition(options, "move", body, "is being moved");
}

int RunBalancerPause(const CommandOptions& options) {
  return ChangeBalancer(options, "pause",
                        "nothing is split, merged or moved any more unless you ask for it");
}

int RunBalancerResume(const CommandOptions& options) {
  return ChangeBalancer(options, "resume", "partitions are split, merged and moved as needed");
}

int RunThroughputShow(const CommandOptions& options) {
  auto name = NameOf(options);
  if (!name) {
    return Fail(name.error());
  }
  auto answer = Ask(options, "GET", "_orrery/status", "");
  if (!answer) {
    return Fail(answer.error());
  }
  auto status = types::Document::FromJson(*answer);
  if (!status) {
    return Fail(status.error());
  }
  if (!PrintThroughput(status->root(), name->database, name->container)) {
    return Fail(Status(Code::kNotFound, "there is no container " + options.container));
  }
  return 0;
}

int RunThroughputBuckets(const CommandOptions& options) {
  if (options.amounts.empty() != options.none) {
    return Fail(Status(Code::kInvalidArgument, "name buckets, as 1=20, or say --none"));
  }
  auto list = ListOf(options.amounts, "percent");
  if (!list) {
    return Fail(list.error());
  }
  std::string members = ",\"buckets\":" + *list;
  if (options.default_bucket != 0) {
    members += ",\"default\":" + std::to_string(options.default_bucket);
  }
  return ChangeThroughput(options, "buckets", members);
}

int RunThroughputRedistribute(const CommandOptions& options) {
  if (options.amounts.empty() != options.equal) {
    return Fail(Status(Code::kInvalidArgument, "name partitions, as 3=5000, or say --equal"));
  }
  auto list = ListOf(options.amounts, "throughput");
  if (!list) {
    return Fail(list.error());
  }
  return ChangeThroughput(options, "redistribute",
                          options.equal ? ",\"policy\":\"Equal\"" : ",\"partitions\":" + *list);
}

int RunBackup(const CommandOptions& options) {
  std::error_code error;
  std::string folder = std::filesystem::absolute(options.folder, error);
  std::string body = "{\"folder\":";
  types::AppendJsonString(folder, body);
  if (auto done = Ask(options, "POST", "_orrery/backup", body + "}"); !done) {
    return Fail(done.error());
  }
  std::printf("backup written to %s\n", folder.c_str());
  return 0;
}

int RunRestore(const CommandOptions& options) {
  if (Status status = RestoreBackup(options.folder, options.data); !status.ok()) {
    return Fail(status);
  }
  std::printf("restored into %s; start it with: orrery start --data %s\n", options.data.c_str(),
              options.data.c_str());
  return 0;
}

}  // namespace orrery::server
