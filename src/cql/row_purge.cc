// PurgeRow: what is left of a row when what died before a horizon is dropped.
#include "cql/row_format.h"

namespace orrery::cql {
namespace {

// Says of each thing in a row whether it stays, and notes what the row will be.
class Judge {
 public:
  Judge(const RowHead& head, int64_t deleted, int64_t horizon)
      : head_(head),
        deleted_(deleted),
        horizon_(horizon),
        row_hidden_(std::max(head.deletion, deleted)),
        column_hidden_(row_hidden_) {}

  RowHead Head() {
    RowHead left;
    if (head_.mark.timestamp != kNeverWritten &&
        Keep(head_.mark.timestamp <= row_hidden_, DiesOf(head_.mark))) {
      left.mark = head_.mark;
    }
    if (head_.deletion != kNeverWritten && KeepDeletion(head_.deletion, deleted_)) {
      left.deletion = head_.deletion;
    }
    newest_ = std::max(left.mark.timestamp, left.deletion);
    return left;
  }

  bool Part(const cql::Part& part) {
    if (part.column != column_) {
      column_ = part.column;
      column_hidden_ = row_hidden_;
    }
    bool keep = true;
    switch (part.kind) {
      case PartKind::kColumnDeletion:
        column_hidden_ = std::max(row_hidden_, part.stamp.timestamp);
        keep = KeepDeletion(part.stamp.timestamp, row_hidden_);
        break;
      case PartKind::kDeleted: keep = KeepDeletion(part.stamp.timestamp, column_hidden_); break;
      case PartKind::kValue:
        keep = Keep(part.stamp.timestamp <= column_hidden_, DiesOf(part.stamp));
        break;
      case PartKind::kCounter:
        // A later addition shows all of the sum again.
        hides_counter_ |= part.stamp.timestamp <= deleted_;
        newest_ = std::max(newest_, part.deleted);
        break;
    }
    newest_ = keep ? std::max(newest_, part.stamp.timestamp) : newest_;
    return keep;
  }

  bool changed() const { return changed_; }
  int64_t newest() const { return newest_; }
  int64_t late() const { return keeps_deletion_ ? head_.late : 0; }
  int64_t next() const { return next_; }
  bool hides_counter() const { return hides_counter_; }

 private:
  static int64_t DiesOf(const Stamp& stamp) {
    return stamp.ttl == 0 ? INT64_MAX : ExpiryDies(stamp);
  }
  bool KeepDeletion(int64_t timestamp, int64_t hidden) {
    const bool keep = Keep(timestamp <= hidden, DeletionDies(timestamp, head_.late));
    keeps_deletion_ |= keep;
    return keep;
  }
  bool Keep(bool hidden, int64_t dies) {
    const bool keep = !hidden && dies > horizon_;
    changed_ |= !keep;
    next_ = keep ? std::min(next_, dies) : next_;
    return keep;
  }

  const RowHead& head_;
  const int64_t deleted_;
  const int64_t horizon_;
  const int64_t row_hidden_;
  uint32_t column_ = 0;
  int64_t column_hidden_;
  bool changed_ = false;
  bool keeps_deletion_ = false;
  bool hides_counter_ = false;
  int64_t newest_ = kNeverWritten;
  int64_t next_ = INT64_MAX;
};

}  // namespace

Result<Remains> PurgeRow(std::string_view row, int64_t deleted, int64_t horizon) {
  PartReader reader(row);
  Judge judge(reader.head(), deleted, horizon);
  RowHead head = judge.Head();
  bool parts = false;
  while (reader.Next()) {
    parts |= judge.Part(reader.part());
  }
  if (!reader.ok()) {
    return Error(Code::kCorruption, "a row is malformed");
  }
  Remains remains{.changed = judge.changed(),
                  .value = {},
                  .next = judge.next(),
                  .hides_counter = judge.hides_counter()};
  const bool empty =
      !parts && head.mark.timestamp == kNeverWritten && head.deletion == kNeverWritten;
  // A write of nothing leaves a row without anything.
  remains.changed |= empty;
  if (!remains.changed || empty) {
    return remains;
  }
  head.newest = judge.newest();
  head.late = judge.late();
  PartReader again(row);
  Judge second(again.head(), deleted, horizon);
  second.Head();
  std::string& left = remains.value.emplace();
  left.reserve(row.size());
  PartWriter writer(left, head);
  while (again.Next()) {
    if (second.Part(again.part())) {
      writer.Add(again.part());
    }
  }
  return remains;
}

}  // namespace orrery::cql
