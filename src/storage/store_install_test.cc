// Snapshots: written, hashed, installed; killed at each step. And replicas that end.
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "storage/log_format.h"
#include "storage/store_test_support.h"

namespace orrery::storage {
namespace {

using Call = WatchedEngine::Call;
const GroupId kGroup(5);
const GroupId kOther(6);
const ReplicaIdentity kSource = IdentityOf(50, "k");
const ReplicaIdentity kTarget = IdentityOf(51, "k");

struct SnapshotFiles {
  ReplicaRecord record;
  std::vector<SnapshotFile> files;
};

Result<SnapshotFiles> WriteAll(Store& store, GroupId group, const std::vector<Span>& spans,
                               const std::string& folder, std::string extra,
                               std::shared_ptr<const Snapshot> at = nullptr) {
  if (at == nullptr) {
    at = store.state().NewSnapshot();
  }
  ORRERY_TRY(auto writer, store.WriteSnapshot(group, spans, folder, std::move(extra), at));
  SnapshotFiles out{.record = writer->record()};
  while (true) {
    ORRERY_TRY(std::optional<SnapshotFile> file, writer->Next());
    if (!file) {
      return out;
    }
    out.files.push_back(*file);
  }
}

std::vector<Engine::IngestFile> FilesOf(const SnapshotFiles& snapshot) {
  std::vector<Engine::IngestFile> files;
  for (const SnapshotFile& file : snapshot.files) {
    files.push_back({Index(file.space), file.path});
  }
  return files;
}

// The steps of an install, one after the other.
struct Install {
  SnapshotFiles snapshot;
  LogBase base;
  HardState hard{.term = 4, .vote = 0};
  ReplicaIdentity identity = kTarget;
  bool planned = false;

  std::vector<std::function<Status(Store&)>> Steps() const {
    auto begin = [this](Store& store) {
      auto plan = planned ? std::optional(InstallPlan{base, FilesOf(snapshot)}) : std::nullopt;
      return store.BeginInstall(kGroup, identity, 77, plan);
    };
    return {begin, [this](Store& store) { return store.ClearSpans(kGroup, identity.id); },
            [this](Store& store) {
              return store.IngestSnapshot(kGroup, identity.id, FilesOf(snapshot));
            },
            [this](Store& store) { return store.FinishInstall(kGroup, identity.id, base, hard); }};
  }
  Status Run(Store& store) const {
    for (const auto& step : Steps()) {
      ORRERY_RETURN_IF_ERROR(step(store));
    }
    return Status::Ok();
  }
};

// The same tests on both engines; a crash is a power cut in memory, a kill on disk.
class StoreInstallTest : public testing::TestWithParam<bool> {
 protected:
  bool rocks() const { return GetParam(); }

