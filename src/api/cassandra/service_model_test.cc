// Random writes with random timestamps, times to live, deletions and purges, compared with a model
// of Cassandra's rules that keeps every write, until it is purged, and looks at all of them for
// each answer.
#include <algorithm>
#include <map>
#include <set>

#include "api/cassandra/test_service.h"
#include "base/random.h"

namespace orrery::cassandra {
namespace {

// A cell that was written. Of equal timestamps the deleted one wins, then the one that expires,
// then the later expiry, then the shorter time to live, then the greater value.
struct Write {
  int64_t timestamp = 0;
  bool deleted = false;
  int64_t expires = 0;  // 0: never
  int32_t ttl = 0;
  std::string value = "";

  auto Rank() const { return std::tuple(timestamp, deleted, expires != 0, expires, -ttl, value); }
};

constexpr int64_t kNever = INT64_MIN;
constexpr int64_t kSecond = 1'000'000;

// The least horizon, in microseconds, at which a deletion may go. `late`: seconds, of all deletions
// that stand with it.
int64_t Dies(int64_t timestamp, int64_t late) {
  return std::max(timestamp + 1, late == 0 ? kNever : (late + 1) * kSecond);
}

class Cell {
 public:
  void Add(Write write) { writes_.push_back(std::move(write)); }
  // Only the best is kept, and not if it is hidden.
  void Normalize(int64_t hidden) {
    auto best = std::ranges::max_element(writes_, {}, &Write::Rank);
    writes_ = best == writes_.end() || best->timestamp <= hidden ? std::vector<Write>()
                                                                 : std::vector{*best};
  }
  // Drops it if it is hidden or dead. REQUIRES: it was normalized.
  bool Purge(int64_t hidden, int64_t late, int64_t limit) {
    const bool gone = !writes_.empty() && (writes_[0].timestamp <= hidden || IsDead(late, limit));
    writes_.resize(gone ? 0 : writes_.size());
    return gone;
  }
  bool deleted() const { return !writes_.empty() && writes_[0].deleted; }
  // What is to be seen of it, where everything up to `hidden` is gone.
  const Write* At(int64_t now, int64_t hidden) const {
    auto best = std::ranges::max_element(writes_, {}, &Write::Rank);
    bool alive = best != writes_.end() && best->timestamp > hidden && !best->deleted &&
                 (best->expires == 0 || now < best->expires);
    return alive ? &*best : nullptr;
  }

 private:
  bool IsDead(int64_t late, int64_t limit) const {
    const Write& write = writes_[0];
    return write.deleted
               ? Dies(write.timestamp, late) <= limit
               : write.expires != 0 && write.timestamp < limit && write.expires * kSecond <= limit;
  }
  std::vector<Write> writes_;
};

struct Row {
  int64_t deleted = kNever;
  int64_t late = 0;  // when the last deletion came that was old, in seconds
  Cell mark;
  Cell v;
  int64_t n_deleted = kNever;
  std::map<int, Cell> n;
};

struct Partition {
  int64_t deleted = kNever;
  struct Range {
    int from;
    int to;  // both are in it
    int64_t timestamp;
  };
  std::vector<Range> ranges;
  int64_t late = 0;
  Cell s;
  int64_t s_late = 0;
  std::map<int, Row> rows;

  int64_t HiddenAt(int b) const {
    int64_t hidden = deleted;
    for (const Range& range : ranges) {
      hidden = b >= range.from && b <= range.to ? std::max(hidden, range.timestamp) : hidden;
    }
    return hidden;
  }
};

// `hidden`: by deletions of the partition.
void Purge(Row& row, int64_t hidden, int64_t limit) {
  auto cells = [&row](auto visit) {
    visit(row.mark, row.deleted);
    visit(row.v, row.deleted);
    for (auto& [element, cell] : row.n) {
      visit(cell, std::max(row.deleted, row.n_deleted));
    }
  };
  row.n_deleted = row.n_deleted <= row.deleted ? kNever : row.n_deleted;
  cells([](Cell& cell, int64_t hidden_in_row) { cell.Normalize(hidden_in_row); });
  bool changed = false;
  bool deletions = false;
  cells([&](Cell& cell, int64_t) {
    changed |= cell.Purge(hidden, row.late, limit);
    deletions |= cell.deleted();
  });
  for (int64_t* deletion : {&row.deleted, &row.n_deleted}) {
    if (*deletion != kNever && (*deletion <= hidden || Dies(*deletion, row.late) <= limit)) {
      *deletion = kNever;
      changed = true;
    }
    deletions |= *deletion != kNever;
  }
  row.late = changed && !deletions ? 0 : row.late;
}

void Purge(Partition& partition, int64_t limit) {
  for (auto& [b, row] : partition.rows) {
    Purge(row, partition.HiddenAt(b), limit);
  }
  partition.s.Normalize(kNever);
  if (partition.s.Purge(partition.deleted, partition.s_late, limit)) {
    partition.s_late = 0;
  }
  std::erase_if(partition.ranges, [&](const Partition::Range& range) {
    return Dies(range.timestamp, partition.late) <= limit;
  });
  if (partition.deleted != kNever && Dies(partition.deleted, partition.late) <= limit) {
    partition.deleted = kNever;
  }
  if (partition.ranges.empty() && partition.deleted == kNever) {
    partition.late = 0;
  }
}

class Model {
 public:
  std::map<int, Partition> partitions;

