#include "api/cassandra/batch_keeper.h"

#include <algorithm>

#include "base/kill_point.h"
#include "base/log.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {

using partition::Replica;
using partition::Reply;
using runtime::Task;

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(100);
constexpr int kTurns = 10;                             // of the interval, between two looks
constexpr Duration kAge = std::chrono::seconds(10);    // how long who began it may take
constexpr Duration kAgain = std::chrono::seconds(30);  // between two looks at what is in use
constexpr size_t kFoundMax = 100;
constexpr size_t kAtOnce = 64;
constexpr int kTriesMax = 100;  // to write with the indexes and views that there are

}  // namespace

BatchKeeper::BatchKeeper(const SchemaCache& schemas, partition::Router& router,
                         partition::ReplicaTable& replicas, runtime::WorkerPool& workers,
                         const Clock& clock)
    : schemas_(schemas), router_(router), replicas_(replicas), workers_(workers), clock_(clock) {}

void BatchKeeper::Start(bool alone) {
  nobodys_ = alone ? clock_.Wall().micros : INT64_MIN;
  workers_.at(0).Spawn(Loop(gate_.Enter()));
}

void BatchKeeper::Stop() {
  stopping_ = true;
  gate_.Close();
}

Task<> BatchKeeper::Loop(runtime::Gate::Pass pass) {
  for (int turn = 0; !stopping_; turn = (turn + 1) % kTurns) {
    if (turn == 0) {
      co_await Look(kAge);
    }
    co_await runtime::Sleep(kInterval);
  }
}

bool BatchKeeper::Wants(const Replica& replica) const {
  auto found = seen_.find(replica.id());
  if (found == seen_.end()) {
    return true;
  }
  const Seen& seen = found->second;
  const bool used = replica.applied() != seen.applied;
  return !seen.empty || (used && clock_.Now() - seen.when > kAgain);
}

Task<> BatchKeeper::Look(Duration age) {
  for (const auto& replica : replicas_.All()) {
    if (stopping_) {
      co_return;
    }
    auto schema = replica->schema();
    if (!static_cast<const model::Container&>(*schema).is_table()) {
      continue;
    }
    if (!replica->set().leads()) {
      seen_.erase(replica->id());
    } else if (auto found = seen_.find(replica->id());
               (found != seen_.end() && found->second.term != replica->set().term()) ||
               Wants(*replica)) {
      co_await LookAt(replica, age);
    }
  }
}

Task<> BatchKeeper::LookAt(std::shared_ptr<Replica> replica, Duration age) {
  Seen seen{.term = replica->set().term(),
            .applied = replica->applied(),
            .when = clock_.Now(),
            .empty = false};
  const ContainerId container = replica->container();
  const int64_t before = std::max(clock_.Wall().micros - age.count(), nobodys_);
  std::string after;
  std::vector<rows::FoundBatch> found;
  do {
    auto find = [&] {
      return rows::FindBatches(replica->state(), container, replica->range().range, after,
                               kFoundMax);
    };
    found = co_await runtime::OnBlocking(workers_, find);
    seen.empty = after.empty() && found.empty();
    for (const rows::FoundBatch& batch : found) {
      after = batch.key;
      if (batch.batch.made <= before && !stopping_) {
        co_await Finish(container, batch);
      }
    }
  } while (found.size() == kFoundMax && !stopping_);
  seen_[replica->id()] = seen;
}

Task<> BatchKeeper::Finish(ContainerId container, const rows::FoundBatch& batch) {
  Status done = (co_await Do(batch.batch)).status;
  if (done.ok()) {
    done = co_await End(container, batch.epk, batch.partition_key, batch.id);
  }
  if (done.ok()) {
    log::Info("a batch that nobody finished is done",
              {{"parts", std::to_string(batch.batch.parts.size())}});
  } else {
    log::Debug("a batch cannot be done yet", {{"why", done.ToString()}});
  }
}

Task<Reply> BatchKeeper::Send(ContainerId table, rows::WriteRows& write) {
  for (int tries = 1;; ++tries) {
    auto view = schemas_.Get();
    auto container = view->catalog->FindContainer(table);
    if (container == nullptr) {
      co_return Reply{.status = Status(Code::kOwnerNotFound, "the table is gone")};
    }
    write.derivation = view->DerivationOf(table);
    write.derived = container->derived;
    Reply reply = co_await router_.Execute(container->ring(), write.epk, write);
    if (reply.status.code() != Code::kPreconditionFailed) {
      co_return reply;
    }
    if (tries >= kTriesMax) {
      reply.status = Status(Code::kUnavailable, reply.status.message());
      co_return reply;
    }
    co_await runtime::Sleep(std::chrono::milliseconds(1 << std::min(tries, 6)));
  }
}

