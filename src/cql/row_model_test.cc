// Random writes in random groups: all ways to merge them give the same bytes, and what is read
// from them is what a plain model of Cassandra's rules gives.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cql/row.h"

namespace orrery::cql {
namespace {

enum class Kind { kMark, kDeleteRow, kSet, kDelete, kDeleteColumn, kAdd };

// One call of a RowWriter.
struct Op {
  Kind kind;
  uint32_t column = 0;
  std::string path;
  Stamp stamp;
  std::string value;
  int64_t delta = 0;
};
using Write = std::vector<Op>;
using Place = std::pair<uint32_t, std::string>;

// What a test expects to see.
struct Cell {
  Stamp stamp;
  std::string value;
  int64_t count = 0;
  bool operator==(const Cell&) const = default;
};
struct View {
  std::optional<Stamp> mark;
  std::map<Place, Cell> cells;
  bool operator==(const View&) const = default;
};

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  size_t Below(size_t n) { return random_.Next() % n; }
  template <typename T>
  const T& Of(const std::vector<T>& values) {
    return values[Below(values.size())];
  }
  template <typename T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[Below(i)]);
    }
  }

 private:
  SeededRandom random_;
};

Stamp RandomStamp(Dice& dice) {
  Stamp stamp{static_cast<int64_t>(dice.Below(8)) - 2};
  if (dice.Below(3) == 0) {
    stamp.ttl = static_cast<int32_t>(1 + dice.Below(3));
    stamp.expires = static_cast<int64_t>(100 + dice.Below(3));
  }
  return stamp;
}

Op RandomOp(Dice& dice) {
  static const std::vector<Kind> kKinds = {Kind::kMark, Kind::kDeleteRow,    Kind::kSet,
                                           Kind::kSet,  Kind::kSet,          Kind::kSet,
                                           Kind::kSet,  Kind::kDeleteColumn, Kind::kDelete};
  static const std::vector<uint32_t> kColumns = {0, 1, 5, 900};
  static const std::vector<std::string> kPaths = {"", "a", "ab", "b\xFF"};
  static const std::vector<std::string> kValues = {"", "1", "2", "\x80", "22"};
  Op op{dice.Of(kKinds), dice.Of(kColumns), dice.Of(kPaths), RandomStamp(dice), dice.Of(kValues)};
  // Deletions of rows hide everything too soon if they are as new as the rest.
  if (op.kind == Kind::kDeleteRow) {
    op.stamp.timestamp -= 4;
  }
  return op;
}

Op RandomCounterOp(Dice& dice) {
  static const std::vector<Kind> kKinds = {Kind::kAdd,       Kind::kAdd,         Kind::kAdd,
                                           Kind::kAdd,       Kind::kAdd,         Kind::kDelete,
                                           Kind::kDeleteRow, Kind::kDeleteColumn};
  Op op{dice.Of(kKinds), static_cast<uint32_t>(dice.Below(3)), ""};
  op.stamp.timestamp = static_cast<int64_t>(dice.Below(8)) - 2;
  op.delta = static_cast<int64_t>(dice.Below(2000)) - 1000;
  return op;
}

std::string Encode(const Write& write) {
  RowWriter row;
  for (const Op& op : write) {
    switch (op.kind) {
      case Kind::kMark: row.Mark(op.stamp); break;
      case Kind::kDeleteRow: row.DeleteRow(op.stamp.timestamp); break;
      case Kind::kSet: row.Set(op.column, op.path, op.stamp, op.value); break;
      case Kind::kDelete: row.Delete(op.column, op.path, op.stamp.timestamp); break;
      case Kind::kDeleteColumn: row.DeleteColumn(op.column, op.stamp.timestamp); break;
      case Kind::kAdd: row.Add(op.column, op.delta, op.stamp.timestamp); break;
    }
  }
  return row.Finish();
}

// Merges neighbours, some at a time, until one row is left.
std::string MergeInGroups(std::vector<std::string> rows, Dice& dice) {
  while (rows.size() > 1) {
    size_t from = dice.Below(rows.size() - 1);
    size_t count = 2 + dice.Below(std::min<size_t>(rows.size() - from - 1, 4));
    bool existing = dice.Below(2) == 0;
    std::vector<std::string_view> operands(rows.begin() + from + (existing ? 1 : 0),
                                           rows.begin() + from + count);
    std::string merged =
        MergeRows(existing ? std::optional<std::string_view>(rows[from]) : std::nullopt, operands);
    rows[from] = std::move(merged);
    rows.erase(rows.begin() + from + 1, rows.begin() + from + count);
  }
  return rows[0];
}