  // "b, s, v, n" of each row, as TestService shows it.
  std::string Show(int a, int64_t now, bool reversed) const {
    auto found = partitions.find(a);
    if (found == partitions.end()) {
      return "";
    }
    const Partition& partition = found->second;
    const Write* s = partition.s.At(now, partition.deleted);
    const std::string static_text = s == nullptr ? "null" : "'" + s->value + "'";
    std::vector<std::string> rows;
    for (const auto& [b, row] : partition.rows) {
      const int64_t hidden = std::max(partition.HiddenAt(b), row.deleted);
      const Write* v = row.v.At(now, hidden);
      std::string n;
      for (const auto& [element, cell] : row.n) {
        if (cell.At(now, std::max(hidden, row.n_deleted)) != nullptr) {
          n += (n.empty() ? "" : ", ") + std::to_string(element);
        }
      }
      if (v == nullptr && n.empty() && row.mark.At(now, hidden) == nullptr) {
        continue;
      }
      rows.push_back(std::to_string(b) + ", " + static_text + ", " +
                     (v == nullptr ? "null" : "'" + v->value + "'") + ", " +
                     (n.empty() ? "null" : "{" + n + "}"));
    }
    if (rows.empty() && s != nullptr) {
      rows.push_back("null, " + static_text + ", null, null");
    }
    if (reversed) {
      std::ranges::reverse(rows);
    }
    std::string text;
    for (const std::string& row : rows) {
      text += (text.empty() ? "" : "; ") + row;
    }
    return text;
  }
};

class Fuzzer {
 public:
  // Timestamps are all far in the past, or of the last seconds.
  Fuzzer(uint64_t seed, bool descending, bool recent)
      : random_(seed), descending_(descending), recent_(recent) {}

  // A random statement, done to the model too.
  std::string Next(int64_t now) {
    const int a = Pick(3);
    const int b = Pick(4);
    const int64_t back = recent_ ? Pick(5) - 1 : 0;  // -1: the clock of the client is ahead
    const int64_t timestamp =
        1 + Pick(12) + (recent_ ? now * kSecond - back * 700'000 - 250'000 : 0);
    const int64_t late = recent_ && back < 2 ? 0 : now;
    const int32_t ttl = Pick(4) == 0 ? 1 + Pick(20) : 0;
    const int64_t expires = ttl == 0 ? 0 : now + ttl;
    const std::string value(1, static_cast<char>('p' + Pick(5)));
    const int element = Pick(4);
    Partition& partition = model.partitions[a];
    Row& row = partition.rows[b];
    const Write live{.timestamp = timestamp, .expires = expires, .ttl = ttl, .value = value};
    const Write gone{.timestamp = timestamp, .deleted = true};
    const std::string at = " USING TIMESTAMP " + std::to_string(timestamp) +
                           (ttl == 0 ? "" : " AND TTL " + std::to_string(ttl));
    const std::string of_partition = " WHERE a = " + std::to_string(a);
    const std::string of_row = of_partition + " AND b = " + std::to_string(b);
    const std::string del = " USING TIMESTAMP " + std::to_string(timestamp);
    const std::string e = std::to_string(element);
    const int kind = Pick(15);
    if (kind == 2 || kind == 5 || (kind >= 7 && kind <= 10) || kind >= 13) {
      row.late = std::max(row.late, late);
    }
    switch (kind) {
      case 0:
      case 1:
        row.mark.Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        row.v.Add(live);
        return "INSERT INTO k.t (a, b, v) VALUES (" + std::to_string(a) + ", " + std::to_string(b) +
               ", '" + value + "')" + at;
      case 2:
        row.mark.Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        row.v.Add(gone);
        return "INSERT INTO k.t (a, b, v) VALUES (" + std::to_string(a) + ", " + std::to_string(b) +
               ", null)" + at;
      case 3: row.v.Add(live); return "UPDATE k.t" + at + " SET v = '" + value + "'" + of_row;
      case 4:
        partition.s.Add(live);
        return "UPDATE k.t" + at + " SET s = '" + value + "'" + of_partition;
      case 5:
        row.n_deleted = std::max(row.n_deleted, timestamp - 1);
        row.n[element].Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        return "UPDATE k.t" + at + " SET n = {" + e + "}" + of_row;
      case 6:
        row.n[element].Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        return "UPDATE k.t" + at + " SET n = n + {" + e + "}" + of_row;
      case 7:
        row.n[element].Add(gone);
        return "UPDATE k.t" + at + " SET n = n - {" + e + "}" + of_row;
      case 8: row.v.Add(gone); return "DELETE v FROM k.t" + del + of_row;
      case 9:
        row.n_deleted = std::max(row.n_deleted, timestamp);
        return "DELETE n FROM k.t" + del + of_row;
      case 10:
        row.deleted = std::max(row.deleted, timestamp);
        return "DELETE FROM k.t" + del + of_row;
      case 11: {
        const int to = b + Pick(3);
        partition.ranges.push_back({b, to, timestamp});
        partition.late = std::max(partition.late, late);
        return "DELETE FROM k.t" + del + of_partition + " AND b >= " + std::to_string(b) +
               " AND b <= " + std::to_string(to);
      }
      case 13:
      case 14:  // all of a row
        row.mark.Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        row.v.Add(live);
        row.n_deleted = std::max(row.n_deleted, timestamp - 1);
        row.n[element].Add({.timestamp = timestamp, .expires = expires, .ttl = ttl});
        return "INSERT INTO k.t (a, b, v, n) VALUES (" + std::to_string(a) + ", " +
               std::to_string(b) + ", '" + value + "', {" + e + "})" + at;
      default:
        if (Pick(3) == 0) {
          partition.late = std::max(partition.late, late);
          partition.deleted = std::max(partition.deleted, timestamp);
          return "DELETE FROM k.t" + del + of_partition;
        }
        partition.s.Add(gone);
        partition.s_late = std::max(partition.s_late, late);
        return "DELETE s FROM k.t" + del + of_partition;
    }
  }
  int Pick(int below) { return static_cast<int>(random_.Next() % static_cast<uint64_t>(below)); }
  bool descending() const { return descending_; }

