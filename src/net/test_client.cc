#include "net/test_client.h"

#include <cstdlib>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::net {

TestClient::TestClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&where), sizeof(where)), 0);
}

TestClient::~TestClient() {
  SSL_free(tls_);
  ::close(socket_);
}

bool TestClient::StartTls(const std::string& certificate_file, const std::string& name) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_load_verify_file(context, certificate_file.c_str());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  tls_ = SSL_new(context);
  SSL_CTX_free(context);
  X509_VERIFY_PARAM* expected = SSL_get0_param(tls_);
  if (X509_VERIFY_PARAM_set1_ip_asc(expected, name.c_str()) != 1) {
    SSL_set1_host(tls_, name.c_str());
  }
  SSL_set_fd(tls_, socket_);
  return SSL_connect(tls_) == 1;
}

void TestClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t sent = tls_ != nullptr ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                                   : ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // the server has closed; what it said shows in the replies
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

bool TestClient::Fill() {
  char buffer[16 << 10];
  ssize_t got = tls_ != nullptr ? SSL_read(tls_, buffer, sizeof(buffer))
                                : ::recv(socket_, buffer, sizeof(buffer), 0);
  EXPECT_FALSE(tls_ == nullptr && got < 0 && errno == EAGAIN) << "the server is silent";
  if (got <= 0) {
    return false;
  }
  pending_.append(buffer, static_cast<size_t>(got));
  return true;
}

ClientReply TestClient::Receive(bool head_request) {
  ClientReply reply;
  size_t end = 0;
  while ((end = pending_.find("\r\n\r\n")) == std::string::npos) {
    if (!Fill()) {
      return {};
    }
  }
  std::string head = pending_.substr(0, end + 2);
  pending_.erase(0, end + 4);
  int status = std::atoi(head.c_str() + sizeof("HTTP/1.1"));
  for (size_t at = head.find("\r\n") + 2; at < head.size();) {
    size_t line_end = head.find("\r\n", at);
    size_t colon = head.find(": ", at);
    reply.headers[head.substr(at, colon - at)] = head.substr(colon + 2, line_end - colon - 2);
    at = line_end + 2;
  }
  auto length = reply.headers.find("content-length");
  if (length != reply.headers.end() && !head_request) {
    size_t wanted = static_cast<size_t>(std::atoll(length->second.c_str()));
    reply.body = ReceiveBytes(wanted);
    if (reply.body.size() < wanted) {
      return {};
    }
  }
  reply.status = status;
  return reply;
}

std::string TestClient::ReceiveBytes(size_t count) {
  while (pending_.size() < count && Fill()) {
  }
  std::string bytes = pending_.substr(0, count);
  pending_.erase(0, bytes.size());
  return bytes;
}

bool TestClient::IsClosed() { return pending_.empty() && !Fill(); }

ClientReply TestClient::Get(const std::string& target) {
  Send("GET " + target + " HTTP/1.1\r\nhost: test\r\n\r\n");
  return Receive();
}

void TestClient::SetReceiveBuffer(int bytes) {
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

RunningServer::RunningServer(HttpOptions options, HttpHandler handler, size_t workers)
    : pool_(workers), server_(pool_, std::move(options), std::move(handler)) {
  pool_.Start();
  Status started = server_.Start();
  EXPECT_TRUE(started.ok()) << started.ToString();
}

RunningServer::~RunningServer() {
  server_.Stop(std::chrono::seconds(5));
  pool_.Stop();
}

void RunningServer::Stop(Duration grace) { server_.Stop(grace); }

runtime::Task<> Echo(const HttpRequest& request, HttpReply& reply) {
  reply.body.append(request.method).append(" ").append(request.target);
  reply.body.append(" ").append(request.body);
  co_return;
}

bool Eventually(const std::function<bool()>& condition) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace orrery::net
