// Machine: where one node of the simulated cluster runs: its disks and clock, which outlive the
// process, and its workers, which do not.
//
// A process that is killed loses nothing that it has written; with the power goes what was not
// synced or flushed. Either can happen in the middle of the node's work with its disks: then the
// disks stay as they were before one of its writes, and what the process did after that never
// happened.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/chance.h"
#include "sim/network.h"
#include "sim/node.h"
#include "sim/sim_clock.h"
#include "sim/world.h"

namespace orrery::sim {

enum class Death : uint8_t { kKill, kPowerCut };

struct MachineOptions {
  size_t workers = 2;
  int64_t skew_ppm = 0;
  Duration wall_error{};
  std::string folder;
};

class Machine final : public Station {
 public:
  Machine(World& world, Network& network, Witness& witness, MakeNode make_node, NodeId id,
          std::vector<NodeId> nodes, MachineOptions options);
  ~Machine() override;

  void Start();  // REQUIRES: !up()
  void Die(Death death);
  // Dies in the middle of one of the next writes to a disk, if there are so many.
  void DieAtWrite(Death death, size_t writes_from_now);
  bool about_to_die() const { return up() && (die_at_write_ > 0 || dying_); }
  void Pause();
  void Resume();
  // How much longer than usual its disks take.
  void SlowDisk(uint64_t factor) { disk_factor_ = factor; }
  void SlowApply(uint64_t factor) { apply_factor_ = factor; }  // while the log goes on
  // From now on the log cannot be written, until the next start.
  void BreakLog() { log_broken_ = true; }
  bool log_broken() const { return log_broken_; }

  // Runs `work` on one of the node's workers. REQUIRES: up()
  void Post(std::function<void(SimNode&)> work);
  void Spawn(std::function<runtime::Task<>(SimNode&)> task);
  // When the first of its sleepers wants to wake.
  std::optional<Instant> NextWake() const;
  void Wake();
  SimNode& node() { return *node_; }
  bool paused() const { return paused_; }
  // Told whenever a process has ended.
  void OnDeath(std::function<void()> told) { told_of_death_ = std::move(told); }

  // Station
  NodeId id() const override { return id_; }
  bool up() const override { return node_ != nullptr; }
  bool refuses() const override { return !up() && refuses_; }
  bool speaks() const override { return up() && !dying_; }
  uint64_t incarnation() const override { return incarnation_; }
  void OnFrame(NodeId from, std::string frame) override;
  void OnCall(NodeId from, std::string request, std::function<void(std::string)> answer) override;
  void OnRefused(NodeId node) override;
  void Run() override;

 private:
  struct Disk {
    std::shared_ptr<storage::MemoryDisk> log;
    std::shared_ptr<storage::MemoryDisk> state;
    Disk Copy() const;
  };
  enum Step : uint8_t { kCommit, kApply, kBlocking, kSteps };

  std::unique_ptr<storage::Engine> Open(bool log, storage::EngineOptions options);
  std::string FilesFolder() const;
  std::string LeftFolder() const;
  void KeepFiles();
  Status BeforeWrite(bool log);
  void PlanSteps();
  void PlanStep(Step step);
  void DoStep(Step step);
  Duration StepTime(Step step);
  void TearDown();
  runtime::Worker& AnyWorker();

  World& world_;
  Network& network_;
  Witness& witness_;
  const MakeNode make_node_;
  const NodeId id_;
  const std::vector<NodeId> nodes_;
  const MachineOptions options_;
  const SimClock clock_;
  Chance chance_;
  std::function<void()> told_of_death_;

  Disk disk_;
  bool refuses_ = false;
  bool paused_ = false;
  uint64_t incarnation_ = 0;
  uint64_t disk_factor_ = 1;
  uint64_t apply_factor_ = 1;
  bool log_broken_ = false;
  bool log_wrote_badly_ = false;  // the first failure has an unknown outcome
  // Death in the middle of a write:
  size_t die_at_write_ = 0;  // 0: not planned
  Death planned_death_ = Death::kKill;
  std::optional<Disk> left_;  // what the disks were then; the process is about to end
  bool dying_ = false;

  // Of the process:
  std::unique_ptr<Chance> random_;
  std::unique_ptr<replication::Transport> transport_;
  std::unique_ptr<runtime::ManualTime> time_;
  std::unique_ptr<runtime::WorkerPool> workers_;
  std::unique_ptr<SimNode> node_;
  size_t planned_[kSteps] = {};  // steps of its disks that are on their way
};

// Moves time to whatever comes next, and lets it happen.
void Step(World& world, const std::vector<std::unique_ptr<Machine>>& machines);

}  // namespace orrery::sim
