#include "types/epk.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"
#include "types/murmur3.h"

namespace orrery::types {
namespace {

const PartitionKeyDefinition kHash1{.paths = {"/pk"}, .kind = KeyKind::kHash, .version = 1};
const PartitionKeyDefinition kHash2{.paths = {"/pk"}, .kind = KeyKind::kHash, .version = 2};

PartitionKeyDefinition MultiHash(size_t levels) {
  PartitionKeyDefinition definition{.paths = {"/a", "/b", "/c"}, .kind = KeyKind::kMultiHash};
  definition.paths.resize(levels);
  return definition;
}

KeyComponent Text(std::string text) { return KeyComponent::String(std::move(text)); }

std::string Repeat(std::string_view part, size_t size) {
  std::string text;
  while (text.size() < size) {
    text += part;
  }
  return text.substr(0, size);
}

std::string Alphabet(size_t size) { return Repeat("abcdefghijklmnopqrstuvwxyz", size); }

std::string Hex(const PartitionKeyDefinition& definition, KeyComponent component) {
  return ToHex(ComputeEpk(definition, PartitionKey{{std::move(component)}}));
}

struct Vector {
  KeyComponent component;
  std::string version1;
  std::string version2;
};

// Values that the official clients compute.
std::vector<Vector> Vectors() {
  return {
      {KeyComponent(), "05C1D529E345DC00", "11622DAA78F835834610ABE56EFF5CB5"},
      {KeyComponent::Null(), "05C1ED45D7475601", "378867E4430E67857ACE5C908374FE16"},
      {KeyComponent::Bool(true), "05C1D7C5A903D803", "0E711127C5B5A8E4726AC6DD306A3E59"},
      {KeyComponent::Bool(false), "05C1DB857D857C02", "2FE1BE91E90A3439635E0E9E37361EF2"},
      {KeyComponent::Number(0), "05C1BF6DA115600580", "155B95BEDAC4B1E9EC1CDC9BB0DDDE58"},
      {KeyComponent::Number(1), "05C1ED172B6B2605BFF0", "20CD98B339BA78A5D0CF6953B87070B0"},
      {KeyComponent::Number(-1), "05C1D1A5BDDF9C054010", "19938E7A936C1C5B9E3AE842BBC16839"},
      {KeyComponent::Number(5), "05C1D9C1C5517C05C014", "19C08621B135968252FB34B4CF66F811"},
      {KeyComponent::Number(5e-7), "05C1E76D673DF805BEA163BDF50BAFB71A",
       "1608CD3F04E7E257BD4D55FC6F0EE6FB"},
      {Text(""), "05C1CF33970FF80800", "32E9366E637A71B4E710384B2F4970A0"},
      {Text("asdf"), "05C1E7035DAF84086274656700", "208BF1D598F5B63AD5520F04FE58C5E8"},
      {Text("theo"), "05C1E11D7179E6087569667000", "2D6CD1B66D83CD322704F334799E29A2"},
      {Text("redmond"), "05C1EFE313830C087366656E706F6500", "22E342F38A486A088463DFF7838A5963"},
      {Text("ä€😀"), "05C1E3C9C50DCE08C4A5E383ADF1A0998100", "1D62559123D069B04ABE39EDB9EED933"},
  };
}

TEST(EpkTest, Version2IsWhatTheClientsCompute) {
  for (const Vector& vector : Vectors()) {
    EXPECT_EQ(Hex(kHash2, vector.component), vector.version2) << vector.version1;
  }
  EXPECT_EQ(Hex(kHash2, Text(Alphabet(99))), "072D8FA3228DD2A6C0A7129C845700E6");
  EXPECT_EQ(Hex(kHash2, Text(Alphabet(100))), "023D5F0B62EBEF22A43564F267193B4D");
  EXPECT_EQ(Hex(kHash2, Text(Repeat("a", 101))), "08042541D30C8BF90D7092B1519AE0BC");
  EXPECT_EQ(Hex(kHash2, Text(Repeat("a", 1024))), "332BDF5512AE49615F32C7D98C2DB86C");
}

TEST(EpkTest, Version1IsWhatTheClientsCompute) {
  for (const Vector& vector : Vectors()) {
    EXPECT_EQ(Hex(kHash1, vector.component), vector.version1) << vector.version2;
  }
  EXPECT_TRUE(Hex(kHash1, Text(Alphabet(99))).starts_with("05C19B2DC38FC00862"));
  EXPECT_TRUE(Hex(kHash1, Text(Alphabet(100))).starts_with("05C1DD5D8149640862"));
  EXPECT_EQ(Hex(kHash1, Text(Repeat("a", 101))), "05C1EB5921F70608" + Repeat("62", 200) + "00");
}

TEST(EpkTest, Version1SeesOnlyTheFirst100CharactersOfAString) {
  std::string cut = Hex(kHash1, Text(Alphabet(100)));
  EXPECT_EQ(Hex(kHash1, Text(Alphabet(101))), cut);
  EXPECT_EQ(Hex(kHash1, Text(Alphabet(2000))), cut);
  EXPECT_NE(Hex(kHash1, Text(Alphabet(99))), cut);
}

TEST(EpkTest, Version1CountsCharactersInUtf16AndAppendsAtMost101Bytes) {
  std::string euros = Repeat("€", 300);  // 100 characters of 3 bytes
  EXPECT_EQ(Hex(kHash1, Text(euros + "a")), Hex(kHash1, Text(euros)));
  EXPECT_EQ(Hex(kHash1, Text(euros)).size(), 14u + 2 + 202);
  std::string faces = Repeat("😀", 200);  // 50 characters of 2 units
  EXPECT_EQ(Hex(kHash1, Text(faces + "a")), Hex(kHash1, Text(faces)));
  EXPECT_EQ(Hex(kHash1, Text(Repeat("a", 99) + "😀")),
            Hex(kHash1, Text(Repeat("a", 99) + "\uFFFD")));
}

TEST(EpkTest, MultiHashIsOneHashForEachLevel) {
  PartitionKey letters{{Text("a"), Text("b"), Text("c")}};
  EXPECT_EQ(ToHex(ComputeEpk(MultiHash(3), letters)),
            "3A5381E1114EB8D3FCC90795045B49B7195644569A78B1E22D200348AF9416CE"
            "2562D4841EF4AF76D90EC904CEE5FA9A");
  PartitionKey paths{{Text("/path1"), Text("/path2")}};
  EXPECT_EQ(ToHex(ComputeEpk(MultiHash(2), paths)),
            "3499FD5198AE0F1EB6B77F6E428D2FF027A1848BD1102A3B65AFF266874D0FF5");
}

TEST(EpkTest, TheZerosAreTwoKeys) {
  for (const PartitionKeyDefinition& definition : {kHash1, kHash2}) {
    EXPECT_NE(Hex(definition, KeyComponent::Number(0)),
              Hex(definition, KeyComponent::Number(-0.0)));
  }
}

TEST(EpkTest, KindRangeIsHashedByItsVersion) {
  for (int version : {1, 2}) {
    PartitionKeyDefinition range{.paths = {"/pk"}, .kind = KeyKind::kRange, .version = version};
    EXPECT_EQ(Hex(range, Text("theo")), Hex(version == 1 ? kHash1 : kHash2, Text("theo")));
  }
}

TEST(EpkTest, APrefixRangeHoldsExactlyTheKeysBelowThePrefix) {
  SeededRandom random(7);
  PartitionKeyDefinition definition = MultiHash(3);
  auto component = [&] { return KeyComponent::Number(static_cast<double>(random.Next() % 50)); };
  for (int i = 0; i < 2000; ++i) {
    PartitionKey key{{component(), component(), component()}};
    PartitionKey prefix{{component()}};
    if (i % 2 == 0) {
      prefix.components.push_back(component());
    }
    bool below =
        std::equal(prefix.components.begin(), prefix.components.end(), key.components.begin());
    EXPECT_EQ(PrefixRange(definition, prefix).Contains(ComputeEpk(definition, key)), below);
    PartitionKey own{{key.components[0]}};
    EXPECT_TRUE(PrefixRange(definition, own).Contains(ComputeEpk(definition, key)));
  }
}

TEST(EpkTest, ThePrefixRangeOfAWholeKeyHoldsThatKeyAlone) {
  PartitionKey key{{Text("a"), Text("b")}};
  Epk epk = ComputeEpk(MultiHash(2), key);
  EpkRange range = PrefixRange(MultiHash(2), key);
  EXPECT_TRUE(range.Contains(epk));
  EXPECT_FALSE(range.Contains(epk + '\0'));
  EXPECT_EQ(PrefixRange(kHash1, PartitionKey{{Text("a")}}).min,
            ComputeEpk(kHash1, PartitionKey{{Text("a")}}));
}

TEST(EpkTest, ThePrefixRangeOfNoComponentIsTheWholeRing) {
  EXPECT_EQ(PrefixRange(MultiHash(3), PartitionKey()), EpkRange());
  EXPECT_EQ(PrefixRange(kHash2, PartitionKey()), EpkRange());
}

TEST(EpkTest, TwoHalvesMeetInTheMiddleOfTheBand) {
  EXPECT_EQ(ToHex(EvenBoundaries(kHash2, 2).at(0)), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(ToHex(EvenBoundaries(MultiHash(3), 2).at(0)), "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(ToHex(EvenBoundaries(kHash1, 2).at(0)), "05C1DFFFFFFFFC");
}

TEST(EpkTest, QuartersAreCutExactly) {
  std::vector<Epk> boundaries = EvenBoundaries(kHash2, 4);
  EXPECT_EQ(ToHex(boundaries.at(0)), "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
  EXPECT_EQ(ToHex(boundaries.at(2)), "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
}

TEST(EpkTest, BoundariesRiseStrictly) {
  for (const PartitionKeyDefinition& definition : {kHash1, kHash2, MultiHash(2)}) {
    for (size_t parts : {1, 2, 3, 7, 100, 10'000, 50'000}) {
      std::vector<Epk> boundaries = EvenBoundaries(definition, parts);
      ASSERT_EQ(boundaries.size(), parts - 1);
      auto not_rising = [](const Epk& a, const Epk& b) { return a >= b; };
      EXPECT_EQ(std::ranges::adjacent_find(boundaries, not_rising), boundaries.end());
    }
  }
}

TEST(EpkTest, KeysSpreadEvenlyOverEvenParts) {
  constexpr size_t kParts = 8;
  constexpr size_t kKeys = 16'000;
  for (const PartitionKeyDefinition& definition : {kHash1, kHash2, MultiHash(1)}) {
    std::vector<Epk> boundaries = EvenBoundaries(definition, kParts);
    std::vector<size_t> counts(kParts);
    for (size_t i = 0; i < kKeys; ++i) {
      Epk epk = ComputeEpk(definition, PartitionKey{{Text("key" + std::to_string(i))}});
      ++counts[std::ranges::upper_bound(boundaries, epk) - boundaries.begin()];
    }
    for (size_t count : counts) {
      EXPECT_NEAR(count, kKeys / kParts, 300);
    }
  }
}

std::string Bytes(std::string_view hex) {
  std::string bytes;
  EXPECT_TRUE(FromHex(hex, &bytes));
  return bytes;
}

TEST(CassandraTokenTest, IsWhatTheDriversCompute) {
  EXPECT_EQ(CassandraToken(""), 0);
  EXPECT_EQ(CassandraToken("a"), -8839064797231613815);
  EXPECT_EQ(CassandraToken("hello"), -3758069500696749310);
  EXPECT_EQ(CassandraToken(Bytes("00000001")), -4069959284402364209);
  EXPECT_EQ(CassandraToken(Bytes("FFFFFFFF")), 7297452126230313552);
  EXPECT_EQ(CassandraToken(Bytes("000000000000007B")), 8388530992993956647);
  EXPECT_EQ(CassandraToken("ä€😀"), -2449611097274266274);
  EXPECT_EQ(CassandraToken(Bytes("550E8400E29B41D4A716446655440000")), 4277286421682315655);
  EXPECT_EQ(CassandraToken(std::string(17, '\xFF')), -4128212798341382003);
  EXPECT_EQ(CassandraToken(Bytes("00016100000400000001"
                                 "00")),
            8247712171917364652);
  EXPECT_EQ(CassandraToken("The quick brown fox jumps over the lazy dog"), -2068352364225029268);
}

TEST(CassandraTokenTest, TheOrderOfEpksIsTheOrderOfTokens) {
  SeededRandom random(11);
  for (int i = 0; i < 2000; ++i) {
    std::string a = std::to_string(random.Next());
    std::string b = std::to_string(random.Next());
    EXPECT_EQ(CassandraEpk(a) < CassandraEpk(b), CassandraToken(a) < CassandraToken(b));
  }
  EXPECT_EQ(ToHex(CassandraEpk("")), "40000000000000000000000000000000");
  for (int64_t token : {INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
    EXPECT_EQ(TokenOf(TokenEpk(token)), token);
    EXPECT_GE(TokenEpk(token)[0], 0);
  }
  EXPECT_EQ(TokenOf(CassandraEpk("hello")), CassandraToken("hello"));
  EXPECT_GE(CassandraEpk("hello"), TokenEpk(CassandraToken("hello")));
  EXPECT_LT(CassandraEpk("hello"), TokenEpk(CassandraToken("hello") + 1));
}

TEST(Murmur3Test, IsTheStandardHash) {
  EXPECT_EQ(Murmur32(""), 0u);
  EXPECT_EQ(Murmur32("The quick brown fox jumps over the lazy dog"), 0x2E4FF723u);
  EXPECT_EQ(Murmur128("The quick brown fox jumps over the lazy dog"),
            (Hash128{0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347}));
}

TEST(Murmur3Test, CassandraDiffersOnlyByHighBytesInTheTail) {
  for (size_t size = 0; size < 64; ++size) {
    EXPECT_EQ(CassandraHash(std::string(size, 'a')), Murmur128(std::string(size, 'a')));
    bool tail = size % 16 != 0;
    EXPECT_EQ(CassandraHash(std::string(size, '\x81')) != Murmur128(std::string(size, '\x81')),
              tail);
  }
}

}  // namespace
}  // namespace orrery::types
