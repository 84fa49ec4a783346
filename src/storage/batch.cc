#include "base/bytes.h"
#include "base/check.h"
#include "storage/engine.h"

namespace orrery::storage {

void Batch::Put(SpaceIndex space, std::string_view key, std::string_view value) {
  Add(Change::Kind::kPut, space, key, value);
}

void Batch::Merge(SpaceIndex space, std::string_view key, std::string_view operand) {
  Add(Change::Kind::kMerge, space, key, operand);
}

void Batch::Delete(SpaceIndex space, std::string_view key) {
  Add(Change::Kind::kDelete, space, key, {});
}

void Batch::DeleteRange(SpaceIndex space, std::string_view begin, std::string_view end) {
  if (begin < end) {
    Add(Change::Kind::kDeleteRange, space, begin, end);
  }
}

void Batch::Clear() {
  bytes_.clear();
  count_ = 0;
}

void Batch::Add(Change::Kind kind, SpaceIndex space, std::string_view key, std::string_view value) {
  Encoder encoder(bytes_);
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.U8(space);
  encoder.Bytes(key);
  encoder.Bytes(value);
  ++count_;
}

void Batch::ForEach(const std::function<void(const Change&)>& visit) const {
  Decoder decoder(bytes_);
  while (!decoder.done()) {
    Change change{};
    change.kind = static_cast<Change::Kind>(decoder.U8());
    change.space = decoder.U8();
    change.key = decoder.Bytes();
    change.value = decoder.Bytes();
    ORRERY_CHECK(decoder.ok());
    visit(change);
  }
}

}  // namespace orrery::storage
