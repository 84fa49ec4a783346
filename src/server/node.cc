#include "server/node.h"

#include <algorithm>
#include <filesystem>
#include <thread>

#include "base/kill_point.h"
#include "base/log.h"
#include "model/condition.h"
#include "model/items.h"
#include "query/query.h"
#include "rows/rows.h"
#include "server/data_folder.h"

namespace orrery::server {

namespace {

constexpr Duration kStopGrace = std::chrono::seconds(10);
constexpr Duration kHandOverTime = std::chrono::seconds(2);
// Of each core, for replicas that come or go while nobody is in need of them.
constexpr double kCalmShare = 0.05;

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

replication::Staleness StalenessOf(const Settings& settings) {
  return {settings.staleness_versions, std::chrono::seconds(settings.staleness_s)};
}

}  // namespace

Node::Node(Settings settings, std::function<bool()> stop_wanted)
    : settings_(std::move(settings)), stop_wanted_(std::move(stop_wanted)) {
  size_t workers = settings_.workers != 0 ? settings_.workers
                                          : std::max(1u, std::thread::hardware_concurrency());
  workers_ = std::make_unique<runtime::WorkerPool>(workers);
}

Node::~Node() { Stop(); }

// With its stores opened and recovered.
Result<std::unique_ptr<cluster::Instance>> Node::MakeInstance(
    std::optional<cluster::NodeIdentity> identity, bool begins_cluster) {
  storage::EngineOptions log_options{
      .spaces = storage::LogSpaces(),
      .compress = false,
      .always_synced = settings_.durability == storage::Durability::kSync,
      .cache_bytes = 8 << 20,
      // It is flushed after a cut, or its buffer would be written to a table file for nothing: the
      // cut must come first, however fast writes are.
      .write_buffer_bytes = 2 * settings_.write_buffer_mb << 20};
  storage::EngineOptions state_options = storage::StateEngineOptions();
  state_options.cache_bytes = settings_.cache_mb << 20;
  state_options.write_buffer_bytes = settings_.write_buffer_mb << 20;
  ORRERY_TRY(auto log, storage::OpenRocksEngine(settings_.data + "/log", log_options));
  ORRERY_TRY(auto state, storage::OpenRocksEngine(settings_.data + "/state", state_options));
  storage::StoreOptions store_options;
  store_options.durability = settings_.durability;
  store_options.sync_interval = std::chrono::milliseconds(settings_.sync_interval_ms);
  store_options.cut_after_bytes = (settings_.write_buffer_mb << 20) * 3 / 8;
  store_options.free_bytes_reserve = settings_.free_reserve_mb << 20;
  store_options.free_bytes = [folder = settings_.data] { return FreeBytes(folder); };

  cluster::InstanceOptions options{.identity = identity, .begins_cluster = begins_cluster};
  options.limits.partition_throughput = settings_.partition_throughput;
  options.limits.throughput_max = settings_.throughput_max;
  options.limits.resources_max = settings_.resources_max;
  options.limits.rules = settings_.rules;
  options.limits.unlimited_throughput = settings_.unlimited_throughput;
  options.limits.fixed_throughput = settings_.fixed_throughput;
  options.limits.fixed_bytes = settings_.fixed_container_mb << 20;
  options.limits.logical_bytes = settings_.logical_partition_mb << 20;
  options.host = {
      .burst = settings_.burst, .strict = settings_.strict, .staleness = StalenessOf(settings_)};
  options.raft.set.election_timeout =
      std::chrono::milliseconds(settings_.cluster_election_timeout_ms);
  options.raft.set.heartbeat = std::chrono::milliseconds(settings_.cluster_heartbeat_ms);
  options.raft.set.lease_reads = settings_.cluster_lease_reads;
  options.raft.snapshots.calm_share =
      std::min(1.0, kCalmShare * std::max(1u, std::thread::hardware_concurrency()));
  // Absolute: the store writes it down for the next start.
  options.raft.snapshot_folder = std::filesystem::absolute(settings_.data) / "snapshots";
  options.placement.factor = settings_.cluster_replicas;
  options.placement.replace_after = std::chrono::seconds(settings_.cluster_replace_after_s);
  options.placement.reserve_bytes = store_options.free_bytes_reserve;
  options.limits.placement = options.placement;
  SetKillPoint(settings_.kill_at);
  options.care_interval = std::chrono::milliseconds(settings_.balancer_interval_ms);
  model::ElasticLimits& elastic = options.balancer.limits;
  elastic.partition_throughput = settings_.partition_throughput;
  elastic.partition_bytes = static_cast<double>(settings_.partition_storage_mb << 20);
  options.reshaper.partition_bytes = elastic.partition_bytes;
  options.balancer.merge_after = std::chrono::seconds(settings_.balancer_merge_after_s);
  options.check_interval = std::chrono::seconds(settings_.cluster_check_interval_s);
  options.free_bytes = store_options.free_bytes;
  options.on_nodes = [this](const std::map<NodeId, std::string>& addresses, Lsn as_of) {
    FollowNodes(addresses, as_of);
  };
  options.on_removed = [this] { removed_ = true; };
  options.on_keys = [this] {
    workers_->PostBlocking([this] {
      if (Status status = WriteKeys(); !status.ok()) {
        log::Warning("the file of account keys could not be written", {{"why", status.ToString()}});
      }
    });
  };
  auto instance = std::make_unique<cluster::Instance>(
      std::move(options), std::move(log), std::move(state), std::move(store_options), *workers_,
      clock_, random_, registry_, transport_.get());
  if (Status status = instance->Open(); !status.ok()) {
    return Error(status);
  }
  return instance;
}

Status Node::OpenInstance() {
  std::optional<cluster::NodeIdentity> identity;
  if (IsCluster(settings_)) {
    ORRERY_RETURN_IF_ERROR(StartTransport());
    auto found = FindIdentity();
    if (!found) {
      return found.error();
    }
    identity = *found;
    identity_ = *found;
    transport_->SetIdentity(identity->cluster, identity->node);
    transport_->SetPeers(identity->nodes);
  }
  auto instance = MakeInstance(identity, false);
  if (!instance) {
    return instance.error();
  }
  instance_ = std::move(*instance);
  serving_ = true;
  instance_->Start();
  return IsCluster(settings_) ? WaitForCatalog() : Status::Ok();
}

Status Node::PrepareKeys() {
  auto known = instance_->catalog().view()->keys.keys;
  bool ours = (known[0] == EmulatorKey()) == settings_.dev;
  if (ours && std::ranges::find(known, "") == known.end()) {
    return WriteKeys();
  }
  std::vector<std::string> replaced = {""};
  if (!settings_.dev) {
    replaced.push_back(EmulatorKey());
  }
  std::vector<model::KeyChange> keys;
  for (size_t i = 0; i < model::kKeyCount; ++i) {
    keys.push_back(
        {.name = static_cast<model::KeyName>(i), .key = RandomKey(), .only_over = replaced});
  }
  if (settings_.dev) {
    keys.push_back({.name = model::KeyName::kPrimary, .key = EmulatorKey(), .only_over = {}});
  }
  while (true) {
    ORRERY_RETURN_IF_ERROR(WaitForMajority());
    Status status = RunOn(workers_->at(0), ChangeKeys(keys));
    bool again = status.code() == Code::kUnavailable || status.code() == Code::kNotLeader ||
                 status.code() == Code::kUnknownOutcome;
    if (!again || !instance_->clustered() || stop_wanted_()) {
      return status;
    }
  }
}

runtime::Task<Status> Node::ChangeKeys(std::vector<model::KeyChange> changes) {
  Result<model::AccountKeys> keys = co_await instance_->catalog().ChangeKeys(std::move(changes));
  if (!keys) {
    co_return keys.error();
  }
  auto write = [this] { return WriteKeys(); };
  co_return co_await runtime::OnBlocking(*workers_, write);
}

Status Node::WriteKeys() {
  std::lock_guard lock(keys_mutex_);
  return WriteKeysFile(settings_.data, instance_->catalog().view()->keys);
}

Status Node::StartLoopback() {
  partition::Router& router = instance_->router();
  net::PeerHandlers handlers;
  handlers.on_call = [&router](NodeId, std::string message) {
    return router.HandleMessage(std::move(message));
  };
  peer_server_ = std::make_unique<net::PeerServer>(*workers_, std::move(handlers));
  ORRERY_RETURN_IF_ERROR(peer_server_->Start("127.0.0.1", 0));
  peer_client_ = std::make_unique<net::PeerClient>(*workers_, "127.0.0.1", peer_server_->port());
  partition::Remote remote;
  remote.call = [this](NodeId, std::string message) {
    return peer_client_->Call(std::move(message));
  };
  remote.always = true;
  router.SetRemote(std::move(remote));
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
  return Status::Ok();
}

Status Node::ReloadCertificate() {
  ORRERY_RETURN_IF_ERROR(http_->ReloadCertificate());
  return cassandra_ == nullptr ? Status::Ok() : cassandra_->ReloadCertificate();
}

Status Node::Start() {
  model::SetConditionCompiler(CompileQuery);
  model::RegisterItemOperations(registry_);
  rows::RegisterRowOperations(registry_);
  ORRERY_RETURN_IF_ERROR(PrepareDataFolder(settings_.data));
  workers_->Start();
  ORRERY_RETURN_IF_ERROR(OpenInstance());
  if (removed_) {
    return Status(Code::kForbidden, std::string(cluster::kRemovedText));
  }
  ORRERY_RETURN_IF_ERROR(PrepareKeys());
  if (settings_.loopback_operations) {
    ORRERY_RETURN_IF_ERROR(StartLoopback());
  }
  api::sql::ServiceOptions service_options{.account = settings_.account,
                                           .endpoint = settings_.endpoint,
                                           .locations = [this] { return Locations(); },
                                           .catch_up = nullptr,
                                           .consistency = settings_.consistency,
                                           .staleness = StalenessOf(settings_),
                                           .control_throughput = settings_.control_throughput};
  if (instance_->clustered()) {
    service_options.catch_up = [this] { return instance_->CatchUp(); };
  }
  service_ = std::make_unique<api::sql::Service>(instance_->catalog(), instance_->router(),
                                                 instance_->replicas(), clock_, random_,
                                                 service_options, &metrics_);
  ORRERY_RETURN_IF_ERROR(StartHttp());
  if (settings_.cassandra) {
    ORRERY_RETURN_IF_ERROR(StartCassandra());
  }
  ORRERY_RETURN_IF_ERROR(
      WriteServerFile(settings_.data, endpoint_, cluster_address(), cassandra_port()));
  if (instance_->clustered()) {
    workers_->at(0).Spawn(AnnounceUntilDone(announcing_.Enter()));
  }
  return Status::Ok();
}

void Node::Stop() {
  if (workers_ == nullptr) {
    return;
  }
  stopping_ = true;
  if (instance_ != nullptr && serving_ && instance_->clustered()) {
    auto hand_over = [this]() -> runtime::Task<Status> {
      co_await instance_->HandOver(kHandOverTime);
      co_return Status::Ok();
    };
    IgnoreError(RunOn(workers_->at(0), hand_over()), "the others notice soon enough");
  }
  if (http_ != nullptr) {
    http_->Stop(kStopGrace);
  }
  if (cassandra_nodes_ != nullptr) {
    cassandra_nodes_->Stop();
  }
  if (cassandra_ != nullptr) {
    opening_cassandra_.Close();
    cassandra_service_->events().Stop();
    cassandra_->Stop(kStopGrace);
  }
  if (purger_ != nullptr) {
    purger_->Stop();
  }
  if (builder_ != nullptr) {
    builder_->Stop();
  }
  if (batches_ != nullptr) {
    batches_->Stop();
  }
  if (peer_client_ != nullptr) {
    peer_client_->Stop();
    peer_server_->Stop();
  }
  if (instance_ != nullptr) {
    instance_->Stop();
  }
  announcing_.Close();
  if (transport_ != nullptr) {
    transport_->Stop();
  }
  workers_->Stop();
  // Sockets go before the loops they live on; what still waits on the loops refers to everything
  // else.
  http_.reset();
  cassandra_.reset();
  peer_server_.reset();
  peer_client_.reset();
  transport_.reset();
  workers_.reset();
}

}  // namespace orrery::server
