#include "types/epk.h"

#include <bit>

#include "base/bytes.h"
#include "base/check.h"
#include "types/murmur3.h"
#include "types/utf8.h"

namespace orrery::types {
namespace {

// component = 00 undefined | 01 null | 02 false | 03 true | 05 number | 08 string
//
// The payload of a number or a string is not the same in what is hashed and in what version 1
// appends to the hash: see AppendHashed and AppendShown.
constexpr char kNumberMarker = 0x05;
constexpr char kStringMarker = 0x08;

char Marker(KeyComponent::Kind kind) {
  switch (kind) {
    case KeyComponent::Kind::kUndefined: return 0x00;
    case KeyComponent::Kind::kNull: return 0x01;
    case KeyComponent::Kind::kFalse: return 0x02;
    case KeyComponent::Kind::kTrue: return 0x03;
    case KeyComponent::Kind::kNumber: return kNumberMarker;
    case KeyComponent::Kind::kString: return kStringMarker;
  }
  return 0x00;
}

// A string ends with FF in version 2 and with 00 in version 1.
constexpr char kStringEnd1 = 0x00;
constexpr char kStringEnd2 = '\xFF';

// The input of the hash: number = the double, little endian; string = UTF-8, end.
void AppendHashed(const KeyComponent& component, char string_end, std::string& out) {
  out.push_back(Marker(component.kind()));
  if (component.kind() == KeyComponent::Kind::kNumber) {
    char bytes[8];
    PutU64(bytes, __builtin_bswap64(std::bit_cast<uint64_t>(component.number())));
    out.append(bytes, 8);
  } else if (component.kind() == KeyComponent::Kind::kString) {
    out.append(component.string());
    out.push_back(string_end);
  }
}

void AppendU128(uint64_t high, uint64_t low, std::string& out) {
  char bytes[16];
  PutU64(bytes, high);
  PutU64(bytes + 8, low);
  out.append(bytes, 16);
}

constexpr uint64_t kHighMask = 0x3FFF'FFFF'FFFF'FFFF;

void AppendHash2(std::string_view hashed, std::string& out) {
  Hash128 hash = Murmur128(hashed);
  AppendU128(hash.second & kHighMask, hash.first, out);
}

// The order-preserving number of version 1: its first 8 bits, then groups of 7 bits in the high
// bits of a byte whose low bit says that more follow. Bits that are all zero make no group.
void AppendNumber1(double number, std::string& out) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  uint64_t bits = std::bit_cast<uint64_t>(number);
  bits = (bits & kSign) == 0 ? bits ^ kSign : ~bits + 1;
  out.push_back(kNumberMarker);
  out.push_back(static_cast<char>(bits >> 56));
  for (bits <<= 8; bits != 0; bits <<= 7) {
    bool more = bits << 7 != 0;
    out.push_back(static_cast<char>((bits >> 57) << 1 | (more ? 1 : 0)));
  }
}

// string = each byte of UTF-8 plus one (FF stays), then 00; of more than 100 bytes 101 and no 00.
void AppendString1(std::string_view text, std::string& out) {
  constexpr size_t kShort = 100;
  out.push_back(kStringMarker);
  for (unsigned char byte : text.substr(0, kShort + 1)) {
    out.push_back(static_cast<char>(byte == 0xFF ? byte : byte + 1));
  }
  if (text.size() <= kShort) {
    out.push_back('\0');
  }
}

// What version 1 appends to the hash.
void AppendShown(const KeyComponent& component, std::string& out) {
  if (component.kind() == KeyComponent::Kind::kNumber) {
    AppendNumber1(component.number(), out);
  } else if (component.kind() == KeyComponent::Kind::kString) {
    AppendString1(component.string(), out);
  } else {
    out.push_back(Marker(component.kind()));
  }
}

// The first 100 UTF-16 units of a string, as UTF-8. Of a surrogate pair that is cut in two only the
// first half is left, and that encodes as U+FFFD.
std::string Cut(std::string_view text) {
  constexpr int kUnits = 100;
  std::string_view rest = text;
  int units = 0;
  while (units < kUnits && !rest.empty()) {
    std::string_view before = rest;
    uint32_t code_point = TakeCodePoint(rest);
    bool pair = code_point != kNotUtf8 && code_point >= 0x10000;
    units += pair ? 2 : 1;
    if (units > kUnits) {
      return std::string(text.substr(0, text.size() - before.size())) + "\xEF\xBF\xBD";
    }
  }
  return std::string(text.substr(0, text.size() - rest.size()));
}

Epk ComputeEpk1(const PartitionKey& key) {
  std::string hashed;
  std::string shown;
  for (const KeyComponent& component : key.components) {
    KeyComponent cut = component.kind() == KeyComponent::Kind::kString
                           ? KeyComponent::String(Cut(component.string()))
                           : component;
    AppendHashed(cut, kStringEnd1, hashed);
    AppendShown(cut, shown);
  }
  Epk epk;
  AppendNumber1(Murmur32(hashed), epk);
  return epk + shown;
}

Epk ComputeEpk2(const PartitionKey& key) {
  std::string hashed;
  for (const KeyComponent& component : key.components) {
    AppendHashed(component, kStringEnd2, hashed);
  }
  Epk epk;
  AppendHash2(hashed, epk);
  return epk;
}

// Takes any number of components; none give the empty Epk.
Epk ComputeMultiEpk(const PartitionKey& key) {
  Epk epk;
  std::string hashed;
  for (const KeyComponent& component : key.components) {
    hashed.clear();
    AppendHashed(component, kStringEnd2, hashed);
    AppendHash2(hashed, epk);
  }
  return epk;
}

bool UsesNumbers(const PartitionKeyDefinition& definition) {
  return (definition.kind == KeyKind::kHash || definition.kind == KeyKind::kRange) &&
         definition.version == 1;
}

}  // namespace

