// RaftReplicaSet: one node's replica of a group that commits by quorum.
//
//   Commit      queues; once per turn of the loop one Submit takes all that waits
//   Handle      does what the core's update says: term and vote and entries to the log writer,
//               messages out (held back while a term or vote is not durable), commits to apply
//   Apply       one batch at a time goes to the store's apply thread; then listeners hear of each
//               WriteSet and whoever waits for it goes on
//   Reconcile   the leader moves the configuration towards the placement, one change at a time
//
// Reads: ReadBarrier is a read-index round: the commit index is noted, a majority confirms that the
// term is still the newest, and the answer waits until that index is applied. No disk is involved.
// With leases the confirmation is taken from the answers to appends: each carries the time at which
// the leader sent what it answers, and no follower votes for another within an election time-out of
// that. It needs clocks of nearly equal speed, and nobody who elects earlier (dead processes are
// not noticed at once, a process that has just started does not vote).
//
// How old the state of a follower can be is told without comparing clocks:
//
//   1  an answer to an append carries the follower's time; the leader notes when it came
//   2  a majority has answered appends that left after that: so this one still led then, and
//      what others had acknowledged by the follower's time is committed here
//   3  the next append brings that time back, with the commit index
//   4  when that is applied, the follower has everything from before its own time
//
// A leader has everything from before the time at which the appends left that a majority has
// answered, or the last round of reads began.
//
// A quiet group costs nothing: when all followers have everything, the leader says so, and both
// stop their clocks. Any message of the protocol wakes them, and so does the silence of the
// leader's node, which all of its groups notice by one heartbeat.
//
// Lives on its worker; applied(), totals(), leads(), leader_node() are thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "replication/catch_up_pace.h"
#include "replication/crowd.h"
#include "replication/entry_cache.h"
#include "replication/raft_core.h"
#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::replication {

class RaftHost;

struct RaftSetOptions {
  Duration election_timeout = std::chrono::milliseconds(1000);
  Duration heartbeat = std::chrono::milliseconds(200);
  size_t cache_bytes = 4 << 20;
  size_t queue_bytes_max = 32 << 20;   // proposed and not yet applied
  size_t message_bytes_max = 1 << 20;  // entries of one message, unless one is larger
  size_t apply_bytes_max = 4 << 20;    // of one batch
  uint64_t trail_entries = 1024;       // of the log, kept below the cut
  uint64_t cut_entries = 1024;         // not worth a cut below that
  size_t inflight_entries = 1024;
  bool quiesce = true;
  bool lease_reads = false;
};

// What a group sends besides the messages of the core.
enum class FrameKind : uint8_t {
  kRaft = 1,
  kProbe = 2,  // is your term still this?
  kProbeAck = 3,
  kQuiet = 4,     // you have everything: stop the clock
  kGone = 5,      // you are no member any more
  kHash = 6,      // what my state was at an index
  kWrong = 7,     // your state is not what the others have: stop
  kAsk = 8,       // I hear nothing: am I still a member?
  kWant = 9,      // the placement names me first, and I am well
  kDamaged = 10,  // I cannot read my state
};

// How it stands with a replica, for status and repair.
struct RaftView {
  ReplicaId replica;
  bool leads = false;
  uint64_t term = 0;
  Configuration configuration;
  bool changing = false;
  std::vector<std::pair<ReplicaId, Lsn>> match;  // of followers, on the leader
  Lsn commit;
  Lsn applied;
};

// How long a log is kept for a follower that fetches a snapshot, after each sign of it.
inline constexpr Duration kSnapshotHold = std::chrono::seconds(30);

