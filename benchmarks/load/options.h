// Options: the command line of `load`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "load/sql.h"

namespace orrery::load {

struct Options {
  std::string command;              // see kCommands
  SqlOptions sql;                   // and the endpoint, which all use
  std::vector<Endpoint> endpoints;  // where the load goes
  std::string path = "/";
  int connections = 32;
  int idle = 0;
  int threads = 1;
  double seconds = 10;
  double warmup = 2;
  double rate = 0;
  double read_share = 0.5;
  size_t row_bytes = 100;
  uint16_t consistency = 0x0A;  // LOCAL_ONE
  int streams = 4;
  std::vector<int> pids;
  std::vector<int> ports;
  uint16_t metrics_port = 0;  // 0: that of an API over HTTP, or none
  int kill = 0;
  bool json = false;
};

std::string Usage();
Result<Options> ParseOptions(int argc, char** argv);

}  // namespace orrery::load
