#include "cluster/call_within.h"

#include <functional>
#include <memory>
#include <utility>

#include "runtime/worker.h"

namespace orrery::cluster {

using runtime::Task;

namespace {

using Answer = std::optional<std::string>;

// Of the call and the clock, the first counts.
struct Race {
  std::function<void(Answer)> resume;
  void End(Answer answer) {
    if (auto first = std::exchange(resume, nullptr)) {
      first(std::move(answer));
    }
  }
};

Task<> Call(replication::Transport& transport, NodeId node, std::string request,
            std::shared_ptr<Race> race) {
  Result<std::string> answer = co_await transport.Call(node, std::move(request));
  race->End(answer ? Answer(std::move(*answer)) : std::nullopt);
}

Task<> Wait(Duration longest, std::shared_ptr<Race> race) {
  co_await runtime::Sleep(longest);
  race->End(std::nullopt);
}

}  // namespace

Task<Answer> CallWithin(replication::Transport& transport, NodeId node, std::string request,
                        Duration longest) {
  auto start = [&](std::function<void(Answer)> resume) {
    auto race = std::make_shared<Race>(std::move(resume));
    runtime::Worker::Current()->Spawn(Call(transport, node, std::move(request), race));
    runtime::Worker::Current()->Spawn(Wait(longest, race));
  };
  co_return co_await runtime::Suspend<Answer>(start);
}

}  // namespace orrery::cluster
