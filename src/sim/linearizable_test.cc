#include "sim/linearizable.h"

#include <gtest/gtest.h>

#include "sim/chance.h"

namespace orrery::sim {
namespace {

Call Write(OpKind kind, ItemValue value, uint64_t begin, uint64_t end, Code code = Code::kOk) {
  return {.kind = kind, .value = value, .begin = begin, .end = end, .code = code};
}
Call Read(ItemValue read, uint64_t begin, uint64_t end) {
  return {.kind = OpKind::kRead,
          .begin = begin,
          .end = end,
          .code = read == 0 ? Code::kNotFound : Code::kOk,
          .read = read};
}
Call IfMatch(Call call, ItemValue value) {
  call.if_match = value;
  return call;
}

constexpr OpKind kCreate = OpKind::kCreate;
constexpr OpKind kUpsert = OpKind::kUpsert;
constexpr OpKind kReplace = OpKind::kReplace;
constexpr OpKind kDelete = OpKind::kDelete;

TEST(LinearizableTest, AReadSeesTheLastWriteThatEnded) {
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 2), Read(1, 3, 4)}), Verdict::kYes);
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 2), Read(0, 3, 4)}), Verdict::kNo);
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 2), Write(kUpsert, 2, 3, 4), Read(1, 5, 6)}),
            Verdict::kNo);
}

TEST(LinearizableTest, WhatOverlapsMayGoEitherWay) {
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 4), Read(0, 2, 3)}), Verdict::kYes);
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 4), Read(1, 2, 3)}), Verdict::kYes);
}

TEST(LinearizableTest, ReadsDoNotGoBack) {
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 10), Read(1, 2, 3), Read(0, 4, 5)}), Verdict::kNo);
  EXPECT_EQ(Linearizable({Write(kUpsert, 1, 1, 10), Read(0, 2, 3), Read(1, 4, 5)}), Verdict::kYes);
}

TEST(LinearizableTest, AnUnknownWriteHappensAtAnyTimeOrNever) {
  const Call unknown = Write(kUpsert, 1, 1, kNever);
  EXPECT_EQ(Linearizable({unknown, Read(0, 2, 3), Read(0, 4, 5)}), Verdict::kYes);
  EXPECT_EQ(Linearizable({unknown, Read(0, 2, 3), Read(1, 4, 5)}), Verdict::kYes);
  EXPECT_EQ(Linearizable({unknown, Read(1, 2, 3), Read(0, 4, 5)}), Verdict::kNo);
  EXPECT_EQ(Linearizable({Read(1, 1, 2), Write(kUpsert, 1, 3, kNever)}), Verdict::kNo);
}

TEST(LinearizableTest, RefusalsTellOfTheStateToo) {
  EXPECT_EQ(Linearizable({Write(kCreate, 1, 1, 2), Write(kCreate, 2, 3, 4)}), Verdict::kNo);
  EXPECT_EQ(Linearizable({Write(kCreate, 1, 1, 2), Write(kCreate, 2, 3, 4, Code::kAlreadyExists)}),
            Verdict::kYes);
  EXPECT_EQ(Linearizable({Write(kCreate, 1, 1, 2), Write(kReplace, 2, 3, 4, Code::kNotFound)}),
            Verdict::kNo);
  EXPECT_EQ(Linearizable({Write(kCreate, 1, 1, 2), Write(kDelete, 0, 3, 4), Read(0, 5, 6),
                          Write(kDelete, 0, 7, 8, Code::kNotFound)}),
            Verdict::kYes);
}

TEST(LinearizableTest, EtagsDecideOnce) {
  const Call create = Write(kCreate, 1, 1, 2);
  const Call first = IfMatch(Write(kReplace, 2, 3, 6), 1);
  const Call second = IfMatch(Write(kReplace, 3, 4, 5), 1);
  EXPECT_EQ(Linearizable({create, first, second}), Verdict::kNo);
  Call refused = second;
  refused.code = Code::kPreconditionFailed;
  EXPECT_EQ(Linearizable({create, first, refused}), Verdict::kYes);
  EXPECT_EQ(Linearizable({create, refused}), Verdict::kNo);
}

// Calls of some clients on a real register, where each happens at a moment between begin and end.
std::vector<Call> RealHistory(uint64_t seed) {
  Chance chance(seed, "history");
  std::vector<Call> calls;
  ItemValue now = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    const uint64_t at = 100 * i + 100;  // the moment
    Call call{.begin = at - chance.Below(400) % at, .end = at + 1 + chance.Below(400)};
    if (chance.OneIn(2)) {
      call.kind = OpKind::kRead;
      call.read = now;
      call.code = now == 0 ? Code::kNotFound : Code::kOk;
    } else {
      call.kind = OpKind::kUpsert;
      call.value = static_cast<ItemValue>(i + 1);
      if (!chance.OneIn(6)) {
        now = call.value;
      } else {
        call.end = kNever;  // it never happened
      }
    }
    calls.push_back(call);
  }
  return calls;
}

TEST(LinearizableTest, WhatARegisterDidIsLinearizable) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    EXPECT_EQ(Linearizable(RealHistory(seed)), Verdict::kYes) << seed;
  }
}

TEST(LinearizableTest, AReadOfAnOldValueIsFound) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    std::vector<Call> calls = RealHistory(seed);
    calls.push_back(Write(kUpsert, 100, 10'000, 10'001));
    calls.push_back(Write(kUpsert, 101, 10'002, 10'003));
    calls.push_back(Read(100, 10'004, 10'005));
    EXPECT_EQ(Linearizable(calls), Verdict::kNo) << seed;
  }
}

}  // namespace
}  // namespace orrery::sim
