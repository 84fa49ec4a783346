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
  void Serve(PeerHandler handler, uint16_t port = 0) {
    server.emplace(pool, std::move(handler));
    ASSERT_TRUE(server->Start("127.0.0.1", port).ok());
    if (!client) {
      client.emplace(pool, "127.0.0.1", server->port());
    }
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

TEST_F(PeerTest, AFrameOverTheLimitOrTooShortClosesTheConnection) {
  Serve(Answer);
  for (uint32_t size : {uint32_t{kFrameBytesMax + 1}, 0xFFFFFFFFu, 7u, 0u}) {
    TestClient raw(server->port());
    std::string head;
    Encoder encoder(head);
    encoder.U32(size);
    encoder.U64(1);
    raw.Send(head);
    EXPECT_TRUE(raw.IsClosed()) << size;
  }
  EXPECT_TRUE(Call("others go on").get());
}

TEST_F(PeerTest, AFrameInPiecesIsPutTogether) {
  Serve(Answer);
  TestClient raw(server->port());
  std::string frame;
  Encoder encoder(frame);
  encoder.U32(8 + 2);
  encoder.U64(77);
  encoder.Raw("hi");
  for (char c : frame) {
    raw.Send(std::string_view(&c, 1));
  }
  std::string reply = raw.ReceiveBytes(12 + 6);
  ASSERT_EQ(reply.size(), 18u);
  EXPECT_EQ(GetU64(reply.data() + 4), 77u);
  EXPECT_EQ(reply.substr(12), "re: hi");
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
  next_server.emplace(pool, Answer);
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
  PeerServer second(pool, Answer);
  EXPECT_EQ(second.Start("127.0.0.1", server->port()).code(), Code::kUnavailable);
  PeerServer third(pool, Answer);
  EXPECT_EQ(third.Start("not an address", 0).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace orrery::net
