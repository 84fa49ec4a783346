#include "partition/router.h"

#include <algorithm>

namespace orrery::partition {

namespace {

// A partition that is split or merged is away for a moment; ten seconds in all, as for a leader.
constexpr int kLooksMax = 320;
constexpr int kPauseMax = 5;  // 32 ms
constexpr Duration kFollowTime = std::chrono::seconds(10);
constexpr size_t kLeadersMax = 1'000'000;

// Another replica, or the same one later, may know better.
bool TryElsewhere(Code code) { return code == Code::kNotLeader || code == Code::kUnknownOutcome; }

// Refused before anybody looked whether an earlier try was done.
bool SaysNothing(Code code) {
  return code == Code::kThrottled || code == Code::kUnavailable || code == Code::kSessionNotReached;
}

}  // namespace

// Each thread keeps the map it saw last, so that a look-up takes no lock while nothing changes.
std::shared_ptr<const ReplicaTable::Map> ReplicaTable::Current() const {
  std::lock_guard lock(mutex_);
  return map_;
}

std::shared_ptr<Replica> ReplicaTable::Find(PartitionId id) const {
  struct Cached {
    uint64_t version = 0;
    std::shared_ptr<const Map> map;
  };
  thread_local Cached cached;
  uint64_t version = version_.load(std::memory_order_acquire);
  if (cached.version != version) {
    std::lock_guard lock(mutex_);
    cached = {version_.load(std::memory_order_relaxed), map_};
  }
  auto found = cached.map->find(id);
  return found == cached.map->end() ? nullptr : found->second;
}

void ReplicaTable::Replace(std::shared_ptr<const Map> map) {
  // Unique in the process, so that no thread takes another table's map for its own.
  static std::atomic<uint64_t> next_version = 1;
  map_ = std::move(map);
  version_.store(next_version.fetch_add(1), std::memory_order_release);
}

void ReplicaTable::Add(const std::vector<std::shared_ptr<Replica>>& replicas) {
  std::lock_guard lock(mutex_);
  auto next = std::make_shared<Map>(*map_);
  for (const auto& replica : replicas) {
    (*next)[replica->id()] = replica;
  }
  Replace(std::move(next));
}

void ReplicaTable::Remove(const std::vector<PartitionId>& ids) {
  std::lock_guard lock(mutex_);
  auto next = std::make_shared<Map>(*map_);
  for (PartitionId id : ids) {
    next->erase(id);
  }
  Replace(std::move(next));
}

std::vector<std::shared_ptr<Replica>> ReplicaTable::All() const {
  std::vector<std::shared_ptr<Replica>> all;
  for (const auto& [id, replica] : *Current()) {
    all.push_back(replica);
  }
  return all;
}

Router::Router(ReplicaTable& replicas, const OperationRegistry& registry, FindRing find_ring,
               Random& random, const Clock& clock)
    : replicas_(replicas),
      registry_(registry),
      find_ring_(std::move(find_ring)),
      random_(random),
      clock_(clock),
      flights_(random) {}

bool Router::TellsSettled() {
  if (!tells_.load(std::memory_order_relaxed)) {
    if (may_tell_ && !may_tell_()) {
      return false;
    }
    tells_.store(true, std::memory_order_relaxed);
  }
  return true;
}

// Only writes are remembered. The flight must last until no more try is sent.
std::optional<Flights::Flight> Router::Name(Operation& operation) {
  const bool named = operation.id != storage::OperationId() && operation.settled == 0;
  operation.again = false;
  if (!operation.writes() || named) {
    return std::nullopt;
  }
  if (!TellsSettled()) {
    operation.id = {.high = random_.Next(), .low = random_.Next()};
    return std::nullopt;
  }
  Flights::Flight flight = flights_.Begin();
  operation.id = flight.id();
  operation.settled = flight.settled();
  return flight;
}

runtime::Task<Reply> Router::Execute(Ring ring, std::string_view epk, Operation& operation) {
  const std::optional<Flights::Flight> flight = Name(operation);
  for (int tries = 1;; ++tries) {
    Reply reply = co_await Try(ring, ring.map->Find(epk), operation);
    Code code = reply.status.code();
    if (code != Code::kMoved && code != Code::kSchemaChanged) {
      co_return reply;
    }
    std::optional<Ring> next = co_await LookAgain(ring, tries);
    if (!next) {
      co_return Reply{.status = Status(operation.again ? Code::kUnknownOutcome : Code::kUnavailable,
                                       "the partition is being changed")};
    }
    ring = std::move(*next);
    if (ring.map == nullptr) {
      co_return Reply{.status = Status(Code::kOwnerNotFound, "the container is gone")};
    }
  }
}

runtime::Task<std::optional<Ring>> Router::LookAgain(const Ring& ring, int tries) {
  if (tries >= kLooksMax) {
    co_return std::nullopt;
  }
  if (tries > 1) {
    // The catalog is ahead of the replica for a moment, or behind it: 1 ms, 2 ms ... 32 ms.
    co_await runtime::Sleep(std::chrono::milliseconds(1 << std::min(tries - 2, kPauseMax)));
  }
  co_return find_ring_(ring.container);
}

runtime::Task<Reply> Router::ExecuteAt(const Ring& ring, const PartitionRange& range,
                                       Operation& operation) {
  const std::optional<Flights::Flight> flight = Name(operation);
  co_return co_await Try(ring, range, operation);
}

runtime::Task<Reply> Router::Try(const Ring& ring, const PartitionRange& range,
                                 Operation& operation) {
  // A token of a parent is satisfied: its heirs begin where it ended.
  if (!operation.tokens.empty()) {
    auto token = std::ranges::find(operation.tokens, range.id, &types::SessionToken::partition);
    operation.SetSession(token == operation.tokens.end() ? Lsn() : token->lsn);
  }
  operation.target = {.container = ring.container,
                      .partition = range.id,
                      .generation = range.generation,
                      .schema_version = ring.schema_version};
  if (remote_ && remote_->always) {
    co_return co_await Send(remote_->self, operation);
  }
  std::shared_ptr<Replica> replica = replicas_.Find(range.id);
  if (replica != nullptr && (!remote_ || replica->MayServe(operation))) {
    Reply reply = co_await replica->Execute(operation);
    Code code = reply.status.code();
    if (!remote_ || (!TryElsewhere(code) && !(operation.again && SaysNothing(code)))) {
      co_return reply;
    }
    operation.again |= operation.writes() && code == Code::kUnknownOutcome;
  }
  if (!remote_) {
    co_return Reply{.status = Status(Code::kMoved, "the partition is not here")};
  }
  replica.reset();
  co_return co_await FollowLeader(operation);
}

runtime::Task<Reply> Router::Ask(NodeId node, Operation& operation) {
  if (node == NodeId()) {
    co_return Reply{.status = Status(Code::kNotLeader, "nothing is heard of the nodes")};
  }
  if (node != remote_->self) {
    co_return co_await Send(node, operation);
  }
  std::shared_ptr<Replica> replica = replicas_.Find(operation.target.partition);
  if (replica == nullptr) {
    co_return Reply{.status = Status(Code::kNotLeader, "the partition is not here")};
  }
  co_return co_await replica->Execute(operation);
}

// Until somebody answers for the partition, or the time is up. Silent nodes are passed over: by the
// time that one is known to be silent the others elect another leader.
runtime::Task<Reply> Router::FollowLeader(Operation& operation) {
  const PartitionId partition = operation.target.partition;
  const Instant until = clock_.Now() + kFollowTime;
  NodeId hint = LikelyLeader(partition);
  for (int tries = 0;; ++tries) {
    std::vector<NodeId> nodes = remote_->nodes(partition);
    if (nodes.empty()) {
      co_return Reply{.status = Status(Code::kMoved, "the partition has no replicas")};
    }
    NodeId node = hint != NodeId() ? hint : NextInTurn(nodes, tries);
    Reply reply = co_await Ask(node, operation);
    Code code = reply.status.code();
    operation.again |= code == Code::kUnknownOutcome && operation.writes();
    if (!TryElsewhere(code) && !(operation.again && SaysNothing(code))) {
      LearnLeader(partition, node);
      co_return reply;
    }
    ForgetLeader(partition, node);
    hint = IfAlive(reply.leader);
    if (clock_.Now() >= until) {
      co_return Reply{
          .status = operation.again
                        ? Status(Code::kUnknownOutcome,
                                 "the write may or may not have happened: the "
                                 "partition's leader was lost meanwhile")
                        : Status(Code::kUnavailable, "no replica of the partition leads now")};
    }
    if (hint == NodeId()) {
      // 1 ms, 2 ms ... 64 ms.
      co_await runtime::Sleep(std::chrono::milliseconds(1 << std::min(tries, 6)));
    } else if (tries > 2) {
      co_await runtime::Sleep(std::chrono::milliseconds(2));
    }
  }
}

NodeId Router::IfAlive(NodeId node) const {
  return !remote_->alive || remote_->alive(node) ? node : NodeId();
}

// Whom the replica here follows, or who answered last; 0 if nobody is known and alive.
NodeId Router::LikelyLeader(PartitionId partition) const {
  if (std::shared_ptr<Replica> replica = replicas_.Find(partition)) {
    if (NodeId leader = IfAlive(replica->set().leader_node()); leader != NodeId()) {
      return leader;
    }
  }
  std::lock_guard lock(leaders_mutex_);
  auto found = leaders_.find(partition);
  return found == leaders_.end() ? NodeId() : IfAlive(found->second);
}

// One after the other of those that are alive; 0 if none is.
NodeId Router::NextInTurn(const std::vector<NodeId>& nodes, int tries) const {
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeId node = nodes[(static_cast<size_t>(tries) + i) % nodes.size()];
    if (IfAlive(node) != NodeId()) {
      return node;
    }
  }
  return NodeId();
}

