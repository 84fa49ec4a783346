#include "api/cassandra/compression.h"

#include <lz4.h>
#include <snappy.h>

#include "base/bytes.h"
#include "base/check.h"

namespace orrery::cassandra {
namespace {

constexpr size_t kLz4SizeBytes = 4;

Result<std::string> DecompressLz4(std::string_view body, size_t bytes_max) {
  if (body.size() < kLz4SizeBytes) {
    return Error(Code::kInvalidArgument, "the compressed body has no size");
  }
  size_t size = GetU32(body.data());
  if (size > bytes_max) {
    return Error(Code::kTooLarge, std::to_string(size));
  }
  std::string out;
  if (!DecompressSegment(body.substr(kLz4SizeBytes), size, out)) {
    return Error(Code::kInvalidArgument, "the body is no LZ4 block of its size");
  }
  return out;
}

Result<std::string> DecompressSnappy(std::string_view body, size_t bytes_max) {
  size_t size = 0;
  if (!snappy::GetUncompressedLength(body.data(), body.size(), &size)) {
    return Error(Code::kInvalidArgument, "the compressed body has no size");
  }
  if (size > bytes_max) {
    return Error(Code::kTooLarge, std::to_string(size));
  }
  std::string out(size, '\0');
  if (!snappy::RawUncompress(body.data(), body.size(), out.data())) {
    return Error(Code::kInvalidArgument, "the body is no Snappy block");
  }
  return out;
}

// Appends an LZ4 block of at most `bytes_max`; false if it would be larger.
bool AppendLz4(std::string_view bytes, size_t bytes_max, std::string& out) {
  size_t start = out.size();
  out.resize(start + bytes_max);
  int size = LZ4_compress_default(bytes.data(), out.data() + start, static_cast<int>(bytes.size()),
                                  static_cast<int>(bytes_max));
  out.resize(start + static_cast<size_t>(std::max(size, 0)));
  return size > 0;
}

}  // namespace

void CompressBody(Compression compression, std::string_view body, std::string& out) {
  size_t start = out.size();
  if (compression == Compression::kLz4) {
    Encoder(out).U32(static_cast<uint32_t>(body.size()));
    auto bound = static_cast<size_t>(LZ4_compressBound(static_cast<int>(body.size())));
    ORRERY_CHECK(AppendLz4(body, bound, out));
  } else {
    ORRERY_CHECK(compression == Compression::kSnappy);
    size_t size = 0;
    out.resize(start + snappy::MaxCompressedLength(body.size()));
    snappy::RawCompress(body.data(), body.size(), out.data() + start, &size);
    out.resize(start + size);
  }
}

Result<std::string> DecompressBody(Compression compression, std::string_view body,
                                   size_t bytes_max) {
  switch (compression) {
    case Compression::kNone: break;
    case Compression::kLz4: return DecompressLz4(body, bytes_max);
    case Compression::kSnappy: return DecompressSnappy(body, bytes_max);
  }
  return Error(Code::kInvalidArgument, "no compression was agreed on");
}

bool CompressSegment(std::string_view bytes, std::string& out) {
  return bytes.size() > 1 && AppendLz4(bytes, bytes.size() - 1, out);
}

bool DecompressSegment(std::string_view block, size_t size, std::string& out) {
  out.resize(size);
  int got = LZ4_decompress_safe(block.data(), out.data(), static_cast<int>(block.size()),
                                static_cast<int>(size));
  return got >= 0 && static_cast<size_t>(got) == size;
}

}  // namespace orrery::cassandra
