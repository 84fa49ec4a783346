// NodeReport in the form in which one node sends it to another.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/instance.h"

namespace orrery::cluster {

std::string EncodeReport(const NodeReport& report);
// Nothing if it is malformed.
std::optional<NodeReport> DecodeReport(std::string_view bytes);

}  // namespace orrery::cluster
