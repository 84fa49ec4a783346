// SeedRunner: runs seeds side by side, each in a process of its own, so that one which crashes or
// hangs is a failure like any other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <sys/types.h>

#include "sim/simulation.h"

namespace orrery::sim {

struct SeedResult {
  uint64_t seed = 0;
  SimOutcome outcome;
};

class SeedRunner {
 public:
  // `run` is called in the child.
  SeedRunner(size_t jobs, std::function<SimOutcome(uint64_t seed)> run)
      : jobs_(jobs), run_(std::move(run)) {}
  ~SeedRunner();  // ends what still runs

  bool full() const { return children_.size() >= jobs_; }
  bool empty() const { return children_.empty(); }
  void Start(uint64_t seed);
  SeedResult Wait();  // for any; REQUIRES: !empty()

 private:
  struct Child {
    uint64_t seed;
    int result;  // where its outcome can be read
  };
  const size_t jobs_;
  const std::function<SimOutcome(uint64_t)> run_;
  std::map<pid_t, Child> children_;
};

}  // namespace orrery::sim
