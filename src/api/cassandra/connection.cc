#include "api/cassandra/connection.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/check.h"
#include "base/log.h"
#include "net/listener.h"

namespace orrery::cassandra {

using net::Next;
using net::Step;
using runtime::Task;

namespace {

constexpr size_t kReceiveBytes = 16 << 10;
// A buffer for sending that is larger is not kept.
constexpr size_t kSendBytesKept = 64 << 10;
// After this many requests in one go, others get their turn.
constexpr uint8_t kBurst = 128;
constexpr Duration kLinger = std::chrono::seconds(2);
constexpr size_t kLingerBytes = 8 << 20;
constexpr Duration kTickMax = std::chrono::milliseconds(250);
constexpr Duration kTickMin = std::chrono::milliseconds(10);

Instant Now() { return SystemClock().Now(); }

Duration TickFor(const ServerOptions& options) {
  Duration shortest = std::min({options.startup_timeout, options.request_timeout,
                                options.write_timeout, options.idle_timeout});
  return std::clamp(shortest / 4, kTickMin, kTickMax);
}

uint8_t Bit(EventKind kind) { return static_cast<uint8_t>(1 << static_cast<int>(kind)); }

Response Failed(std::exception_ptr failure, int version) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    log::Error("request failed", {{"what", e.what()}});
  } catch (...) {
    log::Error("request failed", {{"what", "an exception of no known type"}});
  }
  return MakeError(ErrorCode::kServerError, "the request failed inside the server", version);
}

}  // namespace

// --- All of a worker --------------------------------------------------------------------------

Connections::Connections(runtime::Worker& worker, const ServerOptions& options, Handler& handler)
    : worker_(worker),
      options_(options),
      handler_(handler),
      tick_(TickFor(options)),
      now_(Now()),
      timer_(worker.context()) {}

Connections::~Connections() { ORRERY_CHECK(first_ == nullptr); }

void Connections::Accept(int socket, bool loopback, std::shared_ptr<const net::TlsContext> tls,
                         runtime::Gate::Pass pass) {
  auto connection =
      std::make_shared<Connection>(*this, socket, loopback, std::move(tls), std::move(pass));
  worker_.Spawn(Connection::Serve(std::move(connection)));
}

Task<> Connections::Tick(runtime::Gate::Pass pass) {
  while (!draining_ || first_ != nullptr) {
    boost::system::error_code ignored;
    timer_.expires_after(tick_);
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    now_ = Now();
    for (Connection* at = first_; at != nullptr; at = at->next_) {
      if (std::min(at->deadline_, at->write_deadline_) <= now_ ||
          (draining_ && drain_deadline_ <= now_)) {
        at->Drop();
      }
      // One that waited for two ticks may wait for long.
      if (at->quiet_ > 0 && at->quiet_ < 3 && ++at->quiet_ == 3) {
        at->protocol_.ReleaseBuffers();
      }
    }
  }
}

void Connections::Drain(Instant deadline) {
  draining_ = true;
  drain_deadline_ = deadline;
  for (Connection* at = first_; at != nullptr; at = at->next_) {
    at->Wake();
    at->EndIfDrained();
  }
  if (first_ == nullptr) {
    timer_.cancel();
  }
}

void Connections::Publish(EventKind kind, const std::function<Response(int version)>& event) {
  for (Connection* at = first_; at != nullptr; at = at->next_) {
    bool slow = at->unsent() >= options_.output_bytes_max;
    if ((at->events_ & Bit(kind)) != 0 && !slow && !at->broken_) {
      at->protocol_.Push(event(at->protocol_.version()));
      at->FlushSoon();
    }
  }
}

// --- One of them ------------------------------------------------------------------------------

Connection::Connection(Connections& all, int socket, bool loopback,
                       std::shared_ptr<const net::TlsContext> tls, runtime::Gate::Pass pass)
    : pass_(std::move(pass)),
      all_(all),
      stream_(all.worker_, socket, std::move(tls)),
      protocol_(all.options_.protocol),
      startup_deadline_(Now() + all.options_.startup_timeout) {
  client_.loopback = loopback;
  client_.address = net::PeerAddress(socket);
  client_.secure = stream_.secure();
  all_.size_.fetch_add(1, std::memory_order_relaxed);
}

