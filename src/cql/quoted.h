// Names and strings as a CQL statement has to write them.
#pragma once

#include <string>
#include <string_view>

namespace orrery::cql {

// The quote at both ends, and each inside of it twice.
std::string Quoted(std::string_view text, char quote);
// In single quotes.
std::string QuotedString(std::string_view text);
// In double quotes unless it is lower case and no reserved word.
std::string QuotedName(std::string_view name);
// The same of a user type, whose name must not be read as a native type.
std::string QuotedTypeName(std::string_view name);

}  // namespace orrery::cql
