// CQL text -> syntax tree. Pure functions.
//
// The language is that of Cassandra 5. Names are not looked up, constants not converted. Errors are
// kInvalidArgument with the text of syntax_error.h, and always mean a syntax error: what is wrong
// in another way stays in the tree. A text beyond kTextBytesMax is kTooLarge.
#pragma once

#include <string_view>

#include "base/status.h"
#include "cql/ast.h"

namespace orrery::cql {

// One statement, with or without semicolons after it.
Result<Parsed> Parse(std::string_view text);

// A type as it is written in a statement: frozen<map<text, int>>.
Result<TypeName> ParseType(std::string_view text);

// What stands after WHERE: the relations of a view, kept as text.
Result<Where> ParseWhere(std::string_view text);

// A term: a constant, a literal of a collection, a call.
Result<Expression> ParseTerm(std::string_view text);

}  // namespace orrery::cql
