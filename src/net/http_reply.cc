#include "net/http_reply.h"

#include <algorithm>
#include <charconv>

namespace orrery::net {

namespace {

// The reason phrase; empty (which is allowed) for what is not listed.
std::string_view ReasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 206: return "Partial Content";
    case 207: return "Multi-Status";
    case 301: return "Moved Permanently";
    case 302: return "Found";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 406: return "Not Acceptable";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 410: return "Gone";
    case 411: return "Length Required";
    case 412: return "Precondition Failed";
    case 413: return "Payload Too Large";
    case 415: return "Unsupported Media Type";
    case 424: return "Failed Dependency";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 449: return "Retry With";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    default: return "";
  }
}

void AppendNumber(uint64_t value, std::string& out) {
  char digits[20];
  char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out.append(digits, end);
}

void AppendStatusLine(int status, std::string& out) {
  if (status == 200) {
    out.append("HTTP/1.1 200 OK\r\n");
    return;
  }
  out.append("HTTP/1.1 ");
  AppendNumber(static_cast<uint64_t>(status), out);
  out.push_back(' ');
  out.append(ReasonOf(status));
  out.append("\r\n");
}

}  // namespace

std::string_view HttpRequest::Get(std::string_view name) const {
  for (const Header& header : headers) {
    if (header.name == name) {
      return header.value;
    }
  }
  return {};
}

void HttpReply::Add(std::string_view name, std::string_view value) {
  headers.append(name).append(": ");
  size_t start = headers.size();
  headers.append(value);
  // Whatever a value holds, it stays one line.
  bool control = false;
  for (char c : value) {
    control |= static_cast<unsigned char>(c) < 0x20;
  }
  if (control) {
    std::replace_if(
        headers.begin() + static_cast<ptrdiff_t>(start), headers.end(),
        [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  }
  headers.append("\r\n");
}

void HttpReply::Clear() {
  status = 200;
  headers.clear();
  body.clear();
  close = false;
}

std::string_view AppendHead(const HttpReply& reply, ReplyFrame frame, std::string& out) {
  // Whatever a handler says, the stream stays a sequence of final replies.
  const int status = reply.status >= 200 && reply.status <= 599 ? reply.status : 500;
  const bool bodiless = status == 204 || status == 304;
  AppendStatusLine(status, out);
  out.append(reply.headers);
  if (!bodiless) {
    out.append("content-length: ");
    AppendNumber(reply.body.size(), out);
    out.append("\r\n");
  }
  if (frame.close) {
    out.append("connection: close\r\n");
  } else if (frame.http10) {
    out.append("connection: keep-alive\r\n");
  }
  out.append("\r\n");
  return bodiless || frame.head_request ? std::string_view() : std::string_view(reply.body);
}

void MakeErrorReply(int status, std::string_view code, std::string_view message, HttpReply& reply) {
  reply.Clear();
  reply.status = status;
  reply.Add("content-type", "application/json");
  reply.body.append(R"({"code":")").append(code);
  reply.body.append(R"(","message":")").append(message).append(R"("})");
}

}  // namespace orrery::net
