// Encoder, Decoder: the primitive parts of every byte format of the tree.
//
//   u8, u32, u64   fixed width, big endian (so that byte order is number order)
//   varint         7 bits a byte, low first, high bit = more; at most 10 bytes
//   bytes          varint length, then the bytes
//
// A Decoder never reads past its input: after the first fault ok() is false, stays false, and every
// read gives zero or an empty view. Check ok() once at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}
  void U8(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void U32(uint32_t value);
  void U64(uint64_t value);
  void Varint(uint64_t value);
  void Bytes(std::string_view bytes) {
    Varint(bytes.size());
    out_.append(bytes);
  }
  void Bool(bool value) { U8(value ? 1 : 0); }
  void Double(double value);
  void Raw(std::string_view bytes) { out_.append(bytes); }
  std::string& out() { return out_; }

 private:
  std::string& out_;
};

class Decoder {
 public:
  explicit Decoder(std::string_view in) : in_(in) {}
  uint8_t U8();
  uint32_t U32();
  uint64_t U64();
  uint64_t Varint();
  // A view into the input.
  std::string_view Bytes();
  std::string_view Raw(size_t size);
  bool Bool() { return U8() != 0; }
  double Double();
  // All that is left.
  std::string_view Rest();

  bool ok() const { return ok_; }
  bool done() const { return ok_ && in_.empty(); }
  size_t left() const { return in_.size(); }
  void Fail() {
    ok_ = false;
    in_ = {};
  }

 private:
  std::string_view in_;
  bool ok_ = true;
};

void PutU32(char* at, uint32_t value);
void PutU64(char* at, uint64_t value);
uint32_t GetU32(const char* at);
uint64_t GetU64(const char* at);

// Upper-case hex, base64, and their strict readers (false: not in that form).
std::string ToHex(std::string_view bytes);
bool FromHex(std::string_view text, std::string* bytes);
int HexDigit(char c);  // -1: it is none
std::string ToBase64(std::string_view bytes);
bool FromBase64(std::string_view text, std::string* bytes);

// CRC-32C of the bytes, for what is kept or sent.
uint32_t Crc32c(std::string_view bytes);

}  // namespace orrery
