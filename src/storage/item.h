// The value of an item in the state store: a small versioned header, then the payload.
//
//   version u8 = 1, flags u8, LSN u64, time u64 (microseconds), number u64 (for the rid),
//   time to live u32 (as the item says it: 0 = nothing, FFFFFFFF = never, else seconds), payload
//   (BSON)
//
// The LSN stands at a fixed place because apply writes it there: when the value is made the place
// in the log is not known yet. See docs/formats/items.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"

namespace orrery::storage {

inline constexpr size_t kItemHeaderBytes = 30;

struct ItemHeader {
  Lsn lsn;
  WallTime time;
  uint64_t number = 0;
  int32_t ttl = 0;  // 0: the item says nothing; -1: never; else seconds after `time`

  // Whether it has expired in a container with this default (nullopt: time to live is off).
  bool Expired(std::optional<int32_t> container_default, WallTime now) const;
};

// An item as it is stored; a view of its bytes.
struct ItemView {
  ItemHeader header;
  std::string_view payload;
};

std::string EncodeItem(const ItemHeader& header, std::string_view payload);
// kCorruption if it is malformed or of a newer version.
Result<ItemView> DecodeItem(std::string_view value);
// Writes the LSN into an encoded item. REQUIRES: value.size() >= kItemHeaderBytes.
void StampItem(char* value, Lsn lsn);

}  // namespace orrery::storage
