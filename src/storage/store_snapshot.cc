// The state of one group as files, and as a hash.
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "storage/log_format.h"
#include "storage/store.h"
#include "types/murmur3.h"

namespace orrery::storage {

namespace {

// A hash of a sequence of bytes of any length: murmur3 of each piece of 64 KB behind the hash of
// those before it.
class Hasher {
 public:
  void Add(std::string_view bytes) {
    while (!bytes.empty()) {
      std::string_view some = bytes.substr(0, kPieceBytes + 8 - piece_.size());
      piece_.append(some);
      bytes.remove_prefix(some.size());
      if (piece_.size() == kPieceBytes + 8) {
        Close();
      }
    }
  }
  uint64_t Finish() {
    Close();
    return hash_;
  }

 private:
  static constexpr size_t kPieceBytes = 64 << 10;
  void Close() {
    hash_ = types::Murmur128(piece_).first;
    piece_.resize(8);
    PutU64(piece_.data(), hash_);
  }
  std::string piece_ = std::string(8, '\0');
  uint64_t hash_ = 0;
};

constexpr size_t kBreathBytes = 1 << 20;

Status Describe(SnapshotFile& file) {
  std::error_code error;
  file.bytes = std::filesystem::file_size(file.path, error);
  if (error) {
    return Status(Code::kUnavailable, file.path + ": " + error.message());
  }
  auto hash = HashFile(file.path);
  file.hash = hash ? *hash : 0;
  return hash ? Status::Ok() : hash.error();
}

}  // namespace

Result<uint64_t> HashFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string piece(256 << 10, '\0');
  Hasher hasher;
  while (file.good()) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hasher.Add(std::string_view(piece).substr(0, static_cast<size_t>(file.gcount())));
  }
  if (!file.eof()) {
    return Error(Code::kUnavailable, "cannot read " + path);
  }
  return hasher.Finish();
}

Result<ReplicaRecord> Store::RecordAt(GroupId group, const Snapshot* at) {
  std::string value;
  Status status =
      state_->Get(Index(Space::kReplica), ReplicaKey(group), &value, ReadMode::kMayWait, at);
  if (!status.ok()) {
    return Error(status);
  }
  return DecodeRecord(value);
}

Result<std::string> Store::Extra(GroupId group) {
  std::string value;
  Status status = state_->Get(Index(Space::kReplica), ReplicaExtraKey(group), &value);
  if (!status.ok() && status.code() != Code::kNotFound) {
    return Error(status);
  }
  return value;
}

Result<std::string> Store::Outcomes(GroupId group) {
  std::string value;
  Status status = log_->Get(kLogSpace, AboutKey(group, About::kOutcomes), &value);
  if (!status.ok() && status.code() != Code::kNotFound) {
    return Error(status);
  }
  return value;
}

Result<std::shared_ptr<SnapshotWriter>> Store::WriteSnapshot(GroupId group,
                                                             const std::vector<Span>& spans,
                                                             const std::string& folder,
                                                             std::string extra,
                                                             std::shared_ptr<const Snapshot> at) {
  std::shared_ptr<SnapshotWriter> writer(new SnapshotWriter(*state_, group, spans, std::move(at)));
  writer->folder_ = folder;
  writer->extra_ = std::move(extra);
  writer->file_bytes_ = options_.snapshot_file_bytes;
  ORRERY_TRY(writer->record_, RecordAt(group, writer->at_.get()));
  return writer;
}

SnapshotWriter::SnapshotWriter(Engine& state, GroupId group, std::vector<Span> spans,
                               std::shared_ptr<const Snapshot> at)
    : state_(state), group_(group), spans_(std::move(spans)), at_(std::move(at)) {}

Result<SnapshotFile> SnapshotWriter::Write(
    Space space, const std::function<bool(std::string*, std::string*)>& pairs) {
  SnapshotFile file{.space = space,
                    .path = folder_ + "/" + StateSpaces()[Index(space)] + "-" +
                            std::to_string(files_++) + ".sst"};
  ORRERY_TRY_STATUS(state_.WriteIngestFile(Index(space), file.path, pairs));
  ORRERY_TRY_STATUS(Describe(file));
  return file;
}

// No iterator outlives a call: it would keep all that is written meanwhile in memory.
Result<std::optional<SnapshotFile>> SnapshotWriter::Next(const std::function<void()>& breathe) {
  if (files_ == 0) {
    int records = 0;
    return Write(Space::kReplica, [&](std::string* key, std::string* value) {
      *key = records == 0 ? ReplicaKey(group_) : ReplicaExtraKey(group_);
      *value = records == 0 ? EncodeRecord(record_) : extra_;
      return ++records <= 2;
    });
  }
  for (; span_ < spans_.size(); ++span_, from_.clear()) {
    const Span& span = spans_[span_];
    auto at = state_.NewIterator(Index(span.space), from_.empty() ? span.begin : from_, span.end,
                                 at_.get(), ReadMode::kPassing);
    at->SeekToFirst();
    ORRERY_TRY_STATUS(at->status());
    if (!at->Valid()) {
      continue;
    }
    size_t bytes = 0;
    size_t breath = 0;
    auto next = [&](std::string* key, std::string* value) {
      if (!at->Valid() || bytes >= file_bytes_) {
        return false;
      }
      *key = at->key();
      *value = at->value();
      size_t size = key->size() + value->size();
      bytes += size;
      if ((breath += size) >= kBreathBytes) {
        breath = 0;
        breathe();
      }
      at->Next();
      return true;
    };
    ORRERY_TRY(SnapshotFile file, Write(span.space, next));
    ORRERY_TRY_STATUS(at->status());
    if (at->Valid()) {
      from_ = at->key();
    } else {
      ++span_;
      from_.clear();
    }
    return file;
  }
  return std::nullopt;
}

Result<SpanHash> Store::HashSpans(GroupId group, const std::vector<Span>& spans,
                                  std::string_view extra, const Snapshot* at) {
  std::unique_ptr<Snapshot> own = at == nullptr ? state_->NewSnapshot() : nullptr;
  at = at == nullptr ? own.get() : at;
  SpanHash out;
  ORRERY_TRY(out.record, RecordAt(group, at));
  Hasher hasher;
  std::string head;
  auto add = [&](Space space, std::string_view key, std::string_view value) {
    head.clear();
    Encoder encoder(head);
    encoder.U8(Index(space));
    encoder.Varint(key.size());
    encoder.Varint(value.size());
    hasher.Add(head);
    hasher.Add(key);
    hasher.Add(value);
  };
  add(Space::kReplica, EncodeRecord(out.record), extra);
  for (const Span& span : spans) {
    auto pairs =
        state_->NewIterator(Index(span.space), span.begin, span.end, at, ReadMode::kPassing);
    for (pairs->SeekToFirst(); pairs->Valid(); pairs->Next()) {
      add(span.space, pairs->key(), pairs->value());
    }
    ORRERY_TRY_STATUS(pairs->status());
  }
  out.hash = hasher.Finish();
  return out;
}

}  // namespace orrery::storage
