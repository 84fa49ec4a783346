#include "cql/row.h"

#include <algorithm>
#include <utility>

#include "cql/row_format.h"

namespace orrery::cql {
namespace {

// Rows of up to so many cells are read with one allocation.
constexpr size_t kUsualCells = 8;

// One form for each stamp: without a ttl there is no expiry.
Stamp Normal(const Stamp& stamp) { return stamp.ttl > 0 ? stamp : Stamp{stamp.timestamp}; }

std::unexpected<Status> MalformedRow() { return Error(Code::kCorruption, "a row is malformed"); }

}  // namespace

void RowWriter::Mark(const Stamp& stamp) {
  Stamp mark = Normal(stamp);
  newest_ = std::max(newest_, mark.timestamp);
  if (CompareStamps(mark, mark_) > 0) {
    mark_ = mark;
  }
}

void RowWriter::DeleteRow(int64_t timestamp) {
  newest_ = std::max(newest_, timestamp);
  deletion_ = std::max(deletion_, timestamp);
}

void RowWriter::Set(uint32_t column, std::string_view path, const Stamp& stamp,
                    std::string_view value) {
  Put(static_cast<uint8_t>(PartKind::kValue), column, path, Normal(stamp), value, 0);
}

void RowWriter::Delete(uint32_t column, std::string_view path, int64_t timestamp) {
  Put(static_cast<uint8_t>(PartKind::kDeleted), column, path, Stamp{timestamp}, {}, 0);
}

void RowWriter::DeleteColumn(uint32_t column, int64_t timestamp) {
  Put(static_cast<uint8_t>(PartKind::kColumnDeletion), column, {}, Stamp{timestamp}, {}, 0);
}

void RowWriter::Add(uint32_t column, int64_t delta, int64_t timestamp) {
  Put(static_cast<uint8_t>(PartKind::kCounter), column, {}, Stamp{timestamp}, {}, delta);
}

void RowWriter::Late(int64_t now) { late_ = std::max(late_, now); }

void RowWriter::Put(uint8_t kind, uint32_t column, std::string_view path, const Stamp& stamp,
                    std::string_view value, int64_t count) {
  newest_ = std::max(newest_, stamp.timestamp);
  entries_.push_back({kind, column, bytes_.size(), path.size(), value.size(), stamp, count});
  bytes_.append(path);
  bytes_.append(value);
}

std::string RowWriter::Finish() {
  std::vector<Part> parts;
  parts.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    std::string_view bytes = std::string_view(bytes_).substr(entry.path_at);
    parts.push_back({.kind = static_cast<PartKind>(entry.kind),
                     .column = entry.column,
                     .path = bytes.substr(0, entry.path_size),
                     .stamp = entry.stamp,
                     .value = bytes.substr(entry.path_size, entry.value_size),
                     .count = entry.count});
  }
  // Within one write deletions come before additions.
  auto before = [](const Part& a, const Part& b) {
    int order = ComparePlaces(a, b);
    return order != 0 ? order < 0 : a.kind < b.kind;
  };
  if (!std::ranges::is_sorted(parts, before)) {
    std::ranges::sort(parts, before);
  }
  std::string row;
  row.reserve(bytes_.size() + 16 + 8 * parts.size());
  PartFolder folder(row, {newest_, mark_, deletion_, late_}, -1);
  for (const Part& part : parts) {
    folder.Add(part, 0);
  }
  folder.Finish();
  *this = RowWriter();
  return row;
}

namespace {

// Calls `cell` for each part that is alive, until it returns false; then true. False: malformed.
template <typename Visit>
bool ForEachLive(PartReader& reader, int64_t now, int64_t deleted, const Visit& cell) {
  const int64_t row_hidden = std::max(reader.head().deletion, deleted);
  uint32_t column = 0;
  int64_t column_hidden = row_hidden;
  while (reader.Next()) {
    const Part& part = reader.part();
    if (part.column != column) {
      column = part.column;
      column_hidden = row_hidden;
    }
    bool alive = false;
    switch (part.kind) {
      case PartKind::kColumnDeletion:
        column_hidden = std::max(row_hidden, part.stamp.timestamp);
        break;
      case PartKind::kDeleted: break;
      case PartKind::kValue:
        alive = part.stamp.timestamp > column_hidden && part.stamp.AliveAt(now);
        break;
      case PartKind::kCounter:
        // The deletions of its row have been counted in when it was merged.
        alive = part.stamp.timestamp > deleted;
        break;
    }
    if (alive && !cell(part)) {
      return true;
    }
  }
  return reader.ok();
}

bool HasMark(const RowHead& head, int64_t now, int64_t deleted) {
  return head.mark.timestamp > std::max(head.deletion, deleted) && head.mark.AliveAt(now);
}

}  // namespace

Status ReadRow(std::string_view row, int64_t now, int64_t deleted, LiveRow& live) {
  live.mark.reset();
  live.cells.clear();
  PartReader reader(row);
  if (HasMark(reader.head(), now, deleted)) {
    live.mark = reader.head().mark;
  }
  auto take = [&live](const Part& part) {
    if (live.cells.empty()) {
      live.cells.reserve(kUsualCells);
    }
    const bool counter = part.kind == PartKind::kCounter;
    live.cells.push_back(
        {part.column, part.path, part.stamp, counter, counter ? part.count : 0, part.value});
    return true;
  };
  return ForEachLive(reader, now, deleted, take) ? Status::Ok() : MalformedRow().error();
}

Result<LiveRow> ReadRow(std::string_view row, int64_t now, int64_t deleted) {
  LiveRow live;
  ORRERY_TRY_STATUS(ReadRow(row, now, deleted, live));
  return live;
}

Result<bool> RowExists(std::string_view row, int64_t now, int64_t deleted) {
  PartReader reader(row);
  bool exists = HasMark(reader.head(), now, deleted);
  auto found = [&exists](const Part&) {
    exists = true;
    return false;
  };
  if (!reader.ok() || (!exists && !ForEachLive(reader, now, deleted, found))) {
    return MalformedRow();
  }
  return exists;
}

Result<int64_t> NewestIn(std::string_view row) {
  PartReader reader(row);
  if (!reader.ok()) {
    return MalformedRow();
  }
  return reader.head().newest;
}

Result<int64_t> OldestIn(std::string_view row) {
  PartReader reader(row);
  int64_t oldest = INT64_MAX;
  for (int64_t timestamp : {reader.head().mark.timestamp, reader.head().deletion}) {
    oldest = timestamp == kNeverWritten ? oldest : std::min(oldest, timestamp);
  }
  while (reader.Next()) {
    oldest = std::min(oldest, reader.part().stamp.timestamp);
  }
  if (!reader.ok()) {
    return MalformedRow();
  }
  return oldest;
}

}  // namespace orrery::cql
