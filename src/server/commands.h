// The commands that talk to a running server, or to its files.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::server {

struct CommandOptions {
  std::string data = "orrery-data";
  std::string endpoint;    // empty: what the data folder says
  std::string folder;      // of backup and restore
  std::string regenerate;  // a key's name
  uint32_t node = 0;       // a node's id
  std::string container;   // DATABASE/CONTAINER
  bool json = false;
  bool watch = false;  // again every second
};

// Each prints and gives the exit code.
int RunStatus(const CommandOptions& options);
int RunPartitions(const CommandOptions& options);
int RunKeys(const CommandOptions& options);
int RunNodeList(const CommandOptions& options);
int RunNodeDrain(const CommandOptions& options);
int RunNodeUndrain(const CommandOptions& options);
int RunNodeRemove(const CommandOptions& options);
int RunBackup(const CommandOptions& options);
int RunRestore(const CommandOptions& options);

}  // namespace orrery::server
