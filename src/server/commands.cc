#include "server/commands.h"

#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/bytes.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "server/data_folder.h"
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
  std::string date = HttpDate();
  std::string text = Lower(method) + "\norrery\n" + path + "\n" + Lower(date) + "\n\n";
  std::string signature = ToBase64(net::HmacSha256(keys.keys[0], text));
  std::string escaped;
  for (char c : signature) {
    escaped += c == '+' ? "%2B" : c == '/' ? "%2F" : c == '=' ? "%3D" : std::string(1, c);
  }
  net::HttpCall call{.method = method,
                     .url = endpoint + (endpoint.ends_with('/') ? "" : "/") + path,
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

std::string Bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

double Number(Value object, std::string_view name) {
  Value value = types::Member(object, name);
  return value.kind() == types::Kind::kNumber ? value.number() : 0;
}

std::string Text(Value object, std::string_view name) {
  Value value = types::Member(object, name);
  return value.kind() == types::Kind::kString ? std::string(value.string()) : std::string();
}

void PrintContainer(const std::string& database, Value container) {
  Value partitions = types::Member(container, "partitions");
  double throughput = Number(container, "throughput");
  std::printf("\n%s/%s  ", database.c_str(), Text(container, "id").c_str());
  if (throughput == 0) {
    std::printf("shares its database's RU/s\n");
  } else {
    std::printf("%.0f RU/s%s\n", throughput,
                types::Member(container, "autoscale").kind() == types::Kind::kBool &&
                        types::Member(container, "autoscale").boolean()
                    ? " (autoscale)"
                    : "");
  }
  std::printf("  %-10s %-34s %12s %12s %10s %10s %10s\n", "partition", "from", "items", "size",
              "RU/s", "used", "429s");
  for (types::ValueIterator at(partitions.bson()); at.Next();) {
    Value partition = at.value();
    std::string from = Text(partition, "min");
    std::printf("  %-10s %-34s %12.0f %12s %10.0f %10.2f %10.0f\n", Text(partition, "id").c_str(),
                from.empty() ? "(start)" : from.c_str(), Number(partition, "items"),
                Bytes(Number(partition, "bytes")).c_str(), Number(partition, "share"),
                Number(partition, "usedLastSecond"), Number(partition, "throttled"));
  }
}

}  // namespace

int RunStatus(const CommandOptions& options) {
  auto answer = Ask(options, "GET", "_orrery/status", "");
  if (!answer) {
    return Fail(answer.error());
  }
  if (options.json) {
    std::printf("%s\n", answer->c_str());
    return 0;
  }
  auto status = types::Document::FromJson(*answer);
  if (!status) {
    return Fail(status.error());
  }
  Value root = status->root();
  std::printf(
      "orrery %s at %s, %s\n", Text(root, "version").c_str(), Text(root, "endpoint").c_str(),
      types::Member(root, "healthy").boolean() ? "healthy" : "LOG FAILED: restart to take writes");
  if (types::Member(root, "diskFull").boolean()) {
    std::printf("DISK NEARLY FULL: writes are refused\n");
  }
  for (types::ValueIterator database(types::Member(root, "databases").bson()); database.Next();) {
    std::string name = Text(database.value(), "id");
    Value containers = types::Member(database.value(), "containers");
    bool any = false;
    for (types::ValueIterator container(containers.bson()); container.Next(); any = true) {
      PrintContainer(name, container.value());
    }
    if (!any) {
      std::printf("\n%s  (no containers)\n", name.c_str());
    }
  }
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
