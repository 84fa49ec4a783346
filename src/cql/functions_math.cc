// abs, exp, log, log10, round.
#include "cql/function_table.h"

namespace orrery::cql {
void AddMathFunctions(FunctionTable&) {}
FunctionPtr FindOperation(char, const DataType&, const DataType&) { return nullptr; }
FunctionPtr FindNegation(const DataType&) { return nullptr; }
Result<FunctionPtr> FindCast(const DataType&, const DataType&) { return FunctionPtr(); }
}  // namespace orrery::cql
