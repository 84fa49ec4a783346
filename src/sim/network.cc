#include "sim/network.h"

#include <algorithm>

#include "runtime/worker.h"

namespace orrery::sim {

namespace {
constexpr Duration kReadLate = std::chrono::seconds(4);  // what sat in a socket
}  // namespace

class SimTransport final : public replication::Transport {
 public:
  SimTransport(Network& network, Station& self) : network_(network), self_(self) {}

  void Send(NodeId to, std::string frame) override { network_.Send(self_, to, std::move(frame)); }
  runtime::Task<Result<std::string>> Call(NodeId to, std::string request) override {
    auto start = [this, to, &request](Network::Resume resume) {
      network_.StartCall(self_, to, std::move(request), std::move(resume));
    };
    co_return co_await runtime::Suspend<Result<std::string>>(std::move(start));
  }
  void EndCalls(NodeId to) override { network_.EndCalls(self_, to); }

 private:
  Network& network_;
  Station& self_;
};

std::unique_ptr<replication::Transport> Network::TransportOf(Station& station) {
  return std::make_unique<SimTransport>(*this, station);
}

bool Network::Carry(NodeId from, NodeId to, std::function<void()> arrived) {
  Link& link = links_[{from, to}];
  if (link.cut || (loss_percent_ > 0 && chance_.Percent(loss_percent_))) {
    return false;
  }
  Instant at =
      world_.now() + link.extra + chance_.Mostly(options_.latency_least, options_.latency_most);
  if (options_.in_order) {
    at = std::max(at, link.last_arrival);
    link.last_arrival = at;
  }
  world_.After(at - world_.now(), [this, from, to, arrived = std::move(arrived)] {
    if (!IsCut(from, to)) {
      arrived();
    }
  });
  return true;
}

void Network::Send(Station& from, NodeId to, std::string frame) {
  if (!from.speaks()) {
    return;
  }
  world_.Note("send", {from.id().value(), to.value()}, frame);
  Station& target = *stations_.at(to);
  if (target.refuses() && !IsCut(from.id(), to)) {
    return TellRefused(from, to);
  }
  auto arrived = [this, from = from.id(), &target, incarnation = target.incarnation(), frame] {
    if (target.up() && (!options_.in_order || target.incarnation() == incarnation)) {
      world_.Note("arrive", {from.value(), target.id().value()}, frame);
      target.OnFrame(from, frame);
    }
  };
  if (!options_.in_order && chance_.Percent(options_.twice_percent)) {
    Carry(from.id(), to, arrived);
  }
  Carry(from.id(), to, std::move(arrived));
}

void Network::TellRefused(Station& from, NodeId to) {
  bool& on_its_way = refusing_[{from.id(), to}];
  if (on_its_way) {
    return;
  }
  on_its_way = true;
  auto told = [this, &from, to, incarnation = from.incarnation()] {
    refusing_[{from.id(), to}] = false;
    if (from.up() && from.incarnation() == incarnation) {
      world_.Note("refused", {from.id().value(), to.value()});
      from.OnRefused(to);
    }
  };
  world_.After(chance_.Mostly(options_.latency_least, options_.latency_most), told);
}

void Network::StartCall(Station& from, NodeId to, std::string request, Resume resume) {
  const uint64_t call = next_call_++;
  world_.Note("call", {call, from.id().value(), to.value()}, request);
  Station& target = *stations_.at(to);
  calls_[call] = {from.id(), to, std::move(resume)};
  const bool reachable = !IsCut(from.id(), to);
  if (target.refuses() && reachable) {
    TellRefused(from, to);
    world_.After(options_.latency_most,
                 [this, call] { EndCall(call, Error(Code::kUnavailable, "refused")); });
    return;
  }
  if (!reachable && chance_.OneIn(2)) {  // no connection can be made
    world_.After(options_.connect_deadline,
                 [this, call] { EndCall(call, Error(Code::kUnavailable, "no connection")); });
    return;
  }
  world_.After(options_.call_deadline,
               [this, call] { EndCall(call, Error(Code::kUnknownOutcome, "no answer")); });
  auto answered = [this, call, from = from.id(), to](std::string answer) {
    if (!stations_.at(to)->speaks()) {
      return;
    }
    world_.Note("answer", {call, to.value(), from.value()}, answer);
    Carry(to, from, [this, call, answer = std::move(answer)] { EndCall(call, answer); });
  };
  auto arrived = [from = from.id(), &target, incarnation = target.incarnation(),
                  request = std::move(request), answered = std::move(answered)] {
    if (target.up() && target.incarnation() == incarnation) {
      target.OnCall(from, request, answered);
    }
  };
  if (broken_percent_ > 0 && reachable && chance_.Percent(broken_percent_)) {
    world_.After(options_.latency_most, [this, call] {
      EndCall(call, Error(Code::kUnknownOutcome, "the connection broke"));
    });
    world_.After(chance_.Mostly(options_.latency_most, kReadLate), std::move(arrived));
    return;
  }
  Carry(from.id(), to, std::move(arrived));
}

void Network::EndCall(uint64_t call, Result<std::string> result) {
  auto found = calls_.find(call);
  if (found == calls_.end()) {
    return;
  }
  Resume resume = std::move(found->second.resume);
  Station& from = *stations_.at(found->second.from);
  calls_.erase(found);
  world_.Note("call ends", {call, result.has_value()});
  resume(std::move(result));
  from.Run();
}

// Soon, as in a process: whoever waits for them does not go on inside this.
void Network::EndCalls(Station& from, NodeId to) {
  for (auto& [call, pending] : calls_) {
    if (pending.from == from.id() && pending.to == to) {
      world_.After(Duration(1), [this, call] {
        EndCall(call, Error(Code::kUnknownOutcome, "nothing is heard of the node any more"));
      });
    }
  }
}

void Network::OnDown(Station& station, bool machine_goes_on) {
  std::erase_if(calls_, [&](const auto& call) { return call.second.from == station.id(); });
  if (!machine_goes_on) {
    return;
  }
  for (auto& [call, pending] : calls_) {
    if (pending.to == station.id() && !IsCut(station.id(), pending.from)) {
      world_.After(options_.latency_most, [this, call] {
        EndCall(call, Error(Code::kUnknownOutcome, "the connection broke"));
      });
    }
  }
}

void Network::HealCuts() {
  for (auto& [ends, link] : links_) {
    link.cut = false;
  }
}

void Network::HealAll() {
  HealCuts();
  for (auto& [ends, link] : links_) {
    link.extra = Duration();
  }
  loss_percent_ = 0;
  broken_percent_ = 0;
}

}  // namespace orrery::sim
