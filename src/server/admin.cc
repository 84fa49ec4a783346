// The admin endpoints: /healthz for anyone, /metrics for this machine, and /_orrery/... for the
// commands of the program, signed with an account key like a request of the SQL API (type "orrery",
// link = the path).
#include <charconv>
#include <filesystem>

#include "api/sql/auth.h"
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

int StatusNumber(Code code) {
  switch (code) {
    case Code::kNotFound: return 404;
    case Code::kForbidden: return 409;
    case Code::kUnavailable:
    case Code::kNotLeader: return 503;
    case Code::kUnknownOutcome: return 408;
    default: return 400;
  }
}

std::string TextOf(std::string_view body, std::string_view name) {
  auto parsed = types::Document::FromJson(body);
  if (!parsed || parsed->Get(name).kind() != types::Kind::kString) {
    return "";
  }
  return std::string(parsed->Get(name).string());
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
  std::string path;
  if (!api::sql::PercentDecode(request.target.substr(1, request.target.find('?') - 1), &path)) {
    AnswerError(reply, 400, "the path of the request is malformed");
    co_return;
  }
  if (path == "metrics") {
    if (!request.loopback && !settings_.metrics_public) {
      AnswerError(reply, 403,
                  "metrics are for clients on this machine (setting server.metrics_public)");
      co_return;
    }
    reply.Add("content-type", "text/plain; version=0.0.4");
    reply.body =
        metrics_.Render(*instance_->catalog().view(), instance_->replicas(), instance_->reshapes(),
                        clock_, instance_->store(), http_->connections());
    if (purger_ != nullptr) {
      reply.body += RenderPurged(purger_->counts());
    }
    if (instance_->clustered()) {
      reply.body += RenderCluster(co_await instance_->Look(true), instance_->self(),
                                  instance_->raft()->moves(), transport_->counters());
    }
    co_return;
  }
  bool write = request.method != "GET";
  if (Status allowed = service_->Authorize(request, "orrery", path, write); !allowed.ok()) {
    AnswerError(reply, allowed.code() == Code::kForbidden ? 403 : 401, allowed.message());
    co_return;
  }
  Status status(Code::kNotFound, "there is no such admin endpoint");
  if (path == "_orrery/status" && request.method == "GET") {
    AnswerJson(reply, 200, co_await StatusJson());
    co_return;
  }
  constexpr std::string_view kNodes = "_orrery/nodes";
  constexpr std::string_view kThroughput = "_orrery/throughput/";
  if (path == kNodes && request.method == "GET" && instance_->clustered()) {
    AnswerJson(reply, 200, co_await NodesJson());
    co_return;
  }
  constexpr std::string_view kPartitions = "_orrery/partitions/";
  if (path.starts_with(kPartitions) && request.method == "GET") {
    std::string what = path.substr(kPartitions.size());
    size_t slash = std::min(what.find('/'), what.size());
    auto shown = co_await PartitionsJson(what.substr(0, slash),
                                         what.substr(std::min(slash + 1, what.size())));
    if (shown) {
      AnswerJson(reply, 200, std::move(*shown));
      co_return;
    }
    status = shown.error();
  }
  if (path == "_orrery/keys/regenerate" && request.method == "POST") {
    status = co_await RegenerateKey(request.body);
  } else if (path == "_orrery/backup" && request.method == "POST") {
    status = co_await Backup(request.body);
  } else if (path.starts_with("_orrery/partitions/") && request.method == "POST") {
    status = co_await ChangePartition(path.substr(std::string_view("_orrery/partitions/").size()),
                                      request.body);
  } else if (path.starts_with("_orrery/balancer/") && request.method == "POST") {
    status = co_await ChangeBalancer(path.substr(std::string_view("_orrery/balancer/").size()));
  } else if (path.starts_with(kThroughput) && request.method == "POST") {
    status = co_await ChangeThroughput(path.substr(kThroughput.size()), request.body);
  } else if (path.starts_with(kNodes) && !instance_->clustered()) {
    status = Status(Code::kInvalidArgument, "this server is alone: it is no node of a cluster");
  } else if (path.starts_with("_orrery/nodes/") && request.method == "POST") {
    status = co_await ChangeNode(std::string_view(path).substr(kNodes.size() + 1));
  }
  if (!status.ok()) {
    AnswerError(reply, StatusNumber(status.code()), status.message());
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

Task<Status> Node::ChangeNode(std::string_view what) {
  size_t slash = what.find('/');
  std::string_view action = slash == std::string_view::npos ? "" : what.substr(slash + 1);
  uint32_t number = 0;
  auto [end, error] = std::from_chars(what.data(), what.data() + what.size(), number);
  if (error != std::errc() || end != what.data() + slash ||
      (action != "drain" && action != "undrain" && action != "remove")) {
    co_return Status(Code::kNotFound, "there is no such admin endpoint");
  }
  NodeId node(number);
  Status status = action == "drain"     ? co_await instance_->Drain(node)
                  : action == "undrain" ? co_await instance_->Undrain(node)
                                        : co_await instance_->Remove(node);
  if (status.ok()) {
    log::Info("the state of a node was changed",
              {{"node", node.ToString()}, {"action", std::string(action)}});
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

}  // namespace orrery::server
