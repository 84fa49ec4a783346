#include "partition/outcome_memory.h"

#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"

namespace orrery::partition {
namespace {

using storage::OperationId;

constexpr int64_t kSecond = 1'000'000;

// An entry of a log.
struct Logged {
  OperationId id;
  uint64_t settled = 0;
  uint64_t lsn = 0;
  int64_t micros = 0;
};

void Feed(OutcomeMemory& memory, const Logged& entry) {
  memory.Remember(entry.id, entry.settled, Lsn(entry.lsn), "r" + std::to_string(entry.lsn),
                  {entry.micros});
}

OutcomeMemory MemoryOf(const std::vector<Logged>& log) {
  OutcomeMemory memory;
  for (const Logged& entry : log) {
    Feed(memory, entry);
  }
  return memory;
}

TEST(OutcomeMemoryTest, WhatHasSettledIsForgottenAndRefused) {
  OutcomeMemory memory = MemoryOf({{{7, 1}, 1, 1}, {{7, 2}, 1, 2}, {{8, 1}, 1, 3}});
  EXPECT_EQ(memory.size(), 3u);
  EXPECT_FALSE(memory.Refuses({7, 1}));
  Feed(memory, {{7, 5}, 3, 4});
  EXPECT_EQ(memory.Recall({7, 1}), nullptr);
  EXPECT_EQ(memory.Recall({7, 2}), nullptr);
  EXPECT_TRUE(memory.Refuses({7, 1}));
  EXPECT_TRUE(memory.Refuses({7, 2}));
  EXPECT_FALSE(memory.Refuses({7, 3})) << "in flight";
  EXPECT_FALSE(memory.Refuses({7, 6})) << "new";
  ASSERT_NE(memory.Recall({8, 1}), nullptr) << "another instance's";
  EXPECT_EQ(memory.Recall({8, 1})->result, "r3");
}

TEST(OutcomeMemoryTest, WhatIsInFlightIsRememberedWhateverElseSettles) {
  OutcomeMemory memory = MemoryOf({{{7, 3}, 1, 1}});
  for (uint64_t i = 4; i < 1000; ++i) {
    Feed(memory, {{7, i}, 3, i});
  }
  ASSERT_NE(memory.Recall({7, 3}), nullptr);
  Feed(memory, {{7, 1000}, 1000, 1000});
  EXPECT_EQ(memory.size(), 1u);
}

TEST(OutcomeMemoryTest, WhoSaysNothingIsRememberedForItsTimeAndThenNotRefused) {
  OutcomeMemory memory = MemoryOf({{{7, 5}, 0, 1, 0}});
  Feed(memory, {{9, 1}, 0, 2, 20 * kSecond});
  EXPECT_NE(memory.Recall({7, 5}), nullptr);
  Feed(memory, {{9, 2}, 0, 3, 20 * kSecond + 1});
  EXPECT_EQ(memory.Recall({7, 5}), nullptr);
  EXPECT_FALSE(memory.Refuses({7, 5}));
  EXPECT_EQ(memory.instances(), 0u);
}

TEST(OutcomeMemoryTest, WhatIsForgottenOfAnInstanceByAgeIsRefused) {
  OutcomeMemory memory = MemoryOf({{{7, 5}, 1, 1, 0}, {{9, 1}, 1, 2, 21 * kSecond}});
  EXPECT_EQ(memory.Recall({7, 5}), nullptr);
  EXPECT_TRUE(memory.Refuses({7, 5})) << "it was done, and would be done again";
  EXPECT_FALSE(memory.Refuses({7, 6}));
}

TEST(OutcomeMemoryTest, WhatIsRememberedIsNotRefusedThoughALaterOneWasForgotten) {
  OutcomeMemory memory = MemoryOf({{{7, 5}, 1, 1, 0}, {{7, 4}, 1, 2, 15 * kSecond}});
  Feed(memory, {{9, 1}, 1, 3, 21 * kSecond});
  EXPECT_TRUE(memory.Refuses({7, 5}));
  EXPECT_NE(memory.Recall({7, 4}), nullptr);
  EXPECT_FALSE(memory.Refuses({7, 4}));
}

TEST(OutcomeMemoryTest, ThereAreLimits) {
  OutcomeMemory memory;
  for (uint64_t i = 1; i <= 60'000; ++i) {
    Feed(memory, {{7, i}, 1, i, 0});
  }
  EXPECT_EQ(memory.size(), 50'000u);
  EXPECT_TRUE(memory.Refuses({7, 10'000}));
  EXPECT_FALSE(memory.Refuses({7, 10'001}));
  OutcomeMemory crowd;
  for (uint64_t i = 1; i <= 5000; ++i) {
    Feed(crowd, {{i, 2}, 2, i, static_cast<int64_t>(i)});
  }
  EXPECT_EQ(crowd.instances(), 4096u);
  EXPECT_TRUE(crowd.Refuses({5000, 1}));
  EXPECT_FALSE(crowd.Refuses({1, 1})) << "the oldest ones were forgotten";
  Feed(crowd, {{6000, 2}, 2, 6000, 2 * 3600 * kSecond});
  EXPECT_EQ(crowd.instances(), 1u) << "nothing was heard of the others for an hour";
}

TEST(OutcomeMemoryTest, ItComesBackFromItsBytes) {
  OutcomeMemory memory = MemoryOf({{{7, 1}, 1, 1, 5}, {{7, 2}, 2, 2, 6}, {{8, 9}, 0, 3, 7}});
  OutcomeMemory read;
  EXPECT_EQ(read.Decode(memory.Encode({99})), WallTime{99});
  EXPECT_EQ(read.Encode({99}), memory.Encode({99}));
  EXPECT_TRUE(read.Refuses({7, 1}));
  ASSERT_NE(read.Recall({7, 2}), nullptr);
  EXPECT_EQ(read.Recall({7, 2})->lsn, Lsn(2));
  EXPECT_EQ(read.Recall({8, 9})->result, "r3");
  Feed(read, {{7, 3}, 3, 4, 8});
  EXPECT_EQ(read.Recall({7, 2}), nullptr);
}

TEST(OutcomeMemoryTest, WithoutInstancesItIsWrittenAsOlderNodesReadIt) {
  OutcomeMemory memory = MemoryOf({{{7, 1}, 0, 3, 5}});
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(1);
  for (uint64_t part : {99, 7, 1, 3, 5}) {
    encoder.U64(part);
  }
  encoder.Bytes("r3");
  EXPECT_EQ(memory.Encode({99}), bytes);
  OutcomeMemory read = MemoryOf({{{8, 1}, 0, 1, 1}});
  EXPECT_EQ(read.Decode(bytes), WallTime{99});
  EXPECT_NE(read.Recall({7, 1}), nullptr);
  EXPECT_NE(read.Recall({8, 1}), nullptr) << "it does not tell how new it is";
}

TEST(OutcomeMemoryTest, MalformedBytesChangeNothing) {
  const std::string bytes = MemoryOf({{{7, 1}, 1, 1, 5}, {{7, 2}, 1, 2, 6}}).Encode({99});
  OutcomeMemory memory = MemoryOf({{{8, 1}, 1, 1, 1}});
  const std::string before = memory.Encode({});
  std::string other = bytes;
  other[0] = 3;
  EXPECT_FALSE(memory.Decode(other));
  EXPECT_FALSE(memory.Decode(""));
  EXPECT_FALSE(memory.Decode(std::string_view(bytes).substr(0, bytes.size() - 1)));
  EXPECT_FALSE(memory.Decode(std::string_view(bytes).substr(0, 20)));
  EXPECT_EQ(memory.Encode({}), before);
}

TEST(OutcomeMemoryTest, OfTwoFormsOfOnePartitionTheLaterCounts) {
  OutcomeMemory memory = MemoryOf({{{7, 1}, 1, 1}, {{8, 4}, 0, 2}});
  const std::string early = memory.Encode({});
  Feed(memory, {{7, 2}, 2, 3});
  const std::string late = memory.Encode({});
  for (bool early_first : {true, false}) {
    OutcomeMemory read;
    read.Decode(early_first ? early : late);
    read.Decode(early_first ? late : early);
    EXPECT_EQ(read.Encode({}), late);
  }
}

TEST(OutcomeMemoryTest, AMergeHasTheOutcomesOfBothAndTheHigherMarks) {
  OutcomeMemory left = MemoryOf({{{7, 4}, 3, 10, 100}, {{9, 1}, 0, 11, 300}});
  OutcomeMemory right = MemoryOf({{{7, 6}, 5, 5, 200}, {{8, 2}, 2, 6, 400}});
  OutcomeMemory heir;
  EXPECT_EQ(heir.Decode(OutcomeMemory::Join(left.Encode({12}), right.Encode({34}))), WallTime{34});
  for (OperationId id : {OperationId{7, 4}, {9, 1}, {7, 6}, {8, 2}}) {
    EXPECT_NE(heir.Recall(id), nullptr) << id.high << " " << id.low;
  }
  EXPECT_TRUE(heir.Refuses({7, 2}));
  EXPECT_TRUE(heir.Refuses({7, 3})) << "ended, says the right one";
  EXPECT_FALSE(heir.Refuses({7, 5}));
  EXPECT_TRUE(heir.Refuses({8, 1}));
  Feed(heir, {{7, 7}, 7, 12, 500});
  EXPECT_EQ(heir.Recall({7, 4}), nullptr);
  EXPECT_EQ(heir.Recall({7, 6}), nullptr);
  EXPECT_EQ(OutcomeMemory::Join("", right.Encode({34})), right.Encode({34}));
  EXPECT_EQ(OutcomeMemory::Join(left.Encode({34}), ""), left.Encode({34}));
}

// A log as routers make it, with limits that bite: gaps in time, tries without a word.
std::vector<Logged> SomeLog(uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Logged> log;
  std::vector<std::vector<uint64_t>> flying(3);
  std::vector<uint64_t> next(3, 1);
  int64_t now = 0;
  for (uint64_t lsn = 1; lsn <= 400; ++lsn) {
    now += random.Next() % 40 == 0 ? static_cast<int64_t>(15 * kSecond) : 1000;
    const size_t who = random.Next() % 4;
    if (who == 3) {
      log.push_back({{random.Next(), random.Next()}, 0, lsn, now});
      continue;
    }
    auto& mine = flying[who];
    mine.push_back(next[who]++);
    const size_t which = random.Next() % mine.size();
    const uint64_t settled = mine.front();
    log.push_back({{100 + who, mine[which]}, settled, lsn, now});
    mine.erase(mine.begin() + static_cast<std::ptrdiff_t>(which));
    if (mine.size() > 8) {
      mine.erase(mine.begin());  // given up
    }
  }
  return log;
}

TEST(OutcomeMemoryTest, ARestartAtAnyEntryKnowsTheSameAsWhoNeverStopped) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const std::vector<Logged> log = SomeLog(seed);
    const std::string whole = MemoryOf(log).Encode({});
    OutcomeMemory running;
    for (size_t cut = 0; cut < log.size(); ++cut) {
      Feed(running, log[cut]);
      if (running.instances() == 0) {
        continue;  // the old form: it may remember more than the others
      }
      // The log is replayed from somewhere before the point at which the memory was written.
      OutcomeMemory restarted;
      ASSERT_TRUE(restarted.Decode(running.Encode({})));
      for (size_t i = cut > 50 ? cut - 50 : 0; i < log.size(); ++i) {
        Feed(restarted, log[i]);
      }
      ASSERT_EQ(restarted.Encode({}), whole) << seed << " " << cut;
    }
  }
}

}  // namespace
}  // namespace orrery::partition
