// Simulate: a whole cluster, its clients and its bad luck, on one thread, from one seed.
//
//   set up     all nodes start, SetUp() until it succeeds
//   faults     clients and nemesis
//   healed     nothing is wrong any more; clients go on for a second
//   quiet      until every group has one leader and all its replicas are equal
//   verdict    every item is read once more, and some written: are all histories linearizable?
#pragma once

#include <cstdint>
#include <string>

#include "sim/node.h"
#include "sim/witness.h"
#include "sim/workload.h"

namespace orrery::sim {

struct SimOptions {
  uint64_t seed = 1;
  MakeNode make_node;
  std::string folder;  // for real files; ours alone
  size_t nodes = 0;    // 0: three to five, by seed
  Duration faults = std::chrono::seconds(6);
  WorkloadOptions workload;
  bool verbose = false;
};

struct SimOutcome {
  std::string failure;  // empty: all was well
  uint64_t trace = 0;   // hash of all that happened
  Totals totals;
};

SimOutcome Simulate(const SimOptions& options);

}  // namespace orrery::sim
