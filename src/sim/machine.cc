#include "sim/machine.h"

#include <filesystem>

#include "base/check.h"
#include "storage/watched_engine.h"

namespace orrery::sim {

namespace {

using std::chrono::microseconds;

// So many pieces of work in one instant are a loop.
constexpr size_t kPiecesMax = 1'000'000;
constexpr size_t kBlockingThreads = 4;

}  // namespace

Machine::Machine(World& world, Network& network, Witness& witness, MakeNode make_node, NodeId id,
                 std::vector<NodeId> nodes, MachineOptions options)
    : world_(world),
      network_(network),
      witness_(witness),
      make_node_(std::move(make_node)),
      id_(id),
      nodes_(std::move(nodes)),
      options_(std::move(options)),
      clock_(world, std::chrono::seconds(100) * id.value(), options_.wall_error, options_.skew_ppm),
      chance_(world.seed(), "machine", id.value()),
      disk_{storage::MakeMemoryDisk(), storage::MakeMemoryDisk()} {
  network.Add(*this);
}

Machine::~Machine() { TearDown(); }

Machine::Disk Machine::Disk::Copy() const {
  return {storage::CopyOfMemoryDisk(*log), storage::CopyOfMemoryDisk(*state)};
}

// --- the process ---------------------------------------------------------------------------------

void Machine::Start() {
  ORRERY_CHECK(!up());
  world_.Note("start", {id_.value(), ++incarnation_});
  std::filesystem::create_directories(options_.folder);
  log_broken_ = log_wrote_badly_ = false;
  random_ = std::make_unique<Chance>(world_.seed(), "node", id_.value() * 1000 + incarnation_);
  transport_ = network_.TransportOf(*this);
  time_ = std::make_unique<runtime::ManualTime>(clock_);
  workers_ = std::make_unique<runtime::WorkerPool>(options_.workers, 0, time_.get());
  auto open_log = [this](storage::EngineOptions options) { return Open(true, options); };
  auto open_state = [this](storage::EngineOptions options) { return Open(false, options); };
  node_ = make_node_({id_, nodes_, incarnation_, world_.seed(), *workers_, clock_, *random_,
                      *transport_, witness_, options_.folder, open_log, open_state});
  if (Status started = node_->Start(); !started.ok() && !dying_) {
    world_.Fail("node " + id_.ToString() + " cannot start: " + started.ToString());
  }
  Run();
}

void Machine::Die(Death death) {
  ORRERY_CHECK(up());
  world_.Note(death == Death::kKill ? "kill" : "power cut", {id_.value()});
  bool planned = left_.has_value();
  Disk left = planned ? std::move(*left_) : disk_.Copy();
  TearDown();
  disk_ = std::move(left);
  if (planned) {
    std::filesystem::remove_all(FilesFolder());
    if (std::filesystem::exists(LeftFolder())) {
      std::filesystem::rename(LeftFolder(), FilesFolder());
    }
  }
  if (death == Death::kPowerCut) {
    storage::CrashMemoryDisk(*disk_.log);
    storage::CrashMemoryDisk(*disk_.state);
  }
  left_.reset();
  dying_ = paused_ = false;
  die_at_write_ = 0;
  refuses_ = death == Death::kKill;
  network_.OnDown(*this, refuses_);
  if (told_of_death_) {
    told_of_death_();
  }
}

void Machine::TearDown() {
  if (workers_ != nullptr) {
    workers_->Abandon();
  }
  node_.reset();
  workers_.reset();
  time_.reset();
  transport_.reset();
  random_.reset();
  std::fill(std::begin(planned_), std::end(planned_), 0);
}

void Machine::DieAtWrite(Death death, size_t writes_from_now) {
  planned_death_ = death;
  die_at_write_ = writes_from_now;
}

void Machine::Pause() {
  world_.Note("pause", {id_.value()});
  paused_ = true;
}

void Machine::Resume() {
  world_.Note("resume", {id_.value()});
  paused_ = false;
  Run();
}

// --- its work ------------------------------------------------------------------------------------

void Machine::Run() {
  const size_t workers = options_.workers;
  size_t idle = 0;  // workers in a row that had nothing to do
  size_t pieces = 0;
  size_t at = 0;
  while (up() && !paused_ && !dying_ && idle < workers && !world_.failed()) {
    if (workers_->RunOne(at)) {
      idle = 0;
      at = chance_.Below(workers);
      if (++pieces > kPiecesMax) {
        world_.Fail("node " + id_.ToString() + " does not come to rest");
      }
    } else {
      ++idle;
      at = (at + 1) % workers;
    }
  }
  if (dying_) {
    // Not inside the process that dies.
    world_.After(Duration(), [this, incarnation = incarnation_] {
      if (dying_ && incarnation == incarnation_) {
        Die(planned_death_);
      }
    });
    return;
  }
  if (up() && !paused_) {
    PlanSteps();
  }
}

runtime::Worker& Machine::AnyWorker() { return workers_->at(chance_.Below(options_.workers)); }

void Machine::Post(std::function<void(SimNode&)> work) {
  AnyWorker().Post([this, work = std::move(work)] { work(*node_); });
  Run();
}

void Machine::Spawn(std::function<runtime::Task<>(SimNode&)> task) {
  runtime::Worker& worker = AnyWorker();
  worker.Spawn(task(*node_));
  Run();
}

void Machine::OnFrame(NodeId from, std::string frame) {
  auto deliver = [from, frame = std::move(frame)](SimNode& node) { node.OnFrame(from, frame); };
  Post(std::move(deliver));
}

void Machine::OnCall(NodeId from, std::string request, std::function<void(std::string)> answer) {
  auto run = [](SimNode& node, NodeId from, std::string request,
                std::function<void(std::string)> answer) -> runtime::Task<> {
    answer(co_await node.OnCall(from, std::move(request)));
  };
  Spawn([&](SimNode& node) { return run(node, from, std::move(request), std::move(answer)); });
}

void Machine::OnRefused(NodeId other) {
  Post([other](SimNode& node) { node.OnRefused(other); });
}

std::optional<Instant> Machine::NextWake() const {
  if (!up() || paused_ || dying_ || !time_->next()) {
    return std::nullopt;
  }
  return std::max(clock_.ToWorld(*time_->next()), world_.now());
}

void Machine::Wake() {
  if (time_->WakeOne()) {
    Run();
  }
}

// --- its disks -----------------------------------------------------------------------------------

std::unique_ptr<storage::Engine> Machine::Open(bool log, storage::EngineOptions options) {
  auto engine = storage::OpenMemoryEngine(log ? disk_.log : disk_.state, std::move(options));
  auto before = [this, log](storage::WatchedEngine::Call) { return BeforeWrite(log); };
  return std::make_unique<storage::WatchedEngine>(std::move(engine), before);
}

std::string Machine::FilesFolder() const { return options_.folder + "/snapshots"; }
std::string Machine::LeftFolder() const { return options_.folder + "/left"; }

// Files that are not on the disks above: the process goes on for a moment after it should have
// died, and may delete them.
void Machine::KeepFiles() {
  std::filesystem::remove_all(LeftFolder());
  if (std::filesystem::exists(FilesFolder())) {
    std::filesystem::copy(FilesFolder(), LeftFolder(),
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::create_hard_links);
  }
}

Status Machine::BeforeWrite(bool log) {
  if (die_at_write_ > 0 && --die_at_write_ == 0) {
    left_ = disk_.Copy();
    KeepFiles();
    dying_ = true;
  }
  if (!log || !log_broken_) {
    return Status::Ok();
  }
  if (std::exchange(log_wrote_badly_, true)) {
    return Status(Code::kUnavailable, "the log is broken");
  }
  return Status(Code::kUnknownOutcome, "the log broke");
}

Duration Machine::StepTime(Step step) {
  switch (step) {
    case kCommit: return chance_.Mostly(microseconds(50), microseconds(2000)) * disk_factor_;
    case kApply:
      return chance_.Mostly(microseconds(10), microseconds(300)) *
             std::max(disk_factor_, apply_factor_);
    case kBlocking: return chance_.Mostly(microseconds(20), microseconds(2000)) * disk_factor_;
    case kSteps: break;
  }
  return Duration();
}

// A step that finds nothing to do costs little, so one is always planned after the node has run.
void Machine::PlanSteps() {
  PlanStep(kCommit);
  PlanStep(kApply);
  while (planned_[kBlocking] < std::min(workers_->blocking_waiting(), kBlockingThreads)) {
    PlanStep(kBlocking);
  }
}

void Machine::PlanStep(Step step) {
  if (step != kBlocking && planned_[step] > 0) {
    return;
  }
  ++planned_[step];
  world_.After(StepTime(step), [this, step, incarnation = incarnation_] {
    if (up() && incarnation == incarnation_) {
      --planned_[step];
      if (!paused_ && !dying_) {
        DoStep(step);
      }
    }
  });
}

void Machine::DoStep(Step step) {
  bool did = false;
  switch (step) {
    case kCommit: did = node_->CommitStep(); break;
    case kApply: did = node_->ApplyStep(); break;
    case kBlocking:
      if (const size_t waiting = workers_->blocking_waiting(); waiting > 0) {
        workers_->RunBlocking(chance_.Below(std::min(waiting, kBlockingThreads)));
        did = true;
      }
      break;
    case kSteps: break;
  }
  if (did) {
    Run();
  }
}

void Step(World& world, const std::vector<std::unique_ptr<Machine>>& machines) {
  std::optional<Instant> next = world.next();
  Machine* sleeper = nullptr;
  for (const auto& machine : machines) {
    const std::optional<Instant> wake = machine->NextWake();
    if (wake && (!next || *wake < *next)) {
      next = wake;
      sleeper = machine.get();
    }
  }
  ORRERY_CHECK(next);
  world.MoveTo(*next);
  if (sleeper != nullptr) {
    sleeper->Wake();
  } else {
    world.RunOne();
  }
}

}  // namespace orrery::sim
