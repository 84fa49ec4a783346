// A store on memory disks, which power cuts can befall. Test support.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/engine_test_support.h"
#include "storage/item.h"
#include "storage/store.h"
#include "storage/watched_engine.h"

namespace orrery::storage {

inline EngineOptions NodeLog() { return {.spaces = LogSpaces()}; }
inline EngineOptions NodeState() { return StateEngineOptions(); }

inline LogEntry CommandOf(std::string payload, uint64_t term = 1) {
  return {.term = term, .payload = std::make_shared<const std::string>(std::move(payload))};
}
inline LogEntry CommandOf(const WriteSet& set, uint64_t term = 1) {
  return CommandOf(set.Encode(), term);
}

struct Disks {
  std::shared_ptr<MemoryDisk> log = MakeMemoryDisk();
  std::shared_ptr<MemoryDisk> state = MakeMemoryDisk();

  // The log first: what is cut from it later must not be missed.
  Disks AfterPowerCut() const {
    Disks after{CopyOfMemoryDisk(*log), CopyOfMemoryDisk(*state)};
    CrashMemoryDisk(*after.log);
    CrashMemoryDisk(*after.state);
    return after;
  }
};

// A store that has recovered, and runs.
class RunningStore {
 public:
  explicit RunningStore(const Disks& disks, StoreOptions options = {},
                        WatchedEngine::Before before_log = {},
                        WatchedEngine::Before before_state = {})
      : store_(std::make_unique<WatchedEngine>(OpenMemoryEngine(disks.log, NodeLog()),
                                               std::move(before_log)),
               std::make_unique<WatchedEngine>(OpenMemoryEngine(disks.state, NodeState()),
                                               std::move(before_state)),
               std::move(options)) {
    recovered = store_.Recover([this](GroupId group, Lsn lsn, const WriteSetView&) {
      seen.emplace_back(group.value(), lsn.value());
    });
    store_.Start();
  }
  Store* operator->() { return &store_; }
  Store& operator*() { return store_; }

  std::future<Result<Lsn>> Commit(GroupId group, const WriteSet& set) {
    auto done = std::make_shared<std::promise<Result<Lsn>>>();
    store_.Commit(group, CommandOf(set), nullptr, [done](const Status& status, Lsn lsn) {
      done->set_value(status.ok() ? Result<Lsn>(lsn) : Error(status));
    });
    return done->get_future();
  }
  Result<Lsn> Put(GroupId group, const std::string& key, const std::string& value) {
    return Commit(group, PutOf(key, value)).get();
  }
  static WriteSet PutOf(const std::string& key, const std::string& value) {
    WriteSet set;
    set.PutItem(key, EncodeItem({}, value));
    set.change = {.bytes = 1, .items = 1};
    return set;
  }
  // The payload of an item; "" if it is not there.
  std::string Get(const std::string& key) {
    std::string value;
    Status status = store_.state().Get(Index(Space::kItems), key, &value);
    return status.ok() ? std::string(DecodeItem(value)->payload) : "";
  }

  Status recovered;
  std::vector<std::pair<uint64_t, uint64_t>> seen;

 private:
  Store store_;
};

template <typename F>
bool Eventually(F condition) {
  for (int tries = 0; tries < 2000; ++tries) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline size_t CountLog(Store& store) {
  size_t count = 0;
  auto at = store.log().NewIterator(0, "", "");
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    ++count;
  }
  return count;
}

// A store without threads, for replicated groups.
class ManualStore {
 public:
  explicit ManualStore(const Disks& disks, StoreOptions options = {},
                       WatchedEngine::Before before_log = {},
                       WatchedEngine::Before before_state = {})
      : ManualStore(OpenMemoryEngine(disks.log, NodeLog()),
                    OpenMemoryEngine(disks.state, NodeState()), std::move(options),
                    std::move(before_log), std::move(before_state)) {}
  ManualStore(std::unique_ptr<Engine> log, std::unique_ptr<Engine> state, StoreOptions options = {},
              WatchedEngine::Before before_log = {}, WatchedEngine::Before before_state = {})
      : store_(std::make_unique<WatchedEngine>(std::move(log), std::move(before_log)),
               std::make_unique<WatchedEngine>(std::move(state), std::move(before_state)),
               Manual(std::move(options))) {
    recovered = store_.Recover([this](GroupId group, Lsn lsn, const WriteSetView&) {
      seen.emplace_back(group.value(), lsn.value());
    });
    store_.Start();
  }
  Store* operator->() { return &store_; }
  Store& operator*() { return store_; }

  Status Append(AppendRequest request) {
    std::optional<Status> answer;
    store_.Append(std::move(request), nullptr, [&](const Status& status) { answer = status; });
    store_.CommitStep();
    return answer.value_or(Status(Code::kInternal, "no answer"));
  }
  Status AppendEntries(GroupId group, uint64_t first, std::vector<LogEntry> entries) {
    return Append({.group = group, .first = Lsn(first), .entries = std::move(entries)});
  }
  Status Cut(GroupId group, uint64_t index) {
    return Append({.group = group, .base = LogBase{.index = Lsn(index), .term = 1}});
  }
  Status Apply(GroupId group, uint64_t first, std::vector<LogEntry> entries) {
    std::optional<Status> answer;
    store_.Apply(group, Lsn(first), std::move(entries), nullptr,
                 [&](const Status& status, const ReplicaRecord& record) {
                   answer = status;
                   last_record = record;
                 });
    store_.ApplyStep();
    return answer.value_or(Status(Code::kInternal, "no answer"));
  }
  // Appends and applies puts of `prefix` + index for first .. last.
  Status Write(GroupId group, uint64_t first, uint64_t last, const std::string& prefix = "k") {
    std::vector<LogEntry> entries;
    for (uint64_t i = first; i <= last; ++i) {
      entries.push_back(
          CommandOf(RunningStore::PutOf(prefix + std::to_string(i), std::to_string(i))));
    }
    ORRERY_RETURN_IF_ERROR(AppendEntries(group, first, entries));
    return Apply(group, first, entries);
  }
  std::string Get(const std::string& key) {
    std::string value;
    Status status = store_.state().Get(Index(Space::kItems), key, &value);
    return status.ok() ? std::string(DecodeItem(value)->payload) : "";
  }
  // The terms of the log above the base.
  std::vector<uint64_t> Terms(GroupId group) {
    std::vector<uint64_t> terms;
    auto heads = store_.ReadHeads(group);
    EXPECT_TRUE(heads) << heads.error().ToString();
    for (const LogEntry& entry : *heads) {
      terms.push_back(entry.term);
    }
    return terms;
  }

  Status recovered;
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  ReplicaRecord last_record;

 private:
  static StoreOptions Manual(StoreOptions options) {
    options.manual = true;
    return options;
  }
  Store store_;
};

// A replica whose items start with `prefix`.
inline ReplicaIdentity IdentityOf(uint64_t id, const std::string& prefix) {
  return {.id = ReplicaId(id),
          .spans = {{Space::kItems, prefix, PrefixEnd(prefix)},
                    {Space::kIndex, prefix, PrefixEnd(prefix)}}};
}
inline LogBase BaseAt(uint64_t index, uint64_t term = 1) {
  return {
      .index = Lsn(index), .term = term, .configuration = "members", .configuration_index = Lsn(1)};
}

}  // namespace orrery::storage
