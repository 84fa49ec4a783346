// orrery_sim: runs a simulated cluster from many seeds and names those that fail.
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include "base/log.h"
#include "sim/clusters.h"
#include "sim/seed_runner.h"
#include "sim/simulation.h"

namespace orrery::sim {
namespace {

constexpr const char* kUsage = R"(usage: orrery_sim [options]

  --seeds N       how many seeds (1000)
  --from S        the first (1)
  --jobs J        at a time (one per core)
  --seconds T     of faults, in virtual time (6)
  --nodes N       of the cluster (three to five, by seed)
  --cluster NAME  what is simulated
  --mutant NAME   with this fault planted
  --mutants       each mutant until a seed finds it, --seeds at most; fails if one survives
  --twice         each seed twice: both runs must be the same
  --verbose       everything that happens
)";

struct Settings {
  uint64_t seeds = 1000;
  uint64_t from = 1;
  size_t jobs = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  uint64_t seconds = 6;
  size_t nodes = 0;
  const ClusterKind* cluster = &ClusterKinds().front();
  std::string mutant;
  bool mutants = false;
  bool twice = false;
  bool verbose = false;
};

bool ReadNumber(const std::string& text, uint64_t* number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, *number).ptr == end && !text.empty();
}

// Nothing: the arguments are wrong.
std::optional<Settings> ReadSettings(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--mutants") {
      settings.mutants = true;
    } else if (name == "--twice") {
      settings.twice = true;
    } else if (name == "--verbose") {
      settings.verbose = true;
    } else {
      if (++i == arguments.size()) {
        return std::nullopt;
      }
      const std::string& value = arguments[i];
      uint64_t number = 0;
      if (name == "--mutant") {
        settings.mutant = value;
      } else if (name == "--cluster") {
        settings.cluster = nullptr;
        for (const ClusterKind& kind : ClusterKinds()) {
          settings.cluster = kind.name == value ? &kind : settings.cluster;
        }
      } else if (!ReadNumber(value, &number)) {
        return std::nullopt;
      } else if (name == "--seeds") {
        settings.seeds = number;
      } else if (name == "--from") {
        settings.from = number;
      } else if (name == "--jobs") {
        settings.jobs = number;
      } else if (name == "--seconds") {
        settings.seconds = number;
      } else if (name == "--nodes") {
        settings.nodes = number;
      } else {
        return std::nullopt;
      }
    }
  }
  const bool good = settings.cluster != nullptr && settings.jobs > 0;
  return good ? std::optional(settings) : std::nullopt;
}

