// The functions of strings. Positions and lengths count code points. An argument that is not of the
// right type makes the result undefined.
#pragma once

#include "query/functions.h"

namespace orrery::query {

types::Value Concat(Arguments arguments, Arena& arena);
types::Value Contains(Arguments arguments, Arena& arena);
types::Value EndsWith(Arguments arguments, Arena& arena);
types::Value IndexOf(Arguments arguments, Arena& arena);
types::Value Left(Arguments arguments, Arena& arena);
types::Value Length(Arguments arguments, Arena& arena);
types::Value Lower(Arguments arguments, Arena& arena);
types::Value LeftTrim(Arguments arguments, Arena& arena);
types::Value Replace(Arguments arguments, Arena& arena);
types::Value Right(Arguments arguments, Arena& arena);
types::Value RightTrim(Arguments arguments, Arena& arena);
types::Value StartsWith(Arguments arguments, Arena& arena);
types::Value StringEquals(Arguments arguments, Arena& arena);
types::Value Substring(Arguments arguments, Arena& arena);
types::Value ToString(Arguments arguments, Arena& arena);
types::Value Trim(Arguments arguments, Arena& arena);
types::Value Upper(Arguments arguments, Arena& arena);

}  // namespace orrery::query
