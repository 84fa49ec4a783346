// CallHttp: one blocking HTTP request, for the commands of the program. Not for workers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace orrery::net {

struct HttpCall {
  std::string method = "GET";
  std::string url;  // http://host:port/path or https://...
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string trusted_certificate;  // PEM file, for https; empty: the system's
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

// kUnavailable if there is no answer within 60 seconds.
Result<HttpAnswer> CallHttp(const HttpCall& call);

}  // namespace orrery::net
