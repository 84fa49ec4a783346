#include "net/http_parser.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/optional/optional.hpp>

namespace orrery::net {

namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

// A body buffer above this is given back after its request.
constexpr size_t kBodyBytesKept = 64 << 10;
// The least that can follow where a chunk header is expected: "0\r\n\r\n".
constexpr size_t kChunkHeaderBytesMin = 5;

// Where a request is kept; outlives the Reader, which cannot be used twice.
struct Store {
  explicit Store(size_t head_max)
      : head_bytes_max(head_max), text(std::make_unique_for_overwrite<char[]>(head_max)) {}

  const size_t head_bytes_max;
  const std::unique_ptr<char[]> text;  // names and values of the head
  size_t text_size = 0;
  size_t head_bytes = 0;  // what the head took on the wire; never below text_size
  std::string body;
  HttpRequest request;

  bool Take(size_t wire_bytes) {
    head_bytes += wire_bytes;
    return head_bytes <= head_bytes_max;
  }
  // REQUIRES: Take() admitted it.
  std::string_view Keep(std::string_view piece) {
    char* at = text.get() + text_size;
    std::copy(piece.begin(), piece.end(), at);
    text_size += piece.size();
    return {at, piece.size()};
  }
  std::string_view KeepLowered(std::string_view piece) {
    char* at = text.get() + text_size;
    std::transform(piece.begin(), piece.end(), at,
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
    text_size += piece.size();
    return {at, piece.size()};
  }
};

class Reader final : public http::basic_parser<true> {
 public:
  Reader(Store& store, size_t body_bytes_max) : store_(store) {
    header_limit(static_cast<uint32_t>(store.head_bytes_max));
    body_limit(body_bytes_max);
    eager(true);
  }

  bool http10() const { return http10_; }
  bool awaits_continue() const { return expects_continue_ && is_header_done() && !body_begun_; }
  bool at_chunk_header() const { return is_header_done() && chunked() && chunk_left_ == 0; }

 private:
  using Text = beast::string_view;
  using Error = beast::error_code;

  void on_request_impl(http::verb, Text method, Text target, int version, Error& ec) override {
    if (!store_.Take(method.size() + target.size() + sizeof("  HTTP/1.1\r\n") - 1)) {
      ec = http::error::header_limit;
      return;
    }
    http10_ = version == 10;
    store_.request.method = store_.Keep(method);
    store_.request.target = store_.Keep(target);
  }

  void on_field_impl(http::field field, Text name, Text value, Error& ec) override {
    if (!store_.Take(name.size() + value.size() + sizeof(": \r\n") - 1)) {
      ec = http::error::header_limit;
      return;
    }
    if (is_header_done()) {
      return;  // a trailer
    }
    if (field == http::field::transfer_encoding && (http10_ || !beast::iequals(value, "chunked"))) {
      ec = http::error::bad_transfer_encoding;
      return;
    }
    if (field == http::field::expect) {
      expects_continue_ = !http10_ && beast::iequals(value, "100-continue");
    }
    std::string_view kept_name = store_.KeepLowered(name);
    store_.request.headers.push_back({kept_name, store_.Keep(value)});
  }

  void on_body_init_impl(const boost::optional<uint64_t>& length, Error&) override {
    // Only as much as comes at once: a length alone takes no memory.
    length_ = length.value_or(0);
  }

  size_t on_body_impl(Text piece, Error&) override {
    body_begun_ = true;
    if (piece.size() == length_) {
      store_.request.body = piece;
    } else {
      store_.body.append(piece);
      store_.request.body = store_.body;
    }
    return piece.size();
  }

  void on_chunk_header_impl(uint64_t size, Text, Error&) override {
    body_begun_ = true;
    chunk_left_ = size;
  }

  size_t on_chunk_body_impl(uint64_t, Text piece, Error&) override {
    chunk_left_ -= piece.size();
    store_.body.append(piece);
    store_.request.body = store_.body;
    return piece.size();
  }

  void on_response_impl(int, Text, int, Error&) override {}
  void on_header_impl(Error&) override {}
  void on_finish_impl(Error&) override {}

  Store& store_;
  uint64_t length_ = 0;
  uint64_t chunk_left_ = 0;
  bool http10_ = false;
  bool expects_continue_ = false;
  bool body_begun_ = false;
};

HttpParser::Outcome OutcomeOf(const beast::error_code& ec) {
  if (ec == http::error::header_limit) {
    return HttpParser::Outcome::kHeadTooLarge;
  }
  if (ec == http::error::body_limit) {
    return HttpParser::Outcome::kBodyTooLarge;
  }
  return HttpParser::Outcome::kMalformed;
}

}  // namespace

struct HttpParser::Body {
  Body(size_t head_max, size_t body_max) : store(head_max), body_bytes_max(body_max) {
    reader.emplace(store, body_bytes_max);
  }
  Store store;
  const size_t body_bytes_max;
  std::optional<Reader> reader;
  bool blank_line_seen = false;
};

HttpParser::HttpParser(size_t head_bytes_max, size_t body_bytes_max)
    : body_(std::make_unique<Body>(head_bytes_max, body_bytes_max)) {}
HttpParser::~HttpParser() = default;

HttpParser::Outcome HttpParser::Feed(std::string_view in, size_t* used) {
  *used = 0;
  Reader& reader = *body_->reader;
  // One empty line before a request is forgiven: old clients end a body with it.
  if (!reader.got_some() && !body_->blank_line_seen && in.starts_with('\r')) {
    if (in.size() < 2) {
      return Outcome::kMore;
    }
    if (in[1] != '\n') {
      return Outcome::kMalformed;
    }
    body_->blank_line_seen = true;
    *used = 2;
    in.remove_prefix(2);
  }
  // Beast asserts that the second look at a last chunk finds at least as much as a last chunk
  // takes.
  if (in.empty() || (reader.at_chunk_header() && in.size() < kChunkHeaderBytesMin)) {
    return Outcome::kMore;
  }
  beast::error_code ec;
  *used += reader.put(boost::asio::const_buffer(in.data(), in.size()), ec);
  if (reader.is_done() && !ec) {
    return Outcome::kDone;
  }
  if (!ec || ec == http::error::need_more) {
    return Outcome::kMore;
  }
  return OutcomeOf(ec);
}

void HttpParser::Reset() {
  Store& store = body_->store;
  store.text_size = 0;
  store.head_bytes = 0;
  if (store.body.capacity() > kBodyBytesKept) {
    store.body = std::string();
  }
  store.body.clear();
  store.request.headers.clear();
  store.request.method = {};
  store.request.target = {};
  store.request.body = {};
  body_->blank_line_seen = false;
  body_->reader.emplace(store, body_->body_bytes_max);
}

bool HttpParser::idle() const { return !body_->reader->got_some(); }
bool HttpParser::awaits_continue() const { return body_->reader->awaits_continue(); }
HttpRequest& HttpParser::request() { return body_->store.request; }
bool HttpParser::keep_alive() const { return body_->reader->keep_alive(); }
bool HttpParser::http10() const { return body_->reader->http10(); }

}  // namespace orrery::net
