#include "net/peer_line.h"

#include <algorithm>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.h"

namespace orrery::net {

using runtime::Task;

namespace {

// A connection that lived less than this is not made again at once.
constexpr Duration kLivedShortly = std::chrono::milliseconds(100);

Instant Now() { return SystemClock().Now(); }

}  // namespace

PeerLine::PeerLine(runtime::Worker& worker, std::shared_ptr<const PeerTarget> target,
                   std::shared_ptr<runtime::Gate> gate, std::function<void()> on_up)
    : worker_(worker),
      target_(std::move(target)),
      gate_(std::move(gate)),
      on_up_(std::move(on_up)),
      kept_(worker.index() == 0 && target_->watch.on_event != nullptr),
      reaper_(worker.context()),
      pause_(worker.context()) {}

void PeerLine::Start() {
  runtime::Gate::Pass pass = closed_ ? runtime::Gate::Pass() : gate_->Enter();
  if (pass && state_ == State::kIdle) {
    state_ = State::kConnecting;
    worker_.Spawn(Run(shared_from_this(), std::move(pass)));
  }
}

void PeerLine::Retry() {
  if (state_ == State::kIdle || state_ == State::kPausing) {
    retry_ = {};
    retry_at_ = Now();
    pause_.cancel();
  }
}

void PeerLine::Close() {
  closed_ = true;
  pause_.cancel();
  reaper_.cancel();
  if (dial_ != nullptr) {
    dial_->Cancel();
  }
  if (link_ != nullptr) {
    link_->Close();
  }
}

void PeerLine::EndCalls() {
  for (auto& [id, waiting] : std::exchange(calls_, {})) {
    waiting.resume(Error(Code::kUnknownOutcome, "nothing is heard of the peer any more"));
  }
}

bool PeerLine::Ready() {
  if (state_ == State::kIdle && Now() >= retry_at_) {
    Start();
  }
  return !closed_ && (state_ == State::kConnecting || state_ == State::kUp);
}

bool PeerLine::Enqueue(FrameKind kind, uint64_t id, std::string_view message) {
  if (link_ != nullptr) {
    return link_->Send(kind, id, message);
  }
  if (!queue_.empty() &&
      queue_.size() + kFrameHead + message.size() > target_->options.waiting_bytes_max) {
    return false;
  }
  AppendFrame(queue_, kind, id, message);
  ++queue_frames_;
  queue_one_way_ += kind == FrameKind::kOneWay;
  return true;
}

void PeerLine::Send(std::string_view message) {
  if (!FitsFrame(message.size()) || !Ready() || !Enqueue(FrameKind::kOneWay, 0, message)) {
    target_->options.counters->frames_dropped.fetch_add(1, std::memory_order_relaxed);
  }
}

void PeerLine::Call(std::string_view message, Resume resume) {
  if (!FitsFrame(message.size())) {
    resume(Error(Code::kUnavailable, "the message to the peer is too large"));
  } else if (!Ready()) {
    resume(Error(Code::kUnavailable, "cannot reach the peer at " + target_->Name() + ": " + why_));
  } else if (calls_.size() >= kInFlightMax || !Enqueue(FrameKind::kCall, next_id_, message)) {
    resume(Error(Code::kUnavailable, "too much is in flight to the peer"));
  } else {
    Waiting waiting{Now() + target_->options.call_timeout, std::move(resume)};
    calls_.emplace(next_id_++, std::move(waiting));
    Reap();
  }
}

// Ends the calls whose time is over, and comes back when that of the next one will be.
void PeerLine::Reap() {
  if (reaping_) {
    return;
  }
  Instant now = Now();
  while (!calls_.empty() && calls_.begin()->second.deadline <= now) {
    auto over = calls_.extract(calls_.begin());
    over.mapped().resume(Error(Code::kUnknownOutcome, "the peer did not answer in time"));
  }
  if (calls_.empty() || closed_) {
    return;
  }
  reaping_ = true;
  reaper_.expires_at(calls_.begin()->second.deadline);
  reaper_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
    self->reaping_ = false;
    self->Reap();
  });
}

Task<> PeerLine::Run(std::shared_ptr<PeerLine> self, runtime::Gate::Pass pass) {
  do {
    co_await self->Attempt();
    if (self->kept_ && !self->closed_) {
      co_await self->Pause();
    }
  } while (self->kept_ && !self->closed_);
  self->state_ = State::kIdle;
}