// By timestamp; then deleted, expiring, live; then the later expiry, the shorter ttl, the value.
auto Rank(const Op& op) {
  int rank = op.kind == Kind::kDelete ? 2 : op.stamp.ttl != 0 ? 1 : 0;
  if (rank == 2) {
    return std::tuple(op.stamp.timestamp, rank, int64_t{0}, 0, std::string());
  }
  return std::tuple(op.stamp.timestamp, rank, op.stamp.expires, -op.stamp.ttl, op.value);
}

// What there is to see after all these writes, in whatever order.
View Model(const std::vector<Write>& writes, int64_t now, int64_t deleted) {
  int64_t row_deleted = deleted;
  std::map<uint32_t, int64_t> column_deleted;
  const Op* mark = nullptr;
  std::map<Place, const Op*> best;
  for (const Write& write : writes) {
    for (const Op& op : write) {
      if (op.kind == Kind::kDeleteRow) {
        row_deleted = std::max(row_deleted, op.stamp.timestamp);
      } else if (op.kind == Kind::kDeleteColumn) {
        auto entry = column_deleted.try_emplace(op.column, op.stamp.timestamp).first;
        entry->second = std::max(entry->second, op.stamp.timestamp);
      } else if (op.kind == Kind::kMark) {
        auto rank = [](const Op& mark) {
          return std::tuple(mark.stamp.timestamp, mark.stamp.ttl != 0, mark.stamp.expires,
                            -mark.stamp.ttl);
        };
        mark = mark == nullptr || rank(op) > rank(*mark) ? &op : mark;
      } else {
        const Op*& cell = best[{op.column, op.path}];
        cell = cell == nullptr || Rank(op) > Rank(*cell) ? &op : cell;
      }
    }
  }
  View view;
  if (mark != nullptr && mark->stamp.timestamp > row_deleted && mark->stamp.AliveAt(now)) {
    view.mark = mark->stamp;
  }
  for (const auto& [place, op] : best) {
    auto hidden = column_deleted.find(place.first);
    if (op->kind == Kind::kSet && op->stamp.timestamp > row_deleted &&
        (hidden == column_deleted.end() || op->stamp.timestamp > hidden->second) &&
        op->stamp.AliveAt(now)) {
      view.cells[place] = {op->stamp, op->value};
    }
  }
  return view;
}

// The same of counters: each write in its turn, its deletions before its additions.
View CounterModel(const std::vector<Write>& writes, int64_t deleted) {
  std::map<Place, Cell> counters;
  for (const Write& write : writes) {
    for (const Op& op : write) {
      if (op.kind == Kind::kDeleteRow) {
        counters.clear();
      } else if (op.kind == Kind::kDelete || op.kind == Kind::kDeleteColumn) {
        counters.erase({op.column, ""});
      }
    }
    for (const Op& op : write) {
      if (op.kind == Kind::kAdd) {
        Cell& cell = counters[{op.column, ""}];
        cell.count += op.delta;
        cell.stamp.timestamp = std::max(cell.stamp.timestamp, op.stamp.timestamp);
      }
    }
  }
  std::erase_if(counters, [deleted](const auto& counter) {
    return counter.second.stamp.timestamp <= deleted;
  });
  return {.cells = counters};
}

View Read(std::string_view bytes, int64_t now, int64_t deleted) {
  auto row = ReadRow(bytes, now, deleted);
  EXPECT_TRUE(row);
  View view;
  if (!row) {
    return view;
  }
  view.mark = row->mark;
  std::optional<Place> last;
  for (const CellView& cell : row->cells) {
    Place place(cell.column, cell.path);
    EXPECT_TRUE(!last || *last < place);
    last = place;
    view.cells[place] = {cell.stamp, std::string(cell.value), cell.count};
  }
  return view;
}

std::vector<Write> RandomWrites(Dice& dice, Op (*random_op)(Dice&)) {
  std::vector<Write> writes(1 + dice.Below(9));
  for (Write& write : writes) {
    for (size_t ops = dice.Below(5); ops-- > 0;) {
      write.push_back(random_op(dice));
    }
  }
  return writes;
}

