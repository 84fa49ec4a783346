#include "cql/time_text.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"

namespace orrery::cql {
namespace {

TEST(TimestampTextTest, EveryFormThatCassandraDocumentsIsUnderstood) {
  constexpr int64_t kMidnight = 1'296'691'200'000;  // 2011-02-03 in UTC
  constexpr int64_t kMinute = kMidnight + (4 * 60 + 5) * 60'000;
  const std::pair<std::string, int64_t> rows[] = {
      {"1296705900000", 1'296'705'900'000},
      {"-1", -1},
      {"0", 0},
      {"2011-02-03", kMidnight},
      {"2011-02-03+0000", kMidnight},
      {"2011-02-03 +0100", kMidnight - 3'600'000},
      {"2011-02-03Z", kMidnight},
      {"2011-02-03 04:05", kMinute},
      {"2011-02-03 04:05+0000", kMinute},
      {"2011-02-03 04:05:00", kMinute},
      {"2011-02-03 04:05:00+0000", kMinute},
      {"2011-02-03 04:05:00.123", kMinute + 123},
      {"2011-02-03 04:05:00.1+00", kMinute + 100},
      {"2011-02-03T04:05", kMinute},
      {"2011-02-03T04:05+0000", kMinute},
      {"2011-02-03T04:05:00Z", kMinute},
      {"2011-02-03T04:05:00.000+0000", kMinute},
      {"2011-02-03T04:05:00.123456789Z", kMinute + 123},
      {"2011-02-03 04:05:00 UTC", kMinute},
      {"2011-02-03 04:05:00 GMT", kMinute},
      {"2011-02-03 04:05-07:30", kMinute + 450 * 60'000},
      {"1969-12-31 23:59:59.999", -1},
      {"2000-02-29", 951'782'400'000},
      {"0001-01-01", -62'135'596'800'000},
  };
  for (const auto& [text, millis] : rows) {
    EXPECT_EQ(TimestampFromText(text), millis) << text;
  }
}

TEST(TimestampTextTest, WhatIsNoTimestampIsRefused) {
  for (std::string_view text : {"",
                                "now",
                                "2011-2-3",
                                "2011-13-01",
                                "2011-02-29",
                                "2011-02-30",
                                "2011-02-00",
                                "2011-02",
                                "2011-02-03 ",
                                "2011-02-03 4:05",
                                "2011-02-03 24:00",
                                "2011-02-03 04:60",
                                "2011-02-03 04:05:",
                                "2011-02-03 04:05:00.",
                                "2011-02-03T",
                                "2011-02-03 04:05 PST",
                                "2011-02-03 04:05+1",
                                "2011-02-03 04:05+00:",
                                "+-5",
                                "99999999999999999999"}) {
    EXPECT_FALSE(TimestampFromText(text)) << text;
  }
}

TEST(TimestampTextTest, PrintsInUtc) {
  EXPECT_EQ(TimestampToText(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(TimestampToText(-1, ' '), "1969-12-31 23:59:59.999Z");
  EXPECT_EQ(TimestampToText(1'296'705'900'123), "2011-02-03T04:05:00.123Z");
}

TEST(TimestampTextTest, RandomDaysComeBack) {
  SeededRandom random(2);
  for (int i = 0; i < 5000; ++i) {
    int64_t millis = static_cast<int64_t>(random.Next() % 300'000'000'000'000) - 62'000'000'000'000;
    if (millis < 253'402'300'800'000) {
      EXPECT_EQ(TimestampFromText(TimestampToText(millis)), millis);
    }
    auto days = static_cast<uint32_t>(random.Next());
    EXPECT_EQ(DateFromText(DateToText(days)), days) << DateToText(days);
  }
}

TEST(DateTextTest, DaysCountFromTheMiddleOfTheRange) {
  EXPECT_EQ(DateFromText("1970-01-01"), 2'147'483'648u);
  EXPECT_EQ(DateFromText("2017-05-05"), 2'147'483'648u + 17'291);
  EXPECT_EQ(DateFromText("-5877641-06-23"), 0u);
  EXPECT_EQ(DateFromText("5881580-07-11"), UINT32_MAX);
  EXPECT_EQ(DateFromText("2147483648"), 2'147'483'648u);
  EXPECT_EQ(DateToText(0), "-5877641-06-23");
  for (std::string_view text : {"", "2017-05", "2017-05-32", "5881580-07-12", "-1", "4294967296"}) {
    EXPECT_FALSE(DateFromText(text)) << text;
  }
}

TEST(TimeTextTest, NanosecondsSinceMidnight) {
  EXPECT_EQ(TimeFromText("08:12:54"), 29'574'000'000'000);
  EXPECT_EQ(TimeFromText("08:12:54.123456789"), 29'574'123'456'789);
  EXPECT_EQ(TimeFromText("08:12:54.1"), 29'574'100'000'000);
  EXPECT_EQ(TimeFromText("86399999999999"), 86'399'999'999'999);
  EXPECT_EQ(TimeToText(29'574'123'456'789), "08:12:54.123456789");
  for (std::string_view text : {"", "8:12:54", "24:00:00", "08:12", "86400000000000", "-1"}) {
    EXPECT_FALSE(TimeFromText(text)) << text;
  }
}

TEST(DurationTextTest, EveryFormIsUnderstood) {
  constexpr int64_t kHour = 3'600'000'000'000;
  const std::pair<std::string, DurationValue> rows[] = {
      {"1y2mo", {14, 0, 0}},
      {"2w1d", {0, 15, 0}},
      {"89h4m48s", {0, 0, 89 * kHour + 288'000'000'000}},
      {"1ms2us3ns", {0, 0, 1'002'003}},
      {"5\xC2\xB5s", {0, 0, 5000}},
      {"-1mo2d", {-1, -2, 0}},
      {"1Y2MO3D", {14, 3, 0}},
      {"P1Y2M3DT4H5M6S", {14, 3, 4 * kHour + 306'000'000'000}},
      {"PT2H", {0, 0, 2 * kHour}},
      {"P3W", {0, 21, 0}},
      {"-P1M", {-1, 0, 0}},
      {"P0001-02-03T04:05:06", {14, 3, 4 * kHour + 306'000'000'000}},
      {"0s", {0, 0, 0}},
  };
  for (const auto& [text, value] : rows) {
    EXPECT_EQ(DurationFromText(text), value) << text;
  }
  for (std::string_view text :
       {"", "-", "1", "1x", "h", "1d1y", "1d2d", "P", "PT", "P1H", "P1DT", "PT1D", "P0001-02-03",
        "1.5h", "9223372036854775807h", "2147483648d", "1 d"}) {
    EXPECT_FALSE(DurationFromText(text)) << text;
  }
}

TEST(DurationTextTest, PrintsUnitsThatAreNotZero) {
  EXPECT_EQ(DurationToText({14, 3, 3'723'004'005'006}), "1y2mo3d1h2m3s4ms5us6ns");
  EXPECT_EQ(DurationToText({-1, -2, 0}), "-1mo2d");
  EXPECT_EQ(DurationToText({0, 0, 0}), "0s");
  EXPECT_EQ(DurationFromText(DurationToText({14, 3, 3'723'004'005'006})),
            (DurationValue{14, 3, 3'723'004'005'006}));
}

TEST(VintTest, LeadingOnesCountTheFurtherBytes) {
  const std::pair<uint64_t, std::string> rows[] = {
      {0, "00"},
      {1, "01"},
      {127, "7F"},
      {128, "8080"},
      {16'383, "BFFF"},
      {16'384, "C04000"},
      {UINT64_MAX, "FFFFFFFFFFFFFFFFFF"},
      {1ull << 55, "FE80000000000000"},
      {1ull << 56, "FF0100000000000000"},
  };
  for (const auto& [value, hex] : rows) {
    std::string bytes;
    AppendVint(value, bytes);
    EXPECT_EQ(ToHex(bytes), hex);
    std::string_view in = bytes;
    EXPECT_EQ(TakeVint(in), value);
    EXPECT_TRUE(in.empty());
    in = std::string_view(bytes).substr(0, bytes.size() - 1);
    EXPECT_FALSE(TakeVint(in));
  }
}

TEST(VintTest, DurationsAreThreeZigZagIntegers) {
  EXPECT_EQ(ToHex(DurationToBytes({1, 2, 3})), "020406");
  EXPECT_EQ(ToHex(DurationToBytes({-1, -2, -3})), "010305");
  EXPECT_EQ(ToHex(DurationToBytes({0, 0, 3'600'000'000'000})), "0000FC068C61714000");
}

}  // namespace
}  // namespace orrery::cql
