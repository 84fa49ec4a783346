#include "net/peer.h"

#include <atomic>
#include <future>
#include <map>
#include <set>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/bytes.h"
#include "base/log.h"

namespace orrery::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using runtime::Task;

namespace {

constexpr auto kQuietly = asio::as_tuple(asio::use_awaitable);
constexpr size_t kFrameHead = 12;
constexpr Duration kAcceptPause = std::chrono::milliseconds(50);

std::string Frame(uint64_t id, std::string_view message) {
  std::string frame;
  frame.reserve(kFrameHead + message.size());
  Encoder encoder(frame);
  encoder.U32(static_cast<uint32_t>(message.size() + 8));
  encoder.U64(id);
  encoder.Raw(message);
  return frame;
}

struct Received {
  uint64_t id = 0;
  std::string message;
};

// False: the connection is of no more use.
Task<bool> ReadFrame(tcp::socket& socket, Received& received) {
  char head[kFrameHead];
  auto [head_error, head_size] = co_await asio::async_read(socket, asio::buffer(head), kQuietly);
  if (head_error) {
    co_return false;
  }
  uint32_t size = GetU32(head);
  if (size < 8 || size > kFrameBytesMax) {
    co_return false;
  }
  received.id = GetU64(head + 4);
  received.message.resize(size - 8);
  auto [error, read] = co_await asio::async_read(socket, asio::buffer(received.message), kQuietly);
  co_return !error;
}

// A socket whose frames are sent in order, those that wait together.
struct Sender {
  explicit Sender(tcp::socket socket) : socket(std::move(socket)) {}

  // REQUIRES: on the socket's worker. `self` keeps it alive while it sends.
  void Send(std::string frame, const std::shared_ptr<Sender>& self, runtime::Worker& worker) {
    waiting += frame;
    if (!sending) {
      sending = true;
      worker.Spawn(Drain(self));
    }
  }
  static Task<> Drain(std::shared_ptr<Sender> self) {
    while (!self->waiting.empty()) {
      std::string now = std::exchange(self->waiting, {});
      auto [error, size] = co_await asio::async_write(self->socket, asio::buffer(now), kQuietly);
      if (error) {
        boost::system::error_code ignored;
        self->socket.close(ignored);
        break;
      }
    }
    self->sending = false;
  }

  tcp::socket socket;
  std::string waiting;
  bool sending = false;
};

}  // namespace

struct PeerServer::Body {
  Body(runtime::WorkerPool& workers, PeerHandler handler)
      : workers(workers), handler(std::move(handler)) {}

  Task<> Accept() {
    for (size_t next = 0;; ++next) {
      runtime::Worker& worker = workers.at(next);
      auto [error, socket] = co_await acceptor->async_accept(worker.context(), kQuietly);
      if (error == asio::error::operation_aborted) {
        co_return;
      }
      if (error) {
        // Out of file descriptors, or a peer that has already gone: the next one may do better.
        co_await runtime::Sleep(kAcceptPause);
        continue;
      }
      boost::system::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      auto sender = std::make_shared<Sender>(std::move(socket));
      worker.Spawn(Serve(sender, worker));
    }
  }

  Task<> Serve(std::shared_ptr<Sender> sender, runtime::Worker& worker) {
    {
      std::lock_guard lock(mutex);
      open.insert(sender);
    }
    Received received;
    while (co_await ReadFrame(sender->socket, received)) {
      worker.Spawn(Answer(sender, worker, received.id, std::move(received.message)));
    }
    std::lock_guard lock(mutex);
    open.erase(sender);
  }

  Task<> Answer(std::shared_ptr<Sender> sender, runtime::Worker& worker, uint64_t id,
                std::string message) {
    std::string answer = co_await handler(std::move(message));
    sender->Send(Frame(id, answer), sender, worker);
  }

  runtime::WorkerPool& workers;
  const PeerHandler handler;
  std::unique_ptr<tcp::acceptor> acceptor;
  uint16_t port = 0;
  std::mutex mutex;
  std::set<std::shared_ptr<Sender>> open;
};

PeerServer::PeerServer(runtime::WorkerPool& workers, PeerHandler handler)
    : body_(std::make_unique<Body>(workers, std::move(handler))) {}
PeerServer::~PeerServer() = default;
uint16_t PeerServer::port() const { return body_->port; }

