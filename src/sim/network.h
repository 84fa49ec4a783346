// Network: frames and calls between the machines, and everything that can happen to them.
//
// Two kinds of network, by seed. In order: what one machine sends to another arrives in order or
// not at all, and what was sent to a process that is gone never reaches its successor. Not in
// order: frames overtake each other, come twice, and may reach the next process.
//
// A link is cut one way; what is on its way when it is cut is lost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "replication/transport.h"
#include "sim/chance.h"
#include "sim/world.h"

namespace orrery::sim {

// A machine as the network sees it.
class Station {
 public:
  virtual ~Station() = default;
  virtual NodeId id() const = 0;
  virtual bool up() const = 0;       // a process runs
  virtual bool refuses() const = 0;  // none does, and the machine says so
  virtual bool speaks() const = 0;   // what it sends counts
  virtual uint64_t incarnation() const = 0;
  virtual void OnFrame(NodeId from, std::string frame) = 0;
  virtual void OnCall(NodeId from, std::string request,
                      std::function<void(std::string)> answer) = 0;
  virtual void OnRefused(NodeId node) = 0;
  virtual void Run() = 0;  // a call of it has ended
};

struct NetworkOptions {
  bool in_order = true;
  uint32_t twice_percent = 0;  // of frames; only when not in order
  Duration latency_least = std::chrono::microseconds(100);
  Duration latency_most = std::chrono::milliseconds(2);
  // Those of net/peer.h.
  Duration call_deadline = std::chrono::seconds(10);
  Duration connect_deadline = std::chrono::seconds(3);
};

class Network {
 public:
  Network(World& world, NetworkOptions options)
      : world_(world), options_(options), chance_(world.seed(), "network") {}

  void Add(Station& station) { stations_[station.id()] = &station; }
  std::unique_ptr<replication::Transport> TransportOf(Station& station);

  // Faults.
  void Cut(NodeId from, NodeId to) { links_[{from, to}].cut = true; }
  void Slow(NodeId from, NodeId to, Duration extra) { links_[{from, to}].extra = extra; }
  void Lose(uint32_t percent) { loss_percent_ = percent; }
  // As many connections of calls break when a request has left; it is read later.
  void BreakCalls(uint32_t percent) { broken_percent_ = percent; }
  void HealCuts();
  void HealAll();

  // A process has ended. If its machine goes on, those who wait for its answers hear of it soon.
  void OnDown(Station& station, bool machine_goes_on);

 private:
  friend class SimTransport;
  using Resume = std::function<void(Result<std::string>)>;
  struct Link {
    bool cut = false;
    Duration extra{};
    Instant last_arrival;
  };
  struct Pending {  // a call
    NodeId from;
    NodeId to;
    Resume resume;
  };

  void Send(Station& from, NodeId to, std::string frame);
  void StartCall(Station& from, NodeId to, std::string request, Resume resume);
  void EndCall(uint64_t call, Result<std::string> result);
  void EndCalls(Station& from, NodeId to);
  void TellRefused(Station& from, NodeId to);
  // Plans what happens when something sent now arrives; false if it is lost at once.
  bool Carry(NodeId from, NodeId to, std::function<void()> arrived);
  bool IsCut(NodeId from, NodeId to) { return links_[{from, to}].cut; }

  World& world_;
  const NetworkOptions options_;
  Chance chance_;
  std::map<NodeId, Station*> stations_;
  std::map<std::pair<NodeId, NodeId>, Link> links_;
  uint32_t loss_percent_ = 0;
  uint32_t broken_percent_ = 0;
  uint64_t next_call_ = 1;
  std::map<uint64_t, Pending> calls_;
  std::map<std::pair<NodeId, NodeId>, bool> refusing_;  // a refusal is on its way
};

}  // namespace orrery::sim
