#include "sim/seed_runner.h"

#include <csignal>
#include <cstring>
#include <type_traits>

#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace orrery::sim {

namespace {

constexpr unsigned kSecondsMax = 120;    // of real time
constexpr size_t kReasonMax = 32 << 10;  // fits into a pipe

// What a child writes before it ends: trace, totals, failure.
static_assert(std::is_trivially_copyable_v<Totals>);

void WriteAll(int to, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = write(to, bytes.data(), bytes.size());
    ORRERY_CHECK(wrote > 0);
    bytes.remove_prefix(static_cast<size_t>(wrote));
  }
}

std::string ReadAll(int from) {
  std::string all;
  char some[4096];
  for (ssize_t got; (got = read(from, some, sizeof(some))) > 0;) {
    all.append(some, static_cast<size_t>(got));
  }
  return all;
}

std::string Encode(const SimOutcome& outcome) {
  std::string bytes(sizeof(outcome.trace) + sizeof(Totals), '\0');
  std::memcpy(bytes.data(), &outcome.trace, sizeof(outcome.trace));
  std::memcpy(bytes.data() + sizeof(outcome.trace), &outcome.totals, sizeof(Totals));
  return bytes + outcome.failure.substr(0, kReasonMax);
}

SimOutcome Decode(const std::string& bytes, int status) {
  SimOutcome outcome;
  const size_t head = sizeof(outcome.trace) + sizeof(Totals);
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    outcome.failure = signal == SIGALRM ? "took longer than " + std::to_string(kSecondsMax) + " s"
                                        : std::string("the process ended: ") + strsignal(signal);
  } else if (WEXITSTATUS(status) != 0 || bytes.size() < head) {
    outcome.failure = "the process ended with code " + std::to_string(WEXITSTATUS(status));
  } else {
    std::memcpy(&outcome.trace, bytes.data(), sizeof(outcome.trace));
    std::memcpy(&outcome.totals, bytes.data() + sizeof(outcome.trace), sizeof(Totals));
    outcome.failure = bytes.substr(head);
  }
  return outcome;
}

}  // namespace

SeedRunner::~SeedRunner() {
  for (const auto& [pid, child] : children_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    close(child.result);
  }
}

void SeedRunner::Start(uint64_t seed) {
  int ends[2];
  ORRERY_CHECK(pipe(ends) == 0);
  const pid_t pid = fork();
  ORRERY_CHECK(pid >= 0);
  if (pid == 0) {
    close(ends[0]);
    alarm(kSecondsMax);
    WriteAll(ends[1], Encode(run_(seed)));
    _exit(0);
  }
  close(ends[1]);
  children_[pid] = {seed, ends[0]};
}

SeedResult SeedRunner::Wait() {
  int status = 0;
  const pid_t pid = waitpid(-1, &status, 0);
  const auto found = children_.find(pid);
  ORRERY_CHECK(found != children_.end());
  const Child child = found->second;
  children_.erase(found);
  SeedResult result{child.seed, Decode(ReadAll(child.result), status)};
  close(child.result);
  return result;
}

}  // namespace orrery::sim
