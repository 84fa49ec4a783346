#include "sim/simulation.h"

#include <map>
#include <memory>
#include <vector>

#include "sim/machine.h"
#include "sim/nemesis.h"
#include "sim/network.h"
#include "sim/world.h"

namespace orrery::sim {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kStepsMax = 20'000'000;
constexpr Duration kLook = milliseconds(20);  // how often a condition is looked at

class Simulation {
 public:
  explicit Simulation(const SimOptions& options);
  SimOutcome Run();

 private:
  void RunFor(Duration how_long);
  // Fails with `what` if it does not come to be.
  void RunUntil(Duration longest, const std::string& what, std::function<bool()> condition);
  void SetUp();
  bool Quiet();
  bool GroupIsQuiet(GroupId group, const std::map<NodeId, ReplicaReport>& replicas);

  World world_;
  Witness witness_;
  Network network_;
  std::vector<std::unique_ptr<Machine>> machines_;
  Nemesis nemesis_;
  Workload workload_;
  const SimOptions& options_;
  std::string unrest_;  // why it is not quiet
  size_t steps_ = 0;
};

Simulation::Simulation(const SimOptions& options)
    : world_(options.seed, options.verbose),
      witness_(world_),
      network_(world_, Nemesis::NetworkOf(options.seed)),
      nemesis_(world_, network_, machines_),
      workload_(world_, witness_, machines_, options.workload),
      options_(options) {
  const size_t count =
      options.nodes != 0 ? options.nodes : 3 + Chance(options.seed, "nodes").Below(3);
  std::vector<NodeId> nodes;
  for (uint32_t i = 1; i <= count; ++i) {
    nodes.push_back(NodeId(i));
  }
  for (NodeId id : nodes) {
    MachineOptions machine = Nemesis::MachineOf(options.seed, id);
    machine.folder = options.folder + "/node" + id.ToString();
    machines_.push_back(std::make_unique<Machine>(world_, network_, witness_, options.make_node, id,
                                                  nodes, machine));
    machines_.back()->OnDeath([this, id] { workload_.OnDeath(id); });
  }
}

SimOutcome Simulation::Run() {
  SetUp();
  workload_.Start();
  nemesis_.Start();
  RunFor(options_.faults);
  if (!world_.failed()) {
    nemesis_.Heal();
  }
  RunFor(seconds(1));
  workload_.Stop();
  RunUntil(seconds(30), "clients wait", [this] { return workload_.idle(); });
  RunUntil(seconds(90), "not quiet", [this] { return Quiet(); });
  if (!world_.failed()) {
    workload_.StartLastCalls();
  }
  RunUntil(seconds(60), "items cannot be read or written",
           [this] { return workload_.last_calls_done(); });
  if (!world_.failed()) {
    workload_.Check();
    witness_.CheckNewer();
  }
  witness_.totals().crashes = nemesis_.crashes();
  return {world_.failure(), world_.hash(), witness_.totals()};
}

void Simulation::SetUp() {
  for (auto& machine : machines_) {
    machine->Start();
  }
  bool done = false;
  Status last;
  auto run = [](SimNode& node, bool& done, Status& last) -> runtime::Task<> {
    for (last = co_await node.SetUp(); !last.ok(); last = co_await node.SetUp()) {
      co_await runtime::Sleep(milliseconds(50));
    }
    done = true;
  };
  machines_.front()->Spawn([&](SimNode& node) { return run(node, done, last); });
  RunUntil(seconds(60), "not set up", [&] {
    unrest_ = last.ToString();
    return done;
  });
}

// --- time ----------------------------------------------------------------------------------------

void Simulation::RunFor(Duration how_long) {
  bool over = false;
  world_.After(how_long, [&over] { over = true; });
  while (!over && !world_.failed()) {
    Step(world_, machines_);
    if (++steps_ > kStepsMax) {
      world_.Fail("too many steps");
    }
  }
}

void Simulation::RunUntil(Duration longest, const std::string& what,
                          std::function<bool()> condition) {
  const Instant deadline = world_.now() + longest;
  unrest_.clear();
  while (!world_.failed() && !condition()) {
    if (world_.now() >= deadline) {
      world_.Fail(what + (unrest_.empty() ? "" : ": " + unrest_));
      return;
    }
    RunFor(kLook);
  }
}

// --- rest ----------------------------------------------------------------------------------------

bool Simulation::Quiet() {
  std::map<GroupId, std::map<NodeId, ReplicaReport>> groups;
  for (auto& machine : machines_) {
    if (!machine->up()) {
      unrest_ = "node " + machine->id().ToString() + " is down";
      return false;
    }
    if (unrest_ = machine->node().Unfinished(); !unrest_.empty()) {
      unrest_ = "node " + machine->id().ToString() + ": " + unrest_;
      return false;
    }
    for (const ReplicaReport& replica : machine->node().Report()) {
      groups[replica.group][machine->id()] = replica;
    }
  }
  for (const auto& [group, replicas] : groups) {
    if (!GroupIsQuiet(group, replicas)) {
      return false;
    }
  }
  return true;
}

bool Simulation::GroupIsQuiet(GroupId group, const std::map<NodeId, ReplicaReport>& replicas) {
  const Lsn last = witness_.Last(group);
  size_t leaders = 0;
  bool behind = false;
  std::string shown = "group " + group.ToString() + " should be at " + last.ToString() + ":";
  for (const auto& [node, replica] : replicas) {
    leaders += replica.leads;
    behind =
        behind || replica.applied < last || replica.applied != replicas.begin()->second.applied;
    shown += " node " + node.ToString() + (replica.leads ? " leads" : "") + " at " +
             replica.applied.ToString() + " in term " + std::to_string(replica.term) + ";";
  }
  if (leaders != 1 || behind) {
    unrest_ = shown;
    return false;
  }
  std::optional<uint64_t> hash;
  for (auto& machine : machines_) {
    if (!replicas.contains(machine->id())) {
      continue;
    }
    const uint64_t here = machine->node().StateHash(group);
    if (hash.value_or(here) != here) {
      world_.Fail("replicas differ: " + shown + " node " + machine->id().ToString() +
                  " has other items");
      return false;
    }
    hash = here;
  }
  return true;
}

}  // namespace

SimOutcome Simulate(const SimOptions& options) {
  auto simulation = std::make_unique<Simulation>(options);
  return simulation->Run();
}

}  // namespace orrery::sim
