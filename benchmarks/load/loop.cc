#include "load/loop.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::load {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kStallMax = 60 * kSecond;
constexpr size_t kReceiveBytes = 64 << 10;
constexpr int kEventsMax = 256;

struct Connection {
  int fd = -1;
  size_t endpoint = 0;
  bool idle = false;
  bool busy = false;  // a request is under way
  bool waits_to_send = false;
  ReplyReader reader;
  std::string request;
  size_t sent = 0;
  uint64_t number = 0;  // the workload's, of the request
  int64_t due = 0;
};

class HttpLoop final : public Loop {
 public:
  HttpLoop(LoopOptions options, Workload& workload, LoopWatch& watch)
      : options_(std::move(options)),
        workload_(workload),
        watch_(watch),
        interval_(options.rate > 0 ? static_cast<double>(kSecond) / options.rate : 0) {}
  ~HttpLoop() override;

  Status Open() override;
  Result<LoopResult> Run(LoopTimes times) override;

 private:
  // Connects to the connection's endpoint, or to the next one that can be reached.
  Status Open(Connection& connection);
  // Lets each idle connection send its one request.
  Status TouchIdle();
  // Sends the workload's next request; sets exhausted_ instead if there is none.
  Status Start(Connection& connection, int64_t due);
  // Sends on free connections what is due.
  Status Dispatch(int64_t now);
  bool IsDue(int64_t now) const { return interval_ == 0 || NextDue() <= now; }
  int64_t NextDue() const {
    return times_.start + static_cast<int64_t>(static_cast<double>(issued_) * interval_);
  }
  Status Flush(Connection& connection);
  void Watch(Connection& connection, int operation, uint32_t events);
  Status Receive(Connection& connection);
  Status Complete(Connection& connection);
  Status Lost(Connection& connection);
  // Waits until a connection is ready, a request is due or the run ends.
  int Wait(epoll_event* events, int64_t now);
  void CountUnanswered(int64_t now);
  bool Finished() const { return exhausted_ && in_flight_ == 0; }

  const LoopOptions options_;
  LoopTimes times_;
  Workload& workload_;
  LoopWatch& watch_;
  const double interval_;  // between two requests of an open loop
  LoopResult result_;
  int epoll_ = -1;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> free_;
  uint64_t issued_ = 0;
  uint64_t in_flight_ = 0;
  bool exhausted_ = false;
  int64_t last_reply_ = 0;
  std::array<char, kReceiveBytes> buffer_;
};

HttpLoop::~HttpLoop() {
  for (const auto& connection : connections_) {
    if (connection->fd >= 0) {
      if (connection->idle) {  // ten thousand ports in TIME_WAIT would starve the next run
        linger reset{.l_onoff = 1, .l_linger = 0};
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
      }
      close(connection->fd);
    }
  }
  if (epoll_ >= 0) {
    close(epoll_);
  }
}

Result<LoopResult> HttpLoop::Run(LoopTimes times) {
  times_ = times;
  ORRERY_TRY_STATUS(TouchIdle());
  int64_t now = last_reply_ = NowNanos();
  std::array<epoll_event, kEventsMax> events;
  while (now < times_.end && !Finished()) {
    ORRERY_TRY_STATUS(Dispatch(now));
    int ready = Wait(events.data(), now);
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[i].data.ptr);
      if ((events[i].events & EPOLLOUT) != 0) {
        ORRERY_TRY_STATUS(Flush(connection));
      }
      if ((events[i].events & ~EPOLLOUT) != 0) {
        ORRERY_TRY_STATUS(Receive(connection));
      }
    }
    now = NowNanos();
    if (now - last_reply_ > kStallMax) {
      return Error(Code::kUnavailable, "the server has not answered for 60 seconds");
    }
  }
  if (interval_ > 0) {
    CountUnanswered(std::min(now, times_.end));
  }
  return std::move(result_);
}

Status HttpLoop::Open() {
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < options_.connections + options_.idle; ++i) {
    auto& connection = *connections_.emplace_back(std::make_unique<Connection>());
    connection.idle = i >= options_.connections;
    connection.endpoint = static_cast<size_t>(i) % options_.endpoints.size();
    ORRERY_RETURN_IF_ERROR(Open(connection));
    if (!connection.idle) {
      free_.push_back(&connection);
    }
  }
  return Status::Ok();
}

Status HttpLoop::Open(Connection& connection) {
  Result<int> fd = Connect(options_.endpoints[connection.endpoint]);
  for (size_t tried = 1; !fd && tried < options_.endpoints.size(); ++tried) {
    connection.endpoint = (connection.endpoint + 1) % options_.endpoints.size();
    fd = Connect(options_.endpoints[connection.endpoint]);
  }
  if (!fd) {
    return fd.error();
  }
  connection.fd = *fd;
  connection.reader = ReplyReader();
  connection.waits_to_send = false;
  fcntl(*fd, F_SETFL, O_NONBLOCK);
  Watch(connection, EPOLL_CTL_ADD, EPOLLIN);
  return Status::Ok();
}

void HttpLoop::Watch(Connection& connection, int operation, uint32_t events) {
  epoll_event event{.events = events, .data = {.ptr = &connection}};
  epoll_ctl(epoll_, operation, connection.fd, &event);
}

Status HttpLoop::TouchIdle() {
  for (const auto& connection : connections_) {
    if (connection->idle) {
      ORRERY_RETURN_IF_ERROR(Start(*connection, NowNanos()));
    }
  }
  return Status::Ok();
}

