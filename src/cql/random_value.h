// Random types and values, for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cql/data_type.h"
#include "cql/number.h"
#include "cql/time_text.h"
#include "cql/value.h"

namespace orrery::cql {

class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t limit) { return random_.Next() % limit; }

  DataType Type(int depth = 0) {
    constexpr TypeId kSimple[] = {
        TypeId::kAscii,   TypeId::kBigint, TypeId::kBlob,     TypeId::kBoolean,  TypeId::kCounter,
        TypeId::kDecimal, TypeId::kDouble, TypeId::kFloat,    TypeId::kInt,      TypeId::kTimestamp,
        TypeId::kUuid,    TypeId::kText,   TypeId::kVarint,   TypeId::kTimeuuid, TypeId::kInet,
        TypeId::kDate,    TypeId::kTime,   TypeId::kSmallint, TypeId::kTinyint,  TypeId::kDuration};
    switch (depth < 2 ? Below(12) : 11) {
      case 0: return DataType::List(Type(depth + 1), true);
      case 1: return DataType::Set(Type(depth + 1), true);
      case 2: return DataType::Map(Type(depth + 1), Type(depth + 1), true);
      case 3: return DataType::Tuple({Type(depth + 1), Type(depth + 1), Type(depth + 1)});
      case 4: return DataType::Vector(Type(depth + 1), 2);
      case 5:
        return DataType::Udt("ks", "t", {{"a", Type(depth + 1)}, {"B", Type(depth + 1)}}, true);
      default: return kSimple[Below(std::size(kSimple))];
    }
  }

  // Few different bytes and sizes, so that values are often close to each other.
  std::string Value(const DataType& type, bool may_be_empty = true) {
    if (may_be_empty && Below(12) == 0 && ValidateValue(type, "").ok()) {
      return "";
    }
    switch (type.id()) {
      case TypeId::kAscii: return Some("ab\x01\x7F\0");
      case TypeId::kText: return Below(2) == 0 ? Some("ab") : "ä" + Some("\x01\0a");
      case TypeId::kCustom:
      case TypeId::kBlob: return Bytes(Below(4));
      case TypeId::kInet: return Bytes(Below(2) == 0 ? 4 : 16);
      case TypeId::kBoolean: return Bytes(1);
      case TypeId::kTinyint: return Bytes(1);
      case TypeId::kSmallint: return Bytes(2);
      case TypeId::kInt:
      case TypeId::kFloat:
      case TypeId::kDate: return Bytes(4);
      case TypeId::kBigint:
      case TypeId::kCounter:
      case TypeId::kTimestamp:
      case TypeId::kDouble: return Bytes(8);
      case TypeId::kTime: return BigintBytes(static_cast<int64_t>(Below(86'400'000'000'000)));
      case TypeId::kUuid: return Bytes(16);
      case TypeId::kTimeuuid: {
        std::string bytes = Bytes(16);
        bytes[6] = static_cast<char>(0x10 | (bytes[6] & 0x0F));
        return bytes;
      }
      case TypeId::kVarint: return Bytes(1 + Below(Below(20) == 0 ? 200 : 12));
      case TypeId::kDecimal: return Decimal();
      case TypeId::kDuration: return Duration();
      case TypeId::kList:
      case TypeId::kSet:
      case TypeId::kMap:
      case TypeId::kUdt:
      case TypeId::kTuple:
      case TypeId::kVector: return Parts(type);
    }
    return "";
  }

 private:
  std::string Some(std::string_view alphabet) {
    std::string text;
    for (size_t i = Below(4); i > 0; --i) {
      text.push_back(alphabet[Below(alphabet.size())]);
    }
    return text;
  }
  std::string Bytes(size_t size) {
    constexpr unsigned char kOften[] = {0x00, 0x01, 0x7F, 0x80, 0xFE, 0xFF, 0xC0, 0x10};
    std::string bytes;
    for (size_t i = 0; i < size; ++i) {
      uint64_t byte = Below(4) == 0 ? Below(256) : kOften[Below(std::size(kOften))];
      bytes.push_back(static_cast<char>(byte));
    }
    return bytes;
  }
  std::string Decimal() {
    int32_t scale = Below(4) == 0 ? static_cast<int32_t>(random_.Next()) / 2
                                  : static_cast<int32_t>(Below(9)) - 4;
    std::string unscaled = Below(2) == 0 ? Bytes(Below(10)) : VarintOf(100 * (1 - (int)Below(3)));
    return IntBytes(scale) + unscaled;
  }
  std::string Duration() {
    int sign = Below(2) == 0 ? 1 : -1;
    return DurationToBytes({static_cast<int32_t>(Below(3)) * sign,
                            static_cast<int32_t>(Below(1000)) * sign,
                            static_cast<int64_t>(Below(1ull << 50)) * sign});
  }
  std::string Parts(const DataType& type) {
    std::string out;
    PartWriter writer(type, out);
    bool fields = type.id() == TypeId::kTuple || type.id() == TypeId::kUdt;
    size_t count = type.id() == TypeId::kVector ? type.dimension()
                   : fields                     ? 1 + Below(type.parameters().size())
                                                : Below(3);
    count *= type.id() == TypeId::kMap ? 2 : 1;
    for (size_t i = 0; i < count; ++i) {
      const DataType& part = type.parameters()[i % type.parameters().size()];
      bool may_be_empty = type.id() != TypeId::kVector || !part.FixedSize();
      bool null = fields && Below(4) == 0;
      writer.Add(null ? std::nullopt : std::optional<std::string>(Value(part, may_be_empty)));
    }
    writer.Finish();
    return CanonicalValue(type, out);
  }

  SeededRandom random_;
};

}  // namespace orrery::cql
