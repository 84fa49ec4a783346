#include "net/http_parser.h"

#include <string>

#include <gtest/gtest.h>

namespace orrery::net {
namespace {

using Outcome = HttpParser::Outcome;

// Feeds the bytes in pieces of `piece` bytes, as a connection does; stops at the first outcome that
// is not kMore. `held` keeps the bytes of the request's body.
Outcome FeedInPieces(HttpParser& parser, std::string_view bytes, size_t piece, std::string& held) {
  held.clear();
  while (!bytes.empty()) {
    held.append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    size_t used = 0;
    Outcome outcome = parser.Feed(held, &used);
    if (outcome != Outcome::kMore) {
      return outcome;
    }
    held.erase(0, used);
  }
  return Outcome::kMore;
}

Outcome Feed(HttpParser& parser, std::string_view bytes) {
  std::string held;
  return FeedInPieces(parser, bytes, bytes.size(), held);
}

Outcome OutcomeOf(std::string_view bytes) {
  HttpParser parser(1024, 1024);
  return Feed(parser, bytes);
}

TEST(HttpParserTest, NamesAreLoweredAndValuesKept) {
  HttpParser parser(1024, 1024);
  ASSERT_EQ(Feed(parser, "GET /a?b=C HTTP/1.1\r\nX-Ms-Date:  Thu A\r\nHOST: h\r\n\r\n"),
            Outcome::kDone);
  EXPECT_EQ(parser.request().method, "GET");
  EXPECT_EQ(parser.request().target, "/a?b=C");
  EXPECT_EQ(parser.request().Get("x-ms-date"), "Thu A");
  EXPECT_EQ(parser.request().Get("host"), "h");
  EXPECT_EQ(parser.request().Get("absent"), "");
}

TEST(HttpParserTest, TheSizeOfThePiecesDoesNotMatter) {
  const std::string bodies[] = {"POST /x HTTP/1.1\r\na: 1\r\ncontent-length: 5\r\n\r\nhello",
                                "POST /x HTTP/1.1\r\na: 1\r\ntransfer-encoding: "
                                "chunked\r\n\r\n2\r\nhe\r\n3;e=1\r\nllo\r\n0\r\n\r\n",
                                "\r\nPOST /x HTTP/1.1\r\na: 1\r\nTransfer-Encoding: "
                                "Chunked\r\n\r\n5\r\nhello\r\n0\r\nt: 1\r\n\r\n"};
  std::string held;
  for (const std::string& bytes : bodies) {
    HttpParser parser(1024, 1024);
    for (size_t piece = 1; piece <= bytes.size(); ++piece) {
      ASSERT_EQ(FeedInPieces(parser, bytes, piece, held), Outcome::kDone) << bytes << piece;
      EXPECT_EQ(parser.request().body, "hello") << bytes << piece;
      EXPECT_EQ(parser.request().headers.size(), 2u) << "a trailer is no header";
      parser.Reset();
    }
  }
}

TEST(HttpParserTest, AnEmptyChunkedBodyByteByByteIsComplete) {
  std::string held;
  HttpParser parser(1024, 1024);
  EXPECT_EQ(FeedInPieces(parser, "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                         1, held),
            Outcome::kDone);
  EXPECT_EQ(parser.request().body, "");
}

TEST(HttpParserTest, HeadsThatTwoReadersCouldTakeForDifferentRequestsAreMalformed) {
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n"), Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked\r\n\r\n"),
            Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n"),
            Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"),
            Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n"),
            Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n"), Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("GET / HTTP/1.1\r\nname : value\r\n\r\n"), Outcome::kMalformed);
}

TEST(HttpParserTest, BytesThatAreNoRequestAreMalformed) {
  EXPECT_EQ(OutcomeOf("\x16\x03\x01\x02 not text"), Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("GET / HTTP/2.0\r\n\r\n"), Outcome::kMalformed);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n\r\n"),
            Outcome::kMalformed);
}

TEST(HttpParserTest, TheHeadHasOneLimitHoweverItArrives) {
  std::string head = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 200; ++i) {
    head += "n" + std::to_string(i) + ": v\r\n";
  }
  head += "\r\n";
  std::string held;
  for (size_t piece : {size_t{1}, size_t{16}, size_t{700}, head.size()}) {
    HttpParser parser(1024, 1024);
    EXPECT_EQ(FeedInPieces(parser, head, piece, held), Outcome::kHeadTooLarge) << piece;
  }
}

TEST(HttpParserTest, ABodyIsTooLargeBeforeItComes) {
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ncontent-length: 1025\r\n\r\n"), Outcome::kBodyTooLarge);
  EXPECT_EQ(OutcomeOf("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n401\r\n"),
            Outcome::kBodyTooLarge);
}

TEST(HttpParserTest, ChunksTogetherHaveTheLimitOfABody) {
  std::string bytes = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n";
  for (int i = 0; i < 65; ++i) {
    bytes += "10\r\n0123456789abcdef\r\n";
  }
  EXPECT_EQ(OutcomeOf(bytes), Outcome::kBodyTooLarge);
}

TEST(HttpParserTest, OnlyWhatBelongsToTheRequestIsUsed) {
  HttpParser parser(1024, 1024);
  std::string_view first = "POST /1 HTTP/1.1\r\ncontent-length: 2\r\n\r\nab";
  std::string both = std::string(first) + "GET /2 HTTP/1.1\r\n\r\n";
  size_t used = 0;
  EXPECT_EQ(parser.Feed(both, &used), Outcome::kDone);
  EXPECT_EQ(used, first.size());
}

TEST(HttpParserTest, KeepAliveFollowsTheVersionAndTheHeader) {
  auto keeps = [](std::string_view bytes) {
    HttpParser parser(1024, 1024);
    EXPECT_EQ(Feed(parser, bytes), Outcome::kDone);
    return parser.keep_alive();
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nconnection: close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
}

TEST(HttpParserTest, ContinueIsAwaitedUntilTheBodyBegins) {
  HttpParser parser(1024, 1024);
  Feed(parser, "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_TRUE(parser.awaits_continue());
  Feed(parser, "a");
  EXPECT_FALSE(parser.awaits_continue());
}

}  // namespace
}  // namespace orrery::net
