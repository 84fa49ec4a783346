// NodeReport in the form in which one node sends it to another.
//
//   report  = version u8, free bytes u64, log healthy, disk full (bools), count varint, replicas
//   replica = bytes; what a later version of the program adds at its end is not read
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