Task<BatchKeeper::Written> BatchKeeper::Write(ContainerId table, rows::WriteRows& write) {
  Reply reply = co_await Send(table, write);
  Written written{.status = reply.status, .charge = reply.charge, .answer = {}};
  if (!reply.status.ok()) {
    co_return written;
  }
  auto answer = rows::WriteAnswer::Decode(reply.body);
  if (!answer) {
    written.status = answer.error();
    co_return written;
  }
  written.answer = std::move(*answer);
  const std::string& kept = written.answer.batch.empty() ? write.batch : written.answer.batch;
  if (kept.empty() || !written.answer.applied) {
    co_return written;
  }
  auto batch = rows::KeptBatch::Decode(kept);
  if (!batch) {
    written.status = batch.error();
    co_return written;
  }
  KillPoint("batch.kept");
  Written rest = co_await Do(*batch);
  KillPoint("batch.done");
  written.charge += rest.charge;
  if (rest.status.ok()) {
    IgnoreError(co_await End(table, write.epk, write.partition_key, write.id),
                "it is done again later, which changes nothing");
  } else {
    written.status =
        Status(Code::kUnknownOutcome, "The rest of it will be done: " + rest.status.message());
  }
  co_return written;
}

Task<BatchKeeper::Written> BatchKeeper::DoPart(const rows::BatchPart& part) {
  Written written = co_await WritePart(part, part.changes);
  if (written.status.code() == Code::kTooLarge) {
    written = co_await DoChanges(part);
  }
  if (written.status.code() == Code::kOwnerNotFound) {
    written.status = Status::Ok();
  }
  co_return written;
}

Task<BatchKeeper::Written> BatchKeeper::WritePart(const rows::BatchPart& part,
                                                  std::vector<rows::RowChange> changes) {
  rows::WriteRows write;
  write.epk = part.epk;
  write.partition_key = part.partition_key;
  write.changes = std::move(changes);
  write.forced = true;
  co_return co_await Write(part.container, write);
}

Task<BatchKeeper::Written> BatchKeeper::DoChanges(const rows::BatchPart& part) {
  Written all;
  for (const rows::RowChange& change : part.changes) {
    Written one = co_await WritePart(part, {change});
    const bool many = change.action == rows::RowAction::kDeletePartition ||
                      change.action == rows::RowAction::kDeleteRange;
    if (many && one.status.code() == Code::kTooLarge) {
      one = co_await DeleteRows(part, change);
    }
    all.charge += one.charge;
    if (!one.status.ok()) {
      all.status = one.status;
      co_return all;
    }
  }
  co_return all;
}

Task<BatchKeeper::Written> BatchKeeper::DeleteRows(const rows::BatchPart& part,
                                                   const rows::RowChange& deletion) {
  Written all;
  rows::ReadRows read;
  read.partition_key = part.partition_key;
  read.range = {part.epk, part.epk + '\0'};
  if (deletion.action == rows::RowAction::kDeleteRange) {
    read.spans.push_back({.begin = deletion.key, .end = deletion.end});
  }
  do {
    auto container = schemas_.Get()->catalog->FindContainer(part.container);
    if (container == nullptr) {
      all.status = Status(Code::kOwnerNotFound, "the table is gone");
      co_return all;
    }
    Reply reply = co_await router_.Execute(container->ring(), part.epk, read);
    all.charge += reply.charge;
    if (!reply.status.ok()) {
      all.status = reply.status;
      co_return all;
    }
    auto page = rows::RowPage::Decode(reply.body);
    if (!page) {
      all.status = page.error();
      co_return all;
    }
    std::vector<rows::RowChange> changes;
    for (const rows::RowPage::Partition& partition : page->partitions) {
      for (const rows::RowPage::Row& row : partition.rows) {
        rows::RowChange& change = changes.emplace_back(deletion);
        change.action = rows::RowAction::kDeleteRow;
        change.key = row.key;
        change.end.clear();
      }
    }
    read.after = page->last;
    read.after_rows = page->last_rows;
    Written some = co_await WritePart(part, std::move(changes));
    all.charge += some.charge;
    if (!some.status.ok()) {
      all.status = some.status;
      co_return all;
    }
  } while (!read.after.empty());
  Written last = co_await WritePart(part, {deletion});
  last.charge += all.charge;
  co_return last;
}

Task<BatchKeeper::Written> BatchKeeper::Do(const rows::KeptBatch& batch) {
  Written all;
  for (size_t at = 0; at < batch.parts.size(); at += kAtOnce) {
    std::vector<Task<Written>> tasks;
    for (size_t i = at; i < std::min(at + kAtOnce, batch.parts.size()); ++i) {
      tasks.push_back(DoPart(batch.parts[i]));
    }
    for (const Written& part : co_await runtime::WhenAll(std::move(tasks))) {
      all.charge += part.charge;
      all.status = all.status.ok() ? part.status : all.status;
    }
  }
  co_return all;
}

Task<Status> BatchKeeper::End(ContainerId table, const types::Epk& epk,
                              const std::string& partition_key, const storage::OperationId& batch) {
  auto container = schemas_.Get()->catalog->FindContainer(table);
  if (container == nullptr) {
    co_return Status::Ok();
  }
  rows::EndBatch end;
  end.epk = epk;
  end.partition_key = partition_key;
  end.batch = batch;
  Reply reply = co_await router_.Execute(container->ring(), end.epk, end);
  co_return reply.status;
}

}  // namespace orrery::cassandra
