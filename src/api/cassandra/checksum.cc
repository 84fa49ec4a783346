#include "api/cassandra/checksum.h"

#include <array>
#include <cstring>

namespace orrery::cassandra {
namespace {

constexpr uint32_t kCrc24Start = 0x875060;
constexpr uint32_t kCrc24Polynomial = 0x1974F0B;
constexpr uint32_t kCrc32Polynomial = 0xEDB88320;  // reflected

constexpr std::array<uint32_t, 256> MakeCrc24Table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte << 16;
    for (int bit = 0; bit < 8; ++bit) {
      crc <<= 1;
      crc ^= (crc & 0x1000000) != 0 ? kCrc24Polynomial : 0;
    }
    table[byte] = crc;
  }
  return table;
}

// table[k][b]: what a byte does when k more follow it.
constexpr std::array<std::array<uint32_t, 256>, 8> MakeCrc32Tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? kCrc32Polynomial : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = crc >> 8 ^ tables[0][crc & 0xFF];
    }
  }
  return tables;
}

constexpr auto kCrc24 = MakeCrc24Table();
constexpr auto kCrc32 = MakeCrc32Tables();

constexpr uint32_t Crc32Step(uint32_t crc, uint8_t byte) {
  return crc >> 8 ^ kCrc32[0][(crc ^ byte) & 0xFF];
}

// The state after the four bytes that stand before every payload.
constexpr uint32_t kCrc32Start =
    Crc32Step(Crc32Step(Crc32Step(Crc32Step(0xFFFFFFFF, 0xFA), 0x2D), 0x55), 0xCA);

}  // namespace

uint32_t Crc24(std::string_view bytes) {
  uint32_t crc = kCrc24Start;
  for (char byte : bytes) {
    crc = (crc << 8 & 0xFFFFFF) ^ kCrc24[(crc >> 16 ^ static_cast<uint8_t>(byte)) & 0xFF];
  }
  return crc & 0xFFFFFF;
}

uint32_t Crc32(std::string_view bytes) {
  uint32_t crc = kCrc32Start;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);  // little endian, as all our machines are
    word ^= crc;
    crc = 0;
    for (size_t k = 0; k < 8; ++k) {
      crc ^= kCrc32[7 - k][word >> (k * 8) & 0xFF];
    }
  }
  for (; left > 0; --left, ++at) {
    crc = Crc32Step(crc, static_cast<uint8_t>(*at));
  }
  return ~crc;
}

}  // namespace orrery::cassandra
