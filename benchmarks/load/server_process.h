// What the server under load has used so far, seen from outside.
#pragma once

#include <cstdint>
#include <optional>

#include "load/http_client.h"

namespace orrery::load {

// User and system time of a process with all its threads; nothing if there is no such process.
std::optional<double> CpuSeconds(int pid);
// The same of this process.
double OwnCpuSeconds();

// Resident memory of a process.
std::optional<uint64_t> ResidentKilobytes(int pid);

// The sum of `orrery_allocations_total` on GET /metrics; nothing if the server does not tell.
std::optional<double> Allocations(const Endpoint& endpoint);

}  // namespace orrery::load
