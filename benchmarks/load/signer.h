// Signer: the authorization header of the SQL API, made with the account's master key.
//
// The signature covers the verb, the type, the link and x-ms-date, which the server accepts for 15
// minutes. A digest is kept apart from its text so that the digests of a million items fit into 32
// MB and can be made before a run. Immutable, so any thread may use it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orrery::load {

// The public key of the Azure Cosmos DB emulator, which `orrery start --dev` accepts.
inline constexpr std::string_view kEmulatorKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

using Digest = std::array<uint8_t, 32>;

// The time as HTTP writes it: "Thu, 27 Apr 2017 00:51:12 GMT".
std::string HttpDate(int64_t unix_seconds);

class Signer {
 public:
  // `key` in base64; kInvalidArgument if it is not. `date` as HttpDate() writes it.
  static Result<Signer> Make(std::string_view key, std::string date);

  const std::string& date() const { return date_; }
  // REQUIRES: `verb` and `type` in lower case.
  Digest Sign(std::string_view verb, std::string_view type, std::string_view link) const;
  // Appends the value of the header, percent-encoded.
  static void AppendAuthorization(const Digest& digest, std::string& out);

 private:
  Signer(std::string key, std::string date, std::string lower_date)
      : key_(std::move(key)), date_(std::move(date)), lower_date_(std::move(lower_date)) {}

  std::string key_;
  std::string date_;
  std::string lower_date_;
};

}  // namespace orrery::load
