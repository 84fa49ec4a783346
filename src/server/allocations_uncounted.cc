// A sanitizer has its own allocator: nothing is counted.
#include "server/allocations.h"

namespace orrery::server {

uint64_t AllocationCount() { return 0; }

}  // namespace orrery::server
