// What the server does with clients that are too many, too slow or too large.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http_server.h"
#include "net/test_client.h"

namespace orrery::net {
namespace {

using std::chrono::milliseconds;

TEST(HttpLimitsTest, AHeadTooLargeGets431) {
  RunningServer server({.head_bytes_max = 1024}, Echo);
  TestClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nx: " + std::string(2000, 'x') + "\r\n\r\n");
  ClientReply reply = client.Receive();
  EXPECT_EQ(reply.status, 431);
  EXPECT_TRUE(reply.body.starts_with(R"({"code":")"));
  EXPECT_TRUE(client.IsClosed());
}

TEST(HttpLimitsTest, AHeadWithoutEndGets431) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("GET /" + std::string(100'000, 'x'));
  EXPECT_EQ(client.Receive().status, 431);
}

TEST(HttpLimitsTest, AHeadOfTheLimitIsServed) {
  RunningServer server({.head_bytes_max = 40'000}, Echo);
  TestClient client(server.port());
  std::string head = "GET / HTTP/1.1\r\nx: ";
  client.Send(head + std::string(40'000 - head.size() - 4, 'x') + "\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 200);
}

TEST(HttpLimitsTest, AnAnnouncedBodyTooLargeGets413BeforeItComes) {
  RunningServer server({.body_bytes_max = 1000}, Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 999999999999\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 413);
  EXPECT_TRUE(client.IsClosed());
}

TEST(HttpLimitsTest, AClientThatSendsItsBodyAnywayStillGetsThe413) {
  RunningServer server({.body_bytes_max = 1000}, Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\ncontent-length: 5000000\r\n\r\n" + std::string(5'000'000, 'x'));
  EXPECT_EQ(client.Receive().status, 413);
}

TEST(HttpLimitsTest, ChunksTooLargeGet413) {
  RunningServer server({.body_bytes_max = 1000}, Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n");
  EXPECT_EQ(client.Receive().status, 413);
}

TEST(HttpLimitsTest, AChunkHeaderWithoutEndIsRefused) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;" + std::string(50'000, 'x'));
  EXPECT_EQ(client.Receive().status, 431);
}

TEST(HttpLimitsTest, AMalformedRequestGets400AfterTheRepliesBeforeIt) {
  RunningServer server({}, Echo);
  TestClient client(server.port());
  client.Send("GET /good HTTP/1.1\r\n\r\nNOT A REQUEST\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "GET /good ");
  ClientReply reply = client.Receive();
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.headers["connection"], "close");
  EXPECT_TRUE(client.IsClosed());
}

TEST(HttpLimitsTest, ASlowRequestIsDropped) {
  RunningServer server({.request_timeout = milliseconds(40)}, Echo);
  TestClient client(server.port());
  client.Send("GET / HT");
  EXPECT_TRUE(client.IsClosed());
}

TEST(HttpLimitsTest, BytesThatTrickleDoNotExtendTheTimeOfARequest) {
  RunningServer server({.request_timeout = milliseconds(80)}, Echo);
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n");
  EXPECT_TRUE(Eventually([&] {
    client.Send("x");
    return server->connections() == 0;
  }));
}

TEST(HttpLimitsTest, AnIdleConnectionIsDropped) {
  RunningServer server({.idle_timeout = milliseconds(40)}, Echo);
  TestClient fresh(server.port());
  TestClient used(server.port());
  EXPECT_EQ(used.Get("/").status, 200);
  EXPECT_TRUE(fresh.IsClosed());
  EXPECT_TRUE(used.IsClosed());
}

runtime::Task<> Flood(const HttpRequest&, HttpReply& reply) {
  reply.body.assign(32 << 20, 'x');
  co_return;
}

TEST(HttpLimitsTest, AClientThatDoesNotTakeItsReplyIsDropped) {
  RunningServer server({.write_timeout = milliseconds(40)}, Flood);
  TestClient client(server.port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return server->connections() == 1; }));
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST(HttpLimitsTest, ConnectionsBeyondTheLimitAreClosed) {
  RunningServer server({.connections_max = 2}, Echo);
  TestClient first(server.port());
  auto second = std::make_unique<TestClient>(server.port());
  EXPECT_EQ(second->Get("/").status, 200);
  EXPECT_TRUE(TestClient(server.port()).IsClosed());
  EXPECT_EQ(first.Get("/").status, 200);
  second.reset();
  EXPECT_TRUE(Eventually([&] { return server->connections() == 1; }));
  EXPECT_EQ(TestClient(server.port()).Get("/").status, 200);
}

TEST(HttpLimitsTest, ClientsThatResetDoNoHarm) {
  RunningServer server({}, Flood);
  for (int i = 0; i < 20; ++i) {
    TestClient client(server.port());
    client.Send("GET / HTTP/1.1\r\n\r\n");
    client.ReceiveBytes(1000);  // the rest is never read: closing resets
  }
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
  EXPECT_EQ(TestClient(server.port()).Get("/").status, 200);
}

size_t OpenFiles() {
  DIR* folder = ::opendir("/proc/self/fd");
  size_t count = 0;
  while (::readdir(folder) != nullptr) {
    ++count;
  }
  ::closedir(folder);
  return count - 3;  // ".", ".." and the folder itself
}

// Sets how many files the process may have open, until its end.
class FileLimit {
 public:
  explicit FileLimit(rlim_t files) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit now = before_;
    now.rlim_cur = std::min(files, before_.rlim_max);
    ::setrlimit(RLIMIT_NOFILE, &now);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_;
};

TEST(HttpLimitsTest, WithoutFreeDescriptorsTheServerWaitsAndGoesOn) {
  RunningServer server({}, Echo);
  EXPECT_EQ(TestClient(server.port()).Get("/").status, 200);
  ASSERT_TRUE(Eventually([&] { return server->connections() == 0; }));
  std::unique_ptr<TestClient> client;
  {
    int lowest_free = ::dup(0);
    ::close(lowest_free);
    FileLimit limit(static_cast<rlim_t>(lowest_free) + 1);  // room for the client's end alone
    client = std::make_unique<TestClient>(server.port());
    client->Send("GET /late HTTP/1.1\r\n\r\n");
    usleep(30'000);  // nothing to wait for: the server must not manage to accept
    EXPECT_EQ(server->connections(), 0u);
  }
  EXPECT_EQ(client->Receive().body, "GET /late ");
}

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(HttpLimitsTest, ThousandsOfIdleConnectionsCostLittle) {
  constexpr size_t kConnections = 2000;
  FileLimit limit(2 * kConnections + OpenFiles() + 100);
  RunningServer server({}, Echo, 2);
  EXPECT_EQ(TestClient(server.port()).Get("/").status, 200);
  ASSERT_TRUE(Eventually([&] { return server->connections() == 0; }));
  size_t before = ResidentBytes();
  std::vector<std::unique_ptr<TestClient>> clients;
  for (size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    ASSERT_EQ(clients.back()->Get("/").status, 200);
  }
  EXPECT_EQ(server->connections(), kConnections);
  size_t each = (ResidentBytes() - before) / kConnections;
  std::printf("%zu bytes for each idle connection\n", each);
  EXPECT_EQ(TestClient(server.port()).Get("/still").body, "GET /still ");
#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
  EXPECT_LT(each, 6000u);
#endif
}

}  // namespace
}  // namespace orrery::net
