// Nemesis: what goes wrong, by seed: which kinds of faults there are in this run, when each strikes
// and how long it lasts. Heal() ends all of it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/chance.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/world.h"

namespace orrery::sim {

class Nemesis {
 public:
  using Machines = std::vector<std::unique_ptr<Machine>>;
  Nemesis(World& world, Network& network, Machines& machines);

  void Start();
  void Heal();
  uint64_t crashes() const { return crashes_; }

  // Of the whole run, by seed.
  static NetworkOptions NetworkOf(uint64_t seed);
  static MachineOptions MachineOf(uint64_t seed, NodeId id);
  // Whether Strong reads go by leases.
  static bool HasLeases(uint64_t seed) { return Chance(seed, "leases").OneIn(3); }

 private:
  using Fault = void (Nemesis::*)();
  void Plan(Duration mean, Fault fault);
  // After a while, unless all is healed by then.
  void Later(Duration delay, std::function<void()> what);

  void Crash();
  void CrashOne(Machine& machine);
  void Revive(Machine& machine, Death death);
  void Pause();
  void Partition();
  void CutOff();
  void Shift();
  void SlowHeir();
  void LoseMessages();
  void SlowLink();
  void BreakCalls();
  void SlowDisk();
  void BreakLog();
  void Transfer();
  void ChangeMembers();
  void CutLog();
  void Reshape();

  Machine& Any() { return *machines_[chance_.Below(machines_.size())]; }
  std::vector<Machine*> Shuffled();
  void CutBetween(const std::vector<NodeId>& left, const std::vector<NodeId>& right, bool both);

  World& world_;
  Network& network_;
  Machines& machines_;
  Chance chance_;
  bool healed_ = false;
  uint64_t crashes_ = 0;
};

}  // namespace orrery::sim
