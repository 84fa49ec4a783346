// WireWriter, WireReader: the notations of the CQL native protocol, all big endian.
//
//   [byte] [short] [int] [long]      1, 2, 4, 8 bytes
//   [string] [long string]           a short, or an int, and so many bytes of UTF-8
//   [short bytes] [bytes]            a short, or an int, and so many bytes; an int below 0 is null
//   [string list] [string multimap]  a short, and so many parts
//
// A WireReader never reads past its input and takes no memory that the input does not pay for:
// after the first fault ok() is false, stays false, and every read gives zero or an empty view.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::cql {

class WireWriter {
 public:
  explicit WireWriter(std::string& out) : out_(out) {}
  void Byte(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void Short(uint16_t value);
  void Int(int32_t value);
  void Long(int64_t value);
  // What is longer than a short can say is cut there.
  void String(std::string_view text);
  void ShortBytes(std::string_view bytes) { String(bytes); }
  void LongString(std::string_view text) { Bytes(text); }
  void Bytes(std::string_view bytes);
  void NullBytes() { Int(-1); }
  // Bytes, or null.
  void Value(std::optional<std::string_view> bytes) { bytes ? Bytes(*bytes) : NullBytes(); }
  void Raw(std::string_view bytes) { out_.append(bytes); }
  std::string& out() { return out_; }

 private:
  std::string& out_;
};

class WireReader {
 public:
  explicit WireReader(std::string_view in) : in_(in) {}
  uint8_t Byte();
  uint16_t Short();
  int32_t Int();
  int64_t Long();
  // Views into the input.
  std::string_view String() { return Raw(Short()); }
  std::string_view ShortBytes() { return Raw(Short()); }
  std::string_view LongString();
  // Null if the length is below 0.
  std::optional<std::string_view> Bytes();
  std::string_view Raw(size_t size);
  std::string_view Rest() { return Raw(in_.size()); }

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

}  // namespace orrery::cql
