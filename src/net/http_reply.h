// How a reply looks on the wire.
#pragma once

#include <string>
#include <string_view>

#include "net/http_server.h"

namespace orrery::net {

struct ReplyFrame {
  bool head_request = false;  // the reply to HEAD: lengths, but no body
  bool http10 = false;
  bool close = false;  // after this reply
};

// Appends all but the body, and returns what of the body has to follow: nothing for HEAD, 204 and
// 304.
std::string_view AppendHead(const HttpReply& reply, ReplyFrame frame, std::string& out);

// A reply whose JSON body gives a code and a message. REQUIRES: neither needs escaping.
void MakeErrorReply(int status, std::string_view code, std::string_view message, HttpReply& reply);

}  // namespace orrery::net
