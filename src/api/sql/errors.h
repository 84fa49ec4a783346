// How this API says what went wrong: HTTP status, substatus and code word of a Status.
#pragma once

#include <string_view>

#include "base/status.h"

namespace orrery::api::sql {

struct SqlError {
  int http = 500;
  int substatus = 0;  // 0: no such header
  std::string_view code;
};

// The resource does not have the method of the request.
inline constexpr SqlError kMethodNotAllowed{405, 0, "MethodNotAllowed"};
// The substatus of 429 for a throughput bucket that is used up.
inline constexpr int kBucketFull = 3212;

SqlError ToSqlError(const Status& status);

}  // namespace orrery::api::sql
