// The admin endpoints: /healthz for anyone, /metrics for this machine, and /_orrery/... for the
// commands of the program, signed with an account key like a request of the SQL API (type "orrery",
// link = the path).
#include <filesystem>

#include "base/log.h"
#include "server/data_folder.h"
#include "server/node.h"
#include "types/document.h"

namespace orrery::server {

using runtime::Task;

namespace {

void AnswerJson(net::HttpReply& reply, int status, std::string body) {
  reply.status = status;
  reply.Add("content-type", "application/json");
  reply.body = std::move(body);
}

void AnswerError(net::HttpReply& reply, int status, std::string_view message) {
  std::string body = "{\"code\":\"" + std::to_string(status) + "\",\"message\":";
  types::AppendJsonString(message, body);
  AnswerJson(reply, status, body + "}");
}

std::string TextOf(std::string_view body, std::string_view name) {
  auto parsed = types::Document::FromJson(body);
  if (!parsed || parsed->Get(name).kind() != types::Kind::kString) {
    return "";
  }
  return std::string(parsed->Get(name).string());
}

void Field(std::string& out, std::string_view name, const std::string& value) {
  out += (out.back() == '{' ? "\"" : ",\"") + std::string(name) + "\":" + value;
}

std::string Quoted(std::string_view text) {
  std::string out;
  types::AppendJsonString(text, out);
  return out;
}

}  // namespace

Task<> Node::Handle(const net::HttpRequest& request, net::HttpReply& reply) {
  std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/healthz") {
    bool healthy = instance_->store().healthy();
    AnswerJson(reply, healthy ? 200 : 503,
               healthy ? "{\"status\":\"ok\"}" : "{\"status\":\"log failed\"}");
    co_return;
  }
  if (path == "/metrics" || path.starts_with("/_orrery/")) {
    co_await HandleAdmin(request, reply);
    co_return;
  }
  co_await service_->Handle(request, reply);
}

Task<> Node::HandleAdmin(const net::HttpRequest& request, net::HttpReply& reply) {
  std::string_view path = request.target.substr(1, request.target.find('?') - 1);
  if (path == "metrics") {
    if (!request.loopback && !settings_.metrics_public) {
      AnswerError(reply, 403,
                  "metrics are for clients on this machine (setting server.metrics_public)");
      co_return;
    }
    reply.Add("content-type", "text/plain; version=0.0.4");
    reply.body = metrics_.Render(*instance_->catalog().view(), instance_->replicas(), clock_,
                                 instance_->store(), http_->connections());
    co_return;
  }
  bool write = request.method != "GET";
  if (Status allowed = service_->Authorize(request, "orrery", path, write); !allowed.ok()) {
    AnswerError(reply, allowed.code() == Code::kForbidden ? 403 : 401, allowed.message());
    co_return;
  }
  Status status(Code::kNotFound, "there is no such admin endpoint");
  if (path == "_orrery/status" && request.method == "GET") {
    AnswerJson(reply, 200, StatusJson());
    co_return;
  }
  if (path == "_orrery/keys/regenerate" && request.method == "POST") {
    status = co_await RegenerateKey(request.body);
  } else if (path == "_orrery/backup" && request.method == "POST") {
    status = co_await Backup(request.body);
  }
  if (!status.ok()) {
    AnswerError(reply, status.code() == Code::kNotFound ? 404 : 400, status.message());
    co_return;
  }
  AnswerJson(reply, 200, "{}");
}

Task<Status> Node::RegenerateKey(std::string_view body) {
  auto name = ParseKeyName(TextOf(body, "key"));
  if (!name) {
    co_return Status(Code::kInvalidArgument,
                     "'key' must be primary, secondary, primaryReadOnly or secondaryReadOnly");
  }
  if (settings_.dev && *name == model::KeyName::kPrimary) {
    co_return Status(Code::kInvalidArgument,
                     "with --dev the primary key is the emulator's and cannot be changed");
  }
  std::vector<model::KeyChange> keys = {{.name = *name, .key = RandomKey(), .only_over = {}}};
  Status status = co_await ChangeKeys(std::move(keys));
  if (status.ok()) {
    log::Info("account key regenerated", {{"key", std::string(KeyText(*name))}});
  }
  co_return status;
}

Task<Status> Node::Backup(std::string_view body) {
  std::string folder = TextOf(body, "folder");
  if (!folder.starts_with('/')) {
    co_return Status(Code::kInvalidArgument,
                     "'folder' must be an absolute path on the server's machine");
  }
  auto take = [this, folder]() -> Status {
    std::error_code error;
    if (std::filesystem::exists(folder, error) || error) {
      return Status(Code::kAlreadyExists,
                    folder + (error ? ": " + error.message() : " exists already"));
    }
    ORRERY_RETURN_IF_ERROR(MakeFolder(folder));
    ORRERY_RETURN_IF_ERROR(instance_->store().Checkpoint(folder));
    // Last: a backup that was cut short has no FORMAT and cannot be restored.
    return WriteFormat(folder);
  };
  co_return co_await runtime::OnBlocking(*workers_, take);
}

std::string Node::StatusJson() const {
  auto view = instance_->catalog().view();
  Instant now = clock_.Now();
  std::string out = "{\"version\":\"" ORRERY_VERSION "\",\"endpoint\":" + Quoted(endpoint_) +
                    ",\"healthy\":" + (instance_->store().healthy() ? "true" : "false") +
                    ",\"diskFull\":" + (instance_->store().disk_full() ? "true" : "false") +
                    ",\"databases\":[";
  bool first_database = true;
  for (const auto& [name, database] : view->databases) {
    out += first_database ? "{" : ",{";
    first_database = false;
    Field(out, "id", Quoted(name));
    Field(out, "throughput",
          database->offer ? std::to_string(database->offer->spendable()) : "null");
    out += ",\"containers\":[";
    bool first_container = true;
    for (const auto& container : view->ContainersOf(database->id)) {
      out += first_container ? "{" : ",{";
      first_container = false;
      Field(out, "id", Quoted(container->name));
      Field(out, "throughput",
            container->offer ? std::to_string(container->offer->spendable()) : "null");
      Field(out, "autoscale", container->offer && container->offer->autoscale() ? "true" : "false");
      out += ",\"partitions\":[";
      bool first_partition = true;
      for (const auto& range : container->map->ranges()) {
        auto replica = instance_->replicas().Find(range.id);
        if (replica == nullptr) {
          continue;
        }
        out += first_partition ? "{" : ",{";
        first_partition = false;
        Field(out, "id", Quoted(range.id.ToString()));
        Field(out, "min", Quoted(ToHex(range.range.min)));
        Field(out, "max", Quoted(ToHex(range.range.max)));
        Field(out, "items", std::to_string(replica->totals().items));
        Field(out, "bytes", std::to_string(replica->totals().bytes));
        Field(out, "share", replica->governor().share().ToString());
        Field(out, "usedLastSecond", replica->governor().UsedLastSecond(now).ToString());
        Field(out, "throttled", std::to_string(replica->stats().throttled));
        Field(out, "lsn", replica->applied().ToString());
        out += '}';
      }
      out += "]}";
    }
    out += "]}";
  }
  return out + "]}";
}

}  // namespace orrery::server
