#include "types/session_token.h"

#include <gtest/gtest.h>

namespace orrery::types {
namespace {

SessionToken Token(uint64_t partition, int64_t version, uint64_t lsn) {
  return {.partition = PartitionId(partition), .version = version, .lsn = Lsn(lsn)};
}

// The tokens as they would be written, or the name of the error's code.
std::string Reprint(std::string_view text) {
  Result<std::vector<SessionToken>> tokens = ParseSessionTokens(text);
  if (!tokens) {
    return std::string(CodeName(tokens.error().code()));
  }
  std::string out;
  for (const SessionToken& token : *tokens) {
    out += (out.empty() ? "" : ",") + FormatSessionToken(token);
  }
  return out;
}

TEST(SessionTokenTest, IsWrittenAsRangeVersionAndLsn) {
  EXPECT_EQ(FormatSessionToken(Token(0, -1, 12)), "0:-1#12");
  EXPECT_EQ(FormatSessionToken(Token(17, 3, UINT64_MAX)), "17:3#18446744073709551615");
}

TEST(SessionTokenTest, WhatIsWrittenReadsBackTheSame) {
  for (std::string_view text :
       {"", "0:-1#13", "0:-1#13,1:2#0,18446744073709551615:-9#18446744073709551615"}) {
    EXPECT_EQ(Reprint(text), text);
  }
}

TEST(SessionTokenTest, RegionsAreIgnored) {
  EXPECT_EQ(Reprint("0:1#5#3=4,2:1#6#1=2#4=-1"), "0:1#5,2:1#6");
}

TEST(SessionTokenTest, MalformedTextIsRefused) {
  std::string refused(CodeName(Code::kInvalidArgument));
  for (std::string_view text : {"0",         ":",          "#",
                                ",",         "0:",         "0:-1",
                                "0:-1#",     "0:#1",       ":-1#1",
                                "0:-1#1,",   ",0:-1#1",    "0:-1#1,,1:-1#1",
                                "a:-1#1",    "0:b#1",      "0:-1#c",
                                "-1:-1#1",   "0:-1#-1",    "0:-1#1 ",
                                " 0:-1#1",   "0:+1#1",     "0:-1#1#",
                                "0:-1#1##",  "0:-1#1#2",   "0:-1#1#2=",
                                "0:-1#1#=3", "0:-1#1#a=3", "0:-1#18446744073709551616",
                                "0:-1:1",    "0#1:1"}) {
    EXPECT_EQ(Reprint(text), refused) << text;
  }
}

TEST(SessionTokenTest, AtMost10000PartsAreRead) {
  std::string text = "0:-1#1";
  for (int i = 1; i < 10'000; ++i) {
    text += ",0:-1#1";
  }
  EXPECT_EQ(ParseSessionTokens(text)->size(), 10'000u);
  EXPECT_EQ(ParseSessionTokens(text + ",0:-1#1").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace orrery::types