void Router::LearnLeader(PartitionId partition, NodeId node) {
  std::lock_guard lock(leaders_mutex_);
  if (leaders_.size() >= kLeadersMax) {
    leaders_.clear();
  }
  leaders_[partition] = node;
}

void Router::ForgetLeader(PartitionId partition, NodeId node) {
  std::lock_guard lock(leaders_mutex_);
  auto found = leaders_.find(partition);
  if (found != leaders_.end() && found->second == node) {
    leaders_.erase(found);
  }
}

runtime::Task<Reply> Router::Send(NodeId node, const Operation& operation) {
  Result<std::string> answer =
      co_await remote_->call(node, OperationRegistry::EncodeMessage(operation));
  if (!answer) {
    // Not sent: another try does no harm.
    bool sent = answer.error().code() == Code::kUnknownOutcome;
    co_return Reply{.status = sent || remote_->always
                                  ? answer.error()
                                  : Status(Code::kNotLeader, answer.error().message())};
  }
  Decoder decoder(*answer);
  co_return Reply::Decode(decoder);
}

runtime::Task<std::string> Router::HandleMessage(std::string message) {
  Result<std::unique_ptr<Operation>> decoded = registry_.DecodeMessage(message);
  Reply reply;
  if (!decoded) {
    reply.status = decoded.error();
  } else if (std::shared_ptr<Replica> replica = replicas_.Find((*decoded)->target.partition)) {
    reply = co_await replica->Execute(**decoded);
  } else {
    reply.status = Status(remote_ && !remote_->always ? Code::kNotLeader : Code::kMoved,
                          "the partition is not here");
  }
  std::string bytes;
  Encoder encoder(bytes);
  reply.Encode(encoder);
  co_return bytes;
}

}  // namespace orrery::partition
