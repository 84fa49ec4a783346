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
#include <vector>

#include "base/status.h"
#include "load/histogram.h"
#include "load/http_client.h"
#include "load/workload.h"

namespace orrery::load {

// Monotonic, in nanoseconds.
int64_t NowNanos();

struct LoopOptions {
  std::vector<Endpoint> endpoints;  // connections take them in turn
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
  int64_t back = INT64_MAX;              // the first success of a request sent after the mark

  void Add(const LoopResult& other);
  uint64_t Successes() const;
  uint64_t Failures() const { return Replies() - Successes() + lost; }
  uint64_t Replies() const;
};

// What other threads see of a loop, and tell it, while it runs.
struct LoopWatch {
  std::atomic<uint64_t> successes = 0;  // from the start
  // The loop ends half a second after the first success of a request sent after this.
  std::atomic<int64_t> mark = INT64_MAX;
};

class Loop {
 public:
  virtual ~Loop() = default;
  // Opens all connections. kUnavailable if the server cannot be reached.
  virtual Status Open() = 0;
  // Runs to the end and returns what happened after `measure_from`. kUnavailable if the server
  // cannot be reached any more or does not answer for 60 seconds. REQUIRES: Open().
  virtual Result<LoopResult> Run(LoopTimes times) = 0;
};

// Speaks HTTP/1.1, one request at a time on each connection. A connection that breaks goes to the
// next endpoint that answers.
std::unique_ptr<Loop> MakeHttpLoop(LoopOptions options, Workload& workload, LoopWatch& watch);

}  // namespace orrery::load
