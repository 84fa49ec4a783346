// KillPoint: a place where a test can have the process end, as by kill -9.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The name of the place; empty: none. REQUIRES: before other threads run.
void SetKillPoint(std::string name);
// Ends the process if this is the place.
void KillPoint(std::string_view name);

}  // namespace orrery
