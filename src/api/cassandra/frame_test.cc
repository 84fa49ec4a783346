#include "api/cassandra/frame.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/checksum.h"
#include "api/cassandra/compression.h"
#include "api/cassandra/test_bytes.h"
#include "base/bytes.h"
#include "base/random.h"

namespace orrery::cassandra {
namespace {

std::string RandomBytes(size_t size, bool compressible) {
  SeededRandom random(size);
  std::string bytes;
  while (bytes.size() < size) {
    bytes.push_back(static_cast<char>(random.Next() % (compressible ? 3 : 256)));
  }
  return bytes;
}

TEST(ChecksumTest, KnownValues) {
  EXPECT_EQ(Crc24(""), 0x875060u);
  EXPECT_EQ(Crc24(FromParts("000000")), 0x7DE777u);
  EXPECT_EQ(Crc24(FromParts("090002")), 0xC1C8A4u);
  EXPECT_EQ(Crc24(FromParts("0001020304")), 0x70C972u);
  EXPECT_EQ(Crc32(""), 0x44777ED3u);
  EXPECT_EQ(Crc32("a"), 0xF7294A53u);
  EXPECT_EQ(Crc32("hello, segments"), 0xB82E40CEu);
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  EXPECT_EQ(Crc32(all), 0x214DE79Bu);
}

TEST(EnvelopeTest, HeadIsNineBytes) {
  EnvelopeHead head{.version = 4,
                    .response = true,
                    .flags = kFlagTracing,
                    .stream = -1,
                    .opcode = Opcode::kEvent,
                    .length = 258};
  std::string bytes;
  AppendEnvelopeHead(head, bytes);
  EXPECT_EQ(ToHex(bytes), "8402FFFF0C00000102");
  EnvelopeHead read = ReadEnvelopeHead(bytes);
  EXPECT_EQ(read.version, 4);
  EXPECT_TRUE(read.response);
  EXPECT_EQ(read.stream, -1);
  EXPECT_EQ(read.opcode, Opcode::kEvent);
  EXPECT_EQ(read.length, 258u);
}

TEST(SegmentTest, KnownBytes) {
  std::string envelope = FromParts("05 00 0007 05 00000000");
  std::string plain;
  AppendSegment(envelope, true, false, plain);
  EXPECT_EQ(ToHex(plain), "090002A4C8C1050000070500000000A8B62D50");
  std::string lz4;
  AppendSegment(envelope, true, true, lz4);
  EXPECT_EQ(ToHex(lz4), "0900000004C2B895050000070500000000A8B62D50");
}

// Reads all segments back.
std::string Unpack(std::string_view bytes, bool lz4, std::vector<bool>* self_contained) {
  std::string all;
  while (!bytes.empty()) {
    auto head = ReadSegmentHead(bytes, lz4);
    if (!head || !*head || (*head)->bytes() > bytes.size()) {
      ADD_FAILURE() << "no segment";
      return all;
    }
    std::string payload;
    EXPECT_TRUE(ReadSegmentPayload(**head, bytes, payload).ok());
    all += payload;
    self_contained->push_back((*head)->self_contained);
    bytes.remove_prefix((*head)->bytes());
  }
  return all;
}

TEST(SegmentTest, SmallEnvelopesShareOneAndLargeOnesAreSplit) {
  for (bool lz4 : {false, true}) {
    for (bool compressible : {false, true}) {
      std::string all;
      std::vector<size_t> ends;
      for (size_t size : {10, 20, 131'000, 61, 131'071, 131'072, 300'000, 5}) {
        all += RandomBytes(size, compressible);
        ends.push_back(all.size());
      }
      std::string out;
      AppendSegments(all, ends, lz4, out);
      std::vector<bool> self_contained;
      EXPECT_TRUE(Unpack(out, lz4, &self_contained) == all);
      // {10, 20, 131000}, {61}, {131071}, 2 parts, 3 parts, {5}
      std::vector<bool> expected = {true, true, true, false, false, false, false, false, true};
      EXPECT_EQ(self_contained, expected);
      EXPECT_EQ(out.size() < all.size(), lz4 && compressible);
    }
  }
}

TEST(SegmentTest, HeadsThatAreNotThereYetAreAwaited) {
  std::string segment;
  AppendSegment("abc", true, false, segment);
  for (size_t size = 0; size < 6; ++size) {
    auto head = ReadSegmentHead(std::string_view(segment).substr(0, size), false);
    ASSERT_TRUE(head);
    EXPECT_FALSE(*head);
  }
}

TEST(SegmentTest, EveryFlippedBitIsFound) {
  for (bool lz4 : {false, true}) {
    std::string segment;
    AppendSegment(RandomBytes(600, true), true, lz4, segment);
    for (size_t bit = 0; bit < segment.size() * 8; ++bit) {
      std::string broken = segment;
      broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ 1 << (bit % 8));
      auto head = ReadSegmentHead(broken, lz4);
      if (!head) {
        EXPECT_EQ(head.error().code(), Code::kCorruption);
        continue;
      }
      ASSERT_TRUE(*head);
      ASSERT_EQ((*head)->bytes(), broken.size());
      std::string payload;
      EXPECT_EQ(ReadSegmentPayload(**head, broken, payload).code(), Code::kCorruption);
    }
  }
}

TEST(CompressionTest, BodiesComeBack) {
  for (Compression compression : {Compression::kLz4, Compression::kSnappy}) {
    for (size_t size : {0, 1, 100, 100'000}) {
      for (bool compressible : {false, true}) {
        std::string body = RandomBytes(size, compressible);
        std::string compressed;
        CompressBody(compression, body, compressed);
        auto plain = DecompressBody(compression, compressed, size);
        ASSERT_TRUE(plain);
        EXPECT_TRUE(*plain == body);
        if (size > 0) {
          auto refused = DecompressBody(compression, compressed, size - 1);
          ASSERT_FALSE(refused);
          EXPECT_EQ(refused.error().code(), Code::kTooLarge);
        }
      }
    }
  }
}

TEST(CompressionTest, Lz4BodiesBeginWithTheirSizeBigEndian) {
  std::string compressed;
  CompressBody(Compression::kLz4, std::string(300, 'x'), compressed);
  EXPECT_EQ(ToHex(std::string_view(compressed).substr(0, 4)), "0000012C");
}

TEST(CompressionTest, WhatIsNoBlockIsRefused) {
  for (Compression compression : {Compression::kLz4, Compression::kSnappy}) {
    for (std::string_view parts : {"", "0000", "00000005", "00000005 FF", "05 FFFFFF",
                                   "7FFFFFFF 00", "FFFFFFFF 00", "FFFFFFFFFFFFFFFF"}) {
      EXPECT_FALSE(DecompressBody(compression, FromParts(parts), 1000)) << parts;
    }
  }
  EXPECT_FALSE(DecompressBody(Compression::kNone, "abc", 1000));
}

}  // namespace
}  // namespace orrery::cassandra
