// A loop whose connections have several calls under way at once.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"
#include "load/channel.h"
#include "load/loop.h"
#include "load/workload.h"

namespace orrery::load {

struct StreamOptions {
  LoopOptions loop;            // `connections` counts calls under way; only closed loops
  int streams = 1;             // calls under way on each connection
  size_t found_bytes_min = 0;  // a good reply below it found nothing: status 404
  // Opens the channel on a socket that blocks.
  std::function<Result<std::unique_ptr<Channel>>(int socket, const Endpoint& endpoint)>
      make_channel;
};

// The requests of `workload` are messages of the channel. A failure counts as status 500.
std::unique_ptr<Loop> MakeStreamLoop(StreamOptions options, Workload& workload, LoopWatch& watch);

}  // namespace orrery::load
