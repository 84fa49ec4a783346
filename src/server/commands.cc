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
