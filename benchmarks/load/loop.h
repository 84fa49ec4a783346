// Loop: one thread that keeps many connections busy and measures how long each reply takes.
//
// Closed loop (rate 0): every connection sends its next request when it has the last reply. This
// finds the maximum, but a slow server also slows the questions, so its latencies flatter.
//
// Open loop (rate > 0): request number i is due at start + i/rate, whether or not the server keeps
// up. Its latency counts from when it was due, not from when a connection was free to send it; what
// is still due or unanswered at the end is counted with the time it has waited so far (no
// coordinated omission).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "load/histogram.h"
#include "load/http_client.h"
#include "load/workload.h"

namespace orrery::load {

// Monotonic, in nanoseconds.
int64_t NowNanos();

struct LoopOptions {
  Endpoint endpoint;
  int connections = 1;
  int idle = 0;     // further connections, which send one request and then only stay open
  double rate = 0;  // requests a second; 0: closed loop
};

struct LoopTimes {
  int64_t start = 0;
  int64_t measure_from = 0;  // replies before this warm up the server
  int64_t end = INT64_MAX;   // or when the workload has nothing left
};

struct LoopResult {
  Histogram latency;                     // of replies with a 2xx status
  std::array<uint64_t, 600> statuses{};  // how often each came
  uint64_t lost = 0;                     // connections that broke
  uint64_t bytes = 0;                    // received
  uint64_t unanswered = 0;               // open loop: due, without a reply at the end

  void Add(const LoopResult& other);
  uint64_t Successes() const;
  uint64_t Failures() const { return Replies() - Successes() + lost; }
  uint64_t Replies() const;
};

class Loop {
 public:
  // `successes` counts from the start, for other threads to watch.
  Loop(LoopOptions options, Workload& workload, std::atomic<uint64_t>& successes);
  ~Loop();

  // Opens all connections. kUnavailable if the server cannot be reached.
  Status Open();
  // Runs to the end and returns what happened after `measure_from`. kUnavailable if the server
  // cannot be reached any more or does not answer for 60 seconds. REQUIRES: Open().
  Result<LoopResult> Run(LoopTimes times);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::load