Status HttpLoop::Start(Connection& connection, int64_t due) {
  connection.request.clear();
  connection.sent = 0;
  exhausted_ = !workload_.Next(connection.request, connection.number);
  if (exhausted_) {
    return Status::Ok();
  }
  connection.due = due;
  connection.busy = true;
  ++in_flight_;
  return Flush(connection);
}

Status HttpLoop::Dispatch(int64_t now) {
  while (!free_.empty() && IsDue(now)) {
    Connection& connection = *free_.front();
    free_.pop_front();
    ORRERY_RETURN_IF_ERROR(Start(connection, interval_ == 0 ? now : NextDue()));
    if (exhausted_) {
      free_.push_front(&connection);
      break;
    }
    ++issued_;
  }
  return Status::Ok();
}

Status HttpLoop::Flush(Connection& connection) {
  while (connection.sent < connection.request.size()) {
    ssize_t sent = send(connection.fd, connection.request.data() + connection.sent,
                        connection.request.size() - connection.sent, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno != EAGAIN) {
        return Lost(connection);
      }
      if (!connection.waits_to_send) {
        connection.waits_to_send = true;
        Watch(connection, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
      }
      return Status::Ok();
    }
    connection.sent += static_cast<size_t>(sent);
  }
  if (connection.waits_to_send) {
    connection.waits_to_send = false;
    Watch(connection, EPOLL_CTL_MOD, EPOLLIN);
  }
  return Status::Ok();
}

Status HttpLoop::Receive(Connection& connection) {
  if (connection.fd < 0) {
    return Status::Ok();
  }
  ssize_t got = recv(connection.fd, buffer_.data(), buffer_.size(), 0);
  if (got < 0 && errno == EAGAIN) {
    return Status::Ok();
  }
  if (got <= 0 || !connection.busy) {
    return Lost(connection);
  }
  result_.bytes += static_cast<uint64_t>(got);
  switch (connection.reader.Feed({buffer_.data(), static_cast<size_t>(got)})) {
    case ReplyReader::State::kMore: return Status::Ok();
    case ReplyReader::State::kDone: return Complete(connection);
    case ReplyReader::State::kMalformed:
      return Status(Code::kUnavailable, "a reply is malformed or has no content-length");
  }
  return Status::Ok();
}

Status HttpLoop::Complete(Connection& connection) {
  int64_t now = last_reply_ = NowNanos();
  int status = connection.reader.status();
  bool success = status >= 200 && status < 300;
  connection.busy = false;
  --in_flight_;
  workload_.Done(connection.number, status);
  if (success) {
    watch_.successes.fetch_add(1, std::memory_order_relaxed);
    if (connection.due >= watch_.mark.load(std::memory_order_relaxed)) {
      result_.back = std::min(result_.back, now);
      times_.end = std::min(times_.end, result_.back + kSecond / 2);
    }
  }
  if (now < times_.measure_from) {
    result_.bytes = 0;
  } else if (!connection.idle && now < times_.end) {
    ++result_.statuses[static_cast<size_t>(std::clamp(status, 0, 599))];
    if (success) {
      result_.latency.Record(now - connection.due);
    }
  }
  if (connection.idle) {
    return Status::Ok();
  }
  free_.push_back(&connection);
  return Dispatch(now);
}

Status HttpLoop::Lost(Connection& connection) {
  close(connection.fd);
  connection.fd = -1;
  ++result_.lost;
  if (connection.busy) {
    connection.busy = false;
    --in_flight_;
    workload_.Done(connection.number, 0);
    if (!connection.idle) {
      free_.push_back(&connection);
    }
  }
  // A connection that was idle by design stays away; its loss is counted.
  return connection.idle ? Status::Ok() : Open(connection);
}

int HttpLoop::Wait(epoll_event* events, int64_t now) {
  int64_t until = std::min(times_.end, now + kSecond);
  if (interval_ > 0 && !free_.empty()) {
    until = std::min(until, NextDue());
  }
  int64_t nanos = std::max<int64_t>(until - now, 0);
  timespec timeout{.tv_sec = nanos / kSecond, .tv_nsec = nanos % kSecond};
  return std::max(epoll_pwait2(epoll_, events, kEventsMax, &timeout, nullptr), 0);
}

void HttpLoop::CountUnanswered(int64_t now) {
  auto count = [&](int64_t due) {
    if (due < now) {
      result_.latency.Record(now - due);
      ++result_.unanswered;
    }
  };
  for (const auto& connection : connections_) {
    if (connection->busy && !connection->idle) {
      count(connection->due);
    }
  }
  for (; !exhausted_ && NextDue() < now; ++issued_) {
    count(NextDue());
  }
}

}  // namespace

int64_t NowNanos() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void LoopResult::Add(const LoopResult& other) {
  latency.Add(other.latency);
  for (size_t i = 0; i < statuses.size(); ++i) {
    statuses[i] += other.statuses[i];
  }
  lost += other.lost;
  bytes += other.bytes;
  unanswered += other.unanswered;
  back = std::min(back, other.back);
}

uint64_t LoopResult::Successes() const {
  return std::accumulate(statuses.begin() + 200, statuses.begin() + 300, uint64_t{0});
}

uint64_t LoopResult::Replies() const {
  return std::accumulate(statuses.begin(), statuses.end(), uint64_t{0});
}

std::unique_ptr<Loop> MakeHttpLoop(LoopOptions options, Workload& workload, LoopWatch& watch) {
  return std::make_unique<HttpLoop>(std::move(options), workload, watch);
}

}  // namespace orrery::load