Task<> PeerLine::Pause() {
  state_ = State::kPausing;
  if (retry_at_ > Now()) {
    pause_.expires_at(retry_at_);
    co_await pause_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  state_ = State::kConnecting;
}

Task<> PeerLine::Attempt() {
  dial_ = std::make_shared<Dial>(worker_, target_);
  Dialed dialed = co_await dial_->Run();
  dial_ = nullptr;
  if (closed_) {
    if (dialed.link != nullptr) {
      dialed.link->Close();
    }
    FailAll(Code::kUnavailable, "the connection to the peer was closed");
    co_return;
  }
  if (dialed.link == nullptr) {
    Unreachable(dialed);
    co_return;
  }
  Up(std::move(dialed.link));
  co_await Listen();
  Broke();
}

void PeerLine::Unreachable(const Dialed& dialed) {
  why_ = dialed.why;
  if (kept_ && std::exchange(logged_, why_) != why_) {
    log::Warning(
        "peer not reachable",
        {{"node", target_->watch.node.ToString()}, {"address", target_->Name()}, {"why", why_}});
  }
  BackOff();
  FailAll(Code::kUnavailable, "cannot reach the peer at " + target_->Name() + ": " + why_);
  Report(dialed.refused ? PeerEvent::kRefused : PeerEvent::kBroken);
}

void PeerLine::Up(std::shared_ptr<PeerLink> link) {
  state_ = State::kUp;
  up_since_ = Now();
  link_ = std::move(link);
  link_->SendFrames(std::exchange(queue_, {}), std::exchange(queue_frames_, 0));
  queue_one_way_ = 0;
  if (kept_) {
    logged_.clear();
    log::Info("peer connected",
              {{"node", target_->watch.node.ToString()}, {"address", target_->Name()}});
  }
  if (reported_ == PeerEvent::kUp) {
    Report(PeerEvent::kBroken);  // and connected again, which was not refused
  }
  Report(PeerEvent::kUp);
  on_up_();
}

Task<> PeerLine::Listen() {
  std::shared_ptr<PeerLink> link = link_;
  PeerFrame frame;
  do {
    while (link->Take(frame)) {
      if (!Receive(frame)) {
        link->Close();
      }
    }
  } while (co_await link->Fill());
  link->Close();
}

bool PeerLine::Receive(PeerFrame& frame) {
  if (frame.kind == FrameKind::kRefusal) {
    log::Warning("peer refused us", {{"address", target_->Name()}, {"why", frame.message}});
    return false;
  }
  if (frame.kind != FrameKind::kAnswer && frame.kind != FrameKind::kNotHandled &&
      frame.kind != FrameKind::kFailed) {
    log::Warning("peer sent a frame of an unknown kind", {{"address", target_->Name()}});
    return false;
  }
  auto found = calls_.extract(frame.id);
  if (found.empty()) {
    return true;  // its time was over
  }
  Resume& resume = found.mapped().resume;
  if (frame.kind == FrameKind::kAnswer) {
    resume(std::move(frame.message));
  } else if (frame.kind == FrameKind::kNotHandled) {
    resume(Error(Code::kUnavailable, "the peer has too much to do"));
  } else {
    resume(Error(Code::kUnknownOutcome, "the call failed inside the peer"));
  }
  return true;
}

void PeerLine::Broke() {
  link_ = nullptr;
  state_ = State::kIdle;
  why_ = "the connection broke";
  if (Now() - up_since_ < kLivedShortly) {
    BackOff();
  } else {
    retry_ = {};
    retry_at_ = Now();
  }
  FailAll(Code::kUnknownOutcome, "the connection to the peer broke");
}

void PeerLine::BackOff() {
  const PeerOptions& options = target_->options;
  retry_ = std::clamp(retry_ * 2, options.retry_min, options.retry_max);
  retry_at_ = Now() + retry_;
}

void PeerLine::FailAll(Code code, const std::string& why) {
  target_->options.counters->frames_dropped.fetch_add(std::exchange(queue_one_way_, 0),
                                                      std::memory_order_relaxed);
  queue_ = {};
  queue_frames_ = 0;
  for (auto& [id, waiting] : std::exchange(calls_, {})) {
    waiting.resume(Error(code, why));
  }
}

void PeerLine::Report(PeerEvent event) {
  if (kept_ && !closed_ && reported_ != event) {
    reported_ = event;
    target_->watch.on_event(event);
  }
}

}  // namespace orrery::net
