#include "storage/log_format.h"

#include "base/bytes.h"

namespace orrery::storage {

namespace {

constexpr uint8_t kRecordVersion = 1;
constexpr uint8_t kFrozenRecordVersion = 2;
constexpr uint8_t kAboutVersion = 1;
constexpr uint8_t kEntryVersion = 2;
constexpr uint8_t kEntryVersionOfCommands = 1;  // without a kind

void EncodeSpans(const std::vector<Span>& spans, Encoder& encoder) {
  encoder.Varint(spans.size());
  for (const Span& span : spans) {
    encoder.U8(Index(span.space));
    encoder.Bytes(span.begin);
    encoder.Bytes(span.end);
  }
}

std::vector<Span> DecodeSpans(Decoder& decoder) {
  std::vector<Span> spans;
  for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
    uint8_t space = decoder.U8();
    std::string_view begin = decoder.Bytes();
    std::string_view end = decoder.Bytes();
    if (space > Index(Space::kCatalog)) {
      decoder.Fail();
    }
    spans.push_back({static_cast<Space>(space), std::string(begin), std::string(end)});
  }
  return spans;
}

std::unexpected<Status> Malformed(const std::string& what) {
  return Error(Code::kCorruption, what + " is malformed or newer than this program");
}

}  // namespace

EntryKey::EntryKey(GroupId group, Lsn index) {
  PutU64(bytes_, group.value());
  PutU64(bytes_ + 8, index.value());
}

std::string AboutKey(GroupId group, About kind) {
  std::string key{std::string_view(EntryKey(group, Lsn(0)))};
  key.push_back(static_cast<char>(kind));
  return key;
}

Result<LogKey> ParseLogKey(std::string_view key) {
  Decoder decoder(key);
  LogKey parsed;
  parsed.group = GroupId(decoder.U64());
  parsed.index = Lsn(decoder.U64());
  if (decoder.ok() && parsed.index == Lsn(0)) {
    parsed.about = static_cast<About>(decoder.U8());
  }
  if (!decoder.done() ||
      (parsed.about && (*parsed.about < About::kIdentity || *parsed.about > About::kOutcomes))) {
    return Malformed("key " + ToHex(key) + " of the log");
  }
  return parsed;
}

void EncodeEntry(const LogEntry& entry, std::string& out) {
  out.clear();
  Encoder encoder(out);
  encoder.U8(kEntryVersion);
  encoder.U64(entry.term);
  encoder.U8(static_cast<uint8_t>(entry.kind));
  if (entry.payload != nullptr) {
    encoder.Raw(*entry.payload);
  }
}

Result<EntryView> DecodeEntry(const LogKey& key, std::string_view value) {
  Decoder decoder(value);
  EntryView entry;
  uint8_t version = decoder.U8();
  entry.term = decoder.U64();
  if (version == kEntryVersion) {
    entry.kind = static_cast<EntryKind>(decoder.U8());
  }
  entry.payload = decoder.Rest();
  if (!decoder.ok() || (version != kEntryVersion && version != kEntryVersionOfCommands) ||
      entry.kind < EntryKind::kCommand || entry.kind > EntryKind::kChange) {
    return Malformed("log entry " + key.index.ToString() + " of group " + key.group.ToString());
  }
  return entry;
}

std::string EncodeIdentity(const ReplicaIdentity& identity) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAboutVersion);
  encoder.U64(identity.id.value());
  encoder.U64(identity.generation);
  EncodeSpans(identity.spans, encoder);
  return out;
}

Result<ReplicaIdentity> DecodeIdentity(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  ReplicaIdentity identity;
  identity.id = ReplicaId(decoder.U64());
  identity.generation = decoder.U64();
  identity.spans = DecodeSpans(decoder);
  if (!decoder.done() || version != kAboutVersion) {
    return Malformed("identity of a replica");
  }
  return identity;
}

std::string EncodeEnded(ReplicaId replica) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAboutVersion);
  encoder.U64(replica.value());
  return out;
}