// A folder for files that are made on the way, in memory where that is possible.
class Folder {
 public:
  Folder() {
    const bool shared = access("/dev/shm", W_OK) == 0;
    path_ = shared ? "/dev/shm" : std::filesystem::temp_directory_path().string();
    path_ += "/orrery_sim." + std::to_string(getpid());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

SimOutcome RunSeed(const Settings& settings, const std::string& mutant, const std::string& folder,
                   uint64_t seed) {
  log::SetLevel(settings.verbose ? log::Level::kDebug : log::Level::kOff);
  SimOptions options;
  options.seed = seed;
  options.make_node = settings.cluster->make(mutant);
  options.folder = folder + "/" + std::to_string(seed);
  options.nodes = settings.nodes;
  options.faults = std::chrono::seconds(settings.seconds);
  options.verbose = settings.verbose;
  std::error_code ignored;
  SimOutcome outcome = Simulate(options);
  std::filesystem::remove_all(options.folder, ignored);
  if (settings.twice && outcome.failure.empty()) {
    options.make_node = settings.cluster->make(mutant);
    const SimOutcome again = Simulate(options);
    std::filesystem::remove_all(options.folder, ignored);
    if (again.trace != outcome.trace) {
      outcome.failure = "the second run went another way " + again.failure;
    }
  }
  return outcome;
}

std::string ReplayCommand(const Settings& settings, const std::string& mutant, uint64_t seed) {
  std::string command = "./dev sim --seeds 1 --from " + std::to_string(seed);
  command += " --cluster " + std::string(settings.cluster->name);
  command += " --seconds " + std::to_string(settings.seconds);
  command += settings.nodes != 0 ? " --nodes " + std::to_string(settings.nodes) : "";
  command += !mutant.empty() ? " --mutant " + mutant : "";
  return command + (settings.twice ? " --twice" : "") + " --verbose";
}

struct Tally {
  uint64_t passed = 0;
  uint64_t failed = 0;
  Totals totals;
  std::optional<SeedResult> failure;  // the first that ended
};

Tally RunSeeds(const Settings& settings, const std::string& mutant, const std::string& folder,
               bool stop_at_failure) {
  SeedRunner runner(settings.jobs,
                    [&](uint64_t seed) { return RunSeed(settings, mutant, folder, seed); });
  Tally tally;
  uint64_t started = 0;
  while (!(stop_at_failure && tally.failed > 0)) {
    if (started < settings.seeds && !runner.full()) {
      runner.Start(settings.from + started++);
      continue;
    }
    if (runner.empty()) {
      break;
    }
    SeedResult result = runner.Wait();
    tally.totals.Add(result.outcome.totals);
    if (result.outcome.failure.empty()) {
      ++tally.passed;
      continue;
    }
    ++tally.failed;
    if (!stop_at_failure) {
      std::printf("seed %lu FAILED: %s\n  replay: %s\n", result.seed,
                  result.outcome.failure.c_str(),
                  ReplayCommand(settings, mutant, result.seed).c_str());
      std::fflush(stdout);
    }
    if (!tally.failure) {
      tally.failure = std::move(result);
    }
  }
  return tally;
}

// Each mutant must be found.
bool RunMutants(const Settings& settings, const std::string& folder) {
  size_t found = 0;
  size_t survived = 0;
  for (std::string_view name : settings.cluster->mutants) {
    const std::string mutant(name);
    const Tally tally = RunSeeds(settings, mutant, folder, true);
    if (tally.failed > 0) {
      ++found;
      std::string reason = tally.failure->outcome.failure;
      std::printf("found     %s: seed %lu, after %lu: %s\n", mutant.c_str(), tally.failure->seed,
                  tally.passed, reason.substr(0, reason.find('\n')).c_str());
    } else {
      ++survived;
      std::printf("SURVIVED  %s: %lu seeds\n", mutant.c_str(), tally.passed);
    }
    std::fflush(stdout);
  }
  std::printf("%zu passed, %zu failed\n", found, survived);
  return found > 0 && survived == 0;  // a run without mutants shows nothing
}

bool RunAll(const Settings& settings, const std::string& folder) {
  const Tally tally = RunSeeds(settings, settings.mutant, folder, false);
  const Totals& totals = tally.totals;
  std::printf(
      "%lu entries, %lu writes acknowledged, %lu unknown, %lu reads; %lu crashes, %lu elections, "
      "%lu snapshots installed, %lu member changes, %lu heirs of splits and merges; %lu histories "
      "too hard to check\n",
      totals.entries, totals.writes, totals.unknown, totals.reads, totals.crashes, totals.elections,
      totals.installs, totals.changes, totals.heirs, totals.too_hard);
  std::printf("%lu passed, %lu failed\n", tally.passed, tally.failed);
  return tally.failed == 0;
}

int Main(const std::vector<std::string>& arguments) {
  const std::optional<Settings> settings = ReadSettings(arguments);
  if (!settings) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  const auto& mutants = settings->cluster->mutants;
  if (!settings->mutant.empty() &&
      std::find(mutants.begin(), mutants.end(), settings->mutant) == mutants.end()) {
    std::fprintf(stderr, "no such mutant, or built without mutants: %s\n",
                 settings->mutant.c_str());
    return 2;
  }
  const Folder folder;
  const bool good =
      settings->mutants ? RunMutants(*settings, folder.path()) : RunAll(*settings, folder.path());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace orrery::sim

int main(int count, char** arguments) {
  return orrery::sim::Main(std::vector<std::string>(arguments + 1, arguments + count));
}
