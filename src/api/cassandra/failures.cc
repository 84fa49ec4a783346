#include "api/cassandra/failures.h"

namespace orrery::cassandra {

namespace {

// How many replicas a level waits for, as far as clients are told: sets have four, a quorum of them
// is three.
int32_t RequiredBy(Consistency consistency) {
  switch (consistency) {
    case Consistency::kAny:
    case Consistency::kOne:
    case Consistency::kLocalOne: return 1;
    case Consistency::kTwo: return 2;
    case Consistency::kAll: return 4;
    default: return 3;
  }
}

}  // namespace

Response Refused(std::string message, int version) {
  return MakeError(ErrorCode::kInvalid, std::move(message), version);
}

Response Failed(const Status& status, const Attempt& attempt, int version) {
  ErrorDetails error{.message = status.message(), .consistency = attempt.consistency};
  error.required = RequiredBy(attempt.consistency);
  error.write_type = attempt.conditional ? "CAS" : attempt.write_type;
  switch (status.code()) {
    case Code::kInvalidArgument:
    case Code::kNotSupported:
    case Code::kTooLarge:
    case Code::kQuotaExceeded:
    case Code::kNotFound:
    case Code::kOwnerNotFound:
    case Code::kAlreadyExists:
    case Code::kPreconditionFailed: error.code = ErrorCode::kInvalid; break;
    case Code::kForbidden: error.code = ErrorCode::kUnauthorized; break;
    case Code::kUnauthenticated: error.code = ErrorCode::kBadCredentials; break;
    case Code::kThrottled:
      error.code = ErrorCode::kOverloaded;
      // Clients of the service look for this text.
      error.message =
          "Request rate is large: ActivityID=00000000-0000-0000-0000-000000000000, "
          "RetryAfterMs=" +
          std::to_string(status.retry_after_ms()) +
          ", Additional details='Response status code does not indicate success: "
          "TooManyRequests (429); Substatus: 3200'";
      break;
    case Code::kTimeout:
      error.code = attempt.writes ? ErrorCode::kWriteTimeout : ErrorCode::kReadTimeout;
      break;
    case Code::kUnknownOutcome:
      error.code = attempt.conditional ? ErrorCode::kCasWriteUnknown : ErrorCode::kWriteTimeout;
      break;
    case Code::kUnavailable:
    case Code::kNotLeader:
    case Code::kMoved:
    case Code::kSchemaChanged: error.code = ErrorCode::kUnavailable; break;
    default: error.code = ErrorCode::kServerError;
  }
  return MakeError(error, version);
}

}  // namespace orrery::cassandra