  Model model;

 private:
  SeededRandom random_;
  const bool descending_;
  const bool recent_;
};

void Compare(TestService& service, Fuzzer& fuzzer, int64_t now) {
  const std::string select = "SELECT b, s, v, n FROM k.t WHERE a = ";
  for (int a = 0; a < 3; ++a) {
    const std::string id = std::to_string(a);
    const bool down = fuzzer.descending();
    ASSERT_EQ(service.Ask(select + id), fuzzer.model.Show(a, now, down));
    ASSERT_EQ(service.Ask(select + id + (down ? " ORDER BY b ASC" : " ORDER BY b DESC")),
              fuzzer.model.Show(a, now, !down));
    // One row by its key: what the model shows of it, or nothing.
    const int b = fuzzer.Pick(4);
    const std::string whole = "; " + fuzzer.model.Show(a, now, false) + "; ";
    const size_t place = whole.find("; " + std::to_string(b) + ", ");
    const std::string wanted =
        place == std::string::npos
            ? ""
            : whole.substr(place + 2, whole.find("; ", place + 2) - place - 2);
    ASSERT_EQ(service.Ask(select + id + " AND b = " + std::to_string(b)), wanted);
  }
}

void RunSeed(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const bool recent = seed % 4 < 2;
  const int64_t grace = recent ? 5 : seed % 8 < 4 ? 0 : 6;
  Fuzzer fuzzer(seed, seed % 2 == 1, recent);
  model::TestMachine machine;
  auto service = std::make_unique<TestService>(machine);
  service->Ask(
      "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  ASSERT_EQ(service->Ask("CREATE TABLE k.t (a int, b int, s text static, v text, n set<int>, "
                         "PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b " +
                         std::string(fuzzer.descending() ? "DESC" : "ASC") +
                         ") AND gc_grace_seconds = " + std::to_string(grace)),
            "schema");
  for (int step = 0; step < 80; ++step) {
    const int64_t now = machine.clock->Wall().seconds();
    std::string statement = fuzzer.Next(now);
    ASSERT_EQ(service->Ask(statement), "void") << statement;
    if (fuzzer.Pick(6) == 0) {
      machine.clock->Advance(std::chrono::seconds(fuzzer.Pick(8)));
    }
    if (fuzzer.Pick(8) == 0) {
      service->Purge(static_cast<size_t>(1 + fuzzer.Pick(4)));
      // Partition time is some microseconds ahead of the clock.
      const int64_t limit = (machine.clock->Wall().seconds() - grace) * kSecond + 1;
      for (auto& [a, partition] : fuzzer.model.partitions) {
        Purge(partition, limit);
      }
    }
    if (fuzzer.Pick(30) == 0) {
      model::TestMachine after = machine.AfterPowerCut();
      service.reset();
      machine = after;
      service = std::make_unique<TestService>(machine);
    }
    if (step % 5 == 4) {
      Compare(*service, fuzzer, machine.clock->Wall().seconds());
      if (testing::Test::HasFatalFailure()) {
        return;
      }
    }
  }
}

TEST(ServiceModelTest, WhatIsReadIsWhatTheRulesSay) {
  for (uint64_t seed = 1; seed <= 60 && !HasFatalFailure(); ++seed) {
    RunSeed(seed);
  }
}

}  // namespace
}  // namespace orrery::cassandra
