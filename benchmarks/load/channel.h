// Channel: calls on one connection, several at once, as bytes to send and bytes received.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orrery::load {

class Channel {
 public:
  using Done = std::function<void(uint32_t stream, bool ok, size_t message_bytes)>;

  virtual ~Channel() = default;
  // Whether so many bytes of a message may be sent now; the server allows more in time.
  virtual bool MaySend(size_t message_bytes) const = 0;
  // Appends a call and returns its stream. REQUIRES: MaySend.
  virtual uint32_t Call(std::string_view message) = 0;
  // Takes received bytes and tells which calls have ended. kUnavailable: the connection is of no
  // more use.
  virtual Status Feed(std::string_view bytes, const Done& done) = 0;
  // What is to be sent; the caller takes it away.
  virtual std::string& out() = 0;
};

}  // namespace orrery::load
