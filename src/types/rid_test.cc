#include "types/rid.h"

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace orrery::types {
namespace {

std::string Bytes(std::string_view rid) {
  std::string bytes;
  EXPECT_TRUE(ReadRid(rid, &bytes)) << rid;
  return ToHex(bytes);
}

TEST(RidTest, ADatabaseHas4BytesIn8Letters) {
  EXPECT_EQ(Bytes(DatabaseRid(DatabaseId(0x01020304))), "01020304");
  EXPECT_EQ(DatabaseRid(DatabaseId(1)).size(), 8u);
}

TEST(RidTest, AContainerHas8BytesAndItsHighBitSet) {
  std::string rid = ContainerRid(DatabaseId(0x01020304), ContainerId(5));
  EXPECT_EQ(Bytes(rid), "0102030480000005");
  EXPECT_EQ(rid.size(), 12u);
}

TEST(RidTest, ADocumentIsTheContainerAndALittleEndianNumber) {
  std::string container = ContainerRid(DatabaseId(1), ContainerId(2));
  EXPECT_EQ(Bytes(DocumentRid(container, 0x0102030405060708)), "00000001800000020807060504030201");
  EXPECT_EQ(Bytes(DocumentRid(container, (uint64_t{1} << 60) - 1)),
            "0000000180000002FFFFFFFFFFFFFF0F");
}

TEST(RidTest, APartitionRangeHasType5InTheTopNibble) {
  std::string container = ContainerRid(DatabaseId(1), ContainerId(2));
  EXPECT_EQ(Bytes(PartitionRangeRid(container, PartitionId(3))),
            "00000001800000020300000000000050");
}

TEST(RidTest, AnOfferHas4Letters) {
  EXPECT_EQ(OfferRid(0xABCDEF).size(), 4u);
  EXPECT_EQ(Bytes(OfferRid(0xABCDEF)), "ABCDEF");
}

TEST(RidTest, TheTextHasNoSlashSoThatItFitsAPath) {
  std::string bytes(6, '\xFF');
  EXPECT_EQ(RidText(bytes), "--------");
  std::string read;
  EXPECT_TRUE(ReadRid("--------", &read));
  EXPECT_EQ(read, bytes);
}

TEST(RidTest, EveryByteStringReadsBackTheSame) {
  for (int byte = 0; byte < 256; ++byte) {
    for (size_t size = 0; size < 18; ++size) {
      std::string bytes(size, static_cast<char>(byte));
      std::string read;
      ASSERT_TRUE(ReadRid(RidText(bytes), &read));
      EXPECT_EQ(read, bytes);
    }
  }
}

TEST(RidTest, WhatRidTextNeverWritesIsRefused) {
  std::string bytes;
  for (std::string_view text :
       {"A", "AAA", "AAAA=", "A===", "AB==x", "////", "AA!=", "AB==", "AAB=", "a b="}) {
    EXPECT_FALSE(ReadRid(text, &bytes)) << text;
    EXPECT_TRUE(bytes.empty());
  }
}

}  // namespace
}  // namespace orrery::types
