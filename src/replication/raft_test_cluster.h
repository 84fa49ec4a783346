// TestCluster: replicas of one group in one thread, with a network and disks that misbehave by a
// seed, and a check of what consensus promises after every step.
//
// One leader in a term; what is applied at an index is the same everywhere and for ever; who
// becomes leader has everything that was ever applied. A broken promise is kept in fault().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "replication/raft_core.h"

namespace orrery::replication {

struct TestClusterOptions {
  uint64_t seed = 1;
  size_t founders = 3;
  uint32_t guards = kGuardsAll;
  uint32_t inflight_entries = 8;
  bool chaos = false;    // losses, crashes, partitions, changes, cuts
  bool reorder = false;  // and duplicates
};

class TestCluster {
 public:
  static constexpr size_t kNodes = 6;

  explicit TestCluster(const TestClusterOptions& options);

  // Runs until so many milliseconds have passed, or `done`.
  void Run(uint64_t ms, const std::function<bool()>& done = [] { return false; });
  // Everything that is down comes up, nothing misbehaves any more.
  void Heal();
  // All live members have applied all that their leader has.
  bool Settled() const;

  RaftCore* leader();
  RaftCore* core(ReplicaId id);
  bool Submit(std::string payload);
  // A new replica on a free node; its id.
  ReplicaId Add();
  void Crash(ReplicaId id);
  void Restart(ReplicaId id);
  // Each cuts its log at random, near its end.
  void CutAll();
  void Handle(ReplicaId id, Update update);
  Instant now() const { return Instant(std::chrono::milliseconds(now_)); }

  const std::string& fault() const { return fault_; }
  uint64_t applied_max() const { return applied_.empty() ? 0 : applied_.rbegin()->first; }
  uint64_t changes() const { return changes_; }
  uint64_t installs() const { return installs_; }
  uint64_t crashes() const { return crashes_; }

 private:
  struct Write {
    uint64_t due = 0;
    std::optional<storage::HardState> hard;
    Lsn first;
    std::vector<LogEntry> entries;
    Lsn last;  // to report; lowered when a later write cuts it
    std::optional<SnapshotMeta> base;
  };
  struct Disk {
    storage::HardState hard;
    std::optional<SnapshotMeta> base;
    std::vector<LogEntry> entries;  // above the base
    Lsn applied;
    void Do(const Write& write);
    const LogEntry& At(uint64_t index) const { return entries[index - base->index.value() - 1]; }
  };
  struct Replica {
    ReplicaId id;
    NodeId node;
    std::unique_ptr<RaftCore> core;  // null: down
    Disk disk;
    Disk log;  // what the disk will be when all writes are done
    std::deque<Write> writes;
    std::vector<Message> gated;
    Lsn applied;
    Lsn last;
    Lsn commit;
    std::optional<SnapshotMeta> install;
    uint64_t install_due = 0;
  };
  struct Packet {
    uint64_t due = 0;
    Message message;
  };

  uint64_t Below(uint64_t limit) { return random_.Next() % limit; }
  bool Chance(uint64_t percent) { return Below(100) < percent; }
  void Fault(std::string what);
  void Boot(Replica& replica);
  void Send(Replica& replica, Message message);
  void Deliver(Packet packet);
  void FinishWrite(Replica& replica);
  void FinishInstall(Replica& replica);
  void Apply(Replica& replica);
  void CheckCore(Replica& replica);
  void CheckLeader(Replica& replica);
  void Chaos();
  void ChangeSomething();
  void Cut(Replica& replica);
  uint64_t NextEvent() const;
  Replica* Find(ReplicaId id);

  const TestClusterOptions options_;
  SeededRandom random_;
  bool chaos_ = false;
  uint64_t now_ = 1000;
  uint64_t next_chaos_ = 1000;
  uint64_t next_id_ = 1;
  uint64_t next_payload_ = 1;
  std::map<ReplicaId, Replica> replicas_;
  std::vector<Packet> packets_;
  std::set<NodeId> cut_off_;
  std::map<uint64_t, ReplicaId> leaders_;                         // by term
  std::map<uint64_t, std::pair<uint64_t, std::string>> applied_;  // index: term, kind and payload
  Configuration newest_;                                          // applied
  Lsn newest_index_;
  std::string fault_;
  uint64_t changes_ = 0, installs_ = 0, crashes_ = 0;
};

}  // namespace orrery::replication
