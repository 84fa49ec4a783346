// Conditions of writes, on rows as they are. Private to rows/.
#pragma once

#include <optional>
#include <string_view>

#include "cql/row.h"
#include "rows/rows.h"

namespace orrery::rows {

// Whether a term holds for a row (an empty one if there is none).
bool Holds(const CellCondition& condition, const cql::LiveRow& row);

}  // namespace orrery::rows