class RaftReplicaSet final : public ReplicaSet,
                             public std::enable_shared_from_this<RaftReplicaSet> {
 public:
  RaftReplicaSet(GroupId group, ReplicaId self, RaftHost& host, runtime::Worker& worker);
  ~RaftReplicaSet() override;

  // Begins from what the store has; `heads` are the entries above its base. `eager`: the group is
  // new and this replica should be its first leader. REQUIRES: on the worker.
  void Start(std::vector<LogEntry> heads, bool eager);
  // Nothing goes out any more; what waits gets kUnavailable or kUnknownOutcome.
  void Stop();

  // ReplicaSet
  void SetListener(ApplyListener* listener) override;
  bool leads() const override { return settled_.load(std::memory_order_acquire); }
  uint64_t term() const override { return term_.load(std::memory_order_acquire); }
  bool replicated() const override { return true; }
  NodeId leader_node() const override {
    return NodeId(leader_node_.load(std::memory_order_relaxed));
  }
  runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t term) override;
  runtime::Task<Status> ReadBarrier() override;
  bool Within(const Staleness& bound) const override;
  uint64_t installs() const override { return installs_.load(std::memory_order_acquire); }
  const std::string& extra() const override { return extra_; }
  Lsn applied() const override { return Lsn(applied_.load(std::memory_order_acquire)); }
  storage::Totals totals() const override;
  runtime::Task<Status> WaitApplied(Lsn lsn, Duration longest) override;
  Result<Holders> HoldersOf(Lsn lsn) const override;
  runtime::Task<bool> ReportDamage(Status why) override;

  // For the host, on the worker -------------------------------------------------------------------
  void Receive(NodeId from_node, ReplicaId from, FrameKind kind, std::string_view body);
  void Tick();
  Instant deadline() const;
  // The node of the current leader is silent, or its process dead.
  void OnNodeSilent(NodeId node, bool dead);
  void OnFlushed();
  // What the members should be; the leader works towards it.
  void SetPlacement(Configuration desired);
  // It is one of the first members, also if it has not heard of any. REQUIRES: before Start.
  void SetFounder() { founder_ = true; }
  // As many members vote and are alive as should.
  bool whole() const;
  // The catalog says that the log up to this entry is committed. Returns when that is applied;
  // kNotFound: the log here does not have the entry.
  runtime::Task<Status> FinishAt(Lsn lsn, uint64_t term);
  // Gives the leadership away, if it has it; to a member of the placement.
  void TransferAway();
  // Asks the leader for the leadership; it gives it to the replica that the placement names first,
  // if that one lacks nothing.
  void AskToLead();
  // Has all replicas hash their state at one index and compares; a replica that differs from a
  // majority is told to RaftHostOptions::on_difference. Nothing if this one does not lead.
  void Check();
  // Somebody is fetching a snapshot of this replica: the log is not cut meanwhile.
  void HoldLog(Duration how_long);
  SnapshotMeta SnapshotMetaNow() const { return base_; }
  RaftView view() const;
  // Files of a snapshot go into the store, also after Stop: it must not be used for another replica
  // of the group until they are in. Thread-safe.
  bool taking_in() const { return taking_in_; }
  // No configuration has this replica any more.
  bool gone() const { return gone_.load(std::memory_order_relaxed); }  // thread-safe

  GroupId group() const { return group_; }
  ReplicaId replica() const { return self_; }
  runtime::Worker& worker() { return worker_; }
  ApplyListener* listener() { return listener_; }

 private:
  struct Proposal {
    LogEntry entry;
    uint64_t term;
    std::function<void(Result<Lsn>)> resume;
  };
  struct Waiting {  // submitted
    Lsn index;
    size_t bytes;
    std::function<void(Result<Lsn>)> resume;
  };
  struct InFlight {  // being written to the log
    uint64_t number;
    Lsn last;  // 0: no entries
    bool hard;
  };
  struct ReadWait {
    Lsn index;
    std::function<void(Status)> resume;
  };
  struct ReadRound {
    uint64_t number = 0;
    std::vector<ReplicaId> acks;
    std::vector<ReadWait> waits;
    Instant started;
  };

  Instant Now() const;  // the group's clock, which stands still while it is quiet
  void Wake();
  void Handle(Update update);
  void Persist(Update& update);
  void Publish();
  void OnPersisted(uint64_t number, const Status& status);
  void FlushProposals();
  // Runs `then` when the crowd's patience is over; false: it is. `waits`: whether that runs
  // already.
  bool Gather(const Crowd& crowd, size_t here, bool& waits, void (RaftReplicaSet::*then)());
  // Whoever waits hears that this replica does not lead: what was submitted may still happen.
  void FailWaiting();
  // Messages
  void SendAll(std::vector<Message> messages);
  void SendNow(Message message);
  void SendAppend(Message message);
  void SendMessage(const Message& message);
  bool AttachEntries(Message& message, size_t bytes_max);
  Duration RestAfter(ReplicaId to, Lsn sent);
  runtime::Task<> SendFromLog(std::shared_ptr<RaftReplicaSet> self, Message message);
  bool TellGone(NodeId node, ReplicaId replica);
  void SendSmall(ReplicaId to, NodeId node, FrameKind kind, const std::string& body);
  // Apply
  void ScheduleApply();
  runtime::Task<> ApplyFromLog(std::shared_ptr<RaftReplicaSet> self, Lsn first, Lsn last);
  void StartApply(Lsn first, std::vector<LogEntry> entries);
  void OnApplied(Lsn first, std::vector<LogEntry> entries, const Status& status,
                 const storage::ReplicaRecord& record);
  void TakeRecord(const storage::ReplicaRecord& record);
  // What is known to be committed: by the core, or by FinishAt.
  Lsn committed() const { return std::max(core_->commit(), finish_at_); }
  void CommitChanges();
  void NoteMembership(const Configuration& configuration);
  void WakeReaders();
  // Reads
  void StartReadRound();
  void OnProbeAck(ReplicaId from, Decoder body);
  void ConfirmReads();
  bool HasLease() const;
  // Whether one that has promised to vote for nobody else for a while may heed the message.
  bool KeepsPromise(const Message& message) const;
  // What is behind a message of the core:
  //   append   now, proved, commit         u64 each; 0: none
  //   answer   promised, heard, own time   u64 each; promised: heard, by one that keeps to leases
  void AppendStamps(const Message& message, Encoder& encoder) const;
  void OnStamps(const Message& message, Decoder& decoder);
  uint64_t OwnStamp() const;
  struct Contact {
    Instant answered;    // when the newest append left that it answered
    Instant promised;    // the same; it votes for nobody else within an election time-out
    uint64_t asked = 0;  // its time in an answer; 0: none waits for a proof
    Instant asked_at;    // when that came here
    uint64_t proved = 0;
  };
  Instant QuorumTime(Instant Contact::* time) const;
  void ProveContacts();
  void NoteFresh(Instant at);
  void NoteCommitted(Lsn lsn);
  void TakeProof();
  // Members
  void Reconcile();
  std::optional<Configuration> NextConfiguration(const Configuration& now) const;
  void CountMoves(const Configuration& before, const Configuration& now);
  void OnWant(ReplicaId from);
  void TransferTo(ReplicaId replica);
  void StepTransfer();
  void SendHint();
  void Ask();
  bool HasPlacement() const;
  void MaybeQuiet();
  void OnQuiet(NodeId from_node, ReplicaId from, Decoder body);
  // Comparison (raft_check.cc)
  static bool IsCheck(const LogEntry& entry);
  void StartHash(Lsn index);
  runtime::Task<> HashState(std::shared_ptr<RaftReplicaSet> self, Lsn index,
                            std::shared_ptr<storage::Snapshot> state, NodeId leader);
  void OnHash(ReplicaId from, Decoder body);
  void JudgeHashes();
  // Damage (raft_check.cc)
  runtime::Task<> TellDamage(std::shared_ptr<RaftReplicaSet> self);
  void OnDamaged(ReplicaId from, Decoder body);
  bool TakesPart(const Member& member) const;
  bool CanSpare(ReplicaId replica) const;
  ReplicaId WellOther() const;
  void MakeAnew(ReplicaId replica);
  void OnCut(const SnapshotMeta& meta, const Status& status);
  // Snapshots
  runtime::Task<> Install(std::shared_ptr<RaftReplicaSet> self, SnapshotMeta meta,
                          NodeId from_node);
  runtime::Task<Result<storage::ReplicaRecord>> InstallFiles(const SnapshotMeta& meta,
                                                             NodeId from_node);
  void Fail(const std::string& why);

  const GroupId group_;
  const ReplicaId self_;
  RaftHost& host_;
  runtime::Worker& worker_;
  storage::Store& store_;
  const RaftSetOptions& options_;
  ApplyListener* listener_ = nullptr;

  // Published:
  std::atomic<bool> settled_ = false;
  std::atomic<uint64_t> term_ = 0;
  std::atomic<uint32_t> leader_node_ = 0;
  std::atomic<uint64_t> applied_ = 0;
  std::atomic<bool> gone_ = false;
  std::atomic<bool> taking_in_ = false;
  std::atomic<uint64_t> installs_ = 0;
  std::atomic<int64_t> fresh_ = 0;       // see NoteFresh
  std::atomic<uint64_t> committed_ = 0;  // as far as is known here
  std::atomic<int64_t> bytes_ = 0;
  std::atomic<int64_t> items_ = 0;

  // On the worker:
  std::unique_ptr<RaftCore> core_;
  bool stopped_ = false;
  EntryCache cache_;
  Lsn log_last_;
  SnapshotMeta base_;
  std::deque<std::pair<Lsn, Configuration>> changes_;  // in the log, not known to be committed
  std::deque<std::pair<Lsn, Configuration>> configurations_;  // committed, above the base
  std::map<ReplicaId, Lsn> told_commit_;
  Lsn barrier_;  // the last entry when this replica became leader
  std::deque<Proposal> queue_;
  std::deque<Waiting> waiting_;
  size_t queued_bytes_ = 0;
  bool flush_scheduled_ = false;
  Crowd writers_;
  bool writers_gather_ = false;

  uint64_t next_append_ = 1;
  std::deque<InFlight> appends_;
  size_t hard_in_flight_ = 0;
  std::vector<Message> gated_;
  std::map<ReplicaId, std::deque<Message>> reading_;  // appends that wait for the log, by follower
  std::map<ReplicaId, CatchUpPace> catching_up_;

  bool founder_ = false;
  bool was_member_ = false;
  std::string frozen_;
  Lsn finish_at_;
  bool applying_ = false;
  bool installing_ = false;
  bool cutting_ = false;
  std::string extra_;
  Instant hold_log_until_;

  std::deque<ReadWait> read_queue_;  // for the next round
  bool read_posted_ = false;
  Crowd readers_;
  bool readers_gather_ = false;
  std::optional<ReadRound> read_round_;
  uint64_t next_round_ = 1;
  std::vector<ReadWait> read_waits_;  // confirmed, not applied yet

  // Leases and freshness
  Instant started_;
  uint64_t life_ = 0;         // makes the stamps of one process differ from those of another
  uint64_t heard_stamp_ = 0;  // newest of the leader of stamp_term_
  uint64_t stamp_term_ = 0;
  std::map<ReplicaId, Contact> contacts_;  // of a leader
  uint64_t no_lease_term_ = 0;             // the leadership was given away in it
  struct Proof {
    Instant asked;
    Lsn commit;
  };
  std::optional<Proof> proof_;  // not applied yet

  std::optional<Configuration> desired_;
  Instant refused_until_;
  ReplicaId transfer_to_;  // proposals are held while it is set
  Instant transfer_until_;

  Lsn check_index_;  // 0: none runs
  Instant check_until_;
  std::map<ReplicaId, std::pair<Lsn, uint64_t>> hashes_;  // the last that each told
  std::set<ReplicaId> wrong_;  // told so by this replica, as the leader of this term
  bool damaged_ = false;       // a read of the state has failed
  std::map<ReplicaId, Instant> damaged_others_;  // when each said so

  Instant eager_until_;  // calls for elections while nobody leads
  Instant next_eager_;
  Member heard_from_;  // who last led, as far as this replica knows
  Instant ask_at_;     // of a follower, if it hears nothing until then
  Instant last_activity_;
  Instant hint_at_;  // tell followers the commit index
  bool quiet_ = false;
  Instant quiet_since_;
  Duration quiet_total_{};
};

}  // namespace orrery::replication
