#include "replication/net_transport.h"

#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "net/cluster_tls.h"

namespace orrery::replication {
namespace {

using net::PeerEvent;
using runtime::Task;

constexpr const char* kSecret = "a secret of sufficient length";

bool Eventually(const std::function<bool()>& condition) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A node with two workers, and what its transport handed to it.
class TestPeer {
 public:
  struct Setup {
    uint32_t node = 0;
    uint64_t cluster = 77;
    std::string secret = kSecret;
    uint16_t port = 0;
  };

  explicit TestPeer(Setup setup) {
    pool_.Start();
    net::PeerOptions options;
    options.tls = *net::ClusterTls::FromSecret(setup.secret);
    options.connect_timeout = std::chrono::seconds(10);
    NetHandlers handlers;
    handlers.on_frame = [this](NodeId from, std::string frame) {
      std::lock_guard lock(mutex_);
      frames_.emplace_back(from, std::move(frame));
    };
    handlers.on_call = [](NodeId from, std::string request) { return Answer(from, request); };
    handlers.on_event = [this](NodeId node, PeerEvent event) {
      std::lock_guard lock(mutex_);
      events_[node].push_back(event);
    };
    transport_.emplace(pool_, std::move(options), std::move(handlers));
    transport_->SetIdentity(setup.cluster, NodeId(setup.node));
    Status started = transport_->Start("127.0.0.1", setup.port);
    EXPECT_TRUE(started.ok()) << started.ToString();
  }
  ~TestPeer() {
    transport_->Stop();
    pool_.Stop();
  }

  NetTransport& operator*() { return *transport_; }
  NetTransport* operator->() { return &*transport_; }
  std::string address() { return "127.0.0.1:" + std::to_string(transport_->port()); }

  Result<std::string> Call(NodeId to, std::string request, size_t worker = 0) {
    return Run(worker, transport_->Call(to, std::move(request)));
  }
  Result<std::string> CallAddress(std::string where, std::string request) {
    return Run(1, transport_->CallAddress(std::move(where), std::move(request)));
  }
  void OnWorker(size_t worker, std::function<void()> work) {
    std::promise<void> done;
    pool_.at(worker).Post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }
  std::vector<std::pair<NodeId, std::string>> frames() {
    std::lock_guard lock(mutex_);
    return frames_;
  }
  bool Saw(uint32_t node, std::vector<PeerEvent> expected) {
    return Eventually([&] {
      std::lock_guard lock(mutex_);
      return events_[NodeId(node)] == expected;
    });
  }
  std::optional<PeerEvent> LastOf(uint32_t node) {
    std::lock_guard lock(mutex_);
    auto& all = events_[NodeId(node)];
    return all.empty() ? std::nullopt : std::optional(all.back());
  }

 private:
  static Task<std::string> Answer(NodeId from, std::string request) {
    co_return from.ToString() + " said " + request;
  }
  Result<std::string> Run(size_t worker, Task<Result<std::string>> task) {
    auto run = [](Task<Result<std::string>> task,
                  std::promise<Result<std::string>>& done) -> Task<> {
      done.set_value(co_await std::move(task));
    };
    std::promise<Result<std::string>> done;
    pool_.at(worker).Spawn(run(std::move(task), done));
    return done.get_future().get();
  }

