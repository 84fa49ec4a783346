// Compression of frames: of bodies in versions 3 and 4, of segments in version 5. Pure functions.
//
//   body, lz4      u32 big endian: the size when decompressed; an LZ4 block
//   body, snappy   a Snappy block, which begins with its size when decompressed
//   segment        an LZ4 block; both sizes stand in the segment's head
//
// The size when decompressed is checked before memory is taken.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orrery::cassandra {

enum class Compression : uint8_t { kNone, kLz4, kSnappy };

// Appends the body in compressed form. REQUIRES: not kNone.
void CompressBody(Compression compression, std::string_view body, std::string& out);
// kInvalidArgument if it is malformed, kTooLarge if it would be more than `bytes_max`.
Result<std::string> DecompressBody(Compression compression, std::string_view body,
                                   size_t bytes_max);

// Appends an LZ4 block; false, and nothing appended, if it is not smaller than the bytes.
bool CompressSegment(std::string_view bytes, std::string& out);
// Replaces `out`; false if the block does not give exactly `size` bytes.
bool DecompressSegment(std::string_view block, size_t size, std::string& out);

}  // namespace orrery::cassandra
