// Status, Result: how every function of the tree reports failure.
//
// A code says what the *caller* can do next, in no API's words; each API turns codes into its own
// numbers in one file. The message is for people: what was wanted, what was found.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace orrery {

enum class Code : uint8_t {
  kOk,
  kInvalidArgument,     // the request is malformed or against a rule; do not repeat it
  kKeyMismatch,         // the partition key of the body is not the one of the request
  kUnauthenticated,     // no or wrong credentials
  kForbidden,           // known, but not allowed
  kNotFound,            // the thing itself is not there
  kOwnerNotFound,       // what should contain it is not there
  kAlreadyExists,       // an id is taken
  kUniqueViolated,      // a unique key value is taken
  kPreconditionFailed,  // an etag differs
  kConditionFalse,      // a patch condition does not hold
  kNotModified,         // the caller's copy is current
  kTooLarge,            // beyond a size limit of a request or an item
  kQuotaExceeded,       // a logical partition is full
  kThrottled,           // over the budget; try again after retry_after_ms
  kMoved,               // the operation was made with an old partition map; look it up again
  kSchemaChanged,       // the operation was made with an old catalog; make it again
  kNotLeader,           // another replica leads
  kSessionNotReached,   // this replica has not yet seen what the client's token names
  kWouldBlock,          // the answer is not in memory; ask again where waiting is allowed
  kTimeout,             // nothing was done in time
  kUnknownOutcome,      // a write may or may not have happened
  kUnavailable,         // cannot serve now; nothing was done
  kNotSupported,        // a feature that we do not have
  kCorruption,          // stored bytes are not what was written
  kInternal,            // a bug of ours
};

std::string_view CodeName(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  explicit Status(Code code, std::string message = {})
      : code_(code), message_(std::move(message)) {}

  static Status Ok() { return Status(); }
  static Status Throttled(uint32_t retry_after_ms);

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // When a throttled request should be tried again.
  uint32_t retry_after_ms() const { return retry_after_ms_; }
  void set_retry_after_ms(uint32_t ms) { retry_after_ms_ = ms; }

  std::string ToString() const;

 private:
  Code code_ = Code::kOk;
  uint32_t retry_after_ms_ = 0;
  std::string message_;
};

template <typename T>
using Result = std::expected<T, Status>;

inline std::unexpected<Status> Error(Code code, std::string message = {}) {
  return std::unexpected(Status(code, std::move(message)));
}
inline std::unexpected<Status> Error(Status status) { return std::unexpected(std::move(status)); }

// Drops a status on purpose; `why` is for the reader.
inline void IgnoreError(const Status&, const char* why) { (void)why; }

}  // namespace orrery

#define ORRERY_CONCAT_(a, b) a##b
#define ORRERY_CONCAT(a, b) ORRERY_CONCAT_(a, b)

// ORRERY_TRY(T value, expression of Result<T>): two statements; returns the error from this
// function.
#define ORRERY_TRY(declaration, expression)                                        \
  auto ORRERY_CONCAT(result_, __LINE__) = (expression);                            \
  if (!ORRERY_CONCAT(result_, __LINE__))                                           \
    return ::std::unexpected(std::move(ORRERY_CONCAT(result_, __LINE__)).error()); \
  declaration = std::move(*ORRERY_CONCAT(result_, __LINE__))

#define ORRERY_CO_TRY(declaration, expression)                                        \
  auto ORRERY_CONCAT(result_, __LINE__) = (expression);                               \
  if (!ORRERY_CONCAT(result_, __LINE__))                                              \
    co_return ::std::unexpected(std::move(ORRERY_CONCAT(result_, __LINE__)).error()); \
  declaration = std::move(*ORRERY_CONCAT(result_, __LINE__))

// ORRERY_RETURN_IF_ERROR(expression of Status), in a function that returns Status.
#define ORRERY_RETURN_IF_ERROR(expression)                      \
  if (::orrery::Status status_ = (expression); !status_.ok()) { \
    return status_;                                             \
  }
// The same in a function that returns Result<T>.
#define ORRERY_TRY_STATUS(expression)                           \
  if (::orrery::Status status_ = (expression); !status_.ok()) { \
    return ::std::unexpected(std::move(status_));               \
  }
#define ORRERY_CO_RETURN_IF_ERROR(expression)                   \
  if (::orrery::Status status_ = (expression); !status_.ok()) { \
    co_return status_;                                          \
  }
#define ORRERY_CO_TRY_STATUS(expression)                        \
  if (::orrery::Status status_ = (expression); !status_.ok()) { \
    co_return ::std::unexpected(std::move(status_));            \
  }