  runtime::WorkerPool pool_{2};
  std::mutex mutex_;
  std::vector<std::pair<NodeId, std::string>> frames_;
  std::map<NodeId, std::vector<PeerEvent>> events_;
  std::optional<NetTransport> transport_;
};

void Introduce(TestPeer& one, TestPeer& two) {
  std::map<NodeId, std::string> peers = {{NodeId(1), one.address()}, {NodeId(2), two.address()}};
  one->SetPeers(peers);
  two->SetPeers(peers);
}

TEST(NetTransportTest, CallsAndFramesGoBothWays) {
  TestPeer one({.node = 1});
  TestPeer two({.node = 2});
  Introduce(one, two);
  ASSERT_TRUE(one.Saw(2, {PeerEvent::kUp}));
  ASSERT_TRUE(two.Saw(1, {PeerEvent::kUp}));
  for (size_t worker : {0, 1}) {
    EXPECT_EQ(*one.Call(NodeId(2), "x", worker), "1 said x");
    EXPECT_EQ(*two.Call(NodeId(1), "y", worker), "2 said y");
    one.OnWorker(worker, [&] { one->Send(NodeId(2), "a" + std::to_string(worker)); });
    two.OnWorker(worker, [&] { two->Send(NodeId(1), "b" + std::to_string(worker)); });
  }
  ASSERT_TRUE(Eventually([&] { return one.frames().size() == 2 && two.frames().size() == 2; }));
  EXPECT_EQ(one.frames()[0].first, NodeId(2));
  EXPECT_EQ(two.frames()[0].first, NodeId(1));
  EXPECT_EQ(one->counters().frames_dropped, 0u);
  EXPECT_GT(one->counters().bytes_received, 0u);
}

TEST(NetTransportTest, FramesOfAWorkerKeepTheirOrder) {
  TestPeer one({.node = 1});
  TestPeer two({.node = 2});
  Introduce(one, two);
  ASSERT_TRUE(one.Saw(2, {PeerEvent::kUp}));
  constexpr size_t kCount = 3000;
  for (size_t from = 0; from < kCount; from += 100) {
    one.OnWorker(1, [&] {
      for (size_t i = from; i < from + 100; ++i) {
        one->Send(NodeId(2),
                  std::to_string(i) + "," + std::string(i % 1000 == 0 ? 1 << 20 : 9, 'x'));
      }
    });
  }
  ASSERT_TRUE(Eventually([&] { return two.frames().size() == kCount; }));
  auto frames = two.frames();
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(frames[i].second.starts_with(std::to_string(i) + ",")) << i;
  }
}

TEST(NetTransportTest, TheEndOfAProcessIsReportedAsRefused) {
  TestPeer one({.node = 1});
  std::optional<TestPeer> two;
  two.emplace(TestPeer::Setup{.node = 2});
  Introduce(one, *two);
  ASSERT_TRUE(one.Saw(2, {PeerEvent::kUp}));
  uint16_t port = (*two)->port();
  two.reset();
  ASSERT_TRUE(Eventually([&] { return one.LastOf(2) == PeerEvent::kRefused; }));
  EXPECT_EQ(one.Call(NodeId(2), "x").error().code(), Code::kUnavailable);
  two.emplace(TestPeer::Setup{.node = 2, .port = port});
  EXPECT_TRUE(Eventually([&] { return one.LastOf(2) == PeerEvent::kUp; }));
  EXPECT_TRUE(Eventually([&] { return one.Call(NodeId(2), "x", 1).has_value(); }));
}

TEST(NetTransportTest, OtherSecretsAndOtherClustersDoNotConnect) {
  TestPeer one({.node = 1});
  TestPeer stranger({.node = 2, .secret = "another secret of such length"});
  TestPeer foreign({.node = 3, .cluster = 78});
  one->SetPeers({{NodeId(2), stranger.address()}, {NodeId(3), foreign.address()}});
  stranger->SetPeers({{NodeId(1), one.address()}});
  foreign->SetPeers({{NodeId(1), one.address()}});
  EXPECT_TRUE(one.Saw(2, {PeerEvent::kBroken}));
  EXPECT_TRUE(one.Saw(3, {PeerEvent::kBroken}));
  EXPECT_TRUE(stranger.Saw(1, {PeerEvent::kBroken}));
  EXPECT_TRUE(foreign.Saw(1, {PeerEvent::kBroken}));
  EXPECT_EQ(one.CallAddress(stranger.address(), "x").error().code(), Code::kUnavailable);
  EXPECT_EQ(one.CallAddress(foreign.address(), "x").error().code(), Code::kUnavailable);
}

TEST(NetTransportTest, WhoIsNotAMemberYetCallsAsNodeZero) {
  TestPeer member({.node = 1});
  TestPeer joining({.node = 0, .cluster = 0});
  EXPECT_EQ(*joining.CallAddress(member.address(), "let me in"), "0 said let me in");
  // It joins.
  joining->SetIdentity(77, NodeId(2));
  Introduce(member, joining);
  EXPECT_TRUE(Eventually([&] {
    auto answer = joining.Call(NodeId(1), "thanks");
    return answer && *answer == "2 said thanks";
  }));
  EXPECT_TRUE(member.Saw(2, {PeerEvent::kUp}));
}

TEST(NetTransportTest, FramesOfNonMembersAreDropped) {
  TestPeer member({.node = 1});
  TestPeer outside({.node = 0, .cluster = 0});
  outside->SetPeers({{NodeId(1), member.address()}});
  ASSERT_TRUE(outside.Saw(1, {PeerEvent::kUp}));
  outside.OnWorker(0, [&] { outside->Send(NodeId(1), "x"); });
  EXPECT_TRUE(Eventually([&] { return member->counters().frames_dropped == 1; }));
  EXPECT_TRUE(member.frames().empty());
}

TEST(NetTransportTest, PeersMayComeGoAndMove) {
  TestPeer one({.node = 1});
  TestPeer two({.node = 2});
  TestPeer three({.node = 3});
  EXPECT_EQ(one.Call(NodeId(2), "x").error().code(), Code::kUnavailable);
  one->SetPeers({{NodeId(1), one.address()}, {NodeId(2), two.address()}});
  ASSERT_TRUE(one.Saw(2, {PeerEvent::kUp}));
  one->SetPeers({{NodeId(3), three.address()}});
  ASSERT_TRUE(one.Saw(3, {PeerEvent::kUp}));
  EXPECT_EQ(one.Call(NodeId(2), "x").error().code(), Code::kUnavailable);
  EXPECT_EQ(*one.Call(NodeId(3), "x"), "1 said x");
  // Node 3 is now elsewhere.
  TestPeer moved({.node = 3});
  one.OnWorker(1, [&] { one->SetPeers({{NodeId(3), moved.address()}, {NodeId(4), "nonsense"}}); });
  ASSERT_TRUE(one.Saw(3, {PeerEvent::kUp, PeerEvent::kUp}));
  one.OnWorker(0, [&] { one->Send(NodeId(3), "after the move"); });
  EXPECT_TRUE(Eventually([&] { return moved.frames().size() == 1; }));
  EXPECT_TRUE(three.frames().empty());
}

TEST(NetTransportTest, NamesAndBracketsAreAddresses) {
  TestPeer one({.node = 1});
  TestPeer two({.node = 2});
  std::string port = std::to_string(two->port());
  EXPECT_EQ(*one.CallAddress("localhost:" + port, "x"), "1 said x");
  EXPECT_EQ(*one.CallAddress("[::ffff:127.0.0.1]:" + port, "x"), "1 said x");
  EXPECT_EQ(one.CallAddress("localhost", "x").error().code(), Code::kInvalidArgument);
}

TEST(NetTransportTest, AfterStopNothingIsSentOrHandled) {
  TestPeer one({.node = 1});
  TestPeer two({.node = 2});
  Introduce(one, two);
  ASSERT_TRUE(one.Saw(2, {PeerEvent::kUp}));
  one->Stop();
  EXPECT_EQ(one.Call(NodeId(2), "x").error().code(), Code::kUnavailable);
  EXPECT_EQ(one.CallAddress(two.address(), "x").error().code(), Code::kUnavailable);
  EXPECT_TRUE(Eventually([&] { return two.LastOf(1) == PeerEvent::kRefused; }));
}

}  // namespace
}  // namespace orrery::replication
