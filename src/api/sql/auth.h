// The signature of a request by an account key. Pure, but for the keys that are given.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "model/catalog_types.h"

namespace orrery::api::sql {

struct SignedRequest {
  std::string_view method;
  std::string_view type;           // "docs", "colls"...; "" for the account
  std::string_view link;           // as the path names it, decoded
  std::string_view ms_date;        // the header x-ms-date; signed alone if it is there
  std::string_view date;           // the header date
  std::string_view authorization;  // the header, percent-encoded
};

inline constexpr Duration kDateWindow = std::chrono::minutes(15);

// kUnauthenticated, or kForbidden if the date is too far from `now` or a read-only key asks to
// write.
Status CheckSignature(const SignedRequest& request, const model::AccountKeys& keys, bool write,
                      WallTime now);

// Seconds since 1970 of an RFC 1123 date (`Tue, 01 Nov 1994 08:12:31 GMT`, any case).
std::optional<int64_t> ParseHttpDate(std::string_view text);

// The type and the link that the signature of a path covers.
struct SignedResource {
  std::string type;
  std::string link;
};
SignedResource ResourceOfPath(const std::string* segments, size_t count, std::string_view link);

// %XX decoded; false if malformed.
bool PercentDecode(std::string_view text, std::string* out);

}  // namespace orrery::api::sql