  // A place for a store, under a name.
  struct Machine {
    Disks disks;
    std::string folder;
  };
  Machine MakeMachine() {
    Machine machine;
    machine.folder = folder_ / ("machine" + std::to_string(machines_++));
    fs::create_directory(machine.folder);
    return machine;
  }
  std::unique_ptr<ManualStore> Open(const Machine& machine, StoreOptions options = {},
                                    WatchedEngine::Before before = {}) {
    if (!rocks()) {
      return std::make_unique<ManualStore>(machine.disks, options, before, before);
    }
    return std::make_unique<ManualStore>(MustOpen(machine.folder + "/log", NodeLog()),
                                         MustOpen(machine.folder + "/state", NodeState()), options,
                                         before, before);
  }
  Machine Crashed(const Machine& machine) {
    Machine after = MakeMachine();
    if (rocks()) {
      CopyAsKilled(machine.folder + "/log", after.folder + "/log");
      CopyAsKilled(machine.folder + "/state", after.folder + "/state");
    } else {
      after.disks = machine.disks.AfterPowerCut();
    }
    return after;
  }
  // A snapshot of entries 2 .. last of a founded group; files go when they are ingested.
  Install MakeInstall(uint64_t last, StoreOptions options = {}) {
    auto source = Open(MakeMachine(), std::move(options));
    EXPECT_TRUE((*source)->Found(kGroup, kSource, BaseAt(1), {}).ok());
    EXPECT_TRUE(source->Write(kGroup, 2, last).ok());
    std::string to = folder_ / ("snapshot" + std::to_string(snapshots_++));
    fs::create_directory(to);
    auto snapshot = WriteAll(**source, kGroup, kSource.spans, to, "outcomes");
    EXPECT_TRUE(snapshot) << snapshot.error().ToString();
    source_hash_ = (*source)->HashSpans(kGroup, kSource.spans, "")->hash;
    return {*snapshot, BaseAt(last, 3)};
  }
  // What a replica that follows has before: old items, and an old log.
  void MakeFollower(ManualStore& store) {
    ASSERT_TRUE(store->Found(kGroup, kTarget, BaseAt(1), {.term = 3, .vote = 50}).ok());
    ASSERT_TRUE(store->Found(kOther, IdentityOf(60, "o"), BaseAt(1), {}).ok());
    ASSERT_TRUE(store.Write(kGroup, 2, 4, "kold").ok());
    ASSERT_TRUE(store.Write(kOther, 2, 4, "o").ok());
    ASSERT_TRUE(store->CutLog().ok());
    ASSERT_TRUE(store.Write(kOther, 5, 6, "o").ok());
  }
  void ExpectWhole(ManualStore& store, uint64_t last) {
    std::optional<GroupLog> log = store->Log(kGroup);
    ASSERT_TRUE(log);
    EXPECT_FALSE(log->broken()) << log->damage;
    EXPECT_EQ(log->base->index, Lsn(last));
    EXPECT_EQ(log->base->term, 3u);
    EXPECT_EQ(log->last, Lsn(last));
    EXPECT_EQ(log->hard, (HardState{4, 0}));
    EXPECT_EQ(store->Record(kGroup).applied, Lsn(last));
    EXPECT_EQ(store->Flushed(kGroup), Lsn(last));
    EXPECT_EQ(store.Get("kold2"), "");
    EXPECT_EQ(store.Get("k" + std::to_string(last)), std::to_string(last));
    EXPECT_EQ(store->HashSpans(kGroup, kTarget.spans, "")->hash, source_hash_);
    EXPECT_EQ(*store->Extra(kGroup), "outcomes");
    EXPECT_TRUE(store.Terms(kGroup).empty());
  }
  // That the other group is not hurt, whatever happens to this one.
  void ExpectOtherWhole(ManualStore& store) {
    EXPECT_FALSE(store->Log(kOther)->broken());
    EXPECT_EQ(store->Log(kOther)->last, Lsn(6));
    EXPECT_GE(store->Record(kOther).applied, Lsn(4));
    EXPECT_EQ(store.Get("o2"), "2");
  }
  size_t CountKeys(Store& store, const std::string& prefix) {
    size_t count = 0;
    for (Space space : {Space::kItems, Space::kIndex}) {
      auto at = store.state().NewIterator(Index(space), prefix, PrefixEnd(prefix));
      for (at->SeekToFirst(); at->Valid(); at->Next()) {
        ++count;
      }
    }
    return count;
  }

