#include "net/peer.h"

#include <future>
#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "net/test_client.h"

namespace orrery::net {
namespace {

using runtime::Task;

// Two workers, a server, and a client of it.
class PeerTest : public testing::Test {
 protected:
  PeerTest() { pool.Start(); }
  ~PeerTest() override {
    Release();
    if (client) {
      client->Stop();
    }
    if (server) {
      server->Stop();
    }
    if (next_server) {
      next_server->Stop();
    }
    pool.Stop();
  }
  using Handler = std::function<Task<std::string>(std::string)>;
  static PeerHandlers Handlers(Handler handler) {
    PeerHandlers handlers;
    handlers.on_call = [handler = std::move(handler)](NodeId, std::string request) {
      return handler(std::move(request));
    };
    return handlers;
  }
  void Serve(Handler handler) { Serve(Handlers(std::move(handler))); }
  void Serve(PeerHandlers handlers) {
    server.emplace(pool, std::move(handlers), options);
    ASSERT_TRUE(server->Start("127.0.0.1", 0).ok());
    client.emplace(pool, "127.0.0.1", server->port(), options);
  }
  // A client that says how the server is.
  void Watch(NodeId node = NodeId()) {
    PeerWatch watch{node, [this](PeerEvent event) {
                      std::lock_guard lock(mutex);
                      events.push_back(event);
                    }};
    client->Stop();
    client.emplace(pool, "127.0.0.1", server->port(), options, watch);
  }
  bool Saw(std::vector<PeerEvent> expected) {
    return Eventually([&] {
      std::lock_guard lock(mutex);
      return events == expected;
    });
  }
  // Answers after Release().
  Task<std::string> Wait(std::string message) {
    auto start = [this](std::function<void(bool)> resume) {
      std::lock_guard lock(mutex);
      held.push_back(std::move(resume));
    };
    co_await runtime::Suspend<bool>(start);
    co_return message;
  }
  size_t waiting() {
    std::lock_guard lock(mutex);
    return held.size();
  }
  void Release() {
    std::lock_guard lock(mutex);
    for (auto& resume : std::exchange(held, {})) {
      resume(true);
    }
  }
  std::future<Result<std::string>> Call(std::string message, size_t worker = 0) {
    auto done = std::make_shared<std::promise<Result<std::string>>>();
    auto run = [](PeerClient& client, std::string message,
                  std::shared_ptr<std::promise<Result<std::string>>> done) -> Task<> {
      done->set_value(co_await client.Call(std::move(message)));
    };
    auto result = done->get_future();
    pool.at(worker).Spawn(run(*client, std::move(message), done));
    return result;
  }

