#include "net/http_server.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "net/test_client.h"

namespace orrery::net {
namespace {

using std::chrono::milliseconds;

std::string Post(const std::string& target, const std::string& body) {
  return "POST " + target + " HTTP/1.1\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST(HttpServerTest, OneConnectionServesManyRequests) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  for (int i = 0; i < 100; ++i) {
    client.Send(Post("/" + std::to_string(i), "x"));
    ASSERT_EQ(client.Receive().body, "POST /" + std::to_string(i) + " x");
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send(Post("/1", "a") + Post("/2", "b") + Post("/3", "c"));
  EXPECT_EQ(client.Receive().body, "POST /1 a");
  EXPECT_EQ(client.Receive().body, "POST /2 b");
  EXPECT_EQ(client.Receive().body, "POST /3 c");
}

TEST(HttpServerTest, ManyPipelinedRequestsFitThroughTheBuffers) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  constexpr int kCount = 3000;
  std::thread sender([&] {
    std::string all;
    for (int i = 0; i < kCount; ++i) {
      all += Post("/" + std::to_string(i), std::string(100, 'b'));
    }
    client.Send(all);
  });
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(client.Receive().body, "POST /" + std::to_string(i) + " " + std::string(100, 'b'));
  }
  sender.join();
}

TEST(HttpServerTest, ChunkedBodiesArePutTogether) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("POST /c HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
  client.Send("4\r\ndefg\r\n0\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "POST /c abcdefg");
}

TEST(HttpServerTest, LargeBodiesGoBothWays) {
  RunningServer server({}, Echo, 2);
  TestClient client(server.port());
  std::string body(3 << 20, 'z');
  std::thread sender([&] { client.Send(Post("/", body) + Post("/after", "")); });
  EXPECT_EQ(client.Receive().body, "POST / " + body);
  EXPECT_EQ(client.Receive().body, "POST /after ");
  sender.join();
}

TEST(HttpServerTest, ContinueIsSaidBeforeTheBody) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("PUT /e HTTP/1.1\r\nExpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 100);
  client.Send("ok");
  EXPECT_EQ(client.Receive().body, "PUT /e ok");
}

TEST(HttpServerTest, ContinueIsNotSaidWhenTheBodyIsThere) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("PUT /e HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nok");
  EXPECT_EQ(client.Receive().status, 200);
}

TEST(HttpServerTest, HeadHasLengthsButNoBody) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("HEAD /h HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive(true).headers["content-length"], "8");
  EXPECT_EQ(client.Get("/next").body, "GET /next ");
}

runtime::Task<> WithStatusOfTarget(const HttpRequest& request, HttpReply& reply) {
  reply.status = std::stoi(std::string(request.target.substr(1)));
  reply.Add("x-tag", "1");
  reply.body = "a body";
  co_return;
}

TEST(HttpServerTest, RepliesWithoutContentHaveNoBodyAndNoLength) {
  RunningServer server({}, WithStatusOfTarget);
  TestClient client(server.port());
  for (const char* target : {"/204", "/304"}) {
    ClientReply reply = client.Get(target);
    EXPECT_EQ(reply.headers.count("content-length"), 0u);
    EXPECT_EQ(reply.headers["x-tag"], "1");
  }
  EXPECT_EQ(client.Get("/404").body, "a body") << "nothing stood between the replies";
}

TEST(HttpServerTest, TheConnectionEndsWhenTheClientAsksForIt) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("GET /x HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.Receive().headers["connection"], "close");
  EXPECT_TRUE(client.IsClosed());
}

