// SessionToken: what a client has seen of each partition, `<range id>:<version>#<lsn>`,
// comma-joined. A region part (`#<region>=<lsn>`) is accepted and ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"

namespace orrery::types {

struct SessionToken {
  PartitionId partition;
  int64_t version = -1;
  Lsn lsn;
};

std::string FormatSessionToken(const SessionToken& token);
// kInvalidArgument if it is malformed; at most 10,000 parts.
Result<std::vector<SessionToken>> ParseSessionTokens(std::string_view text);

}  // namespace orrery::types
