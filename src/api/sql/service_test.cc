// The REST API over a node in memory: what of a request and its reply is not seen by the official
// clients, or only now and then.
#include "api/sql/service.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "model/test_node.h"

namespace orrery::api::sql {
namespace {

using Headers = std::map<std::string, std::string>;

constexpr std::string_view kKey = "primary";
constexpr std::string_view kDate = "Fri, 15 Jan 2027 08:00:00 GMT";  // where TestClock begins
constexpr std::string_view kContainer = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";
const Headers kQuery = {{"content-type", "application/query+json"},
                        {"x-ms-documentdb-isquery", "true"}};

struct Answer {
  int status = 0;
  std::string body;
  Headers headers;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    EXPECT_TRUE(node.Run(node.catalog().ChangeKeys({{.key = std::string(kKey)}})));
    options.catch_up = [this]() -> runtime::Task<> {
      ++caught_up;
      co_return;
    };
  }

  // A signed POST to the items of the container.
  Answer Post(Headers headers, const std::string& body) {
    headers["x-ms-date"] = kDate;
    std::string date(kDate);
    std::ranges::transform(date, date.begin(), [](unsigned char c) { return std::tolower(c); });
    headers["authorization"] =
        Encoded(net::HmacSha256(kKey, "post\ndocs\ndbs/d/colls/c\n" + date + "\n\n"));
    net::HttpRequest request{.method = "POST", .target = "/dbs/d/colls/c/docs", .body = body};
    for (const auto& [name, value] : headers) {
      request.headers.push_back({name, value});
    }
    net::HttpReply reply;
    Service service(node.catalog(), node.router(), node.replicas(), node.clock(), random, options,
                    nullptr);
    auto handle = [&]() -> runtime::Task<int> {
      co_await service.Handle(request, reply);
      co_return reply.status;
    };
    Answer answer{.status = node.Run(handle())};
    answer.body = reply.body;
    for (std::string_view left = reply.headers; !left.empty();) {
      std::string_view line = left.substr(0, left.find("\r\n"));
      left.remove_prefix(line.size() + 2);
      size_t colon = line.find(": ");
      answer.headers[std::string(line.substr(0, colon))] = line.substr(colon + 2);
    }
    return answer;
  }

  static model::TestNodeOptions SmallPartitions() {
    model::TestNodeOptions small;
    small.limits.partition_throughput = 1000;
    return small;
  }

  model::TestNode node{model::TestMachine(), SmallPartitions()};
  SystemRandom random;
  ServiceOptions options;
  int caught_up = 0;

 private:
  static std::string Encoded(std::string_view signature) {
    std::string out = "type%3dmaster%26ver%3d1.0%26sig%3d";
    for (char c : ToBase64(signature)) {
      out += c == '+' ? "%2b" : c == '/' ? "%2f" : c == '=' ? "%3d" : std::string(1, c);
    }
    return out;
  }
};

TEST_F(ServiceTest, ReadsOfABatchAndOfBulkCostAsTheAccountsLevelSays) {
  auto container = node.MakeContainer(kContainer);
  node.Write(*container, "a", {model::Create(R"({"id":"1","pk":"a"})")});
  const std::string body =
      R"([{"operationType":"Read","id":"1","partitionKey":"[\"a\"]"},
          {"operationType":"Read","id":"1","partitionKey":"[\"a\"]"}])";
  for (const char* atomic : {"true", "false"}) {
    const Headers batch = {{"x-ms-cosmos-is-batch-request", "true"},
                           {"x-ms-cosmos-batch-atomic", atomic},
                           {"x-ms-documentdb-partitionkey", R"(["a"])"}};
    Headers weaker = batch;
    weaker["x-ms-consistency-level"] = "Session";
    options.consistency = Consistency::kStrong;
    Answer strong = Post(batch, body);
    EXPECT_EQ(strong.status, 200) << strong.body;
    EXPECT_EQ(strong.headers["x-ms-request-charge"], "4");
    EXPECT_EQ(Post(weaker, body).headers["x-ms-request-charge"], "2");
    options.consistency = Consistency::kEventual;
    EXPECT_EQ(Post(weaker, body).status, 400) << "stronger than the account's";
  }
}

// Else a session that goes on at another replica may go back in time.
TEST_F(ServiceTest, APageHasTheSessionTokensOfAllPartitionsThatItRead) {
  auto container = node.MakeContainer(kContainer, {.manual = 3'000});
  Headers query = kQuery;
  query["x-ms-documentdb-query-enablecrosspartition"] = "true";
  Answer page = Post(query, R"({"query":"SELECT * FROM c"})");
  ASSERT_EQ(page.status, 200) << page.body;
  auto tokens = types::ParseSessionTokens(page.headers["x-ms-session-token"]);
  ASSERT_TRUE(tokens) << page.headers["x-ms-session-token"];
  std::vector<PartitionId> named;
  for (const types::SessionToken& token : *tokens) {
    named.push_back(token.partition);
  }
  std::vector<PartitionId> all;
  for (const partition::PartitionRange& range : container->map->ranges()) {
    all.push_back(range.id);
  }
  EXPECT_GT(all.size(), 1u);
  EXPECT_EQ(named, all);
}

TEST_F(ServiceTest, APageEndsBeforeItsSessionTokensAreTooManyForAHead) {
  auto container = node.MakeContainer(kContainer, {.manual = 150'000});
  ASSERT_GT(container->map->ranges().size(), 100u);
  Answer page = Post(kQuery, R"({"query":"SELECT * FROM c"})");
  ASSERT_EQ(page.status, 200) << page.body;
  EXPECT_EQ(types::ParseSessionTokens(page.headers["x-ms-session-token"])->size(), 100u);
  Headers rest = kQuery;
  rest["x-ms-continuation"] = page.headers["x-ms-continuation"];
  page = Post(rest, R"({"query":"SELECT * FROM c"})");
  EXPECT_EQ(types::ParseSessionTokens(page.headers["x-ms-session-token"])->size(), 50u);
  EXPECT_FALSE(page.headers.contains("x-ms-continuation"));
}

// It was told by another node, which knows of a split that this one has not heard of.
TEST_F(ServiceTest, ARangeThatIsNotKnownYetIsLookedForInTheNewestCatalog) {
  auto container = node.MakeContainer(kContainer);
  Headers query = kQuery;
  query["x-ms-documentdb-partitionkeyrangeid"] = container->map->newest().ToString();
  EXPECT_EQ(Post(query, R"({"query":"SELECT * FROM c"})").status, 200);
  EXPECT_EQ(caught_up, 0);
  query["x-ms-documentdb-partitionkeyrangeid"] =
      std::to_string(container->map->newest().value() + 1);
  EXPECT_EQ(Post(query, R"({"query":"SELECT * FROM c"})").status, 404);
  EXPECT_EQ(caught_up, 1);
}

}  // namespace
}  // namespace orrery::api::sql
