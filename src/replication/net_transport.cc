#include "replication/net_transport.h"

#include <utility>

#include "base/log.h"

namespace orrery::replication {

using net::PeerClient;
using runtime::Task;

NetTransport::NetTransport(runtime::WorkerPool& workers, net::PeerOptions options,
                           NetHandlers handlers)
    : workers_(workers), options_(std::move(options)), handlers_(std::move(handlers)) {
  net::PeerHandlers of_server;
  of_server.on_call = handlers_.on_call;
  of_server.on_frame = [this](NodeId from, std::string frame) { OnFrame(from, std::move(frame)); };
  // Who connects to us is there: no need to wait until we try it again.
  of_server.on_hello = [this](NodeId from) {
    if (auto client = Find(from)) {
      client->Retry();
    }
  };
  server_ = std::make_unique<net::PeerServer>(workers_, std::move(of_server), options_);
}

NetTransport::~NetTransport() = default;

Status NetTransport::Start(const std::string& address, uint16_t port) {
  return server_->Start(address, port);
}

void NetTransport::Stop() {
  std::vector<std::shared_ptr<PeerClient>> all;
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    all = std::exchange(closing_, {});
    for (auto& [node, peer] : std::exchange(peers_, {})) {
      all.push_back(std::move(peer.client));
    }
  }
  server_->Stop();
  for (const auto& client : all) {
    client->Stop();
  }
}

void NetTransport::SetIdentity(uint64_t cluster, NodeId node) {
  options_.identity->cluster = cluster;
  options_.identity->node = node.value();
}

void NetTransport::SetPeers(const std::map<NodeId, std::string>& peers) {
  NodeId self(options_.identity->node.load());
  std::lock_guard lock(mutex_);
  if (stopped_) {
    return;
  }
  std::erase_if(closing_, [](const auto& client) { return client->over(); });
  std::erase_if(peers_, [&](auto& entry) {
    auto wanted = peers.find(entry.first);
    if (wanted != peers.end() && wanted->second == entry.second.address) {
      return false;
    }
    entry.second.client->Close();
    closing_.push_back(std::move(entry.second.client));
    return true;
  });
  for (const auto& [node, address] : peers) {
    if (node == self || peers_.contains(node)) {
      continue;
    }
    if (auto client = Connect(node, address)) {
      Peer peer{address, std::move(client)};
      peers_.emplace(node, std::move(peer));
    }
  }
}

std::shared_ptr<PeerClient> NetTransport::Connect(NodeId node, const std::string& address) {
  auto where = net::ParseHostPort(address);
  if (!where) {
    log::Error("address of a node is malformed",
               {{"node", node.ToString()}, {"why", where.error().message()}});
    return nullptr;
  }
  net::PeerWatch watch;
  watch.node = node;
  watch.on_event = [this, node](net::PeerEvent event) {
    if (handlers_.on_event) {
      handlers_.on_event(node, event);
    }
  };
  return std::make_shared<PeerClient>(workers_, where->host, where->port, options_,
                                      std::move(watch));
}

std::shared_ptr<PeerClient> NetTransport::Find(NodeId node) {
  std::lock_guard lock(mutex_);
  auto found = peers_.find(node);
  return found != peers_.end() ? found->second.client : nullptr;
}

void NetTransport::OnFrame(NodeId from, std::string frame) {
  if (from.value() == 0) {
    options_.counters->frames_dropped.fetch_add(1, std::memory_order_relaxed);
  } else if (handlers_.on_frame) {
    handlers_.on_frame(from, std::move(frame));
  }
}

void NetTransport::Send(NodeId to, std::string frame) {
  if (auto client = Find(to)) {
    client->Send(std::move(frame));
  } else {
    options_.counters->frames_dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

Task<Result<std::string>> NetTransport::Call(NodeId to, std::string request) {
  std::shared_ptr<PeerClient> client = Find(to);
  if (client == nullptr) {
    co_return Error(Code::kUnavailable, "node " + to.ToString() + " is not known");
  }
  co_return co_await client->Call(std::move(request));
}

void NetTransport::EndCalls(NodeId to) {
  if (auto client = Find(to)) {
    client->EndCalls();
  }
}

Task<Result<std::string>> NetTransport::CallAddress(std::string host_port, std::string request) {
  ORRERY_CO_TRY(net::HostPort where, net::ParseHostPort(host_port));
  auto client = std::make_shared<PeerClient>(workers_, where.host, where.port, options_);
  {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      co_return Error(Code::kUnavailable, "the transport has stopped");
    }
    std::erase_if(closing_, [](const auto& other) { return other->over(); });
    closing_.push_back(client);
  }
  Result<std::string> answer = co_await client->Call(std::move(request));
  client->Close();
  co_return answer;
}

}  // namespace orrery::replication
