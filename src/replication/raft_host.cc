#include "replication/raft_host.h"

#include "base/log.h"

namespace orrery::replication {

namespace {

constexpr uint8_t kFrameVersion = 1;
constexpr Duration kTickPause = std::chrono::milliseconds(10);
constexpr GroupId kHeartbeatGroup(~uint64_t{0});

}  // namespace

RaftHost::RaftHost(NodeId self, storage::Store& store, runtime::WorkerPool& workers,
                   const Clock& clock, Random& random, Transport& transport,
                   RaftHostOptions options)
    : self_(self),
      store_(store),
      workers_(workers),
      clock_(clock),
      random_(random),
      transport_(transport),
      options_(std::move(options)),
      snapshots_(store, workers, clock, random, transport, options_.snapshot_folder,
                 options_.snapshots),
      per_worker_(workers.size()) {
  snapshots_.SetWhole([this](GroupId group) -> runtime::Task<bool> {
    auto set = Find(group);
    if (set == nullptr) {
      co_return false;
    }
    auto whole = [set]() -> runtime::Task<bool> { co_return set->whole(); };
    co_return co_await runtime::OnWorker(set->worker(), whole);
  });
  snapshots_.SetInUse([this](GroupId group) {
    if (auto set = Find(group)) {
      set->worker().Post([set] { set->HoldLog(kSnapshotHold); });
    }
  });
}

RaftHost::~RaftHost() = default;

void RaftHost::Start() {
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_.at(i).Spawn(TickLoop(workers_.at(i), gate_.Enter()));
  }
  workers_.at(0).Spawn(HeartbeatLoop(gate_.Enter()));
}

void RaftHost::Stop() {
  stopping_ = true;
  for (const auto& set : All()) {
    set->worker().Post([set] { set->Stop(); });
  }
  gate_.Close();
}

