#include "replication/raft_core_body.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/check.h"

// Of the library, but not in its header.
extern "C" {
bool progressIsOnline(struct raft* r, unsigned i);
void progressToSnapshot(struct raft* r, unsigned i);
void progressUpdateSnapshotLastSend(struct raft* r, unsigned i);
}

namespace orrery::replication {

namespace {

// A catch-up round that takes longer is given up, and begun anew when it is asked for again.
constexpr unsigned kCatchUpRoundMs = 60'000;

uint64_t Millis(Duration duration) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

bool Same(const Configuration& ours, const raft_configuration& library) {
  std::span servers(library.servers, library.n);
  return std::ranges::equal(ours.members, servers, [](const Member& a, const raft_server& b) {
    return a.id.value() == b.id && (a.role == Role::kVoter) == (b.role == RAFT_VOTER);
  });
}

Configuration ToOurs(const raft_configuration& configuration) {
  Configuration out;
  for (const raft_server& server : std::span(configuration.servers, configuration.n)) {
    out.members.push_back({ReplicaId(server.id), NodeOf(server.address),
                           server.role == RAFT_VOTER ? Role::kVoter : Role::kStandby});
  }
  return out;
}

raft_buffer Encoded(const std::string& payload) {
  Result<Configuration> configuration = Configuration::Decode(payload);
  ORRERY_CHECK(configuration.has_value());
  raft_configuration library = ToLibrary(*configuration);
  raft_buffer out;
  ORRERY_CHECK(raft_configuration_encode(&library, &out) == 0);
  raft_configuration_close(&library);
  return out;
}

}  // namespace

raft_configuration ToLibrary(const Configuration& configuration) {
  raft_configuration out;
  raft_configuration_init(&out);
  for (const Member& member : configuration.members) {
    int role = member.role == Role::kVoter ? RAFT_VOTER : RAFT_STANDBY;
    // No two may have the same address, but a node may have two replicas for a while.
    std::string address = member.node.ToString() + "/" + member.id.ToString();
    ORRERY_CHECK(raft_configuration_add(&out, member.id.value(), address.c_str(), role) == 0);
  }
  return out;
}

raft_snapshot_metadata ToLibrary(const SnapshotMeta& meta) {
  return {.index = meta.index.value(),
          .term = meta.term,
          .configuration = ToLibrary(meta.configuration),
          .configuration_index = meta.configuration_index.value()};
}

NodeId NodeOf(const char* address) {
  uint32_t node = 0;
  std::from_chars(address, address + std::strlen(address), node);
  return NodeId(node);
}

void* LibraryEntries::NoBatch() {
  static char batch;  // the library wants one that is not null
  return &batch;
}

LibraryEntries::LibraryEntries(std::span<const LogEntry> entries, void* batch) {
  list_.reserve(entries.size());
  for (const LogEntry& entry : entries) {
    raft_entry& out = list_.emplace_back();
    out.term = entry.term;
    out.batch = batch;
    switch (entry.kind) {
      case EntryKind::kCommand: out.type = RAFT_COMMAND; continue;
      case EntryKind::kBarrier: out.type = RAFT_BARRIER; continue;
      case EntryKind::kChange:
        out.type = RAFT_CHANGE;
        out.buf = Encoded(*entry.payload);
        buffers_.push_back(out.buf.base);
        continue;
    }
  }
}

LibraryEntries::~LibraryEntries() {
  for (void* buffer : buffers_) {
    raft_free(buffer);
  }
}

RaftCore::Body::Body(const RaftOptions& given) : options(given) {
  std::string address = options.node.ToString();
  ORRERY_CHECK(raft_init(&r, nullptr, nullptr, options.id.value(), address.c_str()) == 0);
  r.tracer = nullptr;  // the default one writes to a buffer that all threads share
  raft_seed(&r, options.seed);
  raft_set_election_timeout(&r, static_cast<unsigned>(Millis(options.election_timeout)));
  raft_set_heartbeat_timeout(&r, static_cast<unsigned>(Millis(options.heartbeat)));
  raft_set_install_snapshot_timeout(&r, static_cast<unsigned>(Millis(options.install_timeout)));
  raft_set_max_inflight_entries(&r, options.inflight_entries);
  raft_set_max_catch_up_round_duration(&r, kCatchUpRoundMs);
  raft_set_pre_vote(&r, true);
}

ReplicaId RaftCore::Body::leader() const {
  switch (r.state) {
    case RAFT_LEADER: return options.id;
    case RAFT_FOLLOWER: return ReplicaId(r.follower_state.current_leader.id);
    default: return ReplicaId();
  }
}

bool RaftCore::Body::settled() const {
  return leads() && (!guards(kGuardBarrier) || TermOf(r.commit_index) == r.current_term);
}

uint64_t RaftCore::Body::TermOf(uint64_t index) const {
  const raft_trail& trail = r.trail;
  if (index > trail.offset) {
    for (unsigned i = trail.front; i != trail.back; i = (i + 1) % trail.size) {
      if (index <= trail.records[i].index) {
        return trail.records[i].term;
      }
    }
  }
  return index != 0 && index == trail.snapshot.index ? trail.snapshot.term : 0;
}

uint64_t RaftCore::Body::Match(ReplicaId id) const {
  raft_index match = 0;
  return raft_match_index(&r, id.value(), &match) == 0 ? match : 0;
}

raft_server* RaftCore::Body::Self() {
  for (raft_server& server : std::span(r.configuration.servers, r.configuration.n)) {
    if (server.id == r.id) {
      return &server;
    }
  }
  return nullptr;
}

bool RaftCore::Body::LoneVoter() {
  raft_server* self = Self();
  return self != nullptr && self->role == RAFT_VOTER && configuration.voters() == 1;
}

// Steps -------------------------------------------------------------------------------------------

void RaftCore::Body::Begin(Instant now) {
  now_ms = std::max(now_ms, Millis(now.time_since_epoch()));
  state_before = r.state;
  leader_before = leader();
  commit_before = r.commit_index;
}

void RaftCore::Body::Finish(Update& update) {
  StepConfiguration(update, false);
  if (leads() && state_before != RAFT_LEADER) {
    leads_since = now_ms;
    peers.clear();
    // The library does this only if its log goes beyond the commit index.
    bool has_barrier = !update.entries.empty() && update.entries.back().term == r.current_term;
    if (guards(kGuardBarrier) && !has_barrier) {
      std::vector<LogEntry> barrier(1);
      barrier[0].kind = EntryKind::kBarrier;
      ORRERY_CHECK(Submit(std::move(barrier), update) == 0);
    }
  }
  update.state_changed = r.state != state_before || leader() != leader_before;
  update.commit_changed = r.commit_index != commit_before;
}

int RaftCore::Body::Step(raft_event& event, Update& update, const Given& given) {
  raft_update out{};
  event.time = now_ms;
  int error = raft_step(&r, &event, &out);
  if (error != 0) {
    return error;
  }
  if (out.flags & (RAFT_UPDATE_CURRENT_TERM | RAFT_UPDATE_VOTED_FOR)) {
    update.hard_state = true;
  }
  if (out.flags & RAFT_UPDATE_ENTRIES) {
    TakeEntries(out, update, given);
  }
  if (out.flags & RAFT_UPDATE_SNAPSHOT) {
    raft_configuration_close(&out.snapshot.metadata.configuration);
  }
  for (const raft_message& message : std::span(out.messages.batch, out.messages.n)) {
    TakeMessage(message, update);
  }
  TakeConfiguration();
  return 0;
}

void RaftCore::Body::TakeConfiguration() {
  if (!Same(configuration, r.configuration)) {
    configuration = ToOurs(r.configuration);
  }
}

void RaftCore::Body::TakeEntries(const raft_update& out, Update& update, const Given& given) {
  if (update.entries.empty()) {
    update.first_entry = Lsn(out.entries.index);
  }
  ORRERY_CHECK(update.first_entry.value() + update.entries.size() == out.entries.index);
  if (given.entries.empty()) {  // its own barrier
    ORRERY_CHECK(out.entries.n == 1 && out.entries.batch[0].type == RAFT_BARRIER);
    update.entries.push_back({.term = out.entries.batch[0].term, .kind = EntryKind::kBarrier});
    raft_free(out.entries.batch[0].batch);
    return;
  }
  size_t offset = out.entries.index - given.first.value();
  ORRERY_CHECK(offset + out.entries.n == given.entries.size());
  for (LogEntry& entry : given.entries.subspan(offset)) {
    update.entries.push_back(std::move(entry));
  }
  raft_free(given.batch);
}

void RaftCore::Body::TakeMessage(const raft_message& out, Update& update) {
  Message message;
  if (out.server_id == 0 || !FromLibrary(out, message)) {
    return;
  }
  message.from = options.id;
  message.to = ReplicaId(out.server_id);
  message.node = NodeOf(out.server_address);
  if (guards(kGuardFirstSnapshot) && message.kind == MessageKind::kAppend &&
      message.index == Lsn() && message.entry_count == 0) {
    MendFirstSnapshot(message);
  }
  if (message.kind == MessageKind::kAppend) {
    // When a follower has as many entries under way as it may, each submit would send it one
    // without any. The library takes those for heartbeats, so who is due is counted here.
    Peer& peer = peers[message.to];
    if (submitting && message.entry_count == 0 && now_ms - peer.sent < r.heartbeat_timeout) {
      return;
    }
    peer.sent = now_ms;
  }
  update.messages.push_back(std::move(message));
}

// A base at index 1 passes for entry 1, and who has nothing gets an append without it for ever.
void RaftCore::Body::MendFirstSnapshot(Message& message) {
  unsigned i = 0;
  while (i < r.configuration.n && r.configuration.servers[i].id != message.to.value()) {
    ++i;
  }
  if (i == r.configuration.n || !progressIsOnline(&r, i)) {
    return;
  }
  progressToSnapshot(&r, i);
  progressUpdateSnapshotLastSend(&r, i);
  message.kind = MessageKind::kInstall;
  message.index = base.index;
  message.index_term = base.term;
  message.configuration = base.configuration;
  message.configuration_index = base.configuration_index;
}

bool RaftCore::Body::FromLibrary(const raft_message& out, Message& message) {
  switch (out.type) {
    case RAFT_APPEND_ENTRIES:
      message.kind = MessageKind::kAppend;
      message.term = out.append_entries.term;
      message.index = Lsn(out.append_entries.prev_log_index);
      message.index_term = out.append_entries.prev_log_term;
      message.commit = Lsn(out.append_entries.leader_commit);
      message.entry_count = out.append_entries.n_entries;
      return true;
    case RAFT_APPEND_ENTRIES_RESULT:
      message.kind = MessageKind::kAppendResult;
      message.term = out.append_entries_result.term;
      message.index = Lsn(out.append_entries_result.last_log_index);
      message.rejected = Lsn(out.append_entries_result.rejected);
      return true;
    case RAFT_REQUEST_VOTE:
      message.kind = MessageKind::kVote;
      message.term = out.request_vote.term;
      message.index = Lsn(out.request_vote.last_log_index);
      message.index_term = out.request_vote.last_log_term;
      message.pre_vote = out.request_vote.pre_vote;
      message.disrupt = out.request_vote.disrupt_leader;
      return true;
    case RAFT_REQUEST_VOTE_RESULT:
      message.kind = MessageKind::kVoteResult;
      message.term = out.request_vote_result.term;
      message.granted = out.request_vote_result.vote_granted;
      message.pre_vote = out.request_vote_result.pre_vote;
      if (guards(kGuardRefusalTerm) && message.pre_vote && !message.granted) {
        message.term = r.current_term;
      }
      return true;
    case RAFT_INSTALL_SNAPSHOT:
      message.kind = MessageKind::kInstall;
      message.term = out.install_snapshot.term;
      message.index = base.index;
      message.index_term = base.term;
      message.configuration = base.configuration;
      message.configuration_index = base.configuration_index;
      return true;
    case RAFT_TIMEOUT_NOW:
      message.kind = MessageKind::kTimeoutNow;
      message.term = out.timeout_now.term;
      message.index = Lsn(out.timeout_now.last_log_index);
      message.index_term = out.timeout_now.last_log_term;
      return true;
  }
  return false;
}

// Everything but kAppend.
void RaftCore::Body::StepMessage(const Message& message, Update& update) {
  std::string address = message.node.ToString();
  raft_message in{};
  in.server_id = message.from.value();
  in.server_address = address.c_str();
  switch (message.kind) {
    case MessageKind::kAppend: ORRERY_CHECK(false); return;
    case MessageKind::kAppendResult:
      in.type = RAFT_APPEND_ENTRIES_RESULT;
      in.append_entries_result = {.version = 1,
                                  .term = message.term,
                                  .rejected = message.rejected.value(),
                                  .last_log_index = message.index.value()};
      break;
    case MessageKind::kVote:
      in.type = RAFT_REQUEST_VOTE;
      in.request_vote = {.version = 2,
                         .term = message.term,
                         .candidate_id = message.from.value(),
                         .last_log_index = message.index.value(),
                         .last_log_term = message.index_term,
                         .disrupt_leader = message.disrupt,
                         .pre_vote = message.pre_vote};
      break;
    case MessageKind::kVoteResult:
      in.type = RAFT_REQUEST_VOTE_RESULT;
      in.request_vote_result = {.version = 2,
                                .term = message.term,
                                .vote_granted = message.granted,
                                .pre_vote = message.pre_vote};
      break;
    case MessageKind::kInstall:
      in.type = RAFT_INSTALL_SNAPSHOT;
      in.install_snapshot = {.version = 1,
                             .term = message.term,
                             .last_index = message.index.value(),
                             .last_term = message.index_term,
                             .conf = ToLibrary(message.configuration),
                             .conf_index = message.configuration_index.value()};
      break;
    case MessageKind::kTimeoutNow:
      in.type = RAFT_TIMEOUT_NOW;
      in.timeout_now = {.version = 1,
                        .term = message.term,
                        .last_log_index = message.index.value(),
                        .last_log_term = message.index_term};
      break;
  }
  raft_event event{.type = RAFT_RECEIVE};
  event.receive.message = &in;
  ORRERY_CHECK(Step(event, update) == 0);
}

// A change is settled as soon as it is committed (or known to be so). Only a leader that it removes
// or demotes waits until it is applied, because then it steps down.
void RaftCore::Body::StepConfiguration(Update& update, bool committed) {
  raft_index index = r.configuration_uncommitted_index;
  raft_server* self = Self();
  bool steps_down = leads() && (self == nullptr || self->role != RAFT_VOTER);
  if (index == 0 || (index > r.commit_index && !committed) || steps_down) {
    return;
  }
  raft_event event{.type = RAFT_CONFIGURATION};
  event.configuration.index = index;
  event.configuration.conf = ToLibrary(configuration);
  ORRERY_CHECK(Step(event, update) == 0);
}

}  // namespace orrery::replication
