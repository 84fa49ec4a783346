#include <string>

#include <gtest/gtest.h>

#include "load/histogram.h"
#include "load/http_client.h"
#include "load/signer.h"
#include "load/sql.h"

namespace orrery::load {
namespace {

using State = ReplyReader::State;

TEST(HistogramTest, PercentilesAreWithinOnePercentAbove) {
  Histogram histogram;
  for (int64_t i = 1; i <= 100'000; ++i) {
    histogram.Record(i * 1000);
  }
  EXPECT_GE(histogram.Percentile(50), 50'000'000);
  EXPECT_LE(histogram.Percentile(50), 50'500'000);
  EXPECT_GE(histogram.Percentile(99.9), 99'900'000);
  EXPECT_LE(histogram.Percentile(99.9), 100'000'000);
}

TEST(HistogramTest, SmallValuesAreExact) {
  Histogram histogram;
  for (int64_t value : {3, 5, 127}) {
    histogram.Record(value);
  }
  EXPECT_EQ(histogram.Percentile(1), 3);
  EXPECT_EQ(histogram.Percentile(50), 5);
  EXPECT_EQ(histogram.Percentile(100), 127);
}

TEST(HistogramTest, ValuesBeyondTheRangeKeepTheMaximum) {
  Histogram histogram;
  histogram.Record(int64_t{1} << 50);
  EXPECT_EQ(histogram.max(), int64_t{1} << 50);
  EXPECT_GT(histogram.Percentile(50), 0);
}

TEST(HistogramTest, AddJoinsTheCounts) {
  Histogram a;
  Histogram b;
  a.Record(1000);
  b.Record(3000);
  a.Add(b);
  EXPECT_EQ(a.count(), 2u);
  EXPECT_DOUBLE_EQ(a.Mean(), 2000);
  EXPECT_EQ(a.Percentile(100), 3000);
}

TEST(ReplyReaderTest, AReplyInOnePieceIsDone) {
  ReplyReader reader(true);
  EXPECT_EQ(reader.Feed("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), State::kDone);
  EXPECT_EQ(reader.status(), 200);
  EXPECT_EQ(reader.body(), "hello");
}

TEST(ReplyReaderTest, RepliesMayComeByteByByte) {
  ReplyReader reader(true);
  std::string reply = "HTTP/1.1 429 Too Many\r\nx-c: 1\r\ncontent-length: 2\r\n\r\n{}";
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i + 1 < reply.size(); ++i) {
      ASSERT_EQ(reader.Feed(reply.substr(i, 1)), State::kMore);
    }
    ASSERT_EQ(reader.Feed("}"), State::kDone);
    EXPECT_EQ(reader.status(), 429);
    EXPECT_EQ(reader.body(), "{}");
  }
}

TEST(ReplyReaderTest, ABodyWithoutLengthIsMalformed) {
  EXPECT_EQ(ReplyReader().Feed("HTTP/1.1 200 OK\r\n\r\n"), State::kMalformed);
  EXPECT_EQ(ReplyReader().Feed("HTTP/1.1 204 No Content\r\n\r\n"), State::kDone);
}

TEST(SignerTest, MatchesTheExampleOfTheRestReference) {
  auto signer = Signer::Make(
      "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==",
      "Thu, 27 Apr 2017 00:51:12 GMT");
  ASSERT_TRUE(signer.has_value());
  std::string text;
  Signer::AppendAuthorization(signer->Sign("get", "dbs", "dbs/ToDoList"), text);
  EXPECT_EQ(text,
            "type%3Dmaster%26ver%3D1.0%26sig%3Dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2Bc%2Bc%3D");
}

TEST(SignerTest, DatesAreThoseOfHttp) {
  EXPECT_EQ(HttpDate(1493254272), "Thu, 27 Apr 2017 00:51:12 GMT");
}

TEST(SqlRequestsTest, AWriteHasTheLengthThatItAnnounces) {
  auto requests = SqlRequests::Make({.items = 10, .item_bytes = 1024}, false);
  ASSERT_TRUE(requests.has_value());
  for (uint64_t chance : {uint64_t{0}, UINT64_MAX}) {
    std::string out;
    requests->AppendWrite("item-1", 7, true, chance, out);
    EXPECT_NE(out.find("content-length: 1024\r\n"), std::string::npos);
    EXPECT_EQ(out.size() - out.find("\r\n\r\n") - 4, 1024u);
  }
}

}  // namespace
}  // namespace orrery::load