Result<ReplicaId> DecodeEnded(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  ReplicaId replica(decoder.U64());
  if (!decoder.done() || version != kAboutVersion) {
    return Malformed("the id of a replica that ended");
  }
  return replica;
}

std::string EncodeHardState(const HardState& hard) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAboutVersion);
  encoder.U64(hard.term);
  encoder.U64(hard.vote);
  return out;
}

Result<HardState> DecodeHardState(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  HardState hard;
  hard.term = decoder.U64();
  hard.vote = decoder.U64();
  if (!decoder.done() || version != kAboutVersion) {
    return Malformed("term and vote of a replica");
  }
  return hard;
}

std::string EncodeBase(const StoredBase& stored) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAboutVersion);
  encoder.U64(stored.base.index.value());
  encoder.U64(stored.base.term);
  encoder.Bytes(stored.base.configuration);
  encoder.U64(stored.base.configuration_index.value());
  encoder.Bool(stored.born);
  return out;
}

Result<StoredBase> DecodeBase(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  StoredBase stored;
  stored.base.index = Lsn(decoder.U64());
  stored.base.term = decoder.U64();
  stored.base.configuration = decoder.Bytes();
  stored.base.configuration_index = Lsn(decoder.U64());
  stored.born = decoder.Bool();
  if (!decoder.done() || version != kAboutVersion) {
    return Malformed("base of a log");
  }
  return stored;
}

std::string EncodeMark(const GroupMark& mark) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAboutVersion);
  encoder.U8(static_cast<uint8_t>(mark.kind));
  encoder.U64(mark.snapshot_id);
  EncodeSpans(mark.spans, encoder);
  encoder.Bool(mark.plan.has_value());
  if (mark.plan) {
    encoder.Bytes(EncodeBase({mark.plan->base}));
    encoder.Varint(mark.plan->files.size());
    for (const Engine::IngestFile& file : mark.plan->files) {
      encoder.U8(file.space);
      encoder.Bytes(file.path);
    }
  }
  return out;
}

Result<GroupMark> DecodeMark(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  GroupMark mark;
  mark.kind = static_cast<GroupMark::Kind>(decoder.U8());
  mark.snapshot_id = decoder.U64();
  mark.spans = DecodeSpans(decoder);
  if (decoder.Bool()) {
    ORRERY_TRY(StoredBase base, DecodeBase(decoder.Bytes()));
    mark.plan = {.base = std::move(base.base), .files = {}};
    uint64_t files = decoder.Varint();
    for (uint64_t i = 0; i < files && decoder.ok(); ++i) {
      SpaceIndex space = decoder.U8();
      mark.plan->files.push_back({space, std::string(decoder.Bytes())});
    }
  }
  if (!decoder.done() || version != kAboutVersion || mark.kind < GroupMark::Kind::kInstalling ||
      mark.kind > GroupMark::Kind::kDiscarding) {
    return Malformed("mark of an install");
  }
  return mark;
}

std::string EncodeRecord(const ReplicaRecord& record) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(record.frozen.empty() ? kRecordVersion : kFrozenRecordVersion);
  encoder.U64(record.applied.value());
  encoder.U64(static_cast<uint64_t>(record.totals.bytes));
  encoder.U64(static_cast<uint64_t>(record.totals.items));
  encoder.U64(static_cast<uint64_t>(record.time.micros));
  if (!record.frozen.empty()) {
    encoder.Bytes(record.frozen);
  }
  return out;
}

Result<ReplicaRecord> DecodeRecord(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  ReplicaRecord record;
  record.applied = Lsn(decoder.U64());
  record.totals.bytes = static_cast<int64_t>(decoder.U64());
  record.totals.items = static_cast<int64_t>(decoder.U64());
  record.time = {static_cast<int64_t>(decoder.U64())};
  if (version == kFrozenRecordVersion) {
    record.frozen = decoder.Bytes();
  }
  if (!decoder.ok() || (version != kRecordVersion && version != kFrozenRecordVersion)) {
    return Malformed("replica record");
  }
  return record;
}

}  // namespace orrery::storage
