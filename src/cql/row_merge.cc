// MergeRows: all inputs are read side by side, so that a row of many writes is made in one pass.
#include <algorithm>
#include <utility>
#include <vector>

#include "cql/row_format.h"

namespace orrery::cql {
namespace {

// One input, at a part of it.
struct Cursor {
  PartReader reader;
  int64_t write;  // its place in the order of merging
};

// The cursors that have a part, the first place at the front; of equal places the older write.
class Heap {
 public:
  explicit Heap(std::vector<Cursor>& cursors) {
    cursors_.reserve(cursors.size());
    for (Cursor& cursor : cursors) {
      if (cursor.reader.Next()) {
        cursors_.push_back(&cursor);
      }
    }
    for (size_t i = cursors_.size() / 2; i-- > 0;) {
      SiftDown(i);
    }
  }
  bool empty() const { return cursors_.empty(); }
  Cursor& front() { return *cursors_.front(); }
  // Moves the front to its next part. False: it is malformed.
  bool Advance() {
    PartReader& reader = front().reader;
    if (!reader.Next()) {
      if (!reader.ok()) {
        return false;
      }
      cursors_.front() = cursors_.back();
      cursors_.pop_back();
    }
    SiftDown(0);
    return true;
  }

 private:
  static bool Before(const Cursor& a, const Cursor& b) {
    int order = ComparePlaces(a.reader.part(), b.reader.part());
    return order != 0 ? order < 0 : a.write < b.write;
  }
  void SiftDown(size_t i) {
    for (size_t child = 2 * i + 1; child < cursors_.size(); child = 2 * i + 1) {
      if (child + 1 < cursors_.size() && Before(*cursors_[child + 1], *cursors_[child])) {
        ++child;
      }
      if (!Before(*cursors_[child], *cursors_[i])) {
        return;
      }
      std::swap(cursors_[child], cursors_[i]);
      i = child;
    }
  }

  std::vector<Cursor*> cursors_;
};

// Nothing: one of them is malformed.
std::optional<std::string> MergeParts(const Inputs& inputs) {
  std::vector<Cursor> cursors;
  cursors.reserve(inputs.size());
  RowHead head;
  int64_t last_deletion = -1;
  size_t size = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    size += inputs[i].size();
    PartReader& reader =
        cursors.emplace_back(PartReader(inputs[i]), static_cast<int64_t>(i)).reader;
    const RowHead& other = reader.head();
    head.newest = std::max(head.newest, other.newest);
    head.deletion = std::max(head.deletion, other.deletion);
    head.late = std::max(head.late, other.late);
    if (other.deletion != kNeverWritten) {
      last_deletion = static_cast<int64_t>(i);
    }
    if (CompareStamps(other.mark, head.mark) > 0) {
      head.mark = other.mark;
    }
  }
  Heap heap(cursors);
  if (!std::ranges::all_of(cursors, [](const Cursor& cursor) { return cursor.reader.ok(); })) {
    return std::nullopt;
  }
  std::string merged;
  merged.reserve(size + 16);
  PartFolder folder(merged, head, last_deletion);
  while (!heap.empty()) {
    folder.Add(heap.front().reader.part(), heap.front().write);
    if (!heap.Advance()) {
      return std::nullopt;
    }
  }
  folder.Finish();
  return merged;
}

// All inputs, one after the other: what cannot be read is not thrown away.
std::string Malformed(const Inputs& inputs) {
  std::string kept;
  Encoder encoder(kept);
  encoder.U8(kMalformedTag);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string_view input = inputs[i];
    if (input.starts_with(static_cast<char>(kMalformedTag))) {
      encoder.Raw(input.substr(1));
    } else {
      encoder.Bytes(input);
    }
  }
  return kept;
}

}  // namespace

std::string MergeRows(std::optional<std::string_view> existing,
                      std::span<const std::string_view> operands) {
  Inputs inputs(existing, operands);
  if (inputs.size() == 1) {
    return std::string(inputs[0]);
  }
  size_t rows = 0;
  size_t deletions = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint8_t tag = inputs[i].empty() ? kMalformedTag : static_cast<uint8_t>(inputs[i][0]);
    rows += tag == kRowTag;
    deletions += tag == kDeletionsTag;
  }
  std::optional<std::string> merged;
  if (rows == inputs.size()) {
    merged = MergeParts(inputs);
  } else if (deletions == inputs.size()) {
    merged = MergeDeletions(inputs);
  }
  return merged ? *std::move(merged) : Malformed(inputs);
}

}  // namespace orrery::cql
