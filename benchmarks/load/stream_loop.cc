#include "load/stream_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::load {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStallMax = 60 * kSecond;
constexpr size_t kReceiveBytes = 256 << 10;
constexpr int kEventsMax = 256;

struct Call {
  uint32_t stream = 0;
  uint64_t number = 0;
  int64_t sent = 0;
};

struct Connection {
  int fd = -1;
  bool waits_to_send = false;
  size_t sent = 0;  // of channel.out()
  size_t free = 0;  // calls that may be added
  std::vector<Call> calls;
  std::unique_ptr<Channel> channel;
};

class StreamLoop final : public Loop {
 public:
  StreamLoop(StreamOptions options, Workload& workload, LoopWatch& watch)
      : options_(std::move(options)), workload_(workload), watch_(watch) {}
  ~StreamLoop() override;

  Status Open() override;
  Result<LoopResult> Run(LoopTimes times) override;

 private:
  Status Open(Connection& connection, const Endpoint& endpoint);
  // Calls as often as the connection may, and sends.
  Status Fill(Connection& connection);
  Status Flush(Connection& connection);
  Status Receive(Connection& connection);
  void Ended(Connection& connection, uint32_t stream, bool ok, size_t message_bytes);
  void Watch(Connection& connection, int operation, uint32_t events);

  const StreamOptions options_;
  LoopTimes times_;
  Workload& workload_;
  LoopWatch& watch_;
  LoopResult result_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::string message_;
  uint64_t in_flight_ = 0;
  bool exhausted_ = false;
  int64_t last_reply_ = 0;
  std::array<char, kReceiveBytes> buffer_;
};

StreamLoop::~StreamLoop() {
  for (const auto& connection : connections_) {
    close(connection->fd);
  }
  if (epoll_ >= 0) {
    close(epoll_);
  }
}

Status StreamLoop::Open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  const std::vector<Endpoint>& endpoints = options_.loop.endpoints;
  for (int left = options_.loop.connections; left > 0; left -= options_.streams) {
    auto& connection = *connections_.emplace_back(std::make_unique<Connection>());
    connection.free = static_cast<size_t>(std::min(left, options_.streams));
    ORRERY_RETURN_IF_ERROR(
        Open(connection, endpoints[(connections_.size() - 1) % endpoints.size()]));
  }
  return Status::Ok();
}

Status StreamLoop::Open(Connection& connection, const Endpoint& endpoint) {
  Result<int> fd = Connect(endpoint);
  if (!fd) {
    return fd.error();
  }
  connection.fd = *fd;
  auto channel = options_.make_channel(*fd, endpoint);
  if (!channel) {
    return channel.error();
  }
  connection.channel = std::move(*channel);
  fcntl(*fd, F_SETFL, O_NONBLOCK);
  Watch(connection, EPOLL_CTL_ADD, EPOLLIN);
  return Status::Ok();
}

void StreamLoop::Watch(Connection& connection, int operation, uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = &connection}};
  epoll_ctl(epoll_, operation, connection.fd, &event);
}

Result<LoopResult> StreamLoop::Run(LoopTimes times) {
  times_ = times;
  for (const auto& connection : connections_) {
    ORRERY_TRY_STATUS(Fill(*connection));
  }
  int64_t now = last_reply_ = NowNanos();
  std::array<epoll_event, kEventsMax> events;
  while (now < times_.end && !(exhausted_ && in_flight_ == 0)) {
    int wait_ms = static_cast<int>(std::min<int64_t>((times_.end - now) / 1'000'000 + 1, 1000));
    int ready = std::max(epoll_wait(epoll_, events.data(), kEventsMax, wait_ms), 0);
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[i].data.ptr);
      if ((events[i].events & ~EPOLLOUT) != 0) {
        ORRERY_TRY_STATUS(Receive(connection));
      }
      ORRERY_TRY_STATUS(Fill(connection));
    }
    now = NowNanos();
    if (now - last_reply_ > kStallMax) {
      return Error(Code::kUnavailable, "the server has not answered for 60 seconds");
    }
  }
  return std::move(result_);
}

Status StreamLoop::Fill(Connection& connection) {
  while (connection.free > 0) {
    message_.clear();
    Call call;
    // What a closed window holds back is made anew: requests are random or can be put again.
    exhausted_ = !workload_.Next(message_, call.number);
    if (exhausted_) {
      break;
    }
    if (!connection.channel->MaySend(message_.size())) {
      workload_.Done(call.number, 0);
      break;
    }
    call.stream = connection.channel->Call(message_);
    call.sent = NowNanos();
    connection.calls.push_back(call);
    --connection.free;
    ++in_flight_;
  }
  return Flush(connection);
}

Status StreamLoop::Flush(Connection& connection) {
  std::string& out = connection.channel->out();
  while (connection.sent < out.size()) {
    ssize_t sent = send(connection.fd, out.data() + connection.sent, out.size() - connection.sent,
                        MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) {
        return Status(Code::kUnavailable, "the server closed a connection");
      }
      if (!std::exchange(connection.waits_to_send, true)) {
        Watch(connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      }
      return Status::Ok();
    }
    connection.sent += static_cast<size_t>(sent);
  }
  out.clear();
  connection.sent = 0;
  if (std::exchange(connection.waits_to_send, false)) {
    Watch(connection, EPOLL_CTL_MOD, EPOLLIN);
  }
  return Status::Ok();
}

Status StreamLoop::Receive(Connection& connection) {
  ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && errno == EAGAIN) {
    return Status::Ok();
  }
  if (got <= 0) {
    return Status(Code::kUnavailable, "the server closed a connection");
  }
  result_.bytes += static_cast<uint64_t>(got);
  return connection.channel->Feed(
      {buffer_.data(), static_cast<size_t>(got)},
      [&](uint32_t stream, bool ok, size_t bytes) { Ended(connection, stream, ok, bytes); });
}

void StreamLoop::Ended(Connection& connection, uint32_t stream, bool ok, size_t message_bytes) {
  auto call = std::ranges::find(connection.calls, stream, &Call::stream);
  if (call == connection.calls.end()) {
    return;
  }
  int64_t now = last_reply_ = NowNanos();
  bool found = message_bytes >= options_.found_bytes_min;
  int status = !ok ? 500 : found ? 200 : 404;
  workload_.Done(call->number, status);
  if (status == 200) {
    watch_.successes.fetch_add(1, std::memory_order_relaxed);
  }
  if (now < times_.measure_from) {
    result_.bytes = 0;
  } else if (now < times_.end) {
    ++result_.statuses[static_cast<size_t>(status)];
    if (status == 200) {
      result_.latency.Record(now - call->sent);
    }
  }
  *call = connection.calls.back();
  connection.calls.pop_back();
  ++connection.free;
  --in_flight_;
}

}  // namespace

std::unique_ptr<Loop> MakeStreamLoop(StreamOptions options, Workload& workload, LoopWatch& watch) {
  return std::make_unique<StreamLoop>(std::move(options), workload, watch);
}

}  // namespace orrery::load
