// How the answers of /_orrery/status, /_orrery/nodes and /_orrery/partitions look on a terminal.
#pragma once

#include <string_view>

#include "types/document.h"

namespace orrery::server {

void PrintStatus(types::Value status);
void PrintNodes(types::Value nodes);
// One container of a status. False if it is not there.
bool PrintThroughput(types::Value status, std::string_view database, std::string_view container);
void PrintPartitions(types::Value container);

}  // namespace orrery::server
