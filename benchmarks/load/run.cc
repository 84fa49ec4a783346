#include "load/run.h"

#include <ctime>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include "load/cql.h"
#include "load/etcd.h"
#include "load/server_process.h"
#include "load/sql.h"

namespace orrery::load {
namespace {

constexpr int kSetupTimeoutSeconds = 600;  // a container may have thousands of partitions

using WorkloadMaker = std::function<std::unique_ptr<Workload>(int thread)>;

// What one moment looked like.
struct Sample {
  double successes = 0;
  double own_cpu = 0;
  std::optional<double> server_cpu;
  std::optional<double> allocations;
  double successes_at_allocations = 0;
};

// Over all processes; nothing if there are none or one of them is gone.
template <typename T>
std::optional<T> Sum(const std::vector<int>& pids, std::optional<T> (*of)(int pid)) {
  std::optional<T> sum;
  for (int pid : pids) {
    std::optional<T> one = of(pid);
    if (!one) {
      return std::nullopt;
    }
    sum = sum.value_or(T()) + *one;
  }
  return sum;
}

CqlData DataOf(const Options& options) {
  return {.items = options.sql.items,
          .value_bytes = options.sql.item_bytes,
          .row_bytes = options.row_bytes,
          .consistency = options.consistency};
}

// The loops of one run, a thread each.
class Loops {
 public:
  Loops(const Options& options, const WorkloadMaker& make);
  ~Loops() { Join(); }

  Status Open();
  void Start(LoopTimes times);
  Sample TakeSample() const;
  // Requests that are sent from now on are told apart (LoopResult::back).
  void Mark(int64_t now);
  // Waits for the end.
  Result<LoopResult> Finish();

 private:
  void Join();
  uint64_t Successes() const;

  const Options& options_;
  std::vector<std::unique_ptr<Workload>> workloads_;
  std::vector<LoopWatch> watches_;
  std::vector<std::unique_ptr<Loop>> loops_;
  std::vector<Result<LoopResult>> results_;
  std::vector<std::thread> threads_;
};

Loops::Loops(const Options& options, const WorkloadMaker& make)
    : options_(options), watches_(options.threads), results_(options.threads) {
  for (int i = 0; i < options.threads; ++i) {
    auto share = [&](int all) {
      return all / options.threads + (i < all % options.threads ? 1 : 0);
    };
    LoopOptions loop{.endpoints = options.endpoints,
                     .connections = share(options.connections),
                     .idle = share(options.idle),
                     .rate = options.rate / options.threads};
    workloads_.push_back(make(i));
    if (options.command.starts_with("etcd")) {
      EtcdOptions etcd{.loop = std::move(loop),
                       .streams = options.streams,
                       .reads = options.command == "etcd-read"};
      loops_.push_back(MakeEtcdLoop(std::move(etcd), *workloads_[i], watches_[i]));
    } else if (options.command.starts_with("cql")) {
      CqlOptions cql{.loop = std::move(loop),
                     .streams = options.streams,
                     .found_bytes_min = FoundBytesMin(options.command, DataOf(options))};
      loops_.push_back(MakeCqlLoop(std::move(cql), *workloads_[i], watches_[i]));
    } else {
      loops_.push_back(MakeHttpLoop(std::move(loop), *workloads_[i], watches_[i]));
    }
  }
}

Status Loops::Open() {
  for (const auto& loop : loops_) {
    ORRERY_RETURN_IF_ERROR(loop->Open());
  }
  return Status::Ok();
}

void Loops::Start(LoopTimes times) {
  for (size_t i = 0; i < loops_.size(); ++i) {
    threads_.emplace_back([this, i, times] { results_[i] = loops_[i]->Run(times); });
  }
}

void Loops::Join() {
  for (std::thread& thread : threads_) {
    thread.join();
  }
  threads_.clear();
}

uint64_t Loops::Successes() const {
  uint64_t sum = 0;
  for (const LoopWatch& watch : watches_) {
    sum += watch.successes.load(std::memory_order_relaxed);
  }
  return sum;
}

void Loops::Mark(int64_t now) {
  for (LoopWatch& watch : watches_) {
    watch.mark.store(now, std::memory_order_relaxed);
  }
}

Sample Loops::TakeSample() const {
  Sample sample;
  sample.successes = static_cast<double>(Successes());
  sample.own_cpu = OwnCpuSeconds();
  sample.server_cpu = Sum(options_.pids, CpuSeconds);
  if (options_.metrics_port > 0 || options_.command.starts_with("sql")) {
    Endpoint told = options_.sql.endpoint;
    told.port = options_.metrics_port > 0 ? options_.metrics_port : told.port;
    sample.allocations = Allocations(told);
    sample.successes_at_allocations = static_cast<double>(Successes());
  }
  return sample;
}

Result<LoopResult> Loops::Finish() {
  Join();
  LoopResult all;
  for (Result<LoopResult>& result : results_) {
    if (!result) {
      return Error(result.error());
    }
    all.Add(*result);
  }
  return all;
}

void SleepUntil(int64_t nanos) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanos - NowNanos()));
}

