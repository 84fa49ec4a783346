#include "api/sql/errors.h"

namespace orrery::api::sql {

SqlError ToSqlError(const Status& status) {
  switch (status.code()) {
    case Code::kOk: return {200, 0, "Ok"};
    case Code::kInvalidArgument: return {400, 0, "BadRequest"};
    case Code::kKeyMismatch: return {400, 1001, "BadRequest"};
    case Code::kUnauthenticated: return {401, 0, "Unauthorized"};
    case Code::kForbidden: return {403, 0, "Forbidden"};
    case Code::kNotFound: return {404, 0, "NotFound"};
    case Code::kOwnerNotFound: return {404, 1003, "NotFound"};
    case Code::kAlreadyExists: return {409, 0, "Conflict"};
    case Code::kUniqueViolated: return {409, 3301, "Conflict"};
    case Code::kPreconditionFailed: return {412, 0, "PreconditionFailed"};
    case Code::kConditionFalse: return {412, 1110, "PreconditionFailed"};
    case Code::kNotModified: return {304, 0, "NotModified"};
    case Code::kTooLarge: return {413, 0, "RequestEntityTooLarge"};
    case Code::kQuotaExceeded: return {403, 1014, "Forbidden"};
    case Code::kThrottled: return {429, 3200, "TooManyRequests"};
    case Code::kMoved: return {410, 1002, "Gone"};
    case Code::kSchemaChanged: return {410, 1000, "Gone"};
    case Code::kNotLeader: return {503, 0, "ServiceUnavailable"};
    case Code::kSessionNotReached: return {404, 1002, "NotFound"};
    case Code::kWouldBlock: return {503, 0, "ServiceUnavailable"};
    case Code::kTimeout: return {408, 0, "RequestTimeout"};
    case Code::kUnknownOutcome: return {408, 0, "RequestTimeout"};
    case Code::kUnavailable: return {503, 0, "ServiceUnavailable"};
    case Code::kNotSupported: return {501, 0, "NotImplemented"};
    case Code::kCorruption: return {500, 0, "InternalServerError"};
    case Code::kInternal: return {500, 0, "InternalServerError"};
  }
  return {500, 0, "InternalServerError"};
}

}  // namespace orrery::api::sql