Connection::~Connection() {
  if (joined_) {
    (previous_ == nullptr ? all_.first_ : previous_->next_) = next_;
    if (next_ != nullptr) {
      next_->previous_ = previous_;
    }
    if (all_.draining_ && all_.first_ == nullptr) {
      all_.timer_.cancel();
    }
  }
  all_.size_.fetch_sub(1, std::memory_order_relaxed);
}

Task<> Connection::Serve(std::shared_ptr<Connection> self) {
  if (self->all_.draining_ || !self->stream_.Open()) {
    co_return;
  }
  self->joined_ = true;
  self->next_ = self->all_.first_;
  if (self->next_ != nullptr) {
    self->next_->previous_ = self.get();
  }
  self->all_.first_ = self.get();
  co_await self->Run();
  // Tasks may still hold it, but what they answer has nowhere to go.
  self->events_ = 0;
  self->deadline_ = Instant::max();
  self->Drop();
}

Task<> Connection::Run() {
  deadline_ = startup_deadline_;
  if (stream_.secure() && !co_await Handshake()) {
    co_return;
  }
  open_ = true;
  while (!broken_ && !protocol_.closing()) {
    if (!HasRoom() && !co_await StartRest()) {
      break;
    }
    std::span<char> room = protocol_.Room(kReceiveBytes);
    Step step = stream_.Read(room.data(), room.size());
    protocol_.Received(step.bytes);
    if (step.bytes > 0) {
      bool all = StartRequests();
      Flush();
      if (!all && !co_await StartRest()) {
        break;
      }
      continue;
    }
    if (step.next == Next::kClosed) {
      co_return;
    }
    SetDeadline();
    burst_ = 0;
    quiet_ = protocol_.holds_input() ? 0 : 1;
    co_await stream_.Wait(step.next);
    quiet_ = 0;
  }
  if (protocol_.closing() && !broken_) {
    co_await Linger();
  }
}

Task<bool> Connection::Handshake() {
  Step step = stream_.Handshake();
  while (step.next != Next::kGoOn) {
    if (step.next == Next::kClosed) {
      co_return false;
    }
    co_await stream_.Wait(step.next);
    step = stream_.Handshake();
  }
  co_return true;
}

bool Connection::HasRoom() const {
  const ServerOptions& options = all_.options_;
  return !all_.draining_ && requests_ < options.requests_max &&
         request_bytes_ < options.request_bytes_max && unsent() < options.output_bytes_max &&
         protocol_.state() != Protocol::State::kStarting;
}

Task<bool> Connection::StartRest() {
  for (;;) {
    while (!HasRoom()) {
      if (broken_) {
        co_return false;
      }
      SetDeadline();
      burst_ = 0;
      auto start = [this](std::function<void(bool)> resume) { wake_ = std::move(resume); };
      co_await runtime::Suspend<bool>(std::move(start));
    }
    bool all = StartRequests();
    Flush();
    if (all) {
      co_return !broken_;
    }
    if (burst_ >= kBurst) {
      burst_ = 0;
      co_await runtime::Yield();
    }
  }
}

bool Connection::StartRequests() {
  starting_ = true;
  bool all = false;
  while (!all && burst_ < kBurst && HasRoom()) {
    auto request = protocol_.Next();
    all = !request;
    if (request) {
      ++burst_;
      Start(std::move(*request));
    }
  }
  starting_ = false;
  return all;
}

void Connection::Start(Request request) {
  reading_ = false;
  client_.version = request.version;
  if (auto* events = std::get_if<RegisterRequest>(&request.message)) {
    Register(*events);
    protocol_.Respond(request.stream, MakeReady());
    return;
  }
  ++requests_;
  request_bytes_ += request.size;
  // Runs in place until it first waits.
  all_.worker_.Spawn(Answer(shared_from_this(), std::move(request)));
}

Task<> Connection::Answer(std::shared_ptr<Connection> self, Request request) {
  int16_t stream = request.stream;
  size_t size = request.size;
  Response response;
  try {
    response = co_await self->all_.handler_.Handle(self->client_, std::move(request));
  } catch (...) {
    response = Failed(std::current_exception(), self->client_.version);
  }
  if (!self->broken_) {
    self->protocol_.Respond(stream, response);
  }
  self->Finished(size);
}

