#include "api/cassandra/server.h"

#include <atomic>
#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "api/cassandra/test_bytes.h"
#include "net/http_server.h"
#include "net/test_client.h"
#include "runtime/worker.h"

namespace orrery::cassandra {
namespace {

using net::Eventually;
using net::TestClient;
using std::chrono::milliseconds;

// Answers a query by its text, as the keyspace of USE: `wait` when Release() is called, `throw`
// never, `large:N` by N letters.
class EchoHandler final : public Handler {
 public:
  runtime::Task<Response> Handle(Client& client, Request request) override {
    ++running;
    if (std::holds_alternative<StartupRequest>(request.message)) {
      --running;
      co_return MakeReady();
    }
    std::string text(std::get<QueryRequest>(request.message).text);
    if (text.starts_with("wait")) {
      auto start = [this](std::function<void(bool)> resume) {
        std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(resume));
      };
      co_await runtime::Suspend<bool>(std::move(start));
    }
    --running;
    if (text == "throw") {
      throw std::runtime_error("as asked");
    }
    if (text.starts_with("large:")) {
      Response response = MakeVoid();
      response.body.append(std::stoul(text.substr(6)), 'x');
      co_return response;
    }
    co_return MakeSetKeyspace(text);
  }

  bool Release() {
    std::unique_lock lock(mutex_);
    if (waiting_.empty()) {
      return false;
    }
    auto resume = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    resume(true);
    return true;
  }

  std::atomic<int> running = 0;

 private:
  std::mutex mutex_;
  std::deque<std::function<void(bool)>> waiting_;
};

class Running {
 public:
  explicit Running(ServerOptions options = {}, size_t workers = 1)
      : pool_(workers, 1), server_(pool_, WithPort(std::move(options)), handler) {
    pool_.Start();
    Status status = server_.Start();
    EXPECT_TRUE(status.ok()) << status.message();
  }
  ~Running() {
    Stop(milliseconds(0));
    pool_.Stop();
  }
  void Stop(Duration grace) { server_.Stop(grace); }
  CassandraServer* operator->() { return &server_; }
  Status MoveTo(const std::string& address) {
    std::promise<Status> moved;
    pool_.at(0).Post([&] { moved.set_value(server_.MoveTo(address)); });
    return moved.get_future().get();
  }

  EchoHandler handler;