  TempFolder folder_;
  int machines_ = 0;
  int snapshots_ = 0;
  uint64_t source_hash_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Engines, StoreInstallTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Rocks" : "Memory"; });

// Where the disks must be cut in the middle of a call, or the engine makes no difference.
class MemoryInstallTest : public StoreInstallTest {};
INSTANTIATE_TEST_SUITE_P(Engines, MemoryInstallTest, testing::Values(false),
                         [](const auto&) { return "Memory"; });

// --- snapshots -----------------------------------------------------------------------------------

TEST_P(StoreInstallTest, ASnapshotHasFilesOfBoundedSizeWithTheirHashes) {
  StoreOptions options;
  options.snapshot_file_bytes = 2000;
  Install install = MakeInstall(200, options);
  EXPECT_EQ(install.snapshot.record.applied, Lsn(200));
  EXPECT_GT(install.snapshot.files.size(), 4u);
  for (const SnapshotFile& file : install.snapshot.files) {
    EXPECT_EQ(file.bytes, fs::file_size(file.path));
    EXPECT_EQ(*HashFile(file.path), file.hash);
  }
  EXPECT_FALSE(HashFile("no such file"));
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  Status installed = install.Run(**store);
  ASSERT_TRUE(installed.ok()) << installed.ToString();
  ExpectWhole(*store, 200);
}

TEST_P(StoreInstallTest, ASnapshotIsOfThePointThatIsNamed) {
  auto store = Open(MakeMachine());
  ASSERT_TRUE((*store)->Found(kGroup, kSource, BaseAt(1), {}).ok());
  ASSERT_TRUE(store->Write(kGroup, 2, 5).ok());
  std::shared_ptr<const Snapshot> at = (*store)->state().NewSnapshot();
  auto hash = (*store)->HashSpans(kGroup, kSource.spans, "x", at.get());
  ASSERT_TRUE(store->Write(kGroup, 6, 9).ok());
  EXPECT_EQ((*store)->RecordAt(kGroup, at.get())->applied, Lsn(5));
  EXPECT_EQ((*store)->HashSpans(kGroup, kSource.spans, "x", at.get())->hash, hash->hash);
  EXPECT_NE((*store)->HashSpans(kGroup, kSource.spans, "y", at.get())->hash, hash->hash);
  EXPECT_NE((*store)->HashSpans(kGroup, kSource.spans, "x")->hash, hash->hash);
  std::string to = folder_ / "at";
  fs::create_directory(to);
  auto snapshot = WriteAll(**store, kGroup, kSource.spans, to, "", at);
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->record.applied, Lsn(5));
  auto target = Open(MakeMachine());
  ASSERT_TRUE((Install{*snapshot, BaseAt(5, 3)}).Run(**target).ok());
  EXPECT_EQ((*target)->HashSpans(kGroup, kSource.spans, "x")->hash, hash->hash);
  EXPECT_EQ(target->Get("k6"), "");
}

TEST_P(StoreInstallTest, AHashTellsWhereAValueEndsAndAKeyBegins) {
  auto hash = [&](const std::string& key, const std::string& value) {
    auto store = Open(MakeMachine());
    EXPECT_TRUE((*store)->Found(kGroup, kSource, BaseAt(1), {}).ok());
    WriteSet set;
    set.Put(Space::kIndex, key, value);
    EXPECT_TRUE(store->Apply(kGroup, 2, {CommandOf(set)}).ok());
    return (*store)->HashSpans(kGroup, kSource.spans, "")->hash;
  };
  EXPECT_EQ(hash("ka", "bc"), hash("ka", "bc"));
  EXPECT_NE(hash("ka", "bc"), hash("kab", "c"));
}

TEST_P(StoreInstallTest, AGroupWithoutItemsHasASnapshotToo) {
  auto source = Open(MakeMachine());
  ASSERT_TRUE((*source)->Found(kGroup, kSource, BaseAt(1), {}).ok());
  std::string to = folder_ / "empty";
  fs::create_directory(to);
  auto snapshot = WriteAll(**source, kGroup, kSource.spans, to, "");
  ASSERT_TRUE(snapshot) << snapshot.error().ToString();
  EXPECT_EQ(snapshot->files.size(), 1u);
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  ASSERT_TRUE((Install{*snapshot, BaseAt(1, 1)}).Run(**store).ok());
  EXPECT_EQ(CountKeys(**store, "k"), 0u);
  EXPECT_EQ((*store)->Record(kGroup).applied, Lsn(1));
}

// --- installs ------------------------------------------------------------------------------------

TEST_P(StoreInstallTest, AnInstalledReplicaGoesOnFromItsBase) {
  Machine machine = MakeMachine();
  Install install = MakeInstall(20);
  {
    auto store = Open(machine);
    MakeFollower(*store);
    ASSERT_TRUE(install.Run(**store).ok());
    ExpectWhole(*store, 20);
    ExpectOtherWhole(*store);
    ASSERT_TRUE(store->Write(kGroup, 21, 23).ok());
    machine = Crashed(machine);
  }
  auto again = Open(machine);
  ASSERT_TRUE(again->recovered.ok());
  EXPECT_FALSE((*again)->Log(kGroup)->broken());
  EXPECT_EQ((*again)->Log(kGroup)->last, Lsn(23));
  EXPECT_EQ((*again)->Record(kGroup).applied, Lsn(20));
  EXPECT_EQ(again->Get("k20"), "20");
}

TEST_P(StoreInstallTest, AStateAheadOfItsBaseSkipsWhatItHas) {
  Install install = MakeInstall(20);
  install.base = BaseAt(15, 3);
  auto store = Open(MakeMachine());
  ASSERT_TRUE(install.Run(**store).ok());
  EXPECT_EQ((*store)->Log(kGroup)->last, Lsn(15));
  EXPECT_EQ((*store)->Record(kGroup).applied, Lsn(20));
  ASSERT_TRUE(store->Write(kGroup, 16, 22, "k").ok());
  EXPECT_EQ((*store)->Record(kGroup).totals, (Totals{21, 21}));
}

// A new replica that joins: nothing, then a snapshot.
TEST_P(StoreInstallTest, AReplicaThatJoinsTakesATermAndThenASnapshot) {
  Machine machine = MakeMachine();
  Install install = MakeInstall(20);
  {
    auto store = Open(machine);
    ASSERT_TRUE((*store)->Found(kGroup, kTarget, std::nullopt, {}).ok());
    EXPECT_EQ((*store)->Record(kGroup).applied, Lsn(0));
    EXPECT_EQ(store->AppendEntries(kGroup, 1, {CommandOf("x")}).code(), Code::kInvalidArgument);
    ASSERT_TRUE(store->Append({.group = kGroup, .hard = HardState{4, 0}}).ok());
  }
  auto store = Open(Crashed(machine));
  EXPECT_FALSE((*store)->Log(kGroup)->broken());
  EXPECT_FALSE((*store)->Log(kGroup)->base);
  EXPECT_EQ((*store)->Log(kGroup)->hard, (HardState{4, 0}));
  ASSERT_TRUE(install.Run(**store).ok());
  ExpectWhole(*store, 20);
}

// With a plan the next start goes on where the kill came; without the files it cannot.
TEST_P(StoreInstallTest, AKillAfterAnyStepOfAPlanIsMendedByTheNextStart) {
  for (size_t steps = 1; steps <= 4; ++steps) {
    for (bool lost : {false, true}) {
      SCOPED_TRACE("after " + std::to_string(steps) + (lost ? ", files lost" : ""));
      Machine machine = MakeMachine();
      Install install = MakeInstall(20);
      install.planned = true;
      Machine crashed;
      {
        auto store = Open(machine);
        MakeFollower(*store);
        ASSERT_TRUE(store->Append({.group = kGroup, .hard = HardState{4, 0}}).ok());
        for (size_t i = 0; i < steps; ++i) {
          ASSERT_TRUE(install.Steps()[i](**store).ok());
        }
        crashed = Crashed(machine);
      }
      if (lost) {
        fs::remove(install.snapshot.files.back().path);
      }
      auto again = Open(crashed);
      ASSERT_TRUE(again->recovered.ok()) << again->recovered.ToString();
      ExpectOtherWhole(*again);
      if (lost && steps < 3) {
        EXPECT_TRUE((*again)->Log(kGroup)->installing);
        EXPECT_EQ((*again)->Log(kGroup)->hard, (HardState{4, 0}));
      } else {
        ExpectWhole(*again, 20);
      }
    }
  }
}

TEST_P(StoreInstallTest, TheStepsOfAReplicaThatIsGoneTouchNoOther) {
  Install install = MakeInstall(20);
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  ASSERT_TRUE((*store)->BeginInstall(kGroup, kTarget, 77).ok());
  ASSERT_TRUE((*store)->Discard(kGroup).ok());
  ASSERT_TRUE((*store)->Found(kGroup, IdentityOf(52, "k"), std::nullopt, {}).ok());
  ASSERT_TRUE((*store)->BeginInstall(kGroup, IdentityOf(52, "k"), 78).ok());
  for (const auto& step : install.Steps()) {
    EXPECT_FALSE(step(**store).ok());
  }
  install.identity = IdentityOf(52, "k");
  EXPECT_TRUE(install.Run(**store).ok());
}

// Killed after each step: what is there is as before, whole, or known to be neither.
TEST_P(StoreInstallTest, AKillAfterAnyStepLeavesNothingHalf) {
  for (size_t steps = 0; steps <= 4; ++steps) {
    SCOPED_TRACE("after " + std::to_string(steps));
    Machine machine = MakeMachine();
    Install install = MakeInstall(20);
    Machine crashed;
    {
      auto store = Open(machine);
      MakeFollower(*store);
      for (size_t i = 0; i < steps; ++i) {
        Status status = install.Steps()[i](**store);
        ASSERT_TRUE(status.ok()) << status.ToString();
      }
      crashed = Crashed(machine);
    }
    auto again = Open(crashed);
    ASSERT_TRUE(again->recovered.ok()) << again->recovered.ToString();
    ExpectOtherWhole(*again);
    if (steps == 4) {
      ExpectWhole(*again, 20);
      continue;
    }
    EXPECT_EQ((*again)->Log(kGroup)->installing, steps > 0);
    EXPECT_EQ((*again)->Log(kGroup)->broken(), steps > 0);
    if (steps == 0) {
      EXPECT_EQ(again->Get("kold4"), "4");
      continue;
    }
    EXPECT_TRUE(again->seen.empty() || again->seen.back().first == kOther.value());
    ASSERT_TRUE((*again)->Discard(kGroup).ok());
    EXPECT_FALSE((*again)->Log(kGroup));
    EXPECT_EQ(CountKeys(**again, "k"), 0u);
    // And a new replica in its place.
    EXPECT_EQ((*again)->Found(kGroup, kTarget, std::nullopt, {}).code(), Code::kForbidden);
    Install second = MakeInstall(30);
    second.identity = IdentityOf(52, "k");
    ASSERT_TRUE((*again)->Found(kGroup, second.identity, std::nullopt, {.term = 4}).ok());
    ASSERT_TRUE(second.Run(**again).ok());
    ExpectWhole(*again, 30);
    ExpectOtherWhole(*again);
  }
}

// The same before each single write, flush and ingest below, in memory.
TEST_P(MemoryInstallTest, APowerCutBeforeAnyWriteOfAnInstallLeavesNothingHalf) {
  int whole = 0;
  for (int at = 0; at < 12; ++at) {
    SCOPED_TRACE("before call " + std::to_string(at));
    Machine machine = MakeMachine();
    Install install = MakeInstall(20);
    int calls = -1;
    std::optional<Machine> cut;
    {
      auto store = Open(machine, {}, [&](Call) {
        if (calls >= 0 && calls++ == at) {
          cut = Crashed(machine);
        }
        return Status::Ok();
      });
      MakeFollower(*store);
      calls = 0;
      ASSERT_TRUE(install.Run(**store).ok());
      calls = -1;
      cut = cut ? *cut : Crashed(machine);
    }
    auto again = Open(*cut);
    ASSERT_TRUE(again->recovered.ok());
    ExpectOtherWhole(*again);
    if (at == 0) {
      EXPECT_FALSE((*again)->Log(kGroup)->broken());
      EXPECT_EQ(again->Get("kold4"), "4");
    } else if ((*again)->Log(kGroup)->broken()) {
      EXPECT_TRUE((*again)->Discard(kGroup).ok());
      EXPECT_EQ(CountKeys(**again, "k"), 0u);
    } else {
      ExpectWhole(*again, 20);
      ++whole;
    }
  }
  EXPECT_GT(whole, 0);
}

TEST_P(StoreInstallTest, DuringAnInstallOnlyTermAndVoteAreTaken) {
  Install install = MakeInstall(20);
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  auto steps = install.Steps();
  ASSERT_TRUE(steps[0](**store).ok());
  EXPECT_EQ(store->AppendEntries(kGroup, 5, {CommandOf("x")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->Apply(kGroup, 5, {CommandOf("x")}).code(), Code::kUnavailable);
  ASSERT_TRUE(store->Append({.group = kGroup, .hard = HardState{9, 53}}).ok());
  ASSERT_TRUE(steps[1](**store).ok());
  ASSERT_TRUE(steps[2](**store).ok());
  ASSERT_TRUE(steps[3](**store).ok());
  EXPECT_EQ((*store)->Log(kGroup)->hard, (HardState{9, 53})) << "a vote is never taken back";
}

TEST_P(StoreInstallTest, WhatWasCalledBeforeAnInstallIsWrittenButNotApplied) {
  Install install = MakeInstall(20);
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  Status appended(Code::kInternal);
  Status applied;
  LogEntry entry = CommandOf(RunningStore::PutOf("kold5", "5"));
  (*store)->Append({.group = kGroup, .hard = HardState{3, 51}, .first = Lsn(5), .entries = {entry}},
                   nullptr, [&](const Status& status) { appended = status; });
  (*store)->Apply(kGroup, Lsn(5), {entry}, nullptr,
                  [&](const Status& status, const ReplicaRecord&) { applied = status; });
  ASSERT_TRUE((*store)->BeginInstall(kGroup, kTarget, 77).ok());
  EXPECT_TRUE(appended.ok());
  EXPECT_EQ((*store)->Log(kGroup)->last, Lsn(5));
  EXPECT_TRUE((*store)->ApplyStep());
  EXPECT_EQ(applied.code(), Code::kUnavailable);
  EXPECT_EQ((*store)->Record(kGroup).applied, Lsn(4));
}

TEST_P(StoreInstallTest, StepsOutOfTurnAreRefused) {
  Install install = MakeInstall(20);
  auto store = Open(MakeMachine());
  auto steps = install.Steps();
  EXPECT_EQ(steps[1](**store).code(), Code::kNotFound);
  MakeFollower(*store);
  EXPECT_EQ(steps[1](**store).code(), Code::kInvalidArgument);
  EXPECT_EQ(steps[2](**store).code(), Code::kInvalidArgument);
  EXPECT_EQ(steps[3](**store).code(), Code::kInvalidArgument);
  EXPECT_EQ((*store)->BeginInstall(kGroup, kSource, 1).code(), Code::kAlreadyExists)
      << "another replica is here";
  ASSERT_TRUE(steps[0](**store).ok());
  ASSERT_TRUE(steps[1](**store).ok());
  EXPECT_EQ(steps[3](**store).code(), Code::kCorruption) << "the state is behind the base";
  EXPECT_TRUE((*store)->Log(kGroup)->installing);
  EXPECT_TRUE(install.Run(**store).ok()) << "begun again";
  ExpectWhole(*store, 20);
}

TEST_P(StoreInstallTest, FilesOfAnotherGroupAreRefused) {
  Install install = MakeInstall(20);
  auto store = Open(MakeMachine());
  MakeFollower(*store);
  std::string to = folder_ / "other";
  fs::create_directory(to);
  auto other = WriteAll(**store, kOther, IdentityOf(60, "o").spans, to, "");
  ASSERT_TRUE(other);
  ASSERT_TRUE((*store)->BeginInstall(kGroup, kTarget, 77).ok());
  ASSERT_TRUE((*store)->ClearSpans(kGroup, kTarget.id).ok());
  EXPECT_EQ((*store)->IngestSnapshot(kGroup, kTarget.id, FilesOf(*other)).code(),
            Code::kCorruption);
  std::vector<Engine::IngestFile> files = FilesOf(install.snapshot);
  EXPECT_EQ((*store)->IngestSnapshot(kGroup, kTarget.id, {files[1]}).code(), Code::kCorruption)
      << "without the record";
  std::vector<Engine::IngestFile> mixed{files[0], FilesOf(*other)[1]};
  EXPECT_EQ((*store)->IngestSnapshot(kGroup, kTarget.id, mixed).code(), Code::kCorruption);
  std::ofstream(to + "/damaged") << "no file of ours";
  EXPECT_EQ((*store)
                ->IngestSnapshot(kGroup, kTarget.id, {{Index(Space::kItems), to + "/damaged"}})
                .code(),
            Code::kCorruption);
  EXPECT_EQ(CountKeys(**store, "k"), 0u);
  ExpectOtherWhole(*store);
  ASSERT_TRUE((*store)->IngestSnapshot(kGroup, kTarget.id, files).ok());
}

// --- keys have one owner -------------------------------------------------------------------------

TEST_P(StoreInstallTest, KeysOfAnotherGroupAreRefusedUntilTheyAreCleared) {
  auto store = Open(MakeMachine());
  ASSERT_TRUE((*store)->Found(kGroup, IdentityOf(50, "k"), BaseAt(1), {}).ok());
  ReplicaIdentity inside = IdentityOf(60, "k1");
  ReplicaIdentity around{.id = ReplicaId(60), .spans = {{Space::kItems, "a", "z"}}};
  ReplicaIdentity beside{.id = ReplicaId(60), .spans = {{Space::kItems, "l", "z"}}};
  ReplicaIdentity empty{.id = ReplicaId(60), .spans = {{Space::kItems, "z", ""}}};
  EXPECT_EQ((*store)->Found(kOther, inside, BaseAt(1), {}).code(), Code::kAlreadyExists);
  EXPECT_EQ((*store)->Found(kOther, around, BaseAt(1), {}).code(), Code::kAlreadyExists);
  EXPECT_EQ((*store)->BeginInstall(kOther, inside, 1).code(), Code::kAlreadyExists);
  EXPECT_EQ((*store)->Found(kOther, empty, BaseAt(1), {}).code(), Code::kInvalidArgument);
  EXPECT_FALSE((*store)->Log(kOther));
  ASSERT_TRUE((*store)->Found(kOther, beside, BaseAt(1), {}).ok());
  ASSERT_TRUE((*store)->Discard(kOther).ok());
  ASSERT_TRUE((*store)->Discard(kGroup).ok());
  inside.id = ReplicaId(61);
  EXPECT_TRUE((*store)->Found(kOther, inside, BaseAt(1), {}).ok());
}

TEST_P(StoreInstallTest, ASnapshotWithOtherSpansClearsTheOldOnesToo) {
  Install install = MakeInstall(20);
  Machine machine = MakeMachine();
  auto store = Open(machine);
  ReplicaIdentity wide{.id = kTarget.id, .spans = {{Space::kItems, "j", "m"}}};
  ASSERT_TRUE((*store)->Found(kGroup, wide, BaseAt(1), {}).ok());
  ASSERT_TRUE(store->Write(kGroup, 2, 4, "l").ok());
  ASSERT_TRUE((*store)->BeginInstall(kGroup, kTarget, 77).ok());
  EXPECT_EQ((*store)->Found(kOther, IdentityOf(60, "l"), BaseAt(1), {}).code(),
            Code::kAlreadyExists);
  store.reset();
  store = Open(Crashed(machine));
  EXPECT_EQ((*store)->Found(kOther, IdentityOf(60, "l"), BaseAt(1), {}).code(),
            Code::kAlreadyExists)
      << "also after a crash";
  ASSERT_TRUE(install.Run(**store).ok());
  EXPECT_EQ(store->Get("l2"), "");
  EXPECT_TRUE((*store)->Found(kOther, IdentityOf(60, "l"), BaseAt(1), {}).ok());
}

// --- ends ----------------------------------------------------------------------------------------

TEST_P(StoreInstallTest, ADiscardedReplicaLeavesNothingAndWhatWaitsIsVoid) {
  Machine machine = MakeMachine();
  {
    auto store = Open(machine);
    MakeFollower(*store);
    Status appended;
    Status applied;
    LogEntry entry = CommandOf(RunningStore::PutOf("kold5", "5"));
    (*store)->Append({.group = kGroup, .first = Lsn(5), .entries = {entry}}, nullptr,
                     [&](const Status& status) { appended = status; });
    (*store)->Apply(kGroup, Lsn(5), {entry}, nullptr,
                    [&](const Status& status, const ReplicaRecord&) { applied = status; });
    ASSERT_TRUE((*store)->Discard(kGroup).ok());
    ASSERT_TRUE((*store)->Discard(kGroup).ok()) << "twice";
    (*store)->CommitStep();
    (*store)->ApplyStep();
    EXPECT_EQ(appended.code(), Code::kUnavailable);
    EXPECT_EQ(applied.code(), Code::kUnavailable);
    EXPECT_EQ(CountKeys(**store, "k"), 0u);
    EXPECT_EQ((*store)->Record(kGroup).applied, Lsn(0));
    EXPECT_TRUE((*store)->healthy());
  }
  auto again = Open(Crashed(machine));
  EXPECT_FALSE((*again)->Log(kGroup));
  EXPECT_EQ(CountKeys(**again, "k"), 0u);
  ExpectOtherWhole(*again);
}

TEST_P(StoreInstallTest, AReplicaThatTookPartNeverReturnsUnderItsId) {
  Machine machine = MakeMachine();
  {
    auto store = Open(machine);
    ASSERT_TRUE((*store)->Found(kGroup, IdentityOf(49, "k"), std::nullopt, {}).ok());
    ASSERT_TRUE((*store)->Discard(kGroup).ok());
    EXPECT_TRUE((*store)->Found(kGroup, IdentityOf(49, "k"), std::nullopt, {}).ok())
        << "it never had anything";
    ASSERT_TRUE((*store)->Discard(kGroup).ok());
    ASSERT_TRUE((*store)->Found(kGroup, kSource, BaseAt(1), {.term = 1, .vote = 50}).ok());
    ASSERT_TRUE((*store)->Discard(kGroup).ok());
    EXPECT_EQ((*store)->Found(kGroup, kSource, BaseAt(1), {}).code(), Code::kForbidden);
    machine = Crashed(machine);
  }
  {
    auto store = Open(machine);
    EXPECT_TRUE((*store)->RaftGroups().empty());
    EXPECT_EQ((*store)->Found(kGroup, kSource, BaseAt(1), {}).code(), Code::kForbidden);
    EXPECT_EQ((*store)->BeginInstall(kGroup, kSource, 1).code(), Code::kForbidden);
    ASSERT_TRUE((*store)->Found(kGroup, kTarget, std::nullopt, {}).ok());
    machine = Crashed(machine);
  }
  auto store = Open(machine);
  ASSERT_TRUE((*store)->Discard(kGroup).ok());
  EXPECT_EQ((*store)->Found(kGroup, kSource, BaseAt(1), {}).code(), Code::kForbidden)
      << "also after another was here";
}

TEST_P(StoreInstallTest, AReplicaThatGoesForGoodNeverReturnsAlsoIfItNeverHadAnything) {
  Machine machine = MakeMachine();
  {
    auto store = Open(machine);
    ASSERT_TRUE((*store)->Found(kGroup, kSource, std::nullopt, {}).ok());
    ASSERT_TRUE((*store)->Discard(kGroup, true).ok());
    machine = Crashed(machine);
  }
  auto store = Open(machine);
  EXPECT_EQ((*store)->Ended(kGroup), kSource.id);
  EXPECT_EQ((*store)->Found(kGroup, kSource, std::nullopt, {}).code(), Code::kForbidden);
  EXPECT_TRUE((*store)->Found(kGroup, kTarget, std::nullopt, {}).ok());
}

TEST_P(MemoryInstallTest, APowerCutWhileAReplicaIsDiscardedLeavesItWholeGoneOrKnown) {
  for (int at = 0; at < 6; ++at) {
    SCOPED_TRACE("before call " + std::to_string(at));
    Machine machine = MakeMachine();
    int calls = -1;
    std::optional<Machine> cut;
    {
      auto store = Open(machine, {}, [&](Call) {
        if (calls >= 0 && calls++ == at) {
          cut = Crashed(machine);
        }
        return Status::Ok();
      });
      MakeFollower(*store);
      calls = 0;
      ASSERT_TRUE((*store)->Discard(kGroup).ok());
      calls = -1;
      cut = cut ? *cut : Crashed(machine);
    }
    auto again = Open(*cut);
    ASSERT_TRUE(again->recovered.ok());
    ExpectOtherWhole(*again);
    std::optional<GroupLog> log = (*again)->Log(kGroup);
    if (at == 0) {
      EXPECT_FALSE(log->broken());
      EXPECT_EQ(CountKeys(**again, "k"), 3u);
      continue;
    }
    EXPECT_TRUE(!log || log->discarding);
    ASSERT_TRUE((*again)->Discard(kGroup).ok());
    EXPECT_EQ(CountKeys(**again, "k"), 0u);
    EXPECT_EQ((*again)->RaftGroups(), std::vector{kOther});
  }
}

TEST_P(StoreInstallTest, LeftoversInTheKeysOfANewGroupAreCleared) {
  auto store = Open(MakeMachine());
  WriteSet set = RunningStore::PutOf("kold", "v");
  (*store)->Commit(GroupId(9), CommandOf(set), nullptr, [](const Status&, Lsn) {});
  (*store)->CommitStep();
  (*store)->ApplyStep();
  ASSERT_EQ(store->Get("kold"), "v");
  ASSERT_TRUE((*store)->Found(kGroup, kTarget, BaseAt(1), {}).ok());
  EXPECT_EQ(store->Get("kold"), "");
}

// --- with threads --------------------------------------------------------------------------------

// Installs and discards among the writes of another group: nothing waits for ever, nothing of the
// other is lost.
TEST_P(MemoryInstallTest, InstallsRunBesideTheWritesOfOtherGroups) {
  Disks disks;
  RunningStore store(disks);
  std::atomic<bool> stop = false;
  ASSERT_TRUE(store->Found(kOther, IdentityOf(60, "o"), BaseAt(1), {}).ok());
  std::atomic<uint64_t> applied = 1;
  std::thread writer([&] {
    for (uint64_t i = 2; !stop; ++i) {
      LogEntry entry = CommandOf(RunningStore::PutOf("o" + std::to_string(i), "v"));
      std::promise<Status> done;
      store->Append({.group = kOther, .first = Lsn(i), .entries = {entry}}, nullptr,
                    [&](const Status& status) {
                      ASSERT_TRUE(status.ok());
                      store->Apply(kOther, Lsn(i), {entry}, nullptr,
                                   [&](const Status& status, const ReplicaRecord&) {
                                     done.set_value(status);
                                   });
                    });
      ASSERT_TRUE(done.get_future().get().ok());
      applied = i;
    }
  });
  for (uint64_t round = 1; round <= 20; ++round) {
    Install install = MakeInstall(10 + round);
    install.identity.id = ReplicaId(51 + round);
    ASSERT_TRUE(install.Run(*store).ok());
    ASSERT_EQ(store->HashSpans(kGroup, kTarget.spans, "")->hash, source_hash_);
    ASSERT_TRUE(store->Discard(kGroup).ok());
  }
  stop = true;
  writer.join();
  EXPECT_EQ(store->Record(kOther).applied, Lsn(applied));
  EXPECT_EQ(store->Record(kOther).totals.items, static_cast<int64_t>(applied - 1));
}

}  // namespace
}  // namespace orrery::storage
