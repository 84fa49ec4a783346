// World: virtual time, the events that wait for it, and the trace of what has happened.
//
// Events of one instant happen in the order in which they were planned. The trace is a hash over
// everything that was noted: two runs of one seed must have the same.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace orrery::sim {

class World {
 public:
  World(uint64_t seed, bool verbose) : seed_(seed), verbose_(verbose) {}
  World(const World&) = delete;

  uint64_t seed() const { return seed_; }
  Instant now() const { return now_; }
  void After(Duration delay, std::function<void()> event) {
    events_.emplace(std::pair(now_ + delay, next_++), std::move(event));
  }
  std::optional<Instant> next() const {
    return events_.empty() ? std::nullopt : std::optional(events_.begin()->first.first);
  }
  void MoveTo(Instant now) { now_ = now; }
  void RunOne() { events_.extract(events_.begin()).mapped()(); }  // REQUIRES: next()

  // What happened: into the hash, and printed if the run is verbose.
  void Note(std::string_view what, std::initializer_list<uint64_t> numbers = {},
            std::string_view bytes = {});
  uint64_t hash() const { return hash_; }
  bool verbose() const { return verbose_; }

  // The first failure counts; the run ends soon after.
  void Fail(std::string reason);
  const std::string& failure() const { return failure_; }
  bool failed() const { return !failure_.empty(); }

 private:
  const uint64_t seed_;
  const bool verbose_;
  Instant now_;
  uint64_t next_ = 0;
  std::map<std::pair<Instant, uint64_t>, std::function<void()>> events_;
  uint64_t hash_ = 0xCBF29CE484222325u;
  std::string failure_;
};

uint64_t HashOf(std::string_view bytes, uint64_t start = 0xCBF29CE484222325u);

}  // namespace orrery::sim
