// CallWithin: a call to another node that is given up after a while.
#pragma once

#include <optional>
#include <string>

#include "base/strong_id.h"
#include "base/time.h"
#include "replication/transport.h"
#include "runtime/task.h"

namespace orrery::cluster {

// Nothing if it takes longer, or fails. REQUIRES: on a worker.
runtime::Task<std::optional<std::string>> CallWithin(replication::Transport& transport, NodeId node,
                                                     std::string request, Duration longest);

}  // namespace orrery::cluster
