// How the answers of /_orrery/status and /_orrery/nodes look on a terminal.
#pragma once

#include <string_view>

#include "types/document.h"

namespace orrery::server {

void PrintStatus(types::Value status);
void PrintNodes(types::Value nodes);
// One container of a status. False if it is not there.
bool PrintThroughput(types::Value status, std::string_view database, std::string_view container);

}  // namespace orrery::server
