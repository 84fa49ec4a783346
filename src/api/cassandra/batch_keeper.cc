#include "api/cassandra/batch_keeper.h"

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

}  // namespace

BatchKeeper::BatchKeeper(model::Catalog& catalog, partition::Router& router,
                         partition::ReplicaTable& replicas, runtime::WorkerPool& workers,
                         const Clock& clock)
    : catalog_(catalog), router_(router), replicas_(replicas), workers_(workers), clock_(clock) {}

void BatchKeeper::Start() { workers_.at(0).Spawn(Loop(gate_.Enter())); }

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
  auto find = [&] {
    return rows::FindBatches(replica->state(), container, replica->range().range, kFoundMax);
  };
  std::vector<rows::FoundBatch> found = co_await runtime::OnBlocking(workers_, find);
  seen.empty = found.empty();
  seen_[replica->id()] = seen;
  const int64_t before = clock_.Wall().micros - age.count();
  for (const rows::FoundBatch& batch : found) {
    if (batch.batch.made > before || stopping_) {
      continue;
    }
    Status done = co_await Do(batch.batch);
    if (done.ok()) {
      done = co_await End(container, batch);
    }
    log::Info("a batch that nobody finished",
              {{"parts", std::to_string(batch.batch.parts.size())}, {"now", done.ToString()}});
  }
}

Task<Status> BatchKeeper::DoPart(const rows::BatchPart& part) {
  auto container = catalog_.view()->FindContainer(part.container);
  if (container == nullptr) {
    co_return Status::Ok();
  }
  rows::WriteRows write;
  write.epk = part.epk;
  write.partition_key = part.partition_key;
  write.changes = part.changes;
  write.forced = true;
  Reply reply = co_await router_.Execute(container->ring(), write.epk, write);
  const bool gone = reply.status.code() == Code::kOwnerNotFound;
  co_return gone ? Status::Ok() : reply.status;
}

Task<Status> BatchKeeper::Do(const rows::KeptBatch& batch) {
  Status first;
  for (size_t at = 0; at < batch.parts.size(); at += kAtOnce) {
    std::vector<Task<Status>> tasks;
    for (size_t i = at; i < std::min(at + kAtOnce, batch.parts.size()); ++i) {
      tasks.push_back(DoPart(batch.parts[i]));
    }
    for (const Status& status : co_await runtime::WhenAll(std::move(tasks))) {
      first = first.ok() ? status : first;
    }
  }
  co_return first;
}

Task<Status> BatchKeeper::End(ContainerId container, const rows::FoundBatch& batch) {
  auto found = catalog_.view()->FindContainer(container);
  if (found == nullptr) {
    co_return Status::Ok();
  }
  rows::EndBatch end;
  end.epk = batch.epk;
  end.partition_key = batch.partition_key;
  end.batch = batch.id;
  Reply reply = co_await router_.Execute(found->ring(), end.epk, end);
  co_return reply.status;
}

}  // namespace orrery::cassandra
