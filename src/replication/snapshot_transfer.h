// SnapshotTransfer: how a replica's state gets from one node to another.
//
// The sender writes files from one consistent view of its state and keeps them for a while; the
// receiver asks for the list (ids, sizes, checksums, the applied index they stand for), pulls the
// files in chunks, resumes where a connection broke, and checks every file before it is used. Files
// are pulled, never pushed: a stale stream cannot be taken for a newer one.
//
// Requests, each answered with status and body:
//   begin {group, index}               -> manifest; the state stands at `index` or later
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

  // Receiver, on a worker. kUnavailable: try again later.
  runtime::Task<Result<ReceivedSnapshot>> Fetch(NodeId from, GroupId group, Lsn index);
  void Drop(const ReceivedSnapshot& snapshot);

  // Sender. `extra` is stored beside the group's record (outcomes of operations).
  using Extra = std::function<runtime::Task<std::string>(GroupId)>;
  void SetExtra(Extra extra) { extra_ = std::move(extra); }
  runtime::Task<std::string> Handle(std::string request);

 private:
  struct Outgoing {
    std::string folder;
    std::vector<storage::SnapshotFile> files;
    Instant used;
    GroupId group;
  };
  runtime::Task<Result<std::string>> Begin(GroupId group, Lsn index);
  runtime::Task<Result<std::string>> Read(uint64_t id, uint32_t file, uint64_t offset, uint32_t n);
  void Forget(uint64_t id);
  void Expire();
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request);
  runtime::Task<Status> FetchFile(NodeId from, uint64_t id, uint32_t number,
                                  const storage::SnapshotFile& file);

  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  Random& random_;
  Transport& transport_;
  const std::string folder_;
  const SnapshotLimits limits_;
  Extra extra_;

  std::mutex mutex_;
  std::map<uint64_t, Outgoing> outgoing_;
};

}  // namespace orrery::replication
