// Traces: what became of the requests that asked to be traced, as system_traces shows it. The last
// ones of this node, in memory.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "cql/schema.h"
#include "cql/system_schema.h"

namespace orrery::cassandra {

struct Trace {
  WallTime started;
  Duration took = Duration::zero();
  std::string client;   // its address; empty: not known
  std::string request;  // "Execute CQL3 query"
  std::vector<std::pair<std::string, std::string>> parameters;
  double charge = 0;
  bool failed = false;
};

class Traces {
 public:
  static constexpr size_t kCountMax = 1'000;
  static constexpr size_t kTextMax = 4'096;  // of a statement

  // The id under which it is shown.
  std::array<char, 16> Keep(Trace trace, Random& random);
  // Of a table of system_traces, sorted by its primary key.
  std::vector<cql::SystemRow> Rows(const cql::Table& table, const cql::NodeView& node) const;

 private:
  struct Kept {
    std::string id;
    Trace trace;
  };
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;  // the oldest first
};

}  // namespace orrery::cassandra
