// SyntaxError: what is wrong with the text of a statement, in the form that clients know from
// Cassandra: line 1:9 mismatched input 'FORM' expecting K_FROM (SELECT * [FORM]...)
//
// Lines count from one, columns from zero in UTF-16 units. In parentheses stands what was read
// last, up to the token that is wrong. The end of the text has no place: line 0:-1.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "cql/lexer.h"

namespace orrery::cql {

// No rule begins with `token`; also for tokens that are none.
Status NoViableAlternative(std::string_view text, const Token& token);

// `expected` as KeywordName and TokenName call it.
Status MismatchedInput(std::string_view text, const Token& token, std::string_view expected);

// For what the grammar cannot say.
Status SyntaxError(std::string_view text, const Token& token, std::string_view message);

}  // namespace orrery::cql