void FillUsage(const Sample& from, const Sample& to, Report& report) {
  double count = to.successes - from.successes;
  if (count <= 0) {
    return;
  }
  report.generator_cpu_us_per_op = (to.own_cpu - from.own_cpu) * 1e6 / count;
  if (from.server_cpu && to.server_cpu) {
    report.server_cpu_us_per_op = (*to.server_cpu - *from.server_cpu) * 1e6 / count;
  }
  count = to.successes_at_allocations - from.successes_at_allocations;
  if (from.allocations && to.allocations && count > 0) {
    report.allocations_per_op = (*to.allocations - *from.allocations) / count;
  }
}

// The loops end half a second after they had a success again.
Result<Report> KillAndFinish(int pid, Loops& loops, Report report) {
  int64_t killed = NowNanos();
  loops.Mark(killed);
  kill(pid, SIGKILL);
  ORRERY_TRY(report.result, loops.Finish());
  report.seconds = static_cast<double>(NowNanos() - killed) / 1e9;
  if (report.result.back != INT64_MAX) {
    report.back_ms = static_cast<double>(report.result.back - killed) / 1e6;
  }
  return report;
}

Result<Report> RunTimed(const Options& options, const WorkloadMaker& make) {
  constexpr double kNanos = 1e9;
  Loops loops(options, make);
  ORRERY_TRY_STATUS(loops.Open());
  LoopTimes times{.start = NowNanos()};
  times.measure_from = times.start + static_cast<int64_t>(options.warmup * kNanos);
  times.end = times.measure_from + static_cast<int64_t>(options.seconds * kNanos);
  loops.Start(times);
  SleepUntil(times.measure_from);
  Report report;
  report.seconds = options.seconds;
  if (options.kill > 0) {
    return KillAndFinish(options.kill, loops, report);
  }
  Sample from = loops.TakeSample();
  // The last sample is taken while everything still runs.
  SleepUntil(times.end - static_cast<int64_t>(kNanos / 50));
  report.server_rss_kb = Sum(options.pids, ResidentKilobytes);
  FillUsage(from, loops.TakeSample(), report);
  ORRERY_TRY(report.result, loops.Finish());
  return report;
}

// Runs until the workloads have nothing left.
Result<Report> RunToTheEnd(const Options& options, const WorkloadMaker& make) {
  Loops loops(options, make);
  ORRERY_TRY_STATUS(loops.Open());
  Sample from = loops.TakeSample();
  int64_t start = NowNanos();
  loops.Start({.start = start, .measure_from = start});
  Report report;
  ORRERY_TRY(report.result, loops.Finish());
  report.seconds = static_cast<double>(NowNanos() - start) / 1e9;
  FillUsage(from, loops.TakeSample(), report);
  report.server_rss_kb = Sum(options.pids, ResidentKilobytes);
  return report;
}

// Sends one request of the setup; a thing that is already there is good too.
Status MakeSure(const Endpoint& endpoint, const std::string& request, std::string_view what) {
  Result<Reply> reply = Fetch(endpoint, request, kSetupTimeoutSeconds);
  if (!reply) {
    return reply.error();
  }
  if (reply->status != 201 && reply->status != 409) {
    return Status(Code::kUnavailable,
                  fmt::format("creating the {} gave {}: {}", what, reply->status, reply->body));
  }
  return Status::Ok();
}