  std::mutex mutex;
  std::vector<std::function<void(bool)>> held;
  std::vector<PeerEvent> events;
  std::vector<std::string> frames;
  PeerOptions options;
  runtime::WorkerPool pool{2};
  std::optional<PeerServer> server;
  std::optional<PeerServer> next_server;
  std::optional<PeerClient> client;
};

Task<std::string> Answer(std::string message) { co_return "re: " + message; }

// Answers in another order than that of the questions.
Task<std::string> AnswerLater(std::string message) {
  if (message.size() % 2 == 0) {
    co_await runtime::Sleep(std::chrono::milliseconds(2));
  }
  co_return "re: " + message;
}

TEST_F(PeerTest, ACallGetsItsAnswer) {
  Serve(Answer);
  EXPECT_EQ(*Call("hello").get(), "re: hello");
  EXPECT_EQ(*Call("").get(), "re: ");
}

TEST_F(PeerTest, ManyCallsAtOnceEachGetTheirOwnAnswer) {
  Serve(AnswerLater);
  std::vector<std::future<Result<std::string>>> calls;
  for (size_t i = 0; i < 1000; ++i) {
    calls.push_back(Call(std::to_string(i) + std::string(i % 300, 'x'), i));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    auto answer = calls[i].get();
    ASSERT_TRUE(answer) << answer.error().ToString();
    EXPECT_EQ(*answer, "re: " + std::to_string(i) + std::string(i % 300, 'x'));
  }
}

TEST_F(PeerTest, LargeMessagesGoThroughWhole) {
  Serve(Answer);
  std::string large(8 << 20, 'x');
  EXPECT_EQ(Call(large).get()->size(), large.size() + 4);
}

TEST_F(PeerTest, AMessageOverTheLimitIsNotSentAndTheConnectionStays) {
  Serve(Answer);
  ASSERT_TRUE(Call("first").get());
  auto refused = Call(std::string(kFrameBytesMax, 'x')).get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kUnavailable);
  EXPECT_EQ(*Call("next").get(), "re: next");
}

// The bytes of a frame; kinds as in peer.h.
std::string Frame(uint8_t kind, uint64_t id, std::string_view message) {
  std::string frame;
  Encoder encoder(frame);
  encoder.U32(static_cast<uint32_t>(message.size() + 9));
  encoder.U8(kind);
  encoder.U64(id);
  encoder.Raw(message);
  return frame;
}

std::string Hello(uint8_t major = kPeerProtocolMajor, uint64_t cluster = 0, uint32_t node = 0) {
  std::string hello("ORRY");
  Encoder encoder(hello);
  encoder.U8(major);
  encoder.U8(9);
  encoder.U64(cluster);
  encoder.U32(node);
  encoder.Raw("of a later minor version");
  return Frame(1, 0, hello);
}
constexpr size_t kHelloBytes = 13 + 22;

TEST_F(PeerTest, AFrameOverTheLimitOrTooShortClosesTheConnection) {
  Serve(Answer);
  for (uint32_t size : {uint32_t{kFrameBytesMax + 1}, 0xFFFFFFFFu, 8u, 0u}) {
    TestClient raw(server->port());
    raw.Send(Hello());
    ASSERT_EQ(raw.ReceiveBytes(kHelloBytes).size(), kHelloBytes);
    std::string head;
    Encoder(head).U32(size);
    raw.Send(head);
    EXPECT_TRUE(raw.IsClosed()) << size;
  }
  EXPECT_TRUE(Call("others go on").get());
}

TEST_F(PeerTest, WhatDoesNotBeginWithAHelloIsClosed) {
  options.identity->cluster = 7;
  Serve(Answer);
  std::string call = Frame(2, 1, "a call");
  std::string large = Frame(1, 0, std::string(2000, 'x'));
  std::string no_magic = Frame(1, 0, "ORRX" + std::string(14, '\0'));
  for (const std::string& bytes :
       {call, large, no_magic, Frame(1, 0, "ORRY"), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    TestClient raw(server->port());
    raw.Send(bytes);
    while (raw.ReceiveBytes(1).size() == 1) {  // perhaps a refusal
    }
  }
}

TEST_F(PeerTest, AFrameInPiecesIsPutTogether) {
  Serve(Answer);
  TestClient raw(server->port());
  for (char c : Hello() + Frame(2, 77, "hi")) {
    raw.Send(std::string_view(&c, 1));
  }
  std::string reply = raw.ReceiveBytes(kHelloBytes + 13 + 6).substr(kHelloBytes);
  EXPECT_EQ(reply, Frame(3, 77, "re: hi"));
}

TEST_F(PeerTest, ANewerProtocolIsRefusedOnEitherSide) {
  Serve(Answer);
  TestClient raw(server->port());
  raw.Send(Hello(kPeerProtocolMajor + 1));
  EXPECT_EQ(raw.ReceiveBytes(1000), Frame(5, 0, "protocol 2 is newer than 1"));
  PeerOptions newer = options;
  newer.protocol_major = kPeerProtocolMajor + 1;
  next_server.emplace(pool, Handlers(Answer), newer);
  ASSERT_TRUE(next_server->Start("127.0.0.1", 0).ok());
  client->Stop();
  client.emplace(pool, "127.0.0.1", next_server->port(), options);
  auto answer = Call("x").get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnavailable);
  EXPECT_NE(answer.error().message().find("newer"), std::string::npos);
}

TEST_F(PeerTest, AnotherClusterIsRefusedAndAnUnknownOneIsNot) {
  options.identity->cluster = 7;
  Serve(Answer);
  TestClient other(server->port());
  other.Send(Hello(kPeerProtocolMajor, 8, 1));
  EXPECT_EQ(other.ReceiveBytes(1000), Frame(5, 0, "clusters differ: 8 and 7"));
  TestClient unknown(server->port());
  unknown.Send(Hello(kPeerProtocolMajor, 0, 1));
  EXPECT_EQ(unknown.ReceiveBytes(kHelloBytes).substr(0, 13),
            Hello().substr(0, 3) + "\x1f" + Hello().substr(4, 9));
  EXPECT_TRUE(Call("x").get());
}

TEST_F(PeerTest, ACallWhoseConnectionBreaksHasAnUnknownOutcome) {
  Serve([this](std::string message) { return Wait(std::move(message)); });
  std::vector<std::future<Result<std::string>>> calls;
  for (size_t i = 0; i < 10; ++i) {
    calls.push_back(Call("x", i));
  }
  ASSERT_TRUE(Eventually([this] { return waiting() == 10; }));
  server->Stop();
  for (auto& call : calls) {
    auto answer = call.get();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), Code::kUnknownOutcome);
  }
}

