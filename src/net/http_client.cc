#include "net/http_client.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <sys/socket.h>
#include <sys/time.h>

namespace orrery::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

constexpr time_t kDeadlineSeconds = 60;

struct Url {
  bool secure = false;
  std::string host;
  std::string port;
  std::string path = "/";
};

Result<Url> ParseUrl(std::string_view text) {
  Url url;
  url.secure = text.starts_with("https://");
  if (!url.secure && !text.starts_with("http://")) {
    return Error(Code::kInvalidArgument, "'" + std::string(text) + "' is not an http or https URL");
  }
  text.remove_prefix(url.secure ? 8 : 7);
  size_t slash = std::min(text.find('/'), text.size());
  std::string_view authority = text.substr(0, slash);
  if (slash < text.size()) {
    url.path = text.substr(slash);
  }
  size_t colon = authority.rfind(':');
  bool has_port =
      colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  url.host = authority.substr(0, has_port ? colon : authority.size());
  url.port = has_port ? std::string(authority.substr(colon + 1)) : url.secure ? "443" : "80";
  if (url.host.starts_with('[') && url.host.ends_with(']')) {
    url.host = url.host.substr(1, url.host.size() - 2);
  }
  return url;
}

template <typename Stream>
HttpAnswer Exchange(Stream& stream, const HttpCall& call, const Url& url) {
  http::request<http::string_body> request(http::string_to_verb(call.method), url.path, 11);
  request.set(http::field::host, url.host + ":" + url.port);
  for (const auto& [name, value] : call.headers) {
    request.set(name, value);
  }
  request.body() = call.body;
  request.prepare_payload();
  http::write(stream, request);
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(256 << 20);
  http::read(stream, buffer, parser);
  return {.status = static_cast<int>(parser.get().result_int()),
          .body = std::move(parser.get().body())};
}

}  // namespace

Result<HttpAnswer> CallHttp(const HttpCall& call) {
  ORRERY_TRY(Url url, ParseUrl(call.url));
  // Beast throws; nothing of it leaves this function.
  try {
    asio::io_context context;
    asio::ip::tcp::resolver resolver(context);
    beast::tcp_stream tcp(context);
    tcp.connect(resolver.resolve(url.host, url.port));
    // Blocking calls know no other deadline.
    timeval deadline{.tv_sec = kDeadlineSeconds};
    for (int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
      setsockopt(tcp.socket().native_handle(), SOL_SOCKET, option, &deadline, sizeof(deadline));
    }
    if (!url.secure) {
      return Exchange(tcp, call, url);
    }
    asio::ssl::context tls(asio::ssl::context::tls_client);
    tls.set_verify_mode(asio::ssl::verify_peer);
    if (call.trusted_certificate.empty()) {
      tls.set_default_verify_paths();
    } else {
      tls.load_verify_file(call.trusted_certificate);
    }
    asio::ssl::stream<beast::tcp_stream> stream(std::move(tcp), tls);
    stream.set_verify_callback(asio::ssl::host_name_verification(url.host));
    stream.handshake(asio::ssl::stream_base::client);
    return Exchange(stream, call, url);
  } catch (const boost::system::system_error& e) {
    // Not what(): it names places in our libraries.
    return Error(Code::kUnavailable, "no answer from " + call.url + ": " + e.code().message());
  } catch (const std::exception& e) {
    return Error(Code::kUnavailable, "no answer from " + call.url + ": " + e.what());
  }
}

}  // namespace orrery::net
