// PeerLine: a worker's connection to a peer, through all its lives.
//
// It connects when something is to be sent (or by itself, if it is kept), and when that fails waits
// before it tries again; what is to be sent meanwhile is refused. While it connects, frames queue.
//
// On its worker only, except that it may be made and destroyed elsewhere; held by shared pointers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/steady_timer.hpp>

#include "net/peer.h"
#include "net/peer_dial.h"
#include "net/peer_link.h"

namespace orrery::net {

class PeerLine : public std::enable_shared_from_this<PeerLine> {
 public:
  using Resume = std::function<void(Result<std::string>)>;

  // `gate` stays open for its tasks. `on_up` is called each time that it has connected.
  PeerLine(runtime::Worker& worker, std::shared_ptr<const PeerTarget> target,
           std::shared_ptr<runtime::Gate> gate, std::function<void()> on_up);

  // One that is kept begins with this.
  void Start();
  // Does not wait any longer before the next attempt.
  void Retry();
  void Close();
  // Nobody waits for their answers any longer; what was queued may still be sent.
  void EndCalls();
  void Send(std::string_view message);
  void Call(std::string_view message, Resume resume);
  runtime::Worker& worker() { return worker_; }

 private:
  enum class State : uint8_t { kIdle, kConnecting, kUp, kPausing };
  struct Waiting {
    Instant deadline;
    Resume resume;
  };

  static runtime::Task<> Run(std::shared_ptr<PeerLine> self, runtime::Gate::Pass pass);
  runtime::Task<> Attempt();
  runtime::Task<> Listen();
  runtime::Task<> Pause();
  // False: not before the next attempt to connect.
  bool Ready();
  // False: too much waits already.
  bool Enqueue(FrameKind kind, uint64_t id, std::string_view message);
  bool Receive(PeerFrame& frame);
  void Unreachable(const Dialed& dialed);
  void Up(std::shared_ptr<PeerLink> link);
  void Broke();
  void BackOff();
  void FailAll(Code code, const std::string& why);
  void Report(PeerEvent event);
  void Reap();

  runtime::Worker& worker_;
  const std::shared_ptr<const PeerTarget> target_;
  const std::shared_ptr<runtime::Gate> gate_;
  const std::function<void()> on_up_;
  const bool kept_;
  State state_ = State::kIdle;
  bool closed_ = false;
  std::shared_ptr<Dial> dial_;      // while connecting
  std::shared_ptr<PeerLink> link_;  // while up
  Instant up_since_;

  // Frames until it is up.
  std::string queue_;
  size_t queue_frames_ = 0;
  size_t queue_one_way_ = 0;
  // Calls without an answer. All have the same time, so the order of ids is that of deadlines.
  std::map<uint64_t, Waiting> calls_;
  uint64_t next_id_ = 1;
  boost::asio::steady_timer reaper_;
  bool reaping_ = false;

  boost::asio::steady_timer pause_;
  Duration retry_{};  // the last pause; 0: none was needed
  Instant retry_at_;
  std::string why_ = "not connected";  // the last failure
  std::string logged_;
  std::optional<PeerEvent> reported_;
};

}  // namespace orrery::net
