// `orrery simulate`: a forecast as a table and as a picture. No server is involved.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::server {

struct SimulateOptions {
  std::string keys = "uniform";
  uint64_t key_count = 1'000'000;
  std::string size = "10TB";
  double demand = 500'000;
  uint64_t throughput = 600'000;
  size_t nodes = 40;
  size_t zones = 4;
  std::string node_size;
  size_t days = 100;
  uint64_t seed = 1;
  std::vector<std::string> events;
  std::string svg;  // a file
  bool json = false;
};

// Prints and gives the exit code.
int RunSimulate(const SimulateOptions& options);

}  // namespace orrery::server
