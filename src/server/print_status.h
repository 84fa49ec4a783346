// How the answers of /_orrery/status and /_orrery/nodes look on a terminal.
#pragma once

#include "types/document.h"

namespace orrery::server {

void PrintStatus(types::Value status);
void PrintNodes(types::Value nodes);

}  // namespace orrery::server