std::shared_ptr<RaftReplicaSet> RaftHost::Find(GroupId group) const {
  std::lock_guard lock(mutex_);
  auto found = groups_.find(group);
  return found == groups_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<RaftReplicaSet>> RaftHost::All() const {
  std::vector<std::shared_ptr<RaftReplicaSet>> all;
  std::lock_guard lock(mutex_);
  for (const auto& [group, set] : groups_) {
    all.push_back(set);
  }
  return all;
}

void RaftHost::Insert(std::shared_ptr<RaftReplicaSet> set) {
  std::lock_guard lock(mutex_);
  groups_[set->group()] = std::move(set);
}

void RaftHost::Remove(GroupId group) {
  std::shared_ptr<RaftReplicaSet> set;
  {
    std::lock_guard lock(mutex_);
    auto found = groups_.extract(group);
    if (found.empty()) {
      return;
    }
    set = std::move(found.mapped());
  }
  set->worker().Post([set] { set->Stop(); });
}

// Frames ------------------------------------------------------------------------------------------

void RaftHost::Send(runtime::Worker& worker, NodeId to, GroupId group, ReplicaId to_replica,
                    ReplicaId from_replica, FrameKind kind, std::string_view body) {
  if (to == self_ || to == NodeId()) {
    return;  // nobody is known there
  }
  PerWorker& mine = per_worker_[worker.index()];
  std::string& frame = mine.outbox[to];
  Encoder encoder(frame);
  if (frame.empty()) {
    encoder.U8(kFrameVersion);
  }
  encoder.U64(group.value());
  encoder.U64(to_replica.value());
  encoder.U64(from_replica.value());
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.Bytes(body);
  if (!mine.flush_posted) {
    mine.flush_posted = true;
    worker.Post([this, &worker] { Flush(worker); });
  }
}

void RaftHost::Flush(runtime::Worker& worker) {
  PerWorker& mine = per_worker_[worker.index()];
  mine.flush_posted = false;
  for (auto& [node, frame] : std::exchange(mine.outbox, {})) {
    transport_.Send(node, std::move(frame));
  }
}

void RaftHost::OnFrame(NodeId from, std::string frame) {
  {
    std::lock_guard lock(mutex_);
    if (auto peer = peers_.find(from); peer != peers_.end()) {
      peer->second = {clock_.Now(), false};
    }
  }
  Decoder decoder(frame);
  if (decoder.U8() != kFrameVersion) {
    log::Warning("a frame of another version from a node", {{"node", from.ToString()}});
    return;
  }
  // One post per worker, however many groups the frame is for. Most are for this one (net/peer.h).
  struct Part {
    std::shared_ptr<RaftReplicaSet> set;
    ReplicaId from;
    FrameKind kind;
    std::string body;
  };
  std::map<runtime::Worker*, std::vector<Part>, runtime::WorkerOrder> parts;
  while (decoder.ok() && decoder.left() > 0) {
    GroupId group(decoder.U64());
    ReplicaId to(decoder.U64());
    ReplicaId from_replica(decoder.U64());
    auto kind = static_cast<FrameKind>(decoder.U8());
    std::string_view body = decoder.Bytes();
    if (!decoder.ok() || group == kHeartbeatGroup) {
      continue;
    }
    auto set = Find(group);
    if (set == nullptr || set->replica() != to) {
      continue;
    }
    if (set->worker().IsCurrent()) {
      set->Receive(from, from_replica, kind, body);
    } else {
      runtime::Worker* worker = &set->worker();
      parts[worker].push_back({std::move(set), from_replica, kind, std::string(body)});
    }
  }
  for (auto& [worker, list] : parts) {
    worker->Post([from, list = std::move(list)] {
      for (const Part& part : list) {
        part.set->Receive(from, part.from, part.kind, part.body);
      }
    });
  }
}

// Time --------------------------------------------------------------------------------------------

void RaftHost::Schedule(RaftReplicaSet& set) {
  PerWorker& mine = per_worker_[set.worker().index()];
  Instant at = set.deadline();
  auto [entry, fresh] = mine.scheduled.try_emplace(set.group(), at);
  if (!fresh) {
    if (entry->second == at) {
      return;
    }
    mine.deadlines.erase({entry->second, set.group()});
    entry->second = at;
  }
  if (at == Instant::max()) {
    mine.scheduled.erase(entry);
  } else {
    mine.deadlines.insert({at, set.group()});
  }
}

runtime::Task<> RaftHost::TickLoop(runtime::Worker& worker, runtime::Gate::Pass pass) {
  PerWorker& mine = per_worker_[worker.index()];
  while (!stopping_) {
    Instant now = clock_.Now();
    while (!mine.deadlines.empty() && mine.deadlines.begin()->first <= now) {
      auto [at, group] = *mine.deadlines.begin();
      mine.deadlines.erase(mine.deadlines.begin());
      mine.scheduled.erase(group);
      if (auto set = Find(group)) {
        set->Tick();
      }
    }
    co_await runtime::Sleep(kTickPause);
  }
}

// Other nodes -------------------------------------------------------------------------------------

void RaftHost::SetPeers(std::vector<NodeId> peers) {
  std::lock_guard lock(mutex_);
  std::map<NodeId, Peer> next;
  for (NodeId id : peers) {
    if (id != self_) {
      auto known = peers_.find(id);
      next[id] = known == peers_.end() ? Peer{clock_.Now(), false} : known->second;
    }
  }
  peers_ = std::move(next);
}

Duration RaftHost::SilentFor(NodeId node) const {
  if (node == self_) {
    return Duration::zero();
  }
  std::lock_guard lock(mutex_);
  auto peer = peers_.find(node);
  return peer == peers_.end()
             ? Duration::max()
             : std::chrono::duration_cast<Duration>(clock_.Now() - peer->second.heard);
}

runtime::Task<> RaftHost::HeartbeatLoop(runtime::Gate::Pass pass) {
  std::string heartbeat;
  Encoder encoder(heartbeat);
  encoder.U8(kFrameVersion);
  encoder.U64(kHeartbeatGroup.value());
  encoder.U64(0);
  encoder.U64(0);
  encoder.U8(0);
  encoder.Bytes("");
  while (!stopping_) {
    snapshots_.Expire();
    std::vector<NodeId> peers;
    std::vector<NodeId> silent;
    {
      std::lock_guard lock(mutex_);
      for (auto& [id, peer] : peers_) {
        peers.push_back(id);
        if (!peer.reported && clock_.Now() - peer.heard > options_.set.election_timeout) {
          peer.reported = true;
          silent.push_back(id);
        }
      }
    }
    for (NodeId id : peers) {
      transport_.Send(id, heartbeat);
    }
    for (NodeId id : silent) {
      transport_.EndCalls(id);
      Tell(id, false);
    }
    for (Duration waited{}; waited < options_.set.heartbeat && !stopping_; waited += kTickPause) {
      co_await runtime::Sleep(kTickPause);
    }
  }
}

void RaftHost::OnRefused(NodeId node) {
  {
    std::lock_guard lock(mutex_);
    auto peer = peers_.find(node);
    if (peer == peers_.end()) {
      return;
    }
    peer->second.heard = clock_.Now() - options_.set.election_timeout * 2;
  }
  Tell(node, options_.elect_when_refused && !options_.set.lease_reads);
}

void RaftHost::Tell(NodeId node, bool dead) {
  for (const auto& set : All()) {
    set->worker().Post([set, node, dead] { set->OnNodeSilent(node, dead); });
  }
}

void RaftHost::OnFlushed() {
  for (const auto& set : All()) {
    set->worker().Post([set] { set->OnFlushed(); });
  }
}

}  // namespace orrery::replication
