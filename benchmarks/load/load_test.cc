#include <string>

#include <gtest/gtest.h>

#include "load/cql.h"
#include "load/etcd.h"
#include "load/grpc_channel.h"
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

// A frame of HTTP/2 that the server could send.
std::string Frame(uint8_t type, uint8_t flags, uint8_t stream, std::string_view payload) {
  std::string frame{
      0, 0, static_cast<char>(payload.size()), static_cast<char>(type), static_cast<char>(flags), 0,
      0, 0, static_cast<char>(stream)};
  return frame.append(payload);
}

// What a channel told about ended calls: "stream:ok:bytes " for each.
std::string Ended(GrpcChannel& channel, std::string_view bytes) {
  std::string text;
  Status status = channel.Feed(bytes, [&](uint32_t stream, bool ok, size_t message_bytes) {
    text += std::to_string(stream) + (ok ? ":ok:" : ":failed:") + std::to_string(message_bytes);
  });
  return status.ok() ? text : "closed";
}

TEST(GrpcChannelTest, ACallIsHeadersAndOneMessage) {
  GrpcChannel channel("/kv/Put", "h:1");
  channel.out().clear();
  EXPECT_EQ(channel.Call("abc"), 1u);
  using namespace std::string_literals;
  std::string headers =
      "\x83\x86\x44\x07/kv/Put\x41\x03h:1\x5f\x10"s + "application/grpc\x40\x02te\x08trailers";
  EXPECT_EQ(channel.out(), Frame(1, 4, 1, headers) + Frame(0, 1, 1, "\0\0\0\0\3abc"s));
  channel.out().clear();
  EXPECT_EQ(channel.Call(""), 3u);
  EXPECT_EQ(channel.out(),
            Frame(1, 4, 3, "\x83\x86\xc1\xc0\xbf\xbe") + Frame(0, 1, 3, "\0\0\0\0\0"s));
}

TEST(GrpcChannelTest, AMessageAndTheEndOfTheStreamAreASuccess) {
  GrpcChannel channel("/kv/Put", "h:1");
  channel.Call("a");
  channel.Call("b");
  std::string reply =
      Frame(1, 4, 3, "head") + Frame(0, 0, 3, "12345xyz") + Frame(1, 5, 3, "trailers");
  for (size_t i = 0; i + 1 < reply.size(); ++i) {
    ASSERT_EQ(Ended(channel, reply.substr(i, 1)), "");
  }
  EXPECT_EQ(Ended(channel, reply.substr(reply.size() - 1)), "3:ok:3");
  EXPECT_EQ(Ended(channel, Frame(1, 5, 1, "trailers only")), "1:failed:0");
}

TEST(GrpcChannelTest, TheServersWindowIsKept) {
  GrpcChannel channel("/kv/Put", "h:1");
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(channel.MaySend(8000));
    channel.Call(std::string(8000, 'x'));
  }
  EXPECT_FALSE(channel.MaySend(8000));
  using namespace std::string_literals;
  EXPECT_EQ(Ended(channel, Frame(8, 0, 0, "\0\0\x20\0"s)), "");
  EXPECT_TRUE(channel.MaySend(8000));
}

TEST(GrpcChannelTest, PingsAndSettingsAreAnswered) {
  GrpcChannel channel("/kv/Put", "h:1");
  channel.out().clear();
  EXPECT_EQ(
      Ended(channel, Frame(4, 0, 0, "") + Frame(6, 0, 0, "12345678") + Frame(6, 1, 0, "87654321")),
      "");
  EXPECT_EQ(channel.out(), Frame(4, 1, 0, "") + Frame(6, 1, 0, "12345678"));
  EXPECT_EQ(Ended(channel, Frame(7, 0, 0, "12345678")), "closed");
}

TEST(EtcdSetupWorkloadTest, WhatFailedIsPutAgain) {
  EtcdSetupWorkload workload({.items = 2, .value_bytes = 10}, 0, 1);
  std::string request;
  uint64_t number = 9;
  EXPECT_TRUE(workload.Next(request, number));
  EXPECT_EQ(request.substr(0, 19), "\x0a\x0fitem-0000000000\x12\x0a");
  EXPECT_TRUE(workload.Next(request, number));
  EXPECT_FALSE(workload.Next(request, number));
  workload.Done(0, 500);
  EXPECT_TRUE(workload.Next(request, number));
  EXPECT_EQ(number, 0u);
}

TEST(CqlSetupWorkloadTest, APartitionHasMoreRowsThanAScanReads) {
  CqlSetupWorkload workload({.items = 3, .scan_rows = 2, .row_bytes = 10}, {}, 0, 1);
  std::string request;
  uint64_t number = 0;
  uint64_t writes = 0;
  while (workload.Next(request, number)) {
    ++writes;
  }
  EXPECT_EQ(writes, 3u + 100 * 2 * 2);
}

TEST(CqlTest, AReplyWithoutItsRowsIsTooShort) {
  const CqlData data{.items = 1, .value_bytes = 1024, .scan_rows = 100, .row_bytes = 50};
  EXPECT_EQ(FoundBytesMin("cql-read", data), 1024u);
  EXPECT_EQ(FoundBytesMin("cql-scan", data), 5000u);
  EXPECT_EQ(FoundBytesMin("cql-mixed", data), 0u);
}

}  // namespace
}  // namespace orrery::load
