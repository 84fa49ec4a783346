// HttpParser: bytes in, HttpRequests out.
//
// The caller keeps the bytes that were not used and shows them again, with more behind them. The
// head is copied into one buffer of `head_bytes_max` bytes that is taken once (so the views in the
// request never move) and a body that arrives in one piece is not copied at all; a parser that is
// used again takes no memory in the steady state.
//
// Stricter than the grammar where two readers could see two different requests: the only transfer
// coding is `chunked`, never with HTTP/1.0 or a content-length; trailers are read and dropped.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "net/http_server.h"

namespace orrery::net {

class HttpParser {
 public:
  enum class Outcome : uint8_t { kMore, kDone, kMalformed, kHeadTooLarge, kBodyTooLarge };

  HttpParser(size_t head_bytes_max, size_t body_bytes_max);
  ~HttpParser();
  HttpParser(HttpParser&&) = delete;

  // Reads from the front of `in` and sets `used` to how much of it is not needed again. After kDone
  // the request is there, until Reset() and as long as the bytes of `in` stand still; after an
  // error only Reset() may follow. REQUIRES: `in` starts with what the last call did not use. A
  // caller that can hold `head_bytes_max` bytes never gets kMore for a full buffer of which nothing
  // was used, except inside a chunked body.
  Outcome Feed(std::string_view in, size_t* used);
  // Makes ready for the next request; lets go of memory that only a large body needed.
  void Reset();

  // Whether nothing of a request has come yet.
  bool idle() const;
  // Whether the head is complete, asks for `100 Continue`, and no byte of the body has come.
  bool awaits_continue() const;

  // REQUIRES: the last Feed() said kDone.
  HttpRequest& request();
  bool keep_alive() const;
  bool http10() const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

}  // namespace orrery::net
