#include "base/bytes.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(BytesTest, WhatIsEncodedDecodesToTheSame) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(7);
  encoder.U32(0xDEADBEEF);
  encoder.U64(0x0123456789ABCDEF);
  encoder.Varint(300);
  encoder.Varint(UINT64_MAX);
  encoder.Bytes("orrery");
  encoder.Double(-1.5);
  Decoder decoder(bytes);
  EXPECT_EQ(decoder.U8(), 7);
  EXPECT_EQ(decoder.U32(), 0xDEADBEEF);
  EXPECT_EQ(decoder.U64(), 0x0123456789ABCDEFu);
  EXPECT_EQ(decoder.Varint(), 300u);
  EXPECT_EQ(decoder.Varint(), UINT64_MAX);
  EXPECT_EQ(decoder.Bytes(), "orrery");
  EXPECT_EQ(decoder.Double(), -1.5);
  EXPECT_TRUE(decoder.done());
}

TEST(BytesTest, ADecoderPastItsInputFailsAndStaysFailed) {
  Decoder decoder(
      std::string_view("\x05"
                       "ab",
                       3));
  EXPECT_EQ(decoder.Bytes(), "");
  EXPECT_FALSE(decoder.ok());
  EXPECT_EQ(decoder.U8(), 0);
  EXPECT_FALSE(decoder.ok());
}

TEST(BytesTest, AVarintOfElevenBytesIsRefused) {
  Decoder decoder("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01");
  decoder.Varint();
  EXPECT_FALSE(decoder.ok());
}

TEST(BytesTest, Base64MatchesTheStandardVectors) {
  for (auto [plain, text] :
       {std::pair{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foobar", "Zm9vYmFy"}}) {
    std::string back;
    EXPECT_EQ(ToBase64(plain), text);
    EXPECT_TRUE(FromBase64(text, &back));
    EXPECT_EQ(back, plain);
  }
  std::string unused;
  EXPECT_FALSE(FromBase64("Zg=", &unused));
  EXPECT_FALSE(FromBase64("Z===", &unused));
  EXPECT_FALSE(FromBase64("Zg%=", &unused));
}

TEST(BytesTest, Crc32cMatchesTheStandardVector) { EXPECT_EQ(Crc32c("123456789"), 0xE3069283u); }

}  // namespace
}  // namespace orrery
