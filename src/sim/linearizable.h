// Whether what the clients of one item saw can be explained by one order of their operations, each
// between its begin and its end.
//
// The search goes through the orders of Wing and Gong, forward from the first operation, and
// remembers where it has been (Lowe): a set of operations done and the value then. An operation of
// unknown outcome may happen at any time after its begin, or never.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/status.h"
#include "sim/node.h"

namespace orrery::sim {

inline constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();
inline constexpr size_t kHistoryMax = 64;

using ItemValue = uint32_t;  // unique per write; 0: the item is not there

struct Call {
  OpKind kind = OpKind::kRead;
  ItemValue value = 0;     // written
  ItemValue if_match = 0;  // 0: whatever is there
  uint64_t begin = 0;      // places in one order of all begins and ends
  uint64_t end = kNever;   // kNever: unknown
  Code code = Code::kOk;   // if known: kOk, kNotFound, kAlreadyExists, kPreconditionFailed
  ItemValue read = 0;      // what a read gave

  std::string ToString() const;
};

enum class Verdict : uint8_t { kYes, kNo, kTooHard };

// Of one item that is not there at first. REQUIRES: at most kHistoryMax calls, no reads of unknown
// outcome.
Verdict Linearizable(const std::vector<Call>& history, size_t states_max = 1'000'000);

}  // namespace orrery::sim
