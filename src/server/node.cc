#include "server/node.h"

#include <filesystem>
#include <future>
#include <thread>

#include "base/log.h"
#include "model/condition.h"
#include "model/items.h"
#include "query/query.h"
#include "server/data_folder.h"

namespace orrery::server {

namespace {

constexpr Duration kStopGrace = std::chrono::seconds(10);

// The compiler of conditions that model/ asks for, made of query/.
class QueryCondition final : public model::Condition {
 public:
  explicit QueryCondition(query::Query query) : query_(std::move(query)) {}
  Result<bool> Holds(types::Value item) const override { return query_.Matches(item); }

 private:
  query::Query query_;
};

Result<std::unique_ptr<model::Condition>> CompileQuery(std::string_view text,
                                                       types::Value parameters) {
  // Both forms are tried: a query begins with SELECT, the condition of a patch with FROM.
  auto query = query::Query::Parse(text, parameters);
  if (!query) {
    auto condition = query::Query::ParseCondition(text);
    if (condition) {
      query = std::move(condition);
    }
  }
  if (!query) {
    return Error(query.error());
  }
  return std::make_unique<QueryCondition>(std::move(*query));
}

// Runs a task on a worker and waits for it. REQUIRES: not on a worker.
Status RunOn(runtime::Worker& worker, runtime::Task<Status> task) {
  std::promise<Status> done;
  auto run = [](runtime::Task<Status> task, std::promise<Status>& done) -> runtime::Task<> {
    done.set_value(co_await std::move(task));
  };
  worker.Spawn(run(std::move(task), done));
  return done.get_future().get();
}

}  // namespace

Node::Node(Settings settings) : settings_(std::move(settings)) {
  size_t workers = settings_.workers != 0 ? settings_.workers
                                          : std::max(1u, std::thread::hardware_concurrency());
  workers_ = std::make_unique<runtime::WorkerPool>(workers);
}

Node::~Node() { Stop(); }

Status Node::OpenStore() {
  ORRERY_RETURN_IF_ERROR(PrepareDataFolder(settings_.data));
  storage::EngineOptions log_options{
      .spaces = {"log"},
      .compress = false,
      .always_synced = settings_.durability == storage::Durability::kSync,
      .cache_bytes = 8 << 20,
      .write_buffer_bytes = settings_.write_buffer_mb << 20};
  storage::EngineOptions state_options{.spaces = {"replica", "items", "index", "catalog"},
                                       .atomic_flush = true,
                                       .log_files = false,
                                       .cache_bytes = settings_.cache_mb << 20,
                                       .write_buffer_bytes = settings_.write_buffer_mb << 20};
  auto log = storage::OpenRocksEngine(settings_.data + "/log", log_options);
  if (!log) {
    return log.error();
  }
  auto state = storage::OpenRocksEngine(settings_.data + "/state", state_options);
  if (!state) {
    return state.error();
  }
  storage::StoreOptions options;
  options.durability = settings_.durability;
  options.sync_interval = std::chrono::milliseconds(settings_.sync_interval_ms);
  options.free_bytes_reserve = settings_.free_reserve_mb << 20;
  options.free_bytes = [folder = settings_.data] { return FreeBytes(folder); };
  store_ = std::make_unique<storage::Store>(std::move(*log), std::move(*state), std::move(options));
  return store_->Recover([this](GroupId group, Lsn lsn, const storage::WriteSetView& set) {
    if (set.id != storage::OperationId()) {
      outcomes_[group].push_back(
          {.id = set.id, .lsn = lsn, .result = std::string(set.result), .time = set.time});
    }
  });
}

Status Node::PrepareKeys() {
  auto prepare = [dev = settings_.dev](model::AccountKeys& keys) {
    const std::string known = EmulatorKey();
    for (std::string& key : keys.keys) {
      if (key.empty() || (!dev && key == known)) {
        key = RandomKey();
      }
    }
    if (dev) {
      keys.keys[static_cast<size_t>(model::KeyName::kPrimary)] = known;
    }
  };
  return RunOn(workers_->at(0), ChangeKeys(prepare));
}

runtime::Task<Status> Node::ChangeKeys(std::function<void(model::AccountKeys&)> change) {
  Result<model::AccountKeys> keys = co_await catalog_->ChangeKeys(std::move(change));
  if (!keys) {
    co_return keys.error();
  }
  auto write = [this, &keys] { return WriteKeysFile(settings_.data, *keys); };
  co_return co_await runtime::OnBlocking(*workers_, write);
}

Status Node::StartLoopback() {
  auto handle = [this](std::string message) { return router_->HandleMessage(std::move(message)); };
  peer_server_ = std::make_unique<net::PeerServer>(*workers_, handle);
  ORRERY_RETURN_IF_ERROR(peer_server_->Start("127.0.0.1", 0));
  peer_client_ = std::make_unique<net::PeerClient>(*workers_, "127.0.0.1", peer_server_->port());
  router_->SendEverythingTo(peer_client_.get());
  return Status::Ok();
}

Status Node::StartHttp() {
  net::HttpOptions options{
      .address = settings_.listen == "localhost" ? "127.0.0.1" : settings_.listen,
      .port = settings_.port,
      .connections_max = settings_.connections_max};
  if (!settings_.dev) {
    options.certificate_file = settings_.certificate;
    options.key_file = settings_.key;
    if (options.certificate_file.empty()) {
      options.certificate_file = settings_.data + "/certificate.pem";
      options.key_file = settings_.data + "/key.pem";
      if (!std::filesystem::exists(options.certificate_file)) {
        ORRERY_RETURN_IF_ERROR(
            net::MakeSelfSignedCertificate(options.certificate_file, options.key_file, {}));
      }
    }
    certificate_file_ = options.certificate_file;
    key_file_ = options.key_file;
  }
  auto handle = [this](const net::HttpRequest& request, net::HttpReply& reply) {
    return Handle(request, reply);
  };
  http_ = std::make_unique<net::HttpServer>(*workers_, options, handle);
  ORRERY_RETURN_IF_ERROR(http_->Start());
  std::string host = settings_.listen.find(':') == std::string::npos ? settings_.listen
                                                                     : "[" + settings_.listen + "]";
  if (settings_.listen == "0.0.0.0" || settings_.listen == "::") {
    host = "localhost";
  }
  endpoint_ =
      (settings_.dev ? "http://" : "https://") + host + ":" + std::to_string(http_->port()) + "/";
  return WriteServerFile(settings_.data, endpoint_);
}

Status Node::Start() {
  model::SetConditionCompiler(CompileQuery);
  model::RegisterItemOperations(registry_);
  ORRERY_RETURN_IF_ERROR(OpenStore());
  runtime::Worker& meta_worker = workers_->at(0);
  meta_ = std::make_unique<replication::LocalReplicaSet>(GroupId(0), *store_, meta_worker);
  model::CatalogLimits limits;
  limits.partition_throughput = settings_.partition_throughput;
  limits.throughput_max = settings_.throughput_max;
  limits.resources_max = settings_.resources_max;
  catalog_ = std::make_unique<model::Catalog>(*meta_, meta_worker, clock_, limits);
  ORRERY_RETURN_IF_ERROR(catalog_->Load(store_->state(), store_->Record(GroupId(0)).time));
  auto find_ring = [this](ContainerId container) { return catalog_->FindRing(container); };
  router_ = std::make_unique<partition::Router>(replicas_, registry_, find_ring, random_);
  model::HostOptions host_options{.burst = settings_.burst, .strict = settings_.strict};
  host_ = std::make_unique<model::PartitionHost>(*catalog_, *store_, *workers_, clock_, replicas_,
                                                 host_options);
  ORRERY_RETURN_IF_ERROR(host_->Load(std::move(outcomes_)));
  catalog_->SetListener(host_.get());

  workers_->Start();
  store_->Start();
  host_->Start();
  ORRERY_RETURN_IF_ERROR(PrepareKeys());
  if (settings_.loopback_operations) {
    ORRERY_RETURN_IF_ERROR(StartLoopback());
  }
  api::sql::ServiceOptions service_options{.account = settings_.account,
                                           .endpoint = settings_.endpoint,
                                           .consistency = settings_.consistency,
                                           .control_throughput = settings_.control_throughput};
  service_ = std::make_unique<api::sql::Service>(*catalog_, *router_, replicas_, clock_, random_,
                                                 service_options, &metrics_);
  return StartHttp();
}

void Node::Stop() {
  if (workers_ == nullptr) {
    return;
  }
  if (http_ != nullptr) {
    http_->Stop(kStopGrace);
  }
  if (host_ != nullptr) {
    host_->Stop();
  }
  if (peer_client_ != nullptr) {
    peer_client_->Stop();
    peer_server_->Stop();
  }
  if (store_ != nullptr) {
    store_->Stop();
  }
  workers_->Stop();
  // Sockets go before the loops they live on; what still waits on the loops refers to everything
  // else.
  http_.reset();
  peer_server_.reset();
  peer_client_.reset();
  workers_.reset();
}

}  // namespace orrery::server
