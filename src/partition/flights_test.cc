#include "partition/flights.h"

#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::partition {
namespace {

TEST(FlightsTest, NumbersRiseAndWhatIsBeforeTheFirstInFlightHasSettled) {
  SystemRandom random;
  Flights flights(random);
  std::optional<Flights::Flight> first = flights.Begin();
  std::optional<Flights::Flight> second = flights.Begin();
  EXPECT_EQ(first->id().low, 1u);
  EXPECT_EQ(second->id().low, 2u);
  EXPECT_EQ(second->id().high, first->id().high);
  EXPECT_EQ(second->settled(), 1u);
  second.reset();
  EXPECT_EQ(flights.Begin().settled(), 1u) << "the first is in flight";
  first.reset();
  Flights::Flight next = flights.Begin();
  EXPECT_EQ(next.id().low, 4u);
  EXPECT_EQ(next.settled(), 4u);
}

TEST(FlightsTest, AFlightThatIsMovedEndsOnce) {
  SystemRandom random;
  Flights flights(random);
  std::optional<Flights::Flight> outer;
  {
    Flights::Flight inner = flights.Begin();
    outer.emplace(std::move(inner));
  }
  EXPECT_EQ(flights.Begin().settled(), 1u);
  outer.reset();
  EXPECT_EQ(flights.Begin().settled(), 3u);
}

TEST(FlightsTest, OneThatDoesNotEndIsLeftBehindByANewInstance) {
  SystemRandom random;
  Flights flights(random);
  std::optional<Flights::Flight> stuck = flights.Begin();
  const uint64_t instance = stuck->id().high;
  uint64_t others = 0;
  for (; flights.Begin().id().high == instance; ++others) {
    ASSERT_LT(others, 100'000u);
  }
  stuck.reset();
  Flights::Flight next = flights.Begin();
  EXPECT_EQ(next.id().low, 2u);
  EXPECT_EQ(next.settled(), 2u) << "the end of another instance's says nothing";
}

TEST(FlightsTest, AFlightMayOutliveItsRouter) {
  SystemRandom random;
  std::optional<Flights> flights(random);
  Flights::Flight flight = flights->Begin();
  flights.reset();
}

TEST(FlightsTest, ThreadsGetDifferentNamesAndNothingSettlesThatIsInFlight) {
  SystemRandom random;
  Flights flights(random);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 2000; ++j) {
        Flights::Flight a = flights.Begin();
        Flights::Flight b = flights.Begin();
        EXPECT_NE(a.id(), b.id());
        EXPECT_TRUE(a.id().high != b.id().high || b.settled() <= a.id().low);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  Flights::Flight last = flights.Begin();
  EXPECT_EQ(last.settled(), last.id().low);
}

}  // namespace
}  // namespace orrery::partition
