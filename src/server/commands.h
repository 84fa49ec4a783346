// The commands that talk to a running server, or to its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::server {

struct CommandOptions {
  std::string data = "orrery-data";
  std::string endpoint;    // empty: what the data folder says
  std::string folder;      // of backup and restore
  std::string regenerate;  // a key's name
  uint32_t node = 0;       // a node's id
  uint64_t partition = 0;  // a partition's id
  std::string at;          // where it is split
  uint32_t from = 0;       // nodes
  uint32_t to = 0;
  std::string container;  // DATABASE/CONTAINER
  bool json = false;
  bool watch = false;  // again every second
  // Of `throughput`:
  std::vector<std::string> amounts;  // number=amount
  uint32_t default_bucket = 0;
  bool none = false;   // no buckets
  bool equal = false;  // for all partitions
};

// Each prints and gives the exit code.
int RunStatus(const CommandOptions& options);
int RunPartitions(const CommandOptions& options);
int RunKeys(const CommandOptions& options);
int RunNodeList(const CommandOptions& options);
int RunNodeDrain(const CommandOptions& options);
int RunNodeUndrain(const CommandOptions& options);
int RunNodeRemove(const CommandOptions& options);
int RunPartitionSplit(const CommandOptions& options);
int RunPartitionMerge(const CommandOptions& options);
int RunPartitionMove(const CommandOptions& options);
int RunBalancerPause(const CommandOptions& options);
int RunBalancerResume(const CommandOptions& options);
int RunThroughputShow(const CommandOptions& options);
int RunThroughputBuckets(const CommandOptions& options);
int RunThroughputRedistribute(const CommandOptions& options);
int RunBackup(const CommandOptions& options);
int RunRestore(const CommandOptions& options);

}  // namespace orrery::server
