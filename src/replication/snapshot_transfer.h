// SnapshotTransfer: how a replica's state gets from one node to another.
//
// The sender takes one consistent view of its state and writes it into files, each when it is asked
// for; the receiver pulls a file in chunks while the next is written, resumes where a connection
// broke, and checks every file before it is used. Files are pulled, never pushed: a stale stream
// cannot be taken for a newer one. However large the state is, no request takes long and the sender
// keeps two files.
//
// A replica that nobody is in need of comes calmly: either end takes a small share of its machine
// for it. One that takes the place of a lost one comes as fast as it can.
//
// Requests, each answered with status and body:
//   begin {group, index}               -> what it is; the state stands at `index` or later
//   next  {snapshot, file}             -> a file, or that there is none; those before `file - 1` go
//   read  {snapshot, file, offset, n}  -> bytes
//   end   {snapshot}
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "replication/transport.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::replication {

struct SnapshotLimits {
  size_t chunk_bytes = 1 << 20;
  size_t outgoing_max = 8;                   // kept at the same time
  Duration keep = std::chrono::seconds(60);  // after the last request
  uint64_t bytes_per_second = 200 << 20;     // of one receiver
  int tries = 20;                            // of one chunk
  double calm_share = 0.1;                   // of the time of one core, where there is no hurry
};

// A snapshot that has arrived whole and was checked.
struct ReceivedSnapshot {
  uint64_t id = 0;
  std::string folder;
  std::vector<storage::SnapshotFile> files;
  Lsn applied;
};

class SnapshotTransfer {
 public:
  SnapshotTransfer(storage::Store& store, runtime::WorkerPool& workers, const Clock& clock,
                   Random& random, Transport& transport, std::string folder, SnapshotLimits limits);
  ~SnapshotTransfer();

  // Receiver, on a worker. kUnavailable: try again later, or the caller has given up.
  using GivenUp = std::function<bool()>;
  runtime::Task<Result<ReceivedSnapshot>> Fetch(NodeId from, GroupId group, Lsn index,
                                                GivenUp given_up);
  void Drop(const ReceivedSnapshot& snapshot);

  // Sender. `extra` is stored beside the group's record (outcomes of operations).
  using Extra = std::function<runtime::Task<std::string>(GroupId)>;
  void SetExtra(Extra extra) { extra_ = std::move(extra); }
  // Whether the group has all replicas that it should have.
  using Whole = std::function<runtime::Task<bool>(GroupId)>;
  void SetWhole(Whole whole) { whole_ = std::move(whole); }
  // Called while a snapshot of the group is being fetched: who has it will need the log after it.
  using InUse = std::function<void(GroupId)>;
  void SetInUse(InUse in_use) { in_use_ = std::move(in_use); }
  runtime::Task<std::string> Handle(std::string request);
  // Forgets snapshots that nobody asks for any more: each keeps a view of the state alive.
  void Expire();

 private:
  struct Outgoing {
    GroupId group;
    std::string folder;
    std::shared_ptr<storage::SnapshotWriter> writer;  // null: not yet, or it has written all
    std::vector<storage::SnapshotFile> files;
    Instant used;
    bool calm = false;
    bool writing = false;
  };
  using Next = std::optional<storage::SnapshotFile>;
  runtime::Task<Result<std::string>> Begin(GroupId group, Lsn index);
  runtime::Task<Result<std::string>> WriteNext(uint64_t id, uint32_t number);
  runtime::Task<Result<std::string>> Read(uint64_t id, uint32_t file, uint64_t offset, uint32_t n);
  Duration Breath(Duration took) const;
  void Use(Outgoing& outgoing);
  void Forget(uint64_t id);
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request);
  runtime::Task<Status> FetchFiles(NodeId from, bool calm, const GivenUp& given_up,
                                   ReceivedSnapshot& received);
  runtime::Task<Result<Next>> AskNext(NodeId from, uint64_t id, uint32_t number);
  runtime::Task<Result<Next>> FetchFile(NodeId from, uint64_t id, uint32_t number, bool calm,
                                        const GivenUp& given_up, const storage::SnapshotFile& file);

  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  Random& random_;
  Transport& transport_;
  const std::string folder_;
  const SnapshotLimits limits_;
  Extra extra_;
  Whole whole_;
  InUse in_use_;

  std::mutex mutex_;
  std::map<uint64_t, Outgoing> outgoing_;
};

}  // namespace orrery::replication