 private:
  static ServerOptions WithPort(ServerOptions options) {
    options.port = 0;
    return options;
  }
  runtime::WorkerPool pool_;
  CassandraServer server_;
};

const std::string kStartup = FromParts("0001 000B 'CQL_VERSION' 0005 '3.0.0'");

std::string Query(int version, int16_t stream, std::string_view text) {
  std::string body;
  cql::WireWriter writer(body);
  writer.LongString(text);
  writer.Short(1);
  writer.Raw(version >= 5 ? std::string(4, '\0') : std::string(1, '\0'));
  return MakeEnvelope(version, stream, Opcode::kQuery, body);
}

struct Answer {
  EnvelopeHead head;
  std::string body;
  // Of MakeSetKeyspace.
  std::string text() const { return body.size() < 6 ? "" : body.substr(6); }
};

Answer Receive(TestClient& client) {
  std::string head = client.ReceiveBytes(kEnvelopeHeadBytes);
  if (head.size() < kEnvelopeHeadBytes) {
    return {};
  }
  Answer answer{ReadEnvelopeHead(head), ""};
  answer.body = client.ReceiveBytes(answer.head.length);
  return answer;
}

void StartUp(TestClient& client, int version) {
  client.Send(MakeEnvelope(version, 0, Opcode::kStartup, kStartup));
  EXPECT_EQ(Receive(client).head.opcode, Opcode::kReady);
}

TEST(CassandraServerTest, QueriesAreAnswered) {
  Running server;
  TestClient client(server->port());
  StartUp(client, 4);
  for (int16_t i = 0; i < 100; ++i) {
    client.Send(Query(4, i, "q" + std::to_string(i)));
    Answer answer = Receive(client);
    EXPECT_EQ(answer.head.stream, i);
    EXPECT_EQ(answer.text(), "q" + std::to_string(i));
  }
  EXPECT_EQ(server->connections(), 1u);
}

TEST(CassandraServerTest, ItMovesToAnotherAddressAndKeepsItsPortAndConnections) {
  Running server;
  const uint16_t port = server->port();
  TestClient client(port);
  StartUp(client, 4);
  auto answers = [](TestClient& who) {
    who.Send(Query(4, 1, "still there"));
    return Receive(who).text() == "still there";
  };
  auto welcomes = [&] {
    TestClient another(port);
    StartUp(another, 4);
    return answers(another);
  };
  // An address of the documents, which no machine has.
  EXPECT_EQ(server.MoveTo("192.0.2.1").code(), Code::kUnavailable);
  EXPECT_TRUE(welcomes()) << "where it was";
  EXPECT_TRUE(server.MoveTo("0.0.0.0").ok());
  EXPECT_TRUE(welcomes());
  EXPECT_TRUE(answers(client));
  EXPECT_EQ(server->port(), port);
}

TEST(CassandraServerTest, Version5GoesInSegments) {
  Running server;
  TestClient client(server->port());
  StartUp(client, 5);
  std::string segment;
  AppendSegment(Query(5, 1, "a") + Query(5, 2, "b"), true, false, segment);
  client.Send(segment);
  // Both answers are ready in the same turn, so they share a segment.
  std::string head = client.ReceiveBytes(6);
  auto read = ReadSegmentHead(head, false);
  ASSERT_TRUE(read && *read);
  std::string payload;
  std::string bytes = head + client.ReceiveBytes((*read)->bytes() - 6);
  ASSERT_TRUE(ReadSegmentPayload(**read, bytes, payload).ok());
  EXPECT_EQ(payload.size(), 2 * (kEnvelopeHeadBytes + 7));
}

TEST(CassandraServerTest, UnknownVersionsGetTheirErrorBeforeTheEnd) {
  Running server;
  TestClient client(server->port());
  client.Send(FromParts("42 00 0005 01 00000016") + kStartup);
  Answer answer = Receive(client);
  EXPECT_EQ(answer.head.version, 5);
  EXPECT_NE(answer.body.find("Invalid or unsupported protocol version (66)"), std::string::npos);
  EXPECT_TRUE(client.IsClosed());
}

TEST(CassandraServerTest, ManyRequestsInOneGo) {
  Running server({}, 2);
  TestClient client(server->port());
  StartUp(client, 4);
  constexpr int16_t kCount = 5000;
  std::thread sender([&] {
    std::string all;
    for (int16_t i = 0; i < kCount; ++i) {
      all += Query(4, i, std::string(100, 'x'));
    }
    client.Send(all);
  });
  for (int16_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(Receive(client).head.stream, i);
  }
  sender.join();
}

TEST(CassandraServerTest, FastRequestsOvertakeSlowOnes) {
  Running server;
  TestClient client(server->port());
  StartUp(client, 4);
  client.Send(Query(4, 1, "wait") + Query(4, 2, "fast"));
  EXPECT_EQ(Receive(client).head.stream, 2);
  EXPECT_TRUE(server.handler.Release());
  EXPECT_EQ(Receive(client).head.stream, 1);
}

TEST(CassandraServerTest, RequestsInFlightHaveALimit) {
  Running server({.requests_max = 4});
  TestClient client(server->port());
  StartUp(client, 4);
  std::string all;
  for (int16_t i = 0; i < 50; ++i) {
    all += Query(4, i, "wait");
  }
  client.Send(all);
  int answered = 0;
  int most = 0;
  while (answered < 50) {
    ASSERT_TRUE(Eventually([&] { return server.handler.Release(); }));
    most = std::max(most, server.handler.running.load());
    EXPECT_EQ(Receive(client).head.opcode, Opcode::kResult);
    ++answered;
  }
  EXPECT_LE(most, 4);
  EXPECT_EQ(server.handler.running, 0);
}

TEST(CassandraServerTest, ExceptionsBecomeServerErrors) {
  Running server;
  TestClient client(server->port());
  StartUp(client, 4);
  client.Send(Query(4, 7, "throw") + Query(4, 8, "next"));
  Answer answer = Receive(client);
  EXPECT_EQ(answer.head.opcode, Opcode::kError);
  EXPECT_EQ(answer.body.substr(0, 4), std::string(4, '\0'));
  EXPECT_EQ(Receive(client).text(), "next");
}

TEST(CassandraServerTest, LargeAnswersGoToSlowReaders) {
  Running server({.output_bytes_max = 100'000, .request_timeout = milliseconds(100)});
  TestClient client(server->port());
  client.SetReceiveBuffer(64 << 10);
  StartUp(client, 4);
  std::string all;
  for (int16_t i = 0; i < 40; ++i) {
    all += Query(4, i, "large:300000");
  }
  client.Send(all);
  for (int16_t i = 0; i < 40; ++i) {
    Answer answer = Receive(client);
    ASSERT_EQ(answer.head.stream, i);
    ASSERT_EQ(answer.body.size(), 300'004u);
  }
}

TEST(CassandraServerTest, EventsGoToThoseWhoRegistered) {
  Running server({}, 2);
  TestClient registered(server->port());
  TestClient other(server->port());
  StartUp(registered, 4);
  StartUp(other, 4);
  registered.Send(MakeEnvelope(4, 1, Opcode::kRegister, FromParts("0001 000D 'SCHEMA_CHANGE'")));
  EXPECT_EQ(Receive(registered).head.opcode, Opcode::kReady);
  server->Publish(EventKind::kStatus,
                  [](int) { return MakeStatusEvent("UP", FromParts("7F000001"), 9042); });
  server->Publish(EventKind::kSchema, [](int version) {
    return MakeSchemaEvent({"CREATED", "KEYSPACE", "ks"}, version);
  });
  Answer event = Receive(registered);
  EXPECT_EQ(event.head.opcode, Opcode::kEvent);
  EXPECT_EQ(event.head.stream, -1);
  EXPECT_NE(event.body.find("SCHEMA_CHANGE"), std::string::npos);
  other.Send(Query(4, 1, "mine"));
  EXPECT_EQ(Receive(other).text(), "mine");
}

TEST(CassandraServerTest, StoppingWaitsForRequestsThatRun) {
  Running server;
  TestClient idle(server->port());
  StartUp(idle, 4);
  TestClient client(server->port());
  StartUp(client, 4);
  client.Send(Query(4, 3, "wait"));
  ASSERT_TRUE(Eventually([&] { return server.handler.running == 1; }));
  std::thread stopper([&] { server.Stop(std::chrono::seconds(20)); });
  EXPECT_TRUE(idle.IsClosed());
  EXPECT_TRUE(server.handler.Release());
  EXPECT_EQ(Receive(client).head.stream, 3);
  EXPECT_TRUE(client.IsClosed());
  stopper.join();
  EXPECT_EQ(server->connections(), 0u);
}

TEST(CassandraServerTest, ClientsThatGoLeaveNothingBehind) {
  Running server;
  {
    TestClient client(server->port());
    StartUp(client, 4);
    client.Send(Query(4, 3, "wait"));
    ASSERT_TRUE(Eventually([&] { return server.handler.running == 1; }));
  }
  EXPECT_TRUE(server.handler.Release());
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST(CassandraServerTest, ClientsThatNeverStartAreDropped) {
  Running server({.startup_timeout = milliseconds(50)});
  TestClient silent(server->port());
  TestClient asking(server->port());
  asking.Send(MakeEnvelope(4, 1, Opcode::kOptions, ""));
  EXPECT_EQ(Receive(asking).head.opcode, Opcode::kSupported);
  EXPECT_TRUE(silent.IsClosed());
  EXPECT_TRUE(asking.IsClosed());
}

TEST(CassandraServerTest, ClientsThatStopInTheMiddleAreDropped) {
  Running server({.request_timeout = milliseconds(50)});
  TestClient client(server->port());
  StartUp(client, 4);
  std::string query = Query(4, 1, "never");
  client.Send(std::string_view(query).substr(0, query.size() - 1));
  EXPECT_TRUE(client.IsClosed());
}

TEST(CassandraServerTest, TimeForARequestCountsFromItsFirstBytes) {
  Running server({.request_timeout = milliseconds(100)});
  TestClient client(server->port());
  StartUp(client, 4);
  client.Send(FromParts("04 00 0001 07 00F00000"));
  EXPECT_TRUE(Eventually([&] {
    client.Send("x");
    return server->connections() == 0;
  }));
}

TEST(CassandraServerTest, ClientsThatDoNotReadAreDropped) {
  Running server({.write_timeout = milliseconds(100)});
  TestClient client(server->port());
  client.SetReceiveBuffer(4096);
  StartUp(client, 4);
  client.Send(Query(4, 1, "large:30000000"));
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST(CassandraServerTest, ConnectionsHaveALimit) {
  Running server({.connections_max = 1});
  TestClient first(server->port());
  StartUp(first, 4);
  TestClient second(server->port());
  EXPECT_TRUE(second.IsClosed());
}

TEST(CassandraServerTest, IdleConnectionsAreDropped) {
  Running server({.idle_timeout = milliseconds(60)});
  TestClient client(server->port());
  StartUp(client, 4);
  client.Send(Query(4, 1, "wait"));
  ASSERT_TRUE(Eventually([&] { return server.handler.running == 1; }));
  EXPECT_TRUE(server.handler.Release());
  EXPECT_EQ(Receive(client).text(), "wait");
  EXPECT_TRUE(client.IsClosed());
}

TEST(CassandraServerTest, SpeaksTls) {
  std::string folder =
      (std::filesystem::temp_directory_path() / ("cassandra-tls-" + std::to_string(::getpid())))
          .string();
  std::filesystem::create_directories(folder);
  std::string certificate = folder + "/cert.pem";
  std::string key = folder + "/key.pem";
  ASSERT_TRUE(net::MakeSelfSignedCertificate(certificate, key, {}).ok());
  {
    Running server({.certificate_file = certificate, .key_file = key});
    TestClient client(server->port());
    ASSERT_TRUE(client.StartTls(certificate, "localhost"));
    StartUp(client, 4);
    client.Send(Query(4, 1, "secret") + Query(4, 2, "large:1000000"));
    EXPECT_EQ(Receive(client).text(), "secret");
    EXPECT_EQ(Receive(client).body.size(), 1'000'004u);
    TestClient plain(server->port());
    plain.Send(MakeEnvelope(4, 0, Opcode::kStartup, kStartup));
    EXPECT_NE(Receive(plain).head.opcode, Opcode::kReady);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace orrery::cassandra
