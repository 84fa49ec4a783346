// Run: one command of `load`, from its options to its report.
#pragma once

#include "load/options.h"
#include "load/report.h"

namespace orrery::load {

Result<Report> Run(const Options& options);

}  // namespace orrery::load