TEST(HttpServerTest, AnOldClientKeepsItsConnectionOnlyIfItAsks) {
  RunningServer server({}, Echo);
  TestClient keeping(server.port());
  keeping.Send("GET /x HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
  EXPECT_EQ(keeping.Receive().headers["connection"], "keep-alive");
  TestClient plain(server.port());
  plain.Send("GET /x HTTP/1.0\r\n\r\n");
  EXPECT_EQ(plain.Receive().status, 200);
  EXPECT_TRUE(plain.IsClosed());
}

runtime::Task<> Throw(const HttpRequest& request, HttpReply& reply) {
  reply.body = "half";
  if (request.target == "/throw") {
    throw std::runtime_error("on purpose");
  }
  co_return;
}

TEST(HttpServerTest, AThrowingHandlerGives500AndTheConnectionGoesOn) {
  RunningServer server({}, Throw);
  TestClient client(server.port());
  ClientReply reply = client.Get("/throw");
  EXPECT_EQ(reply.status, 500);
  EXPECT_TRUE(reply.body.starts_with(R"({"code":"InternalServerError","message":")")) << reply.body;
  EXPECT_EQ(client.Get("/fine").body, "half");
}

runtime::Task<> Describe(const HttpRequest& request, HttpReply& reply) {
  reply.body =
      (request.secure ? "secure " : "plain ") + std::string(request.loopback ? "near" : "far");
  co_return;
}

TEST(HttpServerTest, TheHandlerKnowsWhereTheRequestCameFrom) {
  RunningServer server({}, Describe);
  EXPECT_EQ(TestClient(server.port()).Get("/").body, "plain near");
}

runtime::Task<> CountFirstWorker(std::atomic<int>& on_first) {
  on_first += runtime::Worker::Current()->index() == 0 ? 1 : 0;
  co_return;
}

TEST(HttpServerTest, ConnectionsAreSpreadEvenlyOverTheWorkers) {
  std::atomic<int> on_first = 0;
  auto count = [&on_first](const HttpRequest&, HttpReply&) { return CountFirstWorker(on_first); };
  RunningServer server({}, count, 2);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
  }
  for (auto& client : clients) {
    ASSERT_EQ(client->Get("/").status, 200);
  }
  EXPECT_EQ(on_first, 16);
}

TEST(HttpServerTest, ATakenPortFailsTheStart) {
  RunningServer first({}, Echo);
  runtime::WorkerPool pool(1);
  HttpServer second(pool, {.port = first.port()}, Echo);
  Status started = second.Start();
  EXPECT_EQ(started.code(), Code::kUnavailable);
  EXPECT_NE(started.message().find("in use"), std::string::npos) << started.message();
}

TEST(HttpServerTest, ANonsenseAddressFailsTheStart) {
  runtime::WorkerPool pool(1);
  HttpServer server(pool, {.address = "not an address"}, Echo);
  EXPECT_EQ(server.Start().code(), Code::kUnavailable);
}

struct SlowHandler {
  std::promise<void> entered;
  Duration takes;
};

runtime::Task<> AnswerSlowly(SlowHandler& slow, HttpReply& reply) {
  slow.entered.set_value();
  co_await runtime::Sleep(slow.takes);
  reply.body = "done";
}

HttpHandler SlowBy(SlowHandler& slow) {
  return [&slow](const HttpRequest&, HttpReply& reply) { return AnswerSlowly(slow, reply); };
}

TEST(HttpServerTest, StopLetsARunningRequestFinish) {
  SlowHandler slow{.takes = milliseconds(150)};
  RunningServer server({}, SlowBy(slow));
  TestClient idle(server.port());
  TestClient busy(server.port());
  busy.Send("GET / HTTP/1.1\r\n\r\n");
  slow.entered.get_future().wait();
  server.Stop(std::chrono::seconds(10));
  ClientReply reply = busy.Receive();
  EXPECT_EQ(reply.body, "done");
  EXPECT_EQ(reply.headers["connection"], "close");
  EXPECT_TRUE(busy.IsClosed());
  EXPECT_TRUE(idle.IsClosed());
}

TEST(HttpServerTest, AfterTheGraceStopClosesWhatStillRuns) {
  SlowHandler slow{.takes = milliseconds(700)};
  RunningServer server({}, SlowBy(slow));
  TestClient busy(server.port());
  busy.Send("GET / HTTP/1.1\r\n\r\n");
  slow.entered.get_future().wait();
  std::thread stop([&] { server.Stop(milliseconds(10)); });
  EXPECT_TRUE(busy.IsClosed());
  stop.join();
}

TEST(HttpServerTest, StopOfAnIdleServerIsQuick) {
  RunningServer server({}, Echo, 2);
  TestClient client(server.port());
  client.Get("/");
  auto before = std::chrono::steady_clock::now();
  server.Stop(std::chrono::seconds(10));
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  EXPECT_EQ(server->connections(), 0u);
}

}  // namespace
}  // namespace orrery::net