Epk ComputeEpk(const PartitionKeyDefinition& definition, const PartitionKey& key) {
  if (definition.kind == KeyKind::kToken) {
    ORRERY_CHECK(key.components.size() == 1);
    return CassandraEpk(key.components[0].string());
  }
  ORRERY_CHECK(key.components.size() == definition.paths.size());
  if (definition.kind == KeyKind::kMultiHash) {
    return ComputeMultiEpk(key);
  }
  return UsesNumbers(definition) ? ComputeEpk1(key) : ComputeEpk2(key);
}

EpkRange PrefixRange(const PartitionKeyDefinition& definition, const PartitionKey& key) {
  if (key.components.empty()) {
    return {};
  }
  if (key.components.size() == definition.paths.size()) {
    Epk epk = ComputeEpk(definition, key);
    Epk next = epk + '\0';
    return {std::move(epk), std::move(next)};
  }
  ORRERY_CHECK(definition.kind == KeyKind::kMultiHash);
  ORRERY_CHECK(key.components.size() < definition.paths.size());
  Epk prefix = ComputeMultiEpk(key);
  Epk end = prefix + '\xFF';  // every level begins below 40
  return {std::move(prefix), std::move(end)};
}

namespace {

// The last place of the band that hashes of this definition use, of those that are no numbers.
unsigned __int128 LastPlace(const PartitionKeyDefinition& definition) {
  using Wide = unsigned __int128;
  return definition.kind == KeyKind::kToken ? ~Wide{0} >> 1 : Wide{kHighMask} << 64 | UINT64_MAX;
}

// A token is not cut.
unsigned __int128 WholeToken(const PartitionKeyDefinition& definition, unsigned __int128 place) {
  return definition.kind == KeyKind::kToken ? place >> 63 << 63 : place;
}

}  // namespace

std::vector<Epk> EvenBoundaries(const PartitionKeyDefinition& definition, size_t parts) {
  using Wide = unsigned __int128;
  ORRERY_CHECK(parts >= 1);
  bool numbers = UsesNumbers(definition);
  Wide last = numbers ? Wide{0xFFFF'FFFF} : LastPlace(definition);
  Wide step = last / parts;
  Wide rest = last % parts;
  std::vector<Epk> boundaries;
  boundaries.reserve(parts - 1);
  for (size_t i = 1; i < parts; ++i) {
    Wide at = i * step + i * rest / parts;  // i * last / parts, without the overflow
    Epk& boundary = boundaries.emplace_back();
    if (numbers) {
      AppendNumber1(static_cast<double>(static_cast<uint64_t>(at)), boundary);
    } else {
      at = WholeToken(definition, at);
      AppendU128(static_cast<uint64_t>(at >> 64), static_cast<uint64_t>(at), boundary);
    }
  }
  return boundaries;
}

namespace {

// The first 16 bytes as a number; shorter ones are filled up with zeros.
unsigned __int128 NumberOf(std::string_view epk) {
  unsigned __int128 number = 0;
  for (size_t i = 0; i < 16; ++i) {
    number = number << 8 | (i < epk.size() ? static_cast<uint8_t>(epk[i]) : 0);
  }
  return number;
}

// The least of the 2^32 numbers of version 1 whose place is not before this one.
uint64_t Number1Of(std::string_view epk) {
  uint64_t low = 0;
  uint64_t high = uint64_t{1} << 32;
  while (low < high) {
    uint64_t middle = (low + high) / 2;
    Epk place;
    AppendNumber1(static_cast<double>(middle), place);
    (place < epk ? low : high) = place < epk ? middle + 1 : middle;
  }
  return low;
}

}  // namespace

Epk MiddleOf(const PartitionKeyDefinition& definition, const EpkRange& range) {
  bool ends_the_ring = range.max == EpkRange().max;
  Epk middle;
  if (UsesNumbers(definition)) {
    uint64_t from = Number1Of(range.min);
    uint64_t to = ends_the_ring ? uint64_t{1} << 32 : Number1Of(range.max);
    AppendNumber1(static_cast<double>(from + (to - from) / 2), middle);
  } else {
    using Wide = unsigned __int128;
    Wide from = NumberOf(range.min);
    Wide to = ends_the_ring ? LastPlace(definition) : NumberOf(range.max);
    Wide at = WholeToken(definition, from + (to - from) / 2);
    AppendU128(static_cast<uint64_t>(at >> 64), static_cast<uint64_t>(at), middle);
  }
  bool inside = middle > range.min && (ends_the_ring || middle < range.max);
  return inside ? middle : range.min;
}

namespace {

int64_t Token(const Hash128& hash) {
  int64_t token = static_cast<int64_t>(hash.first);
  return token == INT64_MIN ? INT64_MAX : token;
}

}  // namespace

int64_t CassandraToken(std::string_view partition_key) {
  return Token(CassandraHash(partition_key));
}

Epk CassandraEpk(std::string_view partition_key) {
  Hash128 hash = CassandraHash(partition_key);
  const uint64_t token = static_cast<uint64_t>(Token(hash)) ^ uint64_t { 1 } << 63;
  Epk epk;
  AppendU128(token >> 1, token << 63 | hash.second >> 1, epk);
  return epk;
}

Epk TokenEpk(int64_t token) {
  const uint64_t place = static_cast<uint64_t>(token) ^ uint64_t { 1 } << 63;
  Epk epk;
  AppendU128(place >> 1, place << 63, epk);
  return epk;
}

int64_t TokenOf(std::string_view epk) {
  return static_cast<int64_t>(static_cast<uint64_t>(NumberOf(epk) >> 63) ^ uint64_t{1} << 63);
}

}  // namespace orrery::types
