#include <filesystem>

#include <gtest/gtest.h>

#include "sim/simulation.h"
#include "sim/toy_node.h"

namespace orrery::sim {
namespace {

SimOutcome RunToy(ToyBug bug, uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  options.make_node = ToyCluster(bug);
  options.folder = std::filesystem::temp_directory_path() / "orrery_sim_test";
  return Simulate(options);
}

// The first failure that a bug leads to.
std::string FailureOf(ToyBug bug) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    if (SimOutcome outcome = RunToy(bug, seed); !outcome.failure.empty()) {
      return outcome.failure;
    }
  }
  return "none";
}

bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SimTest, ACorrectClusterHasNoFailures) {
  Totals totals;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SimOutcome outcome = RunToy(ToyBug::kNone, seed);
    EXPECT_EQ(outcome.failure, "") << "seed " << seed;
    totals.Add(outcome.totals);
  }
  EXPECT_GT(totals.writes, 1000u);
  EXPECT_GT(totals.reads, 1000u);
  EXPECT_GT(totals.unknown, 100u);
  EXPECT_GT(totals.crashes, 100u);
}

TEST(SimTest, ASeedRunsTheSameWayEachTime) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const uint64_t trace = RunToy(ToyBug::kNone, seed).trace;
    EXPECT_EQ(RunToy(ToyBug::kNone, seed).trace, trace) << "seed " << seed;
    EXPECT_NE(RunToy(ToyBug::kNone, seed + 100).trace, trace);
  }
}

TEST(SimTest, WritesThatACrashLosesAreFound) {
  // As another entry in its place, or by a client that has seen more than is there.
  const std::string failure = FailureOf(ToyBug::kAcknowledgeEarly);
  EXPECT_TRUE(Says(failure, "committed entries differ") || Says(failure, "a Strong read"))
      << failure;
}

TEST(SimTest, WritesThatAreForgottenAreFound) {
  const std::string failure = FailureOf(ToyBug::kForgetWrite);
  EXPECT_TRUE(Says(failure, "lost") || Says(failure, "linearizable") || Says(failure, "session"))
      << failure;
}

TEST(SimTest, StaleReadsAreFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kReadFollowers), "a Strong read"));
}

TEST(SimTest, BrokenSessionsAreFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kIgnoreSession), "session token"));
}

TEST(SimTest, ReadsBeyondTheBoundOfStalenessAreFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kIgnoreBound), "bound of staleness"));
}

TEST(SimTest, IgnoredEtagsAreFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kIgnoreEtag), "linearizable"));
}

TEST(SimTest, DivergenceIsFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kApplyOther), "committed entries differ"));
}

TEST(SimTest, EntriesThatAreLeftOutAreFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kSkipEntry), "left out"));
}

TEST(SimTest, TwoLeadersAreFound) { EXPECT_TRUE(Says(FailureOf(ToyBug::kAllLead), "two leaders")); }

TEST(SimTest, AReplicaThatNeverCatchesUpIsFound) {
  EXPECT_TRUE(Says(FailureOf(ToyBug::kNeverResend), "not quiet"));
}

}  // namespace
}  // namespace orrery::sim
