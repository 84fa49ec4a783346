// Counts the heap allocations of C++ code in this process, for the benchmarks.
#pragma once

#include <cstdint>

namespace orrery::server {

uint64_t AllocationCount();

}  // namespace orrery::server
