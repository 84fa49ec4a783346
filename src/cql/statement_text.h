// Whole statements as text, for tests only: what parses and is printed parses to the same tree.
#pragma once

#include <string>

#include "cql/ast.h"

namespace orrery::cql {

std::string StatementText(const Statement& statement);

}  // namespace orrery::cql
