// A minimal HTTP/1.1 client: reading replies, and one blocking request.
//
// One request at a time per connection. Replies need a content-length (or the status 204 or 304);
// bodies are counted and dropped unless they are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orrery::load {

struct Endpoint {
  std::string host = "127.0.0.1";  // a name or an IPv4 address
  uint16_t port = 8081;

  std::string HostHeader() const { return host + ":" + std::to_string(port); }
};

// Connects, with Nagle's delay off. The caller owns the socket, which blocks.
Result<int> Connect(const Endpoint& endpoint);

class ReplyReader {
 public:
  enum class State : uint8_t { kMore, kDone, kMalformed };

  explicit ReplyReader(bool keep_body = false) : keep_body_(keep_body) {}

  // Takes the next bytes of the reply. After kDone the reader expects a new reply.
  State Feed(std::string_view bytes);
  int status() const { return status_; }
  const std::string& body() const { return body_; }

 private:
  // Reads a complete head; false if it is malformed.
  bool ReadHead(std::string_view head);
  State TakeBody(std::string_view bytes);

  bool keep_body_;
  bool in_body_ = false;
  int status_ = 0;
  uint64_t body_left_ = 0;
  std::string head_;  // a head that came in pieces
  std::string body_;
};

struct Reply {
  int status = 0;
  std::string body;
};

// Sends one request on its own connection and waits for the reply.
Result<Reply> Fetch(const Endpoint& endpoint, std::string_view request, int timeout_seconds);

}  // namespace orrery::load
