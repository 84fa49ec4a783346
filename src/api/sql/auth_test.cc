#include "api/sql/auth.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "net/http_server.h"

namespace orrery::api::sql {
namespace {

constexpr std::string_view kDate = "Thu, 27 Apr 2017 00:51:12 GMT";
constexpr int64_t kDateSeconds = 1493254272;

std::string Key(std::string_view base64) {
  std::string key;
  EXPECT_TRUE(FromBase64(base64, &key));
  return key;
}

model::AccountKeys Keys() {
  model::AccountKeys keys;
  keys.keys = {Key("dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/"
                   "t4bQtVNw=="),
               "second", "reader", ""};
  return keys;
}

std::string Encoded(std::string_view signature) {
  std::string out = "type%3dmaster%26ver%3d1.0%26sig%3d";
  for (char c : signature) {
    out += c == '+' ? "%2b" : c == '/' ? "%2f" : c == '=' ? "%3d" : std::string(1, c);
  }
  return out;
}

WallTime At(int64_t seconds) { return {seconds * 1'000'000}; }

// The example of the REST reference.
TEST(AuthTest, TheSignatureOfTheReferenceIsAccepted) {
  std::string token = Encoded("c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=");
  SignedRequest request{.method = "GET",
                        .type = "dbs",
                        .link = "dbs/ToDoList",
                        .ms_date = kDate,
                        .authorization = token};
  EXPECT_TRUE(CheckSignature(request, Keys(), true, At(kDateSeconds)).ok());
  request.link = "dbs/todolist";
  EXPECT_EQ(CheckSignature(request, Keys(), true, At(kDateSeconds)).code(), Code::kUnauthenticated);
}

std::string Sign(std::string_view key, std::string_view text) {
  return Encoded(ToBase64(net::HmacSha256(key, text)));
}

TEST(AuthTest, ADateHeaderServesWhereThereIsNoOther) {
  std::string token = Sign("second", "get\n\n\n\nthu, 27 apr 2017 00:51:12 gmt\n");
  SignedRequest request{.method = "GET", .date = kDate, .authorization = token};
  EXPECT_TRUE(CheckSignature(request, Keys(), true, At(kDateSeconds)).ok());
}

TEST(AuthTest, AReadOnlyKeyMayOnlyRead) {
  std::string token = Sign("reader", "get\ndbs\ndbs/d\nthu, 27 apr 2017 00:51:12 gmt\n\n");
  SignedRequest request{
      .method = "GET", .type = "dbs", .link = "dbs/d", .ms_date = kDate, .authorization = token};
  EXPECT_TRUE(CheckSignature(request, Keys(), false, At(kDateSeconds)).ok());
  EXPECT_EQ(CheckSignature(request, Keys(), true, At(kDateSeconds)).code(), Code::kForbidden);
}

TEST(AuthTest, ADateOutsideTheWindowIsForbidden) {
  std::string token = Sign("second", "get\n\n\nthu, 27 apr 2017 00:51:12 gmt\n\n");
  SignedRequest request{.method = "GET", .ms_date = kDate, .authorization = token};
  EXPECT_TRUE(CheckSignature(request, Keys(), true, At(kDateSeconds + 899)).ok());
  EXPECT_EQ(CheckSignature(request, Keys(), true, At(kDateSeconds + 901)).code(), Code::kForbidden);
  EXPECT_EQ(CheckSignature(request, Keys(), true, At(kDateSeconds - 901)).code(), Code::kForbidden);
}

TEST(AuthTest, WithoutOrWithMalformedCredentialsNobodyComesIn) {
  for (std::string_view header :
       {"", "type%3dmaster", "%zz", "type%3dmaster%26ver%3d2.0%26sig%3dAAAA", "sig%3d%3d"}) {
    SignedRequest request{.method = "GET", .ms_date = kDate, .authorization = header};
    EXPECT_EQ(CheckSignature(request, Keys(), false, At(kDateSeconds)).code(),
              Code::kUnauthenticated)
        << header;
  }
}

TEST(AuthTest, AnEmptyKeyOpensNothing) {
  std::string token = Sign("", "get\n\n\nthu, 27 apr 2017 00:51:12 gmt\n\n");
  SignedRequest request{.method = "GET", .ms_date = kDate, .authorization = token};
  EXPECT_EQ(CheckSignature(request, Keys(), false, At(kDateSeconds)).code(),
            Code::kUnauthenticated);
}

TEST(AuthTest, TypeAndLinkFollowThePath) {
  struct Row {
    std::vector<std::string> segments;
    std::string type;
    std::string link;
  };
  const Row rows[] = {
      {{}, "", ""},
      {{"dbs"}, "dbs", ""},
      {{"dbs", "D"}, "dbs", "dbs/D"},
      {{"dbs", "D", "colls"}, "colls", "dbs/D"},
      {{"dbs", "D", "colls", "C", "docs", "i"}, "docs", "dbs/D/colls/C/docs/i"},
      {{"dbs", "D", "colls", "C", "operations", "partitionkeydelete"}, "colls", "dbs/D/colls/C"},
      {{"offers"}, "offers", ""},
      {{"offers", "AbC"}, "offers", "abc"},
  };
  for (const Row& row : rows) {
    std::string link;
    for (const std::string& segment : row.segments) {
      link += (link.empty() ? "" : "/") + segment;
    }
    SignedResource resource = ResourceOfPath(row.segments.data(), row.segments.size(), link);
    EXPECT_EQ(resource.type, row.type) << link;
    EXPECT_EQ(resource.link, row.link) << link;
  }
}

TEST(AuthTest, OnlyRfc1123DatesAreDates) {
  EXPECT_EQ(ParseHttpDate("thu, 27 apr 2017 00:51:12 gmt"), kDateSeconds);
  EXPECT_FALSE(ParseHttpDate("2017-04-27T00:51:12Z"));
  EXPECT_FALSE(ParseHttpDate("Thu, 27 Xxx 2017 00:51:12 GMT"));
  EXPECT_FALSE(ParseHttpDate(""));
}

}  // namespace
}  // namespace orrery::api::sql
