// What went wrong, in Cassandra's codes.
#pragma once

#include "api/cassandra/requests.h"
#include "api/cassandra/responses.h"
#include "base/status.h"

namespace orrery::cassandra {

// What was tried, for the codes that say it.
struct Attempt {
  Consistency consistency = Consistency::kOne;
  bool writes = false;
  bool conditional = false;
  std::string write_type = "SIMPLE";
};

Response Failed(const Status& status, const Attempt& attempt, int version);
// Of a statement that cannot be: code 2200.
Response Refused(std::string message, int version);

}  // namespace orrery::cassandra
