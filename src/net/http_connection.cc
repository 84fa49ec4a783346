#include "net/http_connection.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/check.h"
#include "base/log.h"
#include "net/http_parser.h"
#include "net/http_reply.h"

namespace orrery::net {

using runtime::Task;

namespace {

constexpr size_t kReceiveBytes = 16 << 10;
// Replies of a burst are sent when they reach this, even if more requests are there.
constexpr size_t kSendBytes = 64 << 10;
// A body from here on is sent from where it is.
constexpr size_t kBodyBytesCopied = 16 << 10;
// Strings above this are not kept for the next request.
constexpr size_t kReplyBytesKept = 64 << 10;
constexpr size_t kSpareExchanges = 128;
// After this many requests in one go, others get their turn.
constexpr uint8_t kBurst = 64;
constexpr Duration kLinger = std::chrono::seconds(2);
constexpr size_t kLingerBytes = 8 << 20;
constexpr Duration kTickMax = std::chrono::milliseconds(250);
constexpr Duration kTickMin = std::chrono::milliseconds(10);

Instant Now() { return SystemClock().Now(); }

Duration TickFor(const HttpOptions& options) {
  Duration shortest =
      std::min({options.request_timeout, options.write_timeout, options.idle_timeout});
  return std::clamp(shortest / 4, kTickMin, kTickMax);
}

void Shrink(std::string& text) {
  if (text.capacity() > kReplyBytesKept) {
    text = std::string();
  }
}

}  // namespace

// The buffers of a request and its reply.
struct HttpExchange {
  explicit HttpExchange(const HttpOptions& options)
      : capacity(std::max(kReceiveBytes, options.head_bytes_max)),
        in(std::make_unique_for_overwrite<char[]>(capacity)),
        parser(options.head_bytes_max, options.body_bytes_max) {}

  std::string_view received() const { return {in.get() + begin, end - begin}; }
  void MakeRoom() {
    if (begin == end) {
      begin = end = 0;
    } else if (begin > 0 && end > capacity / 2) {
      std::memmove(in.get(), in.get() + begin, end - begin);
      end -= begin;
      begin = 0;
    }
  }
  bool full() const { return end - begin == capacity; }
  // Whether it holds nothing that the connection still needs.
  bool clean() const { return begin == end && out.empty() && parser.idle(); }
  // Makes it so that it does not.
  void Clean() {
    begin = end = 0;
    parser.Reset();
    Sent();
  }
  // All that was queued has gone.
  void Sent() {
    out.clear();
    sent = 0;
    tail = {};
    reply.Clear();
    Shrink(out);
    Shrink(reply.body);
  }