TEST_F(PeerTest, WithoutAServerNothingIsSent) {
  Serve(Answer);
  ASSERT_TRUE(Call("x").get());
  server->Stop();
  EXPECT_TRUE(Eventually([this] {
    auto answer = Call("x").get();
    return !answer && answer.error().code() == Code::kUnavailable;
  }));
}

TEST_F(PeerTest, AfterTheServerComesBackCallsGoThroughAgain) {
  Serve(Answer);
  ASSERT_TRUE(Call("x").get());
  uint16_t port = server->port();
  server->Stop();
  ASSERT_TRUE(Eventually([this] { return !Call("x").get(); }));
  next_server.emplace(pool, Handlers(Answer));
  Status listens = next_server->Start("127.0.0.1", port);
  ASSERT_TRUE(listens.ok()) << listens.ToString();
  EXPECT_TRUE(Eventually([this] { return Call("x").get().has_value(); }));
}

TEST_F(PeerTest, TooManyCallsInFlightAreRefused) {
  Serve([this](std::string message) { return Wait(std::move(message)); });
  std::vector<std::future<Result<std::string>>> calls;
  for (size_t i = 0; i < kInFlightMax; ++i) {
    calls.push_back(Call("x"));
  }
  ASSERT_TRUE(Eventually([this] { return waiting() == kInFlightMax; }));
  EXPECT_EQ(Call("one more").get().error().code(), Code::kUnavailable);
  Release();
  for (auto& call : calls) {
    EXPECT_TRUE(call.get());
  }
}

TEST_F(PeerTest, AServerThatCannotListenSaysSo) {
  Serve(Answer);
  PeerServer second(pool, Handlers(Answer));
  EXPECT_EQ(second.Start("127.0.0.1", server->port()).code(), Code::kUnavailable);
  PeerServer third(pool, Handlers(Answer));
  EXPECT_EQ(third.Start("not an address", 0).code(), Code::kUnavailable);
}