std::vector<std::string> EncodeAll(const std::vector<Write>& writes) {
  std::vector<std::string> rows;
  for (const Write& write : writes) {
    rows.push_back(Encode(write));
  }
  return rows;
}

TEST(RowModelTest, WritesInAnyOrderAndGroupsGiveTheSameBytesAndWhatTheModelGives) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    std::vector<Write> writes = RandomWrites(dice, RandomOp);
    std::vector<std::string> rows = EncodeAll(writes);
    std::string merged = MergeInGroups(rows, dice);
    ASSERT_EQ(MergeInGroups(rows, dice), merged);
    dice.Shuffle(rows);
    ASSERT_EQ(MergeInGroups(rows, dice), merged);
    // The calls of all of them in one write, and the same writes once more.
    Write all;
    for (const Write& write : writes) {
      all.insert(all.end(), write.begin(), write.end());
    }
    dice.Shuffle(all);
    ASSERT_EQ(Encode(all), merged);
    rows.push_back(dice.Of(rows));
    ASSERT_EQ(MergeInGroups(rows, dice), merged);

    for (int64_t deleted : {kNeverWritten, int64_t{1}}) {
      int64_t now = static_cast<int64_t>(99 + dice.Below(5));
      ASSERT_EQ(Read(merged, now, deleted), Model(writes, now, deleted));
    }
  }
}

TEST(RowModelTest, CountersInAnyGroupsGiveTheSameBytesAndWhatTheModelGives) {
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    std::vector<Write> writes = RandomWrites(dice, RandomCounterOp);
    std::vector<std::string> rows = EncodeAll(writes);
    std::string merged = MergeInGroups(rows, dice);
    ASSERT_EQ(MergeInGroups(rows, dice), merged);
    ASSERT_EQ(MergeInGroups(rows, dice), merged);
    for (int64_t deleted : {kNeverWritten, int64_t{1}}) {
      ASSERT_EQ(Read(merged, 0, deleted), CounterModel(writes, deleted));
    }
  }
}

// What was purged, or as it was if there was nothing to drop.
std::optional<std::string> Purged(const std::string& row, int64_t horizon) {
  auto remains = PurgeRow(row, kNeverWritten, horizon);
  EXPECT_TRUE(remains);
  return remains && !remains->changed ? std::optional(row) : remains->value;
}

// Merged with what is there, if anything is.
std::string MergeOnto(const std::optional<std::string>& row, const std::vector<std::string>& rest) {
  std::vector<std::string_view> operands(rest.begin(), rest.end());
  return MergeRows(row, operands);
}

TEST(RowModelTest, APurgeChangesNothingThatIsSeenNowOrLater) {
  constexpr int64_t kSecond = 1'000'000;
  size_t gone = 0;
  size_t changed = 0;
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    Dice dice(seed);
    const bool counters = dice.Below(4) == 0;
    auto random_op = counters ? RandomCounterOp : RandomOp;
    std::vector<std::string> rows = EncodeAll(RandomWrites(dice, random_op));
    std::string before = MergeInGroups(rows, dice);
    const int64_t now = static_cast<int64_t>(99 + dice.Below(5));
    const int64_t horizon =
        dice.Below(2) == 0 ? static_cast<int64_t>(dice.Below(8)) - 2 : now * kSecond;
    std::optional<std::string> after = Purged(before, horizon);
    gone += !after;
    changed += after && *after != before;
    ASSERT_EQ(after ? Read(*after, now, kNeverWritten) : View(), Read(before, now, kNeverWritten));
    if (after) {
      ASSERT_EQ(Purged(*after, horizon), after);
      const int64_t next = PurgeRow(*after, kNeverWritten, horizon)->next;
      ASSERT_GT(next, horizon);
      ASSERT_EQ(Purged(*after, next - 1), after);
      ASSERT_TRUE(next == INT64_MAX || Purged(*after, next) != after);
    }
    // Whatever comes later and is not older than the horizon.
    std::vector<Write> later = RandomWrites(dice, random_op);
    for (Write& write : later) {
      for (Op& op : write) {
        op.stamp.timestamp += horizon + 6;
      }
    }
    rows = EncodeAll(later);
    ASSERT_EQ(Read(MergeOnto(after, rows), now, kNeverWritten),
              Read(MergeOnto(before, rows), now, kNeverWritten));
  }
  EXPECT_GT(gone, 1000u);
  EXPECT_GT(changed, 1000u);
}

}  // namespace
}  // namespace orrery::cql
