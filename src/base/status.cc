#include "base/status.h"

namespace orrery {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kKeyMismatch: return "partition key mismatch";
    case Code::kUnauthenticated: return "unauthenticated";
    case Code::kForbidden: return "forbidden";
    case Code::kNotFound: return "not found";
    case Code::kOwnerNotFound: return "owner not found";
    case Code::kAlreadyExists: return "already exists";
    case Code::kUniqueViolated: return "unique key violated";
    case Code::kPreconditionFailed: return "precondition failed";
    case Code::kConditionFalse: return "condition is false";
    case Code::kNotModified: return "not modified";
    case Code::kTooLarge: return "too large";
    case Code::kQuotaExceeded: return "quota exceeded";
    case Code::kThrottled: return "throttled";
    case Code::kMoved: return "moved";
    case Code::kSchemaChanged: return "schema changed";
    case Code::kNotLeader: return "not leader";
    case Code::kSessionNotReached: return "session not reached";
    case Code::kWouldBlock: return "would block";
    case Code::kTimeout: return "timeout";
    case Code::kUnknownOutcome: return "unknown outcome";
    case Code::kUnavailable: return "unavailable";
    case Code::kNotSupported: return "not supported";
    case Code::kCorruption: return "corruption";
    case Code::kInternal: return "internal error";
  }
  return "unknown";
}

Status Status::Throttled(uint32_t retry_after_ms) {
  Status status(Code::kThrottled,
                "Request rate is large. More Request Units may be needed, so no changes were made. "
                "Please retry this request later.");
  status.retry_after_ms_ = retry_after_ms;
  return status;
}

std::string Status::ToString() const {
  std::string text(CodeName(code_));
  if (!message_.empty()) {
    text += ": ";
    text += message_;
  }
  return text;
}

}  // namespace orrery
