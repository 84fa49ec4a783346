#include "sim/nemesis.h"

#include <algorithm>

namespace orrery::sim {

namespace {

// How much faster or slower than virtual time a clock may be. A lease is nine tenths of the time
// that it must not outlast, so that two clocks may differ by a ninth.
constexpr uint64_t kSkewMostPpm = 50'000;

}  // namespace

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

Nemesis::Nemesis(World& world, Network& network, Machines& machines)
    : world_(world), network_(network), machines_(machines), chance_(world.seed(), "nemesis") {}

NetworkOptions Nemesis::NetworkOf(uint64_t seed) {
  Chance chance(seed, "network options");
  NetworkOptions options;
  options.in_order = chance.OneIn(2);
  options.twice_percent = chance.OneIn(2) ? 5 : 0;
  options.latency_most = chance.Mostly(milliseconds(1), milliseconds(50));
  return options;
}

MachineOptions Nemesis::MachineOf(uint64_t seed, NodeId id) {
  Chance skew(seed, "skew");
  Chance chance(seed, "machine options", id.value());
  MachineOptions options;
  if (skew.OneIn(2)) {
    options.skew_ppm = static_cast<int64_t>(chance.Below(2 * kSkewMostPpm + 1) - kSkewMostPpm);
    options.wall_error = chance.Between(seconds(0), seconds(10));
  }
  return options;
}

void Nemesis::Start() {
  struct Kind {
    Fault fault;
    Duration mean;
    uint32_t percent;  // of the seeds that have it
  };
  const Kind kinds[] = {
      {&Nemesis::Crash, milliseconds(1200), 70},
      {&Nemesis::Pause, milliseconds(1500), 40},
      {&Nemesis::Partition, milliseconds(1500), 50},
      {&Nemesis::CutOff, milliseconds(1500), 40},
      {&Nemesis::LoseMessages, milliseconds(1000), 50},
      {&Nemesis::SlowLink, milliseconds(800), 30},
      {&Nemesis::BreakCalls, milliseconds(800), 40},
      {&Nemesis::SlowDisk, milliseconds(1000), 40},
      {&Nemesis::BreakLog, milliseconds(3000), 10},
      {&Nemesis::Transfer, milliseconds(700), 40},
      {&Nemesis::ChangeMembers, milliseconds(900), 50},
      {&Nemesis::CutLog, milliseconds(500), 70},
      {&Nemesis::Reshape, milliseconds(800), 50},
  };
  for (const Kind& kind : kinds) {
    if (chance_.Percent(kind.percent)) {
      Plan(kind.mean, kind.fault);
    }
  }
  // Another stream: a seed that has none of these is the same run as before there were any.
  const Kind sharper_kinds[] = {
      {&Nemesis::Shift, milliseconds(1200), 20},
      {&Nemesis::SlowHeir, milliseconds(1500), 20},
  };
  Chance sharper(world_.seed(), "sharper faults");
  for (const Kind& kind : sharper_kinds) {
    if (sharper.Percent(kind.percent)) {
      Plan(kind.mean, kind.fault);
    }
  }
}

void Nemesis::Plan(Duration mean, Fault fault) {
  Later(chance_.Between(Duration(1), 2 * mean), [this, mean, fault] {
    (this->*fault)();
    Plan(mean, fault);
  });
}

void Nemesis::Later(Duration delay, std::function<void()> what) {
  world_.After(delay, [this, what = std::move(what)] {
    if (!healed_) {
      what();
    }
  });
}

void Nemesis::Heal() {
  world_.Note("heal");
  healed_ = true;
  network_.HealAll();
  for (auto& machine : machines_) {
    machine->SlowDisk(1);
    machine->SlowApply(1);
    if (machine->up() && (machine->log_broken() || machine->about_to_die())) {
      machine->Die(Death::kKill);
    }
    if (!machine->up()) {
      machine->Start();
    } else if (machine->paused()) {
      machine->Resume();
    }
  }
}

std::vector<Machine*> Nemesis::Shuffled() {
  std::vector<Machine*> machines;
  for (auto& machine : machines_) {
    machines.push_back(machine.get());
  }
  chance_.Shuffle(machines);
  return machines;
}

// --- machines ------------------------------------------------------------------------------------

void Nemesis::Crash() {
  const uint64_t dice = chance_.Below(10);
  const size_t count = dice < 6 ? 1 : dice < 9 ? 2 : machines_.size();
  std::vector<Machine*> victims = Shuffled();
  victims.resize(std::min(count, victims.size()));
  for (Machine* machine : victims) {
    CrashOne(*machine);
  }
}

void Nemesis::CrashOne(Machine& machine) {
  if (!machine.up()) {
    return;
  }
  ++crashes_;
  const Death death = chance_.OneIn(2) ? Death::kKill : Death::kPowerCut;
  if (chance_.OneIn(2)) {
    machine.DieAtWrite(death, 1 + chance_.Below(6));
  } else {
    machine.Die(death);
  }
  Later(chance_.Mostly(milliseconds(1), seconds(3)),
        [this, &machine, death] { Revive(machine, death); });
}

// One that was to die at a write but did not write dies now. It may die again while it recovers.
void Nemesis::Revive(Machine& machine, Death death) {
  if (machine.about_to_die()) {
    machine.Die(death);
  }
  if (machine.up()) {
    return;
  }
  if (chance_.OneIn(5)) {
    ++crashes_;
    machine.DieAtWrite(death, 1 + chance_.Below(10));
    Later(chance_.Mostly(milliseconds(1), seconds(1)),
          [this, &machine, death] { Revive(machine, death); });
  }
  machine.Start();
}

void Nemesis::Pause() {
  Machine& machine = Any();
  if (!machine.up() || machine.paused()) {
    return;
  }
  machine.Pause();
  Later(chance_.Mostly(milliseconds(20), seconds(4)),
        [&machine, incarnation = machine.incarnation()] {
          if (machine.up() && machine.paused() && machine.incarnation() == incarnation) {
            machine.Resume();
          }
        });
}

void Nemesis::SlowDisk() {
  Machine& machine = Any();
  machine.SlowDisk(chance_.OneIn(2) ? 20 : 300);
  Later(chance_.Mostly(milliseconds(100), seconds(2)), [&machine] { machine.SlowDisk(1); });
}

void Nemesis::BreakLog() {
  Machine& machine = Any();
  if (!machine.up()) {
    return;
  }
  world_.Note("break log", {machine.id().value()});
  machine.BreakLog();
  Later(chance_.Mostly(milliseconds(500), seconds(3)), [this, &machine] {
    if (machine.up() && machine.log_broken()) {
      ++crashes_;
      machine.Die(Death::kKill);
      Revive(machine, Death::kKill);
    }
  });
}

// --- the network ---------------------------------------------------------------------------------

void Nemesis::CutBetween(const std::vector<NodeId>& left, const std::vector<NodeId>& right,
                         bool both) {
  for (NodeId a : left) {
    for (NodeId b : right) {
      network_.Cut(a, b);
      if (both) {
        network_.Cut(b, a);
      }
    }
  }
}

void Nemesis::Partition() {
  if (machines_.size() < 2) {
    return;
  }
  std::vector<NodeId> nodes;
  for (auto& machine : machines_) {
    nodes.push_back(machine->id());
  }
  chance_.Shuffle(nodes);
  const auto at = nodes.begin() + static_cast<std::ptrdiff_t>(1 + chance_.Below(nodes.size() - 1));
  std::vector<NodeId> left(nodes.begin(), at);
  std::vector<NodeId> right(at, nodes.end());
  const uint64_t shape = chance_.Below(4);
  world_.Note("partition", {shape, left.size(), left.front().value()});
  switch (shape) {
    case 0: CutBetween(left, right, true); break;
    case 1: CutBetween(left, right, false); break;  // one way
    case 2:                                         // a bridge that reaches both sides
      (left.size() > right.size() ? left : right).pop_back();
      CutBetween(left, right, true);
      break;
    default:  // here and there
      for (NodeId a : nodes) {
        for (NodeId b : nodes) {
          if (a != b && chance_.OneIn(3)) {
            network_.Cut(a, b);
          }
        }
      }
  }
  Later(chance_.Mostly(milliseconds(50), seconds(4)), [this] { network_.HealCuts(); });
}

// A node goes on but cannot be reached, and the others hear that its process is dead: they elect at
// once, while it still believes that it leads. Often one of the voters dies in the middle of it.
void Nemesis::CutOff() {
  Machine& lonely = Any();
  world_.Note("cut off", {lonely.id().value()});
  for (auto& machine : machines_) {
    if (machine.get() == &lonely) {
      continue;
    }
    CutBetween({lonely.id()}, {machine->id()}, true);
    if (machine->speaks() && !machine->paused()) {
      machine->OnRefused(lonely.id());
    }
  }
  if (Machine& victim = Any(); &victim != &lonely && chance_.OneIn(2)) {
    Later(chance_.Mostly(milliseconds(1), milliseconds(30)), [this, &victim] {
      if (victim.up()) {
        ++crashes_;
        victim.Die(Death::kPowerCut);
        Later(chance_.Mostly(milliseconds(1), milliseconds(50)),
              [this, &victim] { Revive(victim, Death::kPowerCut); });
      }
    });
  }
  Later(chance_.Mostly(milliseconds(200), seconds(4)), [this] { network_.HealCuts(); });
}

// One half and a bit can elect, then the other half and the same bit: the machines that belong to
// both lose their power on the way and are back when the second half may elect. What they have
// promised to the first they must still know.
void Nemesis::Shift() {
  std::vector<Machine*> order = Shuffled();
  const size_t quorum = order.size() / 2 + 1;
  const size_t first_only = order.size() - quorum;
  std::vector<NodeId> firsts;
  std::vector<NodeId> lasts;
  std::vector<NodeId> both;
  std::vector<Machine*> losing;
  const uint64_t slow = chance_.OneIn(2) ? 300 : 30;
  for (size_t i = 0; i < order.size(); ++i) {
    (i < first_only ? firsts : i < quorum ? both : lasts).push_back(order[i]->id());
    if (i >= first_only && i < quorum) {
      losing.push_back(order[i]);
      order[i]->SlowDisk(slow);
    }
  }
  world_.Note("shift", {order.front()->id().value(), order.back()->id().value()});
  CutBetween(firsts, lasts, true);
  CutBetween(both, lasts, true);
  for (size_t i = 0; i < quorum; ++i) {
    for (NodeId lost : lasts) {
      if (order[i]->speaks() && !order[i]->paused()) {
        order[i]->OnRefused(lost);
      }
    }
  }
  Later(chance_.Mostly(milliseconds(2), milliseconds(200)), [this, firsts, both, lasts, losing] {
    network_.HealCuts();
    CutBetween(firsts, lasts, true);
    CutBetween(firsts, both, true);
    for (Machine* machine : losing) {
      machine->SlowDisk(1);
      if (machine->up()) {
        ++crashes_;
        machine->Die(Death::kPowerCut);
      }
      Revive(*machine, Death::kPowerCut);
    }
    Later(chance_.Mostly(milliseconds(50), seconds(4)), [this] { network_.HealCuts(); });
  });
}

// A machine comes back to logs that were cut without it, and asks in vain for a snapshot until its
// leader dies; the next one may have applied little of its log.
void Nemesis::SlowHeir() {
  std::vector<Machine*> order = Shuffled();
  auto leader = std::ranges::find_if(order, [](Machine* machine) {
    return machine->speaks() &&
           std::ranges::any_of(machine->node().Report(), &ReplicaReport::leads);
  });
  if (order.size() < 3 || leader == order.end()) {
    return;
  }
  std::iter_swap(leader, order.begin() + 2);
  Machine& behind = *order[0];
  Machine& slow = *order[1];
  Machine& victim = *order[2];
  if (!behind.up()) {
    return;
  }
  world_.Note("slow heir", {behind.id().value(), slow.id().value(), victim.id().value()});
  ++crashes_;
  behind.Die(Death::kKill);
  slow.SlowApply(10'000);
  Later(chance_.Between(milliseconds(300), milliseconds(800)), [this, order, &behind] {
    for (size_t i = 2; i < order.size(); ++i) {
      if (order[i]->speaks()) {
        order[i]->Post([this](SimNode& node) { node.CutLog(chance_); });
      }
    }
    Revive(behind, Death::kKill);
    network_.BreakCalls(100);
  });
  Later(chance_.Between(milliseconds(1000), milliseconds(1500)), [this, &slow, &victim] {
    network_.BreakCalls(0);
    if (victim.up()) {
      ++crashes_;
      victim.Die(Death::kKill);
    }
    Later(chance_.Between(milliseconds(500), seconds(2)), [this, &slow, &victim] {
      slow.SlowApply(1);
      Revive(victim, Death::kKill);
    });
  });
}

void Nemesis::LoseMessages() {
  network_.Lose(static_cast<uint32_t>(1 + chance_.Below(40)));
  Later(chance_.Mostly(milliseconds(50), seconds(2)), [this] { network_.Lose(0); });
}

void Nemesis::SlowLink() {
  const NodeId from = Any().id();
  const NodeId to = Any().id();
  network_.Slow(from, to, chance_.Mostly(milliseconds(10), milliseconds(800)));
  Later(chance_.Mostly(milliseconds(100), seconds(2)),
        [this, from, to] { network_.Slow(from, to, Duration()); });
}

void Nemesis::BreakCalls() {
  network_.BreakCalls(static_cast<uint32_t>(1 + chance_.Below(30)));
  Later(chance_.Mostly(milliseconds(50), seconds(2)), [this] { network_.BreakCalls(0); });
}

// --- what operators do ---------------------------------------------------------------------------

void Nemesis::Transfer() {
  if (Machine& machine = Any(); machine.speaks()) {
    machine.Post([this](SimNode& node) { node.TransferLeader(chance_); });
  }
}

void Nemesis::ChangeMembers() {
  if (Machine& machine = Any(); machine.speaks()) {
    machine.Post([this](SimNode& node) { node.ChangeMembers(chance_); });
  }
}

void Nemesis::CutLog() {
  if (Machine& machine = Any(); machine.speaks()) {
    machine.Post([this](SimNode& node) { node.CutLog(chance_); });
  }
}

void Nemesis::Reshape() {
  if (Machine& machine = Any(); machine.speaks()) {
    machine.Post([this](SimNode& node) { node.Reshape(chance_); });
  }
}

}  // namespace orrery::sim
