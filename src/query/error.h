// QueryError: what is wrong with a query, in the form that clients of the language read.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"

namespace orrery::query {

// A stretch of the query text, in bytes.
struct Span {
  size_t start = 0;
  size_t end = 0;
};

// The message of the status is JSON text:
// {"errors":[{"severity":"Error","location":{"start":7,"end":11},
// "code":"SC1001","message":"..."}]}. The location counts UTF-16 units, as clients do.
Status QueryError(Code code, std::string_view text, Span where, std::string_view id,
                  std::string_view message);

// The text of the span, cut if it is long.
std::string_view Excerpt(std::string_view text, Span where);

}  // namespace orrery::query
