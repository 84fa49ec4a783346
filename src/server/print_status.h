// How the answers of /_orrery/status, /_orrery/nodes and /_orrery/partitions look on a terminal.
#pragma once

#include "types/document.h"

namespace orrery::server {

void PrintStatus(types::Value status);
void PrintNodes(types::Value nodes);
void PrintPartitions(types::Value container);

}  // namespace orrery::server
