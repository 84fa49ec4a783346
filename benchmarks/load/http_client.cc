#include "load/http_client.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace orrery::load {
namespace {

constexpr size_t kHeadBytesMax = 64 << 10;
constexpr std::string_view kContentLength = "content-length:";

Status SystemError(const std::string& what) {
  return Status(Code::kUnavailable, what + ": " + std::strerror(errno));
}

Result<std::string> Exchange(int fd, std::string_view request, ReplyReader& reader) {
  while (!request.empty()) {
    ssize_t sent = send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      return Error(SystemError("cannot send"));
    }
    request.remove_prefix(static_cast<size_t>(sent));
  }
  std::array<char, 64 << 10> buffer;
  for (auto state = ReplyReader::State::kMore; state != ReplyReader::State::kDone;) {
    ssize_t got = recv(fd, buffer.data(), buffer.size(), 0);
    if (got < 0) {
      return Error(SystemError("no reply"));
    }
    state = reader.Feed({buffer.data(), static_cast<size_t>(got)});
    if (got == 0 || state == ReplyReader::State::kMalformed) {
      return Error(Code::kUnavailable, "the reply is cut or malformed");
    }
  }
  return reader.body();
}

}  // namespace

Result<int> Connect(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int error =
      getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0) {
    return Error(Code::kInvalidArgument, endpoint.host + ": " + gai_strerror(error));
  }
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int connected = fd < 0 ? -1 : connect(fd, found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  if (connected != 0) {
    Status status = SystemError("cannot connect to " + endpoint.HostHeader());
    if (fd >= 0) {
      close(fd);
    }
    return Error(std::move(status));
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

ReplyReader::State ReplyReader::Feed(std::string_view bytes) {
  if (in_body_) {
    return TakeBody(bytes);
  }
  // The usual reply comes in one piece and is read where it lies.
  std::string_view all = bytes;
  if (!head_.empty()) {
    head_ += bytes;
    all = head_;
  }
  size_t end = all.find("\r\n\r\n");
  if (end == std::string_view::npos) {
    if (head_.empty()) {
      head_ = bytes;
    }
    return head_.size() > kHeadBytesMax ? State::kMalformed : State::kMore;
  }
  if (!ReadHead(all.substr(0, end + 2))) {
    return State::kMalformed;
  }
  in_body_ = true;
  body_.clear();
  State state = TakeBody(all.substr(end + 4));
  head_.clear();
  return state;
}

bool ReplyReader::ReadHead(std::string_view head) {
  if (head.size() < 12 || !head.starts_with("HTTP/1.")) {
    return false;
  }
  if (std::from_chars(head.data() + 9, head.data() + 12, status_).ptr != head.data() + 12) {
    return false;
  }
  body_left_ = 0;
  if (status_ == 204 || status_ == 304) {
    return true;
  }
  for (size_t at = head.find('\n'); at != std::string_view::npos; at = head.find('\n', at + 1)) {
    std::string_view line = head.substr(at + 1);
    if (line.size() < kContentLength.size() || (line[0] | 0x20) != 'c' ||
        strncasecmp(line.data(), kContentLength.data(), kContentLength.size()) != 0) {
      continue;
    }
    line.remove_prefix(kContentLength.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return std::from_chars(line.data(), line.data() + line.size(), body_left_).ec == std::errc();
  }
  return false;
}

ReplyReader::State ReplyReader::TakeBody(std::string_view bytes) {
  if (bytes.size() > body_left_) {
    return State::kMalformed;
  }
  body_left_ -= bytes.size();
  if (keep_body_) {
    body_ += bytes;
  }
  in_body_ = body_left_ > 0;
  return in_body_ ? State::kMore : State::kDone;
}

Result<Reply> Fetch(const Endpoint& endpoint, std::string_view request, int timeout_seconds) {
  ORRERY_TRY(int fd, Connect(endpoint));
  timeval timeout{.tv_sec = timeout_seconds, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  ReplyReader reader(true);
  Result<std::string> body = Exchange(fd, request, reader);
  close(fd);
  if (!body) {
    return Error(std::move(body).error());
  }
  return Reply{reader.status(), std::move(*body)};
}

}  // namespace orrery::load