void Connection::Finished(size_t bytes) {
  --requests_;
  request_bytes_ -= bytes;
  if (!starting_) {
    SetDeadline();
    FlushSoon();
  }
}

void Connection::Register(const RegisterRequest& request) {
  for (std::string_view event : request.events) {
    events_ |= event == "SCHEMA_CHANGE"   ? Bit(EventKind::kSchema)
               : event == "STATUS_CHANGE" ? Bit(EventKind::kStatus)
                                          : Bit(EventKind::kTopology);
  }
}

void Connection::SetDeadline() {
  const ServerOptions& options = all_.options_;
  bool was_reading = std::exchange(reading_, false);
  if (protocol_.state() != Protocol::State::kReady) {
    deadline_ = startup_deadline_;
  } else if (requests_ > 0 || !HasRoom()) {
    deadline_ = Instant::max();  // it is not the client that is waited for, or write_deadline_ is
  } else if (!protocol_.holds_input()) {
    deadline_ = all_.After(options.idle_timeout);
  } else {
    reading_ = true;
    if (!was_reading) {
      deadline_ = all_.After(options.request_timeout);
    }
  }
}

// --- Out --------------------------------------------------------------------------------------

void Connection::FlushSoon() {
  if (flush_posted_) {
    return;
  }
  flush_posted_ = true;
  all_.worker_.Post([self = shared_from_this()] {
    self->flush_posted_ = false;
    self->Flush();
    self->EndIfDrained();
  });
}

void Connection::Flush() {
  if (writing_) {
    return;
  }
  if (Written()) {
    if (wake_ != nullptr && (HasRoom() || broken_)) {
      Wake();
    }
    return;
  }
  writing_ = true;
  write_deadline_ = all_.After(all_.options_.write_timeout);
  all_.worker_.Spawn(WriteRest(shared_from_this()));
}

Task<> Connection::WriteRest(std::shared_ptr<Connection> self) {
  size_t before = self->sent_;
  do {
    co_await self->stream_.Wait(self->blocked_on_);
    if (self->sent_ != before) {
      before = self->sent_;
      self->write_deadline_ = self->all_.After(self->all_.options_.write_timeout);
    }
  } while (!self->Written());
  self->writing_ = false;
  self->write_deadline_ = Instant::max();
  self->Wake();
  self->EndIfDrained();
}

bool Connection::Written() {
  while (!broken_) {
    if (sent_ == sending_.size()) {
      sent_ = 0;
      sending_.clear();
      if (sending_.capacity() > kSendBytesKept) {
        sending_ = std::string();
      }
      if (!protocol_.has_output()) {
        return true;
      }
      std::swap(sending_, protocol_.Output());
    }
    Step step = stream_.Write(std::string_view(sending_).substr(sent_), {});
    if (step.next == Next::kClosed) {
      broken_ = true;
    } else if (step.next != Next::kGoOn) {
      blocked_on_ = step.next;
      return false;
    }
    sent_ += step.bytes;
  }
  return true;
}

Task<> Connection::Linger() {
  Flush();
  deadline_ = all_.After(kLinger);
  bool said = false;
  for (size_t bytes = 0; bytes < kLingerBytes && !broken_;) {
    if (!said && unsent() == 0 && requests_ == 0) {
      stream_.FinishSending();
      said = true;
    }
    std::span<char> room = protocol_.Room(kReceiveBytes);
    Step step = stream_.Read(room.data(), room.size());
    bytes += step.bytes;
    if (step.next == Next::kClosed) {
      co_return;
    }
    if (step.next != Next::kGoOn) {
      co_await stream_.Wait(step.next);
    } else if (++burst_ >= kBurst) {
      burst_ = 0;
      co_await runtime::Yield();
    }
  }
}

void Connection::EndIfDrained() {
  if (all_.draining_ && requests_ == 0 && unsent() == 0 && !broken_) {
    if (open_) {
      stream_.FinishSending();
    }
    Drop();
  }
}

void Connection::Drop() {
  broken_ = true;
  deadline_ = write_deadline_ = Instant::max();
  stream_.Abort(writing_);
  Wake();
}

void Connection::Wake() {
  if (auto wake = std::exchange(wake_, nullptr)) {
    wake(true);
  }
}

}  // namespace orrery::cassandra
