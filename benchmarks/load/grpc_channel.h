// GrpcChannel: unary gRPC calls over one HTTP/2 connection, as bytes to send and bytes received.
//
// Just enough for a generator that must not be the bottleneck: every call has the same path, so
// that its header block is six bytes after the first; reply headers are not decoded. A unary call
// that fails is answered without a message (gRPC's "trailers only"), so a message and the end of
// the stream are a success.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "load/channel.h"

namespace orrery::load {

class GrpcChannel final : public Channel {
 public:
  GrpcChannel(std::string path, std::string authority);

  bool MaySend(size_t message_bytes) const override;
  // REQUIRES: at most 16 KB.
  uint32_t Call(std::string_view message) override;
  Status Feed(std::string_view bytes, const Done& done) override;
  std::string& out() override { return out_; }

 private:
  struct Stream {
    uint32_t id;
    size_t received = 0;
  };
  void AppendFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  Status TakeFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload,
                   const Done& done);
  void End(uint32_t stream, bool ok, const Done& done);
  void CountReceived(uint32_t stream, size_t bytes);

  const std::string path_;
  const std::string authority_;
  std::string out_;
  std::string received_;  // the beginning of a frame
  std::vector<Stream> streams_;
  uint32_t next_stream_ = 1;
  int64_t send_window_ = 65535;
  uint64_t receive_window_ = 0;
};

}  // namespace orrery::load
