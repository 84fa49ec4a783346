// Random writes with random timestamps, times to live and deletions, compared with a model of
// Cassandra's rules that keeps every write and looks at all of them for each answer.
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

class Cell {
 public:
  void Add(Write write) { writes_.push_back(std::move(write)); }
  // What is to be seen of it, where everything up to `hidden` is gone.
  const Write* At(int64_t now, int64_t hidden) const {
    auto best = std::ranges::max_element(writes_, {}, &Write::Rank);
    bool alive = best != writes_.end() && best->timestamp > hidden && !best->deleted &&
                 (best->expires == 0 || now < best->expires);
    return alive ? &*best : nullptr;
  }

 private:
  std::vector<Write> writes_;
};

constexpr int64_t kNever = INT64_MIN;

struct Row {
  int64_t deleted = kNever;
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
  Cell s;
  std::map<int, Row> rows;

  int64_t HiddenAt(int b) const {
    int64_t hidden = deleted;
    for (const Range& range : ranges) {
      hidden = b >= range.from && b <= range.to ? std::max(hidden, range.timestamp) : hidden;
    }
    return hidden;
  }
};

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
  Fuzzer(uint64_t seed, bool descending) : random_(seed), descending_(descending) {}

  // A random statement, done to the model too.
  std::string Next(int64_t now) {
    const int a = Pick(3);
    const int b = Pick(4);
    const int64_t timestamp = 1 + Pick(12);
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
    switch (Pick(13)) {
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
        return "DELETE FROM k.t" + del + of_partition + " AND b >= " + std::to_string(b) +
               " AND b <= " + std::to_string(to);
      }
      default:
        if (Pick(3) == 0) {
          partition.deleted = std::max(partition.deleted, timestamp);
          return "DELETE FROM k.t" + del + of_partition;
        }
        partition.s.Add(gone);
        return "DELETE s FROM k.t" + del + of_partition;
    }
  }
  int Pick(int below) { return static_cast<int>(random_.Next() % static_cast<uint64_t>(below)); }
  bool descending() const { return descending_; }

  Model model;

 private:
  SeededRandom random_;
  const bool descending_;
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
  Fuzzer fuzzer(seed, seed % 2 == 1);
  model::TestMachine machine;
  auto service = std::make_unique<TestService>(machine);
  service->Ask(
      "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  ASSERT_EQ(service->Ask("CREATE TABLE k.t (a int, b int, s text static, v text, n set<int>, "
                         "PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b " +
                         std::string(fuzzer.descending() ? "DESC" : "ASC") + ")"),
            "schema");
  for (int step = 0; step < 60; ++step) {
    const int64_t now = machine.clock->Wall().seconds();
    std::string statement = fuzzer.Next(now);
    ASSERT_EQ(service->Ask(statement), "void") << statement;
    if (fuzzer.Pick(6) == 0) {
      machine.clock->Advance(std::chrono::seconds(fuzzer.Pick(8)));
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
  for (uint64_t seed = 1; seed <= 40 && !HasFatalFailure(); ++seed) {
    RunSeed(seed);
  }
}

}  // namespace
}  // namespace orrery::cassandra
