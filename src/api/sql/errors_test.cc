#include "api/sql/errors.h"

#include <gtest/gtest.h>

namespace orrery::api::sql {
namespace {

struct Row {
  Code code;
  int http;
  int substatus;
};

class ErrorsTest : public testing::TestWithParam<Row> {};

TEST_P(ErrorsTest, EveryCodeHasItsStatusAndSubstatus) {
  SqlError error = ToSqlError(Status(GetParam().code));
  EXPECT_EQ(error.http, GetParam().http) << CodeName(GetParam().code);
  EXPECT_EQ(error.substatus, GetParam().substatus) << CodeName(GetParam().code);
  EXPECT_FALSE(error.code.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Table, ErrorsTest,
    testing::Values(Row{Code::kInvalidArgument, 400, 0}, Row{Code::kKeyMismatch, 400, 1001},
                    Row{Code::kUnauthenticated, 401, 0}, Row{Code::kForbidden, 403, 0},
                    Row{Code::kNotFound, 404, 0}, Row{Code::kOwnerNotFound, 404, 1003},
                    Row{Code::kAlreadyExists, 409, 0}, Row{Code::kUniqueViolated, 409, 3301},
                    Row{Code::kPreconditionFailed, 412, 0}, Row{Code::kConditionFalse, 412, 1110},
                    Row{Code::kNotModified, 304, 0}, Row{Code::kTooLarge, 413, 0},
                    Row{Code::kQuotaExceeded, 403, 1014}, Row{Code::kThrottled, 429, 3200},
                    Row{Code::kMoved, 410, 1002}, Row{Code::kSchemaChanged, 410, 1000},
                    Row{Code::kNotLeader, 503, 0}, Row{Code::kSessionNotReached, 404, 1002},
                    Row{Code::kWouldBlock, 503, 0}, Row{Code::kTimeout, 408, 0},
                    Row{Code::kUnknownOutcome, 408, 0}, Row{Code::kUnavailable, 503, 0},
                    Row{Code::kNotSupported, 501, 0}, Row{Code::kCorruption, 500, 0},
                    Row{Code::kInternal, 500, 0}));

}  // namespace
}  // namespace orrery::api::sql