Result<Report> RunSetup(const Options& options, const SqlRequests& requests) {
  ORRERY_TRY_STATUS(MakeSure(options.sql.endpoint, requests.CreateDatabase(), "database"));
  int64_t start = NowNanos();
  ORRERY_TRY_STATUS(MakeSure(options.sql.endpoint, requests.CreateContainer(), "container"));
  double create_ms = static_cast<double>(NowNanos() - start) / 1e6;
  ORRERY_TRY(Report report, RunToTheEnd(options, [&](int thread) {
               return std::make_unique<SqlSetupWorkload>(requests, thread, options.threads);
             }));
  report.create_container_ms = create_ms;
  return report;
}

Result<Report> RunSql(const Options& options) {
  double read_share = options.command == "sql-read"    ? 1
                      : options.command == "sql-mixed" ? options.read_share
                                                       : 0;
  ORRERY_TRY(SqlRequests requests, SqlRequests::Make(options.sql, read_share > 0));
  if (options.command == "sql-setup") {
    return RunSetup(options, requests);
  }
  auto write =
      options.command == "sql-write" ? SqlWorkload::Write::kCreate : SqlWorkload::Write::kUpsert;
  // Runs on the same container must not repeat an id.
  auto stamp = static_cast<uint64_t>(NowNanos());
  return RunTimed(options, [&](int thread) {
    return std::make_unique<SqlWorkload>(requests, read_share, write,
                                         fmt::format("new-{:x}-{}-", stamp, thread),
                                         stamp + static_cast<uint64_t>(thread) * 7919);
  });
}

Result<Report> RunEtcd(const Options& options) {
  EtcdData data{.items = options.sql.items, .value_bytes = options.sql.item_bytes};
  if (options.command == "etcd-setup") {
    return RunToTheEnd(options, [&](int thread) {
      return std::make_unique<EtcdSetupWorkload>(data, thread, options.threads);
    });
  }
  auto stamp = static_cast<uint64_t>(NowNanos());
  return RunTimed(options, [&](int thread) {
    return std::make_unique<EtcdWorkload>(data, options.command == "etcd-read",
                                          fmt::format("new-{:x}-{}-", stamp, thread),
                                          stamp + static_cast<uint64_t>(thread) * 7919);
  });
}

Result<Report> RunCql(const Options& options) {
  const CqlData data = DataOf(options);
  ORRERY_TRY(CqlStatements statements, PrepareCql(options.endpoints, data));
  if (options.command == "cql-setup") {
    return RunToTheEnd(options, [&](int thread) {
      return std::make_unique<CqlSetupWorkload>(data, statements, thread, options.threads);
    });
  }
  const double read_share = options.command == "cql-read"    ? 1
                            : options.command == "cql-mixed" ? options.read_share
                                                             : 0;
  const auto kind = options.command == "cql-scan"     ? CqlWorkload::Kind::kScans
                    : options.command == "cql-insert" ? CqlWorkload::Kind::kNewRows
                                                      : CqlWorkload::Kind::kPoints;
  auto stamp = static_cast<uint64_t>(NowNanos());
  return RunTimed(options, [&](int thread) {
    return std::make_unique<CqlWorkload>(data, statements, kind, read_share,
                                         stamp + static_cast<uint64_t>(thread) * 7919);
  });
}

Result<Report> RunHttp(const Options& options) {
  std::string request = "GET " + options.path +
                        " HTTP/1.1\r\nhost: " + options.sql.endpoint.HostHeader() +
                        "\r\naccept: application/json\r\n\r\n";
  return RunTimed(options, [&](int) { return std::make_unique<FixedWorkload>(request); });
}

void RaiseFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

Result<Report> Run(const Options& options) {
  RaiseFileLimit();
  if (options.command == "http") {
    return RunHttp(options);
  }
  if (options.command.starts_with("cql")) {
    return RunCql(options);
  }
  return options.command.starts_with("etcd") ? RunEtcd(options) : RunSql(options);
}

}  // namespace orrery::load
