// The checksums of protocol version 5. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::cassandra {

// Of the head of a segment: 24 bits, polynomial 1974F0B, from 875060, high bit first.
uint32_t Crc24(std::string_view bytes);
// Of the payload of a segment: the CRC-32 of zlib, of FA 2D 55 CA and the bytes.
uint32_t Crc32(std::string_view bytes);

}  // namespace orrery::cassandra
