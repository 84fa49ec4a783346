#include "types/session_token.h"

#include <charconv>

namespace orrery::types {
namespace {

// tokens = token *( "," token )
// token  = range-id ":" version "#" lsn *( "#" region "=" lsn )
constexpr size_t kPartsMax = 10'000;

// Cuts `text` at the first `separator` and gives what is before it; all of it if there is none.
std::string_view TakeUntil(std::string_view& text, char separator) {
  size_t at = text.find(separator);
  std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return head;
}

template <typename Number>
bool ReadNumber(std::string_view text, Number* number) {
  const char* end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && rest == end;
}

bool IsRegion(std::string_view text) {
  uint64_t region = 0;
  int64_t lsn = 0;
  std::string_view id = TakeUntil(text, '=');
  return ReadNumber(id, &region) && ReadNumber(text, &lsn);
}

bool ReadToken(std::string_view text, SessionToken* token) {
  if (text.ends_with('#')) {
    return false;
  }
  uint64_t partition = 0;
  uint64_t lsn = 0;
  if (!ReadNumber(TakeUntil(text, ':'), &partition) ||
      !ReadNumber(TakeUntil(text, '#'), &token->version) ||
      !ReadNumber(TakeUntil(text, '#'), &lsn)) {
    return false;
  }
  token->partition = PartitionId(partition);
  token->lsn = Lsn(lsn);
  while (!text.empty()) {
    if (!IsRegion(TakeUntil(text, '#'))) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string FormatSessionToken(const SessionToken& token) {
  return token.partition.ToString() + ":" + std::to_string(token.version) + "#" +
         token.lsn.ToString();
}

Result<std::vector<SessionToken>> ParseSessionTokens(std::string_view text) {
  std::vector<SessionToken> tokens;
  if (text.empty()) {
    return tokens;
  }
  if (text.ends_with(',')) {
    return Error(Code::kInvalidArgument, "the session token ends with a comma");
  }
  while (!text.empty()) {
    if (tokens.size() == kPartsMax) {
      return Error(Code::kInvalidArgument,
                   "the session token has more than " + std::to_string(kPartsMax) + " parts");
    }
    std::string_view part = TakeUntil(text, ',');
    if (!ReadToken(part, &tokens.emplace_back())) {
      return Error(Code::kInvalidArgument,
                   "a session token is <range id>:<version>#<lsn>, found '" +
                       std::string(part.substr(0, 64)) + "'");
    }
  }
  return tokens;
}

}  // namespace orrery::types