  const size_t capacity;
  const std::unique_ptr<char[]> in;
  size_t begin = 0;  // received and not yet used: [begin, end)
  size_t end = 0;
  HttpParser parser;
  HttpReply reply;
  std::string out;        // heads and small bodies to send
  size_t sent = 0;        // of `out`
  std::string_view tail;  // a body to send after `out`, in `reply`
};

HttpConnections::HttpConnections(runtime::Worker& worker, const HttpOptions& options,
                                 const HttpHandler& handler)
    : worker_(worker),
      options_(options),
      handler_(handler),
      tick_(TickFor(options)),
      now_(Now()),
      timer_(worker.context()) {
  spare_.reserve(kSpareExchanges);
}

HttpConnections::~HttpConnections() { ORRERY_CHECK(first_ == nullptr); }

void HttpConnections::Accept(int socket, bool loopback, std::shared_ptr<const TlsContext> tls,
                             runtime::Gate::Pass pass) {
  auto connection =
      std::make_unique<HttpConnection>(*this, socket, loopback, std::move(tls), std::move(pass));
  worker_.Spawn(HttpConnection::Serve(std::move(connection)));
}

Task<> HttpConnections::Tick(runtime::Gate::Pass pass) {
  while (!draining_ || first_ != nullptr) {
    boost::system::error_code ignored;
    timer_.expires_after(tick_);
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    now_ = Now();
    for (HttpConnection* at = first_; at != nullptr; at = at->next_) {
      if (at->deadline_ <= now_) {
        at->Drop();
      }
    }
  }
}

void HttpConnections::Drain(Instant deadline) {
  draining_ = true;
  drain_deadline_ = deadline;
  for (HttpConnection* at = first_; at != nullptr; at = at->next_) {
    at->closing_ = true;
    if (at->phase_ < HttpConnection::Phase::kAnswering) {
      at->Drop();
    } else {
      at->deadline_ = std::min(at->deadline_, deadline);
    }
  }
  timer_.cancel();
}

void HttpConnections::Join(HttpConnection& connection) {
  connection.next_ = first_;
  if (first_ != nullptr) {
    first_->previous_ = &connection;
  }
  first_ = &connection;
}

void HttpConnections::Leave(HttpConnection& connection) {
  if (connection.next_ != nullptr) {
    connection.next_->previous_ = connection.previous_;
  }
  (connection.previous_ != nullptr ? connection.previous_->next_ : first_) = connection.next_;
  if (draining_ && first_ == nullptr) {
    timer_.cancel();
  }
}

std::unique_ptr<HttpExchange> HttpConnections::TakeExchange() {
  if (spare_.empty()) {
    return std::make_unique<HttpExchange>(options_);
  }
  std::unique_ptr<HttpExchange> exchange = std::move(spare_.back());
  spare_.pop_back();
  return exchange;
}

// REQUIRES: it is clean.
void HttpConnections::GiveBack(std::unique_ptr<HttpExchange> exchange) {
  if (spare_.size() < kSpareExchanges) {
    spare_.push_back(std::move(exchange));
  }
}

HttpConnection::HttpConnection(HttpConnections& all, int socket, bool loopback,
                               std::shared_ptr<const TlsContext> tls, runtime::Gate::Pass pass)
    : pass_(std::move(pass)),
      all_(all),
      stream_(all.worker_, socket, std::move(tls)),
      loopback_(loopback) {
  all_.size_.fetch_add(1, std::memory_order_relaxed);
}

HttpConnection::~HttpConnection() {
  if (exchange_ != nullptr) {
    exchange_->Clean();
    all_.GiveBack(std::move(exchange_));
  }
  if (joined_) {
    all_.Leave(*this);
  }
  all_.size_.fetch_sub(1, std::memory_order_relaxed);
}

Task<> HttpConnection::Serve(std::unique_ptr<HttpConnection> self) {
  if (self->all_.draining_ || !self->stream_.Open()) {
    co_return;
  }
  self->all_.Join(*self);
  self->joined_ = true;
  co_await self->Run();
}

Task<> HttpConnection::Run() {
  if (stream_.secure() && !co_await Handshake()) {
    co_return;
  }
  while (!closing_) {
    Step step = Receive();
    while (step.bytes == 0) {
      if (step.next == Next::kClosed) {
        co_return;
      }
      BeforeWaitForRequest();
      burst_ = 0;
      co_await stream_.Wait(step.next);
      step = Receive();
    }
    while (NextRequest()) {
      HttpExchange& exchange = *exchange_;
      try {
        exchange.reply.Clear();  // nothing of one reply may reach another
        co_await all_.handler_(exchange.parser.request(), exchange.reply);
      } catch (...) {
        Fail(std::current_exception());
      }
      AppendReply();
      if (closing_) {
        break;
      }
      if ((exchange.out.size() >= kSendBytes || !exchange.tail.empty()) && !Flushed()) {
        co_await Flush();
      }
      if (++burst_ >= kBurst) {
        burst_ = 0;
        co_await runtime::Yield();
      }
    }
    if (!Flushed()) {
      co_await Flush();
    }
  }
  if (!broken_) {
    stream_.FinishSending();
    if (linger_ || exchange_->begin != exchange_->end) {
      co_await Linger();
    }
  }
}

Task<bool> HttpConnection::Handshake() {
  SetDeadline(all_.options_.request_timeout);
  Step step = stream_.Handshake();
  while (step.next != Next::kGoOn) {
    if (step.next == Next::kClosed) {
      co_return false;
    }
    co_await stream_.Wait(step.next);
    step = stream_.Handshake();
  }
  phase_ = Phase::kIdle;
  co_return true;
}

Step HttpConnection::Receive() {
  if (exchange_ == nullptr) {
    exchange_ = all_.TakeExchange();
  }
  HttpExchange& exchange = *exchange_;
  exchange.MakeRoom();
  Step step = stream_.Read(exchange.in.get() + exchange.end, exchange.capacity - exchange.end);
  exchange.end += step.bytes;
  return step;
}

void HttpConnection::BeforeWaitForRequest() {
  if (exchange_->clean()) {
    all_.GiveBack(std::move(exchange_));
    phase_ = Phase::kIdle;
    SetDeadline(all_.options_.idle_timeout);
  } else if (phase_ != Phase::kReading) {
    phase_ = Phase::kReading;
    SetDeadline(all_.options_.request_timeout);
  }
}

bool HttpConnection::NextRequest() {
  HttpExchange& exchange = *exchange_;
  if (closing_) {
    return false;
  }
  size_t used = 0;
  HttpParser::Outcome outcome = exchange.parser.Feed(exchange.received(), &used);
  exchange.begin += used;
  switch (outcome) {
    case HttpParser::Outcome::kDone: {
      HttpRequest& request = exchange.parser.request();
      request.secure = stream_.secure();
      request.loopback = loopback_;
      phase_ = Phase::kAnswering;
      deadline_ = all_.draining_ ? all_.drain_deadline_ : Instant::max();
      return true;
    }
    case HttpParser::Outcome::kMore:
      if (exchange.parser.awaits_continue() && exchange.begin == exchange.end && !continued_) {
        continued_ = true;
        exchange.out.append("HTTP/1.1 100 Continue\r\n\r\n");
      } else if (exchange.full()) {
        Refuse(431, "RequestHeaderFieldsTooLarge", "a line of the request is too long");
      }
      return false;
    case HttpParser::Outcome::kMalformed:
      Refuse(400, "BadRequest", "the request is not well-formed HTTP/1.1");
      return false;
    case HttpParser::Outcome::kHeadTooLarge:
      Refuse(431, "RequestHeaderFieldsTooLarge", "the head of the request is too large");
      return false;
    case HttpParser::Outcome::kBodyTooLarge:
      Refuse(413, "RequestEntityTooLarge", "the body of the request is too large");
      return false;
  }
  return false;
}

void HttpConnection::Refuse(int status, std::string_view code, std::string_view message) {
  MakeErrorReply(status, code, message, exchange_->reply);
  closing_ = true;
  linger_ = true;
  AppendReply();
}

void HttpConnection::Fail(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    log::Error("request failed", {{"what", e.what()}});
  } catch (...) {
    log::Error("request failed", {{"what", "an exception of no known type"}});
  }
  MakeErrorReply(500, "InternalServerError", "the request failed inside the server",
                 exchange_->reply);
}

