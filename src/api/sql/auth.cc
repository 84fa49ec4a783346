#include "api/sql/auth.h"

#include <ctime>

#include "base/bytes.h"
#include "net/http_server.h"

namespace orrery::api::sql {

namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

void AppendLower(std::string_view text, std::string& out) {
  for (char c : text) {
    out.push_back(Lower(c));
  }
}

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

// A number of exactly these digits; -1 if it is none.
int Digits(std::string_view text) {
  int value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') {
      return -1;
    }
    value = value * 10 + (c - '0');
  }
  return value;
}

// The part of `type=master&ver=1.0&sig=...` after `name=`.
std::string_view Field(std::string_view token, std::string_view name) {
  while (!token.empty()) {
    size_t end = token.find('&');
    std::string_view part = token.substr(0, end);
    // A signature may end in '=': only the first one divides.
    if (part.starts_with(name) && part.size() > name.size() && part[name.size()] == '=') {
      return part.substr(name.size() + 1);
    }
    token = end == std::string_view::npos ? std::string_view() : token.substr(end + 1);
  }
  return {};
}

bool IsWriteKey(size_t index) {
  return index == static_cast<size_t>(model::KeyName::kPrimary) ||
         index == static_cast<size_t>(model::KeyName::kSecondary);
}

}  // namespace

bool PercentDecode(std::string_view text, std::string* out) {
  out->resize(text.size());
  char* to = out->data();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      *to++ = text[i];
      continue;
    }
    int high = i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    int low = high < 0 ? -1 : HexDigit(text[i + 2]);
    if (low < 0) {
      return false;
    }
    *to++ = static_cast<char>(high << 4 | low);
    i += 2;
  }
  out->resize(static_cast<size_t>(to - out->data()));
  return true;
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  // Tue, 01 Nov 1994 08:12:31 GMT
  static constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
  if (text.size() != 29 || !EqualsIgnoringCase(text.substr(26), "GMT") || text[3] != ',' ||
      text[4] != ' ') {
    return std::nullopt;
  }
  std::string month;
  AppendLower(text.substr(8, 3), month);
  size_t at = kMonths.find(month);
  std::tm date{};
  date.tm_mday = Digits(text.substr(5, 2));
  date.tm_mon = static_cast<int>(at / 3);
  int year = Digits(text.substr(12, 4));
  date.tm_hour = Digits(text.substr(17, 2));
  date.tm_min = Digits(text.substr(20, 2));
  date.tm_sec = Digits(text.substr(23, 2));
  if (at == std::string_view::npos || at % 3 != 0 || date.tm_mday < 1 || date.tm_mday > 31 ||
      year < 1970 || date.tm_hour < 0 || date.tm_hour > 23 || date.tm_min < 0 || date.tm_min > 59 ||
      date.tm_sec < 0) {
    return std::nullopt;
  }
  date.tm_year = year - 1900;
  return timegm(&date);
}

SignedResource ResourceOfPath(const std::string* segments, size_t count, std::string_view link) {
  if (count == 0) {
    return {};
  }
  if (segments[0] == "offers") {
    SignedResource offer{.type = "offers"};
    if (count > 1) {
      AppendLower(segments[1], offer.link);
    }
    return offer;
  }
  if (count == 6 && segments[4] == "operations") {
    return {.type = "colls", .link = "dbs/" + segments[1] + "/colls/" + segments[3]};
  }
  if (count % 2 == 0) {
    return {.type = segments[count - 2], .link = std::string(link)};
  }
  size_t cut = link.size() - segments[count - 1].size();
  return {.type = segments[count - 1], .link = std::string(link.substr(0, cut == 0 ? 0 : cut - 1))};
}

Status CheckSignature(const SignedRequest& request, const model::AccountKeys& keys, bool write,
                      WallTime now) {
  if (request.authorization.empty()) {
    return Status(Code::kUnauthenticated,
                  "Required Header authorization is missing. Ensure a valid Authorization "
                  "token is passed.");
  }
  std::string token;
  if (!PercentDecode(request.authorization, &token)) {
    return Status(Code::kUnauthenticated, "The authorization header is malformed.");
  }
  std::string_view type = Field(token, "type");
  if (type == "resource" || type == "aad" || type == "sas") {
    return Status(Code::kNotSupported, "Authorization of type '" + std::string(type) +
                                           "' is not supported yet; use an account key.");
  }
  std::string signature;
  if (type != "master" || Field(token, "ver") != "1.0" ||
      !FromBase64(Field(token, "sig"), &signature)) {
    return Status(Code::kUnauthenticated,
                  "The authorization token is not of the form "
                  "type=master&ver=1.0&sig=<signature>.");
  }
  std::optional<int64_t> seconds =
      ParseHttpDate(request.ms_date.empty() ? request.date : request.ms_date);
  if (!seconds) {
    return Status(Code::kUnauthenticated,
                  "The x-ms-date header is missing or not an RFC 1123 date.");
  }
  std::string text;
  text.reserve(request.link.size() + 80);
  AppendLower(request.method, text);
  text += '\n';
  AppendLower(request.type, text);
  text += '\n';
  text += request.link;
  text += '\n';
  AppendLower(request.ms_date, text);
  text += '\n';
  AppendLower(request.ms_date.empty() ? request.date : "", text);
  text += '\n';
  for (size_t i = 0; i < model::kKeyCount; ++i) {
    if (keys.keys[i].empty() ||
        !net::EqualInConstantTime(net::HmacSha256(keys.keys[i], text), signature)) {
      continue;
    }
    if (std::abs(now.seconds() - *seconds) >
        std::chrono::duration_cast<std::chrono::seconds>(kDateWindow).count()) {
      return Status(Code::kForbidden,
                    "The authorization token is not valid at the current time. Please create "
                    "another token and retry.");
    }
    if (write && !IsWriteKey(i)) {
      return Status(Code::kForbidden, "The key that signed this request may only read.");
    }
    return Status::Ok();
  }
  return Status(Code::kUnauthenticated,
                "The input authorization token can't serve the request. Please check that the "
                "expected payload is "
                "built as per the protocol, and check the key being used.");
}

}  // namespace orrery::api::sql
