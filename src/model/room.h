// Whether what a write adds still fits, into its container and its logical partition.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "partition/replica.h"
#include "runtime/task.h"

namespace orrery::model {

// Whether it is worth a look: mostly the whole partition is far from any limit.
bool MayBeFull(partition::Replica& replica, int64_t growth);
// kForbidden, kQuotaExceeded: it does not fit. Waits only if the size of the logical partition must
// be found out. REQUIRES: on the partition's worker.
runtime::Task<Status> CheckRoom(partition::Replica& replica, const std::string& prefix,
                                int64_t growth);

}  // namespace orrery::model