Status PeerServer::Start(const std::string& address, uint16_t port) {
  boost::system::error_code error;
  tcp::endpoint where(asio::ip::make_address(address, error), port);
  body_->acceptor = std::make_unique<tcp::acceptor>(body_->workers.at(0).context());
  if (!error) {
    body_->acceptor->open(where.protocol(), error);
  }
  if (!error) {
    body_->acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    body_->acceptor->bind(where, error);
  }
  if (!error) {
    body_->acceptor->listen(tcp::acceptor::max_listen_connections, error);
  }
  if (error) {
    return Status(Code::kUnavailable, "cannot listen on " + address + ": " + error.message());
  }
  body_->port = body_->acceptor->local_endpoint().port();
  body_->workers.at(0).Spawn(body_->Accept());
  return Status::Ok();
}

void PeerServer::Stop() {
  if (body_->acceptor == nullptr) {
    return;
  }
  // Each on its own worker: sockets are not thread-safe.
  std::promise<void> closed;
  body_->workers.at(0).Post([&] {
    boost::system::error_code ignored;
    body_->acceptor->close(ignored);
    closed.set_value();
  });
  closed.get_future().get();
  std::lock_guard lock(body_->mutex);
  for (const auto& sender : body_->open) {
    asio::post(sender->socket.get_executor(), [sender] {
      boost::system::error_code ignored;
      sender->socket.close(ignored);
    });
  }
}

struct PeerClient::Body {
  // The connection of one worker.
  struct Line {
    std::shared_ptr<Sender> sender;
    std::map<uint64_t, std::function<void(Result<std::string>)>> waiting;
    uint64_t next_id = 1;
  };

  Body(runtime::WorkerPool& workers, std::string address, uint16_t port)
      : workers(workers), address(std::move(address)), port(port), lines(workers.size()) {}

  Task<Status> Connect(Line& line, runtime::Worker& worker) {
    tcp::socket socket(worker.context());
    boost::system::error_code error;
    tcp::endpoint where(asio::ip::make_address(address, error), port);
    if (!error) {
      auto [failed] = co_await socket.async_connect(where, kQuietly);
      error = failed;
    }
    if (error) {
      co_return Status(Code::kUnavailable, "cannot reach the peer: " + error.message());
    }
    if (line.sender == nullptr) {  // another call may have connected meanwhile
      socket.set_option(tcp::no_delay(true), error);
      line.sender = std::make_shared<Sender>(std::move(socket));
      worker.Spawn(Listen(line, line.sender));
    }
    co_return Status::Ok();
  }

  Task<> Listen(Line& line, std::shared_ptr<Sender> sender) {
    Received received;
    while (co_await ReadFrame(sender->socket, received)) {
      auto found = line.waiting.extract(received.id);
      if (!found.empty()) {
        found.mapped()(std::move(received.message));
      }
    }
    auto lost = std::exchange(line.waiting, {});
    if (line.sender == sender) {
      line.sender = nullptr;
    }
    for (auto& [id, resume] : lost) {
      resume(Error(Code::kUnknownOutcome, "the connection to the peer broke"));
    }
  }

  runtime::WorkerPool& workers;
  const std::string address;
  const uint16_t port;
  std::vector<Line> lines;
};

PeerClient::PeerClient(runtime::WorkerPool& workers, std::string address, uint16_t port)
    : body_(std::make_unique<Body>(workers, std::move(address), port)) {}
PeerClient::~PeerClient() = default;

Task<Result<std::string>> PeerClient::Call(std::string message) {
  runtime::Worker& worker = *runtime::Worker::Current();
  Body::Line& line = body_->lines[worker.index()];
  if (message.size() + 8 > kFrameBytesMax || line.waiting.size() >= kInFlightMax) {
    co_return Error(Code::kUnavailable, "too much is in flight to the peer");
  }
  if (line.sender == nullptr) {
    ORRERY_CO_TRY_STATUS(co_await body_->Connect(line, worker));
  }
  auto start = [&line, &worker, &message](std::function<void(Result<std::string>)> resume) {
    uint64_t id = line.next_id++;
    line.waiting[id] = std::move(resume);
    line.sender->Send(Frame(id, message), line.sender, worker);
  };
  co_return co_await runtime::Suspend<Result<std::string>>(std::move(start));
}

void PeerClient::Stop() {
  for (size_t i = 0; i < body_->lines.size(); ++i) {
    std::promise<void> closed;
    body_->workers.at(i).Post([&, i] {
      if (auto sender = body_->lines[i].sender) {
        boost::system::error_code ignored;
        sender->socket.close(ignored);
      }
      closed.set_value();
    });
    closed.get_future().get();
  }
}

}  // namespace orrery::net
