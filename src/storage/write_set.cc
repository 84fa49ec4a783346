#include "storage/write_set.h"

#include "base/bytes.h"
#include "base/check.h"
#include "storage/item.h"

namespace orrery::storage {

namespace {

constexpr uint8_t kVersion = 1;
constexpr uint8_t kFreezingVersion = 2;
constexpr uint8_t kSettlingVersion = 3;  // from format 3 of a cluster on
enum class Kind : uint8_t { kPutItem = 1, kPut = 2, kMerge = 3, kDelete = 4 };

uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

void AddChange(std::string& out, Kind kind, Space space, std::string_view key) {
  Encoder encoder(out);
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.U8(Index(space));
  encoder.Bytes(key);
}

// What AddChange and what follows it wrote.
struct EncodedChange {
  Kind kind = Kind::kPut;
  uint8_t space = 0;
  std::string_view key;
  std::string_view value;
};

Result<EncodedChange> ReadChange(Decoder& decoder) {
  EncodedChange change;
  change.kind = static_cast<Kind>(decoder.U8());
  change.space = decoder.U8();
  change.key = decoder.Bytes();
  if (change.kind != Kind::kDelete) {
    change.value = decoder.Bytes();
  }
  if (!decoder.ok() || change.space > Index(Space::kCatalog)) {
    return Error(Code::kCorruption, "change in a log entry is malformed");
  }
  if (change.kind < Kind::kPutItem || change.kind > Kind::kDelete) {
    return Error(Code::kCorruption, "change of an unknown kind in a log entry");
  }
  if (change.kind == Kind::kPutItem && change.value.size() < kItemHeaderBytes) {
    return Error(Code::kCorruption, "item in a log entry is too short");
  }
  return change;
}

}  // namespace

void WriteSet::PutItem(std::string_view key, std::string_view encoded_item) {
  AddChange(changes_, Kind::kPutItem, Space::kItems, key);
  Encoder(changes_).Bytes(encoded_item);
}

void WriteSet::Put(Space space, std::string_view key, std::string_view value) {
  AddChange(changes_, Kind::kPut, space, key);
  Encoder(changes_).Bytes(value);
}

void WriteSet::Merge(Space space, std::string_view key, std::string_view operand) {
  AddChange(changes_, Kind::kMerge, space, key);
  Encoder(changes_).Bytes(operand);
}

void WriteSet::Delete(Space space, std::string_view key) {
  AddChange(changes_, Kind::kDelete, space, key);
}

std::string WriteSet::Encode() const {
  std::string out;
  out.reserve(changes_.size() + result.size() + 48);
  Encoder encoder(out);
  ORRERY_CHECK(!frozen || settled == 0);
  encoder.U8(frozen ? kFreezingVersion : settled > 0 ? kSettlingVersion : kVersion);
  encoder.U64(static_cast<uint64_t>(time.micros));
  encoder.U64(id.high);
  encoder.U64(id.low);
  encoder.Varint(ZigZag(change.bytes));
  encoder.Varint(ZigZag(change.items));
  encoder.Bytes(result);
  if (frozen) {
    encoder.Bytes(*frozen);
  } else if (settled > 0) {
    encoder.Varint(settled);
  }
  encoder.Raw(changes_);
  return out;
}

Result<WriteSetView> WriteSetView::Parse(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  if (decoder.ok() && (version < kVersion || version > kSettlingVersion)) {
    return Error(Code::kCorruption, "log entry of format version " + std::to_string(version) +
                                        ", this program reads 1 to 3");
  }
  WriteSetView view;
  view.time = {static_cast<int64_t>(decoder.U64())};
  view.id.high = decoder.U64();
  view.id.low = decoder.U64();
  view.change.bytes = UnZigZag(decoder.Varint());
  view.change.items = UnZigZag(decoder.Varint());
  view.result = decoder.Bytes();
  if (version == kFreezingVersion) {
    view.frozen = decoder.Bytes();
  } else if (version == kSettlingVersion) {
    view.settled = decoder.Varint();
  }
  view.changes_ = decoder.Rest();
  if (!decoder.ok()) {
    return Error(Code::kCorruption, "log entry is malformed");
  }
  return view;
}

Status WriteSetView::AddTo(Batch& batch, Lsn lsn) const {
  Decoder decoder(changes_);
  std::string stamped;
  while (!decoder.done()) {
    auto change = ReadChange(decoder);
    if (!change) {
      return change.error();
    }
    switch (change->kind) {
      case Kind::kPutItem:
        stamped.assign(change->value);
        StampItem(stamped.data(), lsn);
        batch.Put(change->space, change->key, stamped);
        break;
      case Kind::kPut: batch.Put(change->space, change->key, change->value); break;
      case Kind::kMerge: batch.Merge(change->space, change->key, change->value); break;
      case Kind::kDelete: batch.Delete(change->space, change->key); break;
    }
  }
  return Status::Ok();
}

Status WriteSetView::ForEach(const std::function<void(const WriteSetChange&)>& visit) const {
  Decoder decoder(changes_);
  while (!decoder.done()) {
    auto change = ReadChange(decoder);
    if (!change) {
      return change.error();
    }
    WriteSetChange seen{.space = static_cast<Space>(change->space), .key = change->key};
    if (change->kind != Kind::kDelete) {
      seen.value = change->value;
    }
    visit(seen);
  }
  return Status::Ok();
}

}  // namespace orrery::storage
