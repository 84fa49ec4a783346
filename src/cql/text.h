// The tree as CQL text again: for what the schema keeps and shows as text, such as the WHERE of a
// view. Parsing the text gives the same tree.
#pragma once

#include <string>

#include "cql/expression.h"

namespace orrery::cql {

std::string ToCql(const QualifiedName& name);
std::string ToCql(const TypeName& type);
std::string ToCql(const Expression& expression);
std::string ToCql(const Relation& relation);
std::string ToCql(const Where& where);

}  // namespace orrery::cql
