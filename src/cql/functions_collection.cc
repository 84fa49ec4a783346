#include "cql/function_table.h"

namespace orrery::cql {
void AddCollectionFunctions(FunctionTable&) {}
}  // namespace orrery::cql