void HttpConnection::AppendReply() {
  HttpExchange& exchange = *exchange_;
  ReplyFrame frame;
  if (!linger_) {  // else there was no request
    closing_ = closing_ || exchange.reply.close || !exchange.parser.keep_alive();
    frame.http10 = exchange.parser.http10();
    frame.head_request = exchange.parser.request().method == "HEAD";
  }
  frame.close = closing_;
  std::string_view body = AppendHead(exchange.reply, frame, exchange.out);
  if (body.size() >= kBodyBytesCopied) {
    exchange.tail = body;
  } else {
    exchange.out.append(body);
    exchange.reply.Clear();
  }
  exchange.parser.Reset();
  continued_ = false;
}

bool HttpConnection::Flushed() {
  HttpExchange& exchange = *exchange_;
  for (;;) {
    std::string_view first = std::string_view(exchange.out).substr(exchange.sent);
    if (first.empty() && exchange.tail.empty()) {
      exchange.Sent();
      return true;
    }
    Step step = stream_.Write(first, exchange.tail);
    if (step.next == Next::kClosed) {
      closing_ = broken_ = true;
      exchange.Sent();
      return true;
    }
    if (step.next != Next::kGoOn) {
      blocked_on_ = step.next;
      return false;
    }
    size_t of_first = std::min(step.bytes, first.size());
    exchange.sent += of_first;
    exchange.tail.remove_prefix(step.bytes - of_first);
  }
}

Task<> HttpConnection::Flush() {
  phase_ = Phase::kWriting;
  SetDeadline(all_.options_.write_timeout);
  do {
    co_await stream_.Wait(blocked_on_);
  } while (!Flushed());
}

Task<> HttpConnection::Linger() {
  phase_ = Phase::kLingering;
  SetDeadline(kLinger);
  for (size_t bytes = 0; bytes < kLingerBytes;) {
    Step step = stream_.Read(exchange_->in.get(), exchange_->capacity);
    bytes += step.bytes;
    if (step.next == Next::kClosed) {
      co_return;
    }
    if (step.next != Next::kGoOn) {
      burst_ = 0;
      co_await stream_.Wait(step.next);
    } else if (++burst_ >= kBurst) {
      burst_ = 0;
      co_await runtime::Yield();
    }
  }
}

void HttpConnection::SetDeadline(Duration wait) {
  deadline_ = all_.After(wait);
  if (all_.draining_) {
    deadline_ = std::min(deadline_, all_.drain_deadline_);
  }
}

void HttpConnection::Drop() {
  deadline_ = Instant::max();
  stream_.Abort(phase_ == Phase::kWriting);
}

}  // namespace orrery::net