TEST_F(PeerTest, OneWayFramesKeepTheirOrderBesideCalls) {
  PeerHandlers handlers = Handlers(Answer);
  handlers.on_frame = [this](NodeId, std::string frame) {
    std::lock_guard lock(mutex);
    frames.push_back(std::move(frame));
  };
  Serve(std::move(handlers));
  constexpr size_t kCount = 2000;
  auto size = [](size_t i) { return i % 500 == 499 ? size_t{300'000} : i % 50; };
  pool.at(1).Post([&] {
    for (size_t i = 0; i < kCount; ++i) {
      client->Send(std::to_string(i) + std::string(size(i), 'x'));
    }
  });
  EXPECT_TRUE(Call("x", 1).get());
  // The call was sent after them and handled after them.
  std::lock_guard lock(mutex);
  ASSERT_EQ(frames.size(), kCount);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(frames[i], std::to_string(i) + std::string(size(i), 'x')) << i;
  }
  EXPECT_EQ(options.counters->frames_dropped, 0u);
  EXPECT_GE(options.counters->frames_received, kCount);
}

TEST_F(PeerTest, WhatAWorkerSendsArrivesAtTheWorkerOfTheSameNumber) {
  PeerHandlers handlers;
  handlers.on_call = [](NodeId, std::string) -> Task<std::string> {
    co_return std::to_string(runtime::Worker::Current()->index());
  };
  Serve(std::move(handlers));
  // Whoever connects first: the server takes its workers in turn before it knows.
  for (size_t worker : {1, 0, 1, 0}) {
    EXPECT_EQ(*Call("where?", worker).get(), std::to_string(worker));
  }
}

TEST_F(PeerTest, APeerThatStopsReadingTakesNoMoreThanTheLimit) {
  options.waiting_bytes_max = 4 << 20;
  std::promise<void> release;
  std::shared_future<void> released = release.get_future().share();
  std::atomic<size_t> received = 0;
  // A server with a worker of its own, which stands still from the first frame on.
  runtime::WorkerPool slow_pool(1);
  slow_pool.Start();
  PeerHandlers handlers = Handlers(Answer);
  handlers.on_frame = [&](NodeId, std::string) {
    released.wait();
    ++received;
  };
  PeerServer slow(slow_pool, handlers, options);
  ASSERT_TRUE(slow.Start("127.0.0.1", 0).ok());
  client.emplace(pool, "127.0.0.1", slow.port(), options);
  ASSERT_TRUE(Call("x").get());
  constexpr size_t kTurns = 20;
  constexpr size_t kFramesATurn = 100;
  std::string frame(100 << 10, 'x');
  for (size_t turn = 0; turn < kTurns; ++turn) {
    std::promise<void> sent;
    pool.at(0).Post([&] {
      for (size_t i = 0; i < kFramesATurn; ++i) {
        client->Send(frame);
      }
      sent.set_value();
    });
    sent.get_future().get();
  }
  size_t dropped = options.counters->frames_dropped;
  EXPECT_GE(dropped, kTurns * kFramesATurn / 2);
  EXPECT_EQ(Call(std::string(4 << 20, 'x')).get().error().code(), Code::kUnavailable);
  release.set_value();
  EXPECT_TRUE(Eventually([&] { return received == kTurns * kFramesATurn - dropped; }));
  client->Stop();
  slow.Stop();
  slow_pool.Stop();
}

TEST_F(PeerTest, CallsBeyondTheBytesThatMayWaitAreRefused) {
  options.waiting_bytes_max = 1 << 20;
  Serve(Answer);
  std::vector<std::future<Result<std::string>>> calls;
  for (size_t i = 0; i < 50; ++i) {
    calls.push_back(Call(std::string(900'000, 'x')));
  }
  size_t refused = 0;
  for (auto& call : calls) {
    auto answer = call.get();
    if (!answer) {
      EXPECT_EQ(answer.error().code(), Code::kUnavailable);
      ++refused;
    }
  }
  EXPECT_LT(refused, calls.size());
  EXPECT_TRUE(Call("next").get());
}

TEST_F(PeerTest, ACallerThatLeavesItsAnswersIsCutOff) {
  options.answer_bytes_max = 1 << 20;
  Serve([](std::string) -> Task<std::string> { co_return std::string(1 << 20, 'x'); });
  TestClient raw(server->port());
  raw.Send(Hello());
  std::string calls;
  for (uint64_t id = 1; id <= 64; ++id) {
    calls += Frame(2, id, "x");
  }
  raw.Send(calls);
  EXPECT_TRUE(Call("other callers get theirs").get());
  size_t read = 0;
  for (size_t got = 1; got > 0; read += got) {
    got = raw.ReceiveBytes(1 << 16).size();
  }
  EXPECT_LT(read, size_t{64} << 20);
}

TEST_F(PeerTest, ACallHasATimeLimit) {
  options.call_timeout = std::chrono::milliseconds(20);
  Serve([this](std::string message) { return Wait(std::move(message)); });
  auto answer = Call("x").get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code(), Code::kUnknownOutcome);
  auto second = Call("y").get();
  EXPECT_EQ(second.error().code(), Code::kUnknownOutcome);
  ASSERT_TRUE(Eventually([this] { return waiting() == 2; }));
  Release();  // late answers disturb nobody
  EXPECT_EQ(Call("z").get().error().code(), Code::kUnknownOutcome);
}

TEST_F(PeerTest, CallsToASilentPeerEndAndTheConnectionStays) {
  Serve(
      [this](std::string message) { return message == "wait" ? Wait(message) : Answer(message); });
  std::vector<std::future<Result<std::string>>> calls;
  for (size_t worker : {0, 1}) {
    calls.push_back(Call("wait", worker));
  }
  ASSERT_TRUE(Eventually([&] { return waiting() == 2; }));
  client->EndCalls();
  for (auto& call : calls) {
    EXPECT_EQ(call.get().error().code(), Code::kUnknownOutcome);
  }
  Release();  // answers that nobody waits for
  for (size_t worker : {0, 1}) {
    EXPECT_EQ(*Call("x", worker).get(), "re: x");
  }
}

TEST_F(PeerTest, AHandlerThatThrowsFailsOnlyItsCall) {
  Serve([](std::string message) -> Task<std::string> {
    if (message == "bad") {
      throw std::runtime_error("on purpose");
    }
    co_return message;
  });
  EXPECT_EQ(Call("bad").get().error().code(), Code::kUnknownOutcome);
  EXPECT_EQ(*Call("good").get(), "good");
}

TEST_F(PeerTest, AnAnswerThatIsTooLargeFailsOnlyItsCall) {
  Serve([](std::string message) -> Task<std::string> {
    co_return message == "large" ? std::string(kFrameBytesMax, 'x') : message;
  });
  EXPECT_EQ(Call("large").get().error().code(), Code::kUnknownOutcome);
  EXPECT_EQ(*Call("small").get(), "small");
}

TEST_F(PeerTest, TheEndOfTheServerIsNoticedWithoutTraffic) {
  Serve(Answer);
  Watch();
  ASSERT_TRUE(Saw({PeerEvent::kUp}));
  uint16_t port = server->port();
  server->Stop();
  ASSERT_TRUE(Saw({PeerEvent::kUp, PeerEvent::kRefused}));
  next_server.emplace(pool, Handlers(Answer), options);
  Status listens = next_server->Start("127.0.0.1", port);
  ASSERT_TRUE(listens.ok()) << listens.ToString();
  EXPECT_TRUE(Saw({PeerEvent::kUp, PeerEvent::kRefused, PeerEvent::kUp}));
}

TEST_F(PeerTest, AnotherNodeThanTheOneThatIsCalledIsRefused) {
  options.identity->node = 5;
  Serve(Answer);
  Watch(NodeId(6));
  EXPECT_TRUE(Saw({PeerEvent::kBroken}));
  auto answer = Call("x", 1).get();
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message().find("node 5 answers in place of node 6"), std::string::npos)
      << answer.error().message();
}

TEST_F(PeerTest, HandlersLearnWhoCalls) {
  options.identity->node = 5;
  PeerHandlers handlers;
  handlers.on_call = [](NodeId from, std::string) -> Task<std::string> {
    co_return from.ToString();
  };
  Serve(std::move(handlers));
  EXPECT_EQ(*Call("x").get(), "5");
  PeerOptions nobody = options;
  nobody.identity = std::make_shared<PeerIdentity>();
  client->Stop();
  client.emplace(pool, "127.0.0.1", server->port(), nobody);
  EXPECT_EQ(*Call("x").get(), "0");
}

TEST_F(PeerTest, AServerThatSaysNothingIsGivenUp) {
  options.connect_timeout = std::chrono::milliseconds(50);
  Serve(Answer);
  runtime::WorkerPool silent(1);  // never started: it accepts nothing
  PeerServer mute(silent, Handlers(Answer), options);
  ASSERT_TRUE(mute.Start("127.0.0.1", 0).ok());
  client->Stop();
  client.emplace(pool, "127.0.0.1", mute.port(), options);
  EXPECT_EQ(Call("x").get().error().code(), Code::kUnavailable);
  TestClient raw(server->port());  // says no hello
  EXPECT_TRUE(raw.IsClosed());
  client->Stop();
}

TEST_F(PeerTest, NamesAreLookedUp) {
  Serve(Answer);
  client->Stop();
  client.emplace(pool, "localhost", server->port(), options);
  EXPECT_EQ(*Call("x").get(), "re: x");
  client->Stop();
  client.emplace(pool, "no-such-host.invalid", server->port(), options);
  EXPECT_EQ(Call("x").get().error().code(), Code::kUnavailable);
}

TEST(HostPortTest, HostsAndPortsAreTakenApart) {
  EXPECT_EQ(*ParseHostPort("db-1.example.org:80"), (HostPort{"db-1.example.org", 80}));
  EXPECT_EQ(*ParseHostPort("10.0.0.1:65535"), (HostPort{"10.0.0.1", 65535}));
  EXPECT_EQ(*ParseHostPort("[::1]:7000"), (HostPort{"::1", 7000}));
  for (const char* bad : {"", ":", "host", "host:", ":80", "host:0", "host:65536", "host:8x",
                          "::1:80", "[]:80", "host:-1", "host: 80"}) {
    EXPECT_EQ(ParseHostPort(bad).error().code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace orrery::net
