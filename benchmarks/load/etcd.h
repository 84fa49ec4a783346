// etcd as the generator speaks it: gRPC over HTTP/2, several calls at once on each connection.
#pragma once

#include <memory>
#include <string>

#include "base/random.h"
#include "load/loop.h"
#include "load/workload.h"

namespace orrery::load {

struct EtcdOptions {
  LoopOptions loop;  // `connections` counts calls under way; only closed loops
  int streams = 1;   // calls under way on each connection
  bool reads = false;
};

// The requests of `workload` are messages for KV.Put, or for KV.Range if `reads`. A read that finds
// nothing counts as status 404, another failure as 500.
std::unique_ptr<Loop> MakeEtcdLoop(EtcdOptions options, Workload& workload, LoopWatch& watch);

struct EtcdData {
  uint64_t items = 0;
  size_t value_bytes = 1024;
};

// Puts items `first`, `first + step`... once each.
class EtcdSetupWorkload final : public Workload {
 public:
  EtcdSetupWorkload(EtcdData data, uint64_t first, uint64_t step);
  bool Next(std::string& request, uint64_t& number) override;
  void Done(uint64_t number, int status) override;

 private:
  const EtcdData data_;
  const std::string filler_;
  uint64_t next_;
  const uint64_t step_;
  std::vector<uint64_t> again_;
};

// Reads random items, or puts new keys that start with `prefix`, for ever. Reads are linearizable,
// etcd's default.
class EtcdWorkload final : public Workload {
 public:
  EtcdWorkload(EtcdData data, bool reads, std::string prefix, uint64_t seed);
  bool Next(std::string& request, uint64_t& number) override;

 private:
  const EtcdData data_;
  const bool reads_;
  const std::string prefix_;
  const std::string filler_;
  uint64_t created_ = 0;
  SeededRandom random_;
};

}  // namespace orrery::load
