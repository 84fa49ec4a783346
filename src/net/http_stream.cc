#include "net/http_stream.h"

#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace orrery::net {

namespace {

Step Failed(Next wait) {
  bool again = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return {0, again ? wait : Next::kClosed};
}

}  // namespace

HttpStream::HttpStream(runtime::Worker& worker, int socket, std::shared_ptr<const TlsContext> tls)
    : socket_(socket), poller_(worker.poller()), tls_context_(std::move(tls)) {}

HttpStream::HttpStream(runtime::Worker& worker, HttpStream&& other)
    : socket_(std::exchange(other.socket_, -1)),
      poller_(worker.poller()),
      tls_context_(other.tls_context_),
      tls_(std::move(other.tls_)),
      aborted_(std::exchange(other.aborted_, true)) {
  other.poller_.GiveUp(std::exchange(other.place_, 0), socket_);
}

HttpStream::~HttpStream() {
  tls_.reset();
  poller_.Remove(place_);
  if (socket_ >= 0) {
    ::close(socket_);
  }
}

bool HttpStream::Open() {
  int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  place_ = place_ != 0 ? place_ : poller_.Add(socket_);
  if (place_ == 0) {
    return false;
  }
  if (tls_context_ != nullptr && tls_ == nullptr) {
    tls_ = std::make_unique<TlsSession>(*tls_context_, socket_);
  }
  return true;
}

Step HttpStream::Handshake() { return aborted_ ? Step{0, Next::kClosed} : tls_->Handshake(); }

Step HttpStream::Read(char* to, size_t size) {
  if (aborted_) {
    return {0, Next::kClosed};
  }
  if (drained_) {
    return {0, Next::kAwaitReadable};
  }
  return tls_ != nullptr ? tls_->Read(to, size) : ReadPlain(to, size);
}

Step HttpStream::ReadPlain(char* to, size_t size) {
  ssize_t got = ::recv(socket_, to, size, 0);
  if (got > 0) {
    drained_ = static_cast<size_t>(got) < size;
    return {static_cast<size_t>(got), Next::kGoOn};
  }
  return got == 0 ? Step{0, Next::kClosed} : Failed(Next::kAwaitReadable);
}

Step HttpStream::Write(std::string_view first, std::string_view second) {
  if (aborted_) {
    return {0, Next::kClosed};
  }
  return tls_ != nullptr ? tls_->Write(first.empty() ? second : first) : WritePlain(first, second);
}

Step HttpStream::WritePlain(std::string_view first, std::string_view second) {
  ssize_t sent = 0;
  if (second.empty()) {
    sent = ::send(socket_, first.data(), first.size(), MSG_NOSIGNAL);
  } else {
    iovec parts[] = {{const_cast<char*>(first.data()), first.size()},
                     {const_cast<char*>(second.data()), second.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
  }
  return sent >= 0 ? Step{static_cast<size_t>(sent), Next::kGoOn} : Failed(Next::kAwaitWritable);
}

runtime::Task<> HttpStream::Wait(Next next) {
  drained_ = false;
  return poller_.Wait(place_, next == Next::kAwaitWritable ? runtime::Readiness::kWritable
                                                           : runtime::Readiness::kReadable);
}

void HttpStream::FinishSending() {
  if (tls_ != nullptr) {
    tls_->Shutdown();
  }
  ::shutdown(socket_, SHUT_WR);
}

void HttpStream::Abort(bool discard) {
  aborted_ = true;
  if (discard) {
    linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  }
  ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace orrery::net
