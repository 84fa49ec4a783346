#include "server/metrics.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "model/throughput.h"
#include "server/allocations.h"

namespace orrery::server {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Histogram;

// Seconds, from a cached read to a stalled disk.
const Histogram::BucketBoundaries kLatency = {
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1};

struct OperationMetrics {
  Counter* count = nullptr;
  Counter* charge = nullptr;
  Histogram* latency = nullptr;
};

}  // namespace

struct Metrics::Body {
  prometheus::Registry registry;
  Family<Counter>& requests = prometheus::BuildCounter()
                                  .Name("orrery_requests_total")
                                  .Help("Requests by operation and status")
                                  .Register(registry);
  Family<Counter>& charge = prometheus::BuildCounter()
                                .Name("orrery_request_units_total")
                                .Help("Request units charged, by operation")
                                .Register(registry);
  Family<Counter>& throttled = prometheus::BuildCounter()
                                   .Name("orrery_throttled_total")
                                   .Help("Requests answered with 429")
                                   .Register(registry);
  Family<Histogram>& latency = prometheus::BuildHistogram()
                                   .Name("orrery_request_seconds")
                                   .Help("Time from request to reply, by operation")
                                   .Register(registry);
  Counter& throttled_all = throttled.Add({});

  std::mutex mutex;
  std::map<std::pair<std::string, int>, OperationMetrics> operations;

  OperationMetrics Find(std::string_view operation, int status) {
    std::lock_guard lock(mutex);
    std::string name(operation);
    OperationMetrics& found = operations[{name, status}];
    if (found.count == nullptr) {
      found = {.count = &requests.Add({{"operation", name}, {"status", std::to_string(status)}}),
               .charge = &charge.Add({{"operation", name}}),
               .latency = &latency.Add({{"operation", name}}, kLatency)};
    }
    return found;
  }
};

Metrics::Metrics() : body_(std::make_unique<Body>()) {}
Metrics::~Metrics() = default;

void Metrics::OnRequest(std::string_view operation, int status, double charge, Duration took) {
  // Names of operations are constants, so each thread remembers what it looked up by their address.
  struct Known {
    const Metrics* metrics;
    const char* operation;
    int status;
    OperationMetrics found;
  };
  constexpr size_t kKnownMax = 64;
  thread_local std::vector<Known> known;
  auto at = std::find_if(known.begin(), known.end(), [&](const Known& k) {
    return k.operation == operation.data() && k.status == status && k.metrics == this;
  });
  if (at == known.end()) {
    if (known.size() == kKnownMax) {
      known.clear();
    }
    at =
        known.insert(known.end(), {this, operation.data(), status, body_->Find(operation, status)});
  }
  at->found.count->Increment();
  at->found.charge->Increment(charge);
  at->found.latency->Observe(static_cast<double>(took.count()) / 1e6);
  if (status == 429) {
    body_->throttled_all.Increment();
  }
}

namespace {

void Line(std::string& out, std::string_view name, const std::string& labels, double value) {
  out += name;
  out += labels;
  out += ' ';
  char text[32];
  std::snprintf(text, sizeof(text), "%.17g", value);
  out += text;
  out += '\n';
}

void Head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " + std::string(name) +
         " " + std::string(type) + "\n";
}

void Gauge(std::string& out, std::string_view name, std::string_view help, double value) {
  Head(out, name, "gauge", help);
  Line(out, name, "", value);
}

void Total(std::string& out, std::string_view name, std::string_view help, uint64_t value) {
  Head(out, name, "counter", help);
  Line(out, name, "", static_cast<double>(value));
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

// A metric of each partition: its name, type, help and how it is read.
struct PartitionMetric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  double (*read)(partition::Replica&, Instant now);
};

const PartitionMetric kPartitionMetrics[] = {
    {"orrery_partition_bytes", "gauge", "Bytes of items, with their keys",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.totals().bytes); }},
    {"orrery_partition_items", "gauge", "Number of items",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.totals().items); }},
    {"orrery_partition_request_units_share", "gauge", "RU/s that the partition may spend",
     [](partition::Replica& r, Instant) { return r.governor().share().value(); }},
    {"orrery_partition_request_units_total", "counter", "RU charged",
     [](partition::Replica& r, Instant) {
       return static_cast<double>(r.stats().charge_hundredths) / 100;
     }},
    {"orrery_partition_request_units_last_second", "gauge", "RU used in the last second",
     [](partition::Replica& r, Instant now) { return r.governor().UsedLastSecond(now).value(); }},
    {"orrery_partition_request_units_sustained", "gauge",
     "RU used in each of the last five seconds: the least",
     [](partition::Replica& r, Instant now) { return r.governor().Sustained(now).value(); }},
    {"orrery_partition_requests_total", "counter", "Operations",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.stats().requests); }},
    {"orrery_partition_throttled_total", "counter", "Operations beyond the budget",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.stats().throttled); }},
    {"orrery_partition_largest_key_bytes", "gauge",
     "Bytes of the largest logical partition, where one is over a quarter of the limit",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.sizes().largest()); }},
    {"orrery_partition_lsn", "gauge", "The last applied entry of the log",
     [](partition::Replica& r, Instant) { return static_cast<double>(r.applied().value()); }},
};

}  // namespace

namespace {

// What is under way in the whole cluster, and what this node has carried out: over all nodes each
// change is counted once.
void RenderReshapes(std::string& out, const model::CatalogView& catalog,
                    const model::ReshapeCounters& done) {
  size_t splits = 0;
  size_t merges = 0;
  for (const auto& [id, container] : catalog.containers_by_id) {
    for (const model::Reshape& reshape : container->reshapes) {
      ++(reshape.splits() ? splits : merges);
    }
  }
  auto by_kind = [&out](std::string_view name, std::string_view type, std::string_view help,
                        uint64_t of_splits, uint64_t of_merges) {
    Head(out, name, type, help);
    Line(out, name, "{kind=\"split\"}", static_cast<double>(of_splits));
    Line(out, name, "{kind=\"merge\"}", static_cast<double>(of_merges));
  };
  by_kind("orrery_reshapes", "gauge", "Splits and merges of partitions under way", splits, merges);
  Total(out, "orrery_splits_total", "Splits that this node has carried out", done.splits);
  Total(out, "orrery_merges_total", "Merges that this node has carried out", done.merges);
  by_kind("orrery_reshapes_called_off_total", "counter",
          "Splits and merges that this node has called off", done.splits_called_off,
          done.merges_called_off);
}

// Over all nodes each partition is counted once, by its leader.
void RenderScaled(std::string& out, const model::CatalogView& catalog,
                  const partition::ReplicaTable& replicas, Instant now) {
  constexpr std::string_view kName = "orrery_partition_request_units_scaled";
  Head(out, kName, "gauge", "RU/s that autoscale has the partition at; of partitions led here");
  for (const auto& [id, container] : catalog.containers_by_id) {
    if (!container->offer || !container->offer->autoscale()) {
      continue;
    }
    for (const auto& range : container->map->ranges()) {
      auto replica = replicas.Find(range.id);
      if (replica == nullptr || !replica->set().leads()) {
        continue;
      }
      partition::Governor& governor = replica->governor();
      Line(out, kName,
           "{database=\"" + Escaped(container->database_name) + "\",container=\"" +
               Escaped(container->name) + "\",partition=\"" + range.id.ToString() + "\"}",
           model::ScaledShare(governor.share(), governor.Sustained(now)).value());
    }
  }
}

}  // namespace

std::string Metrics::Render(const model::CatalogView& catalog,
                            const partition::ReplicaTable& replicas,
                            const model::ReshapeCounters& reshapes, const Clock& clock,
                            const storage::Store& store, size_t connections) {
  std::string out;
  {
    std::lock_guard lock(body_->mutex);
    out = prometheus::TextSerializer().Serialize(body_->registry.Collect());
  }
  Head(out, "orrery_connections", "gauge", "Open client connections");
  Line(out, "orrery_connections", "", static_cast<double>(connections));
  Head(out, "orrery_allocations_total", "counter", "Heap allocations of the process by C++ code");
  Line(out, "orrery_allocations_total", "", static_cast<double>(AllocationCount()));
  Head(out, "orrery_log_healthy", "gauge", "0 after the log failed: writes need a restart");
  Line(out, "orrery_log_healthy", "", store.healthy() ? 1 : 0);
  Head(out, "orrery_disk_full", "gauge", "1 while writes are refused for want of disk space");
  Line(out, "orrery_disk_full", "", store.disk_full() ? 1 : 0);
  RenderReshapes(out, catalog, reshapes);
  Head(out, "orrery_balancer_paused", "gauge", "1 while partitions are left as they are");
  Line(out, "orrery_balancer_paused", "", catalog.balancer_paused ? 1 : 0);
  Instant now = clock.Now();
  for (const PartitionMetric& metric : kPartitionMetrics) {
    Head(out, metric.name, metric.type, metric.help);
    for (const auto& [id, container] : catalog.containers_by_id) {
      std::string owner = "{database=\"" + Escaped(container->database_name) + "\",container=\"" +
                          Escaped(container->name) + "\",partition=\"";
      for (const auto& range : container->map->ranges()) {
        if (auto replica = replicas.Find(range.id)) {
          Line(out, metric.name, owner + range.id.ToString() + "\"}", metric.read(*replica, now));
        }
      }
    }
  }
  RenderScaled(out, catalog, replicas, now);
  return out;
}

std::string RenderPurged(const rows::Purger::Counts& counts) {
  std::string out;
  Total(out, "orrery_purged_keys_total",
        "Dead rows, static rows and deletions of Cassandra's tables that are dropped",
        counts.dropped);
  Total(out, "orrery_purged_parts_total", "Those of which something alive stays", counts.trimmed);
  Total(out, "orrery_purged_bytes_total", "Bytes of both",
        static_cast<uint64_t>(std::max<int64_t>(counts.bytes, 0)));
  return out;
}

namespace {

void RenderNodes(std::string& out, const cluster::Overview& here, NodeId self) {
  Head(out, "orrery_cluster_nodes", "gauge", "Nodes of the cluster as this one sees them");
  for (auto state : {model::NodeState::kActive, model::NodeState::kDraining}) {
    for (bool alive : {true, false}) {
      auto count = std::ranges::count_if(here.nodes, [&](const cluster::NodeOverview& node) {
        return node.record->state == state && node.alive == alive;
      });
      std::string labels = "{state=\"";
      labels += state == model::NodeState::kActive ? "active" : "draining";
      labels += alive ? "\",alive=\"true\"}" : "\",alive=\"false\"}";
      Line(out, "orrery_cluster_nodes", labels, static_cast<double>(count));
    }
  }
  auto node = std::ranges::find_if(
      here.nodes, [self](const cluster::NodeOverview& one) { return one.record->id == self; });
  if (node != here.nodes.end()) {
    Gauge(out, "orrery_replicas", "Replicas of partitions on this node",
          static_cast<double>(node->replicas));
    Gauge(out, "orrery_leaders", "Those of them that lead their sets",
          static_cast<double>(node->leaders));
  }
}

}  // namespace

std::string RenderCluster(const cluster::Overview& here, NodeId self, uint64_t moves,
                          const net::PeerCounters& counters) {
  std::string out;
  RenderNodes(out, here, self);
  double under = 0;
  double moving = 0;
  for (const cluster::SetOverview& set : here.sets) {
    if (set.leader == self) {
      under += set.under_replicated() ? 1 : 0;
      moving += set.moving ? 1 : 0;
    }
  }
  Gauge(out, "orrery_sets_under_replicated", "Sets led here that have too few live replicas",
        under);
  Gauge(out, "orrery_sets_moving", "Sets led here whose members are being changed", moving);
  Total(out, "orrery_moves_total", "Replicas that have moved, in sets led here then", moves);
  // The lines of one metric stand together.
  std::string lags;
  Head(lags, "orrery_set_lag", "gauge", "Entries that a follower of a set led here does not have");
  Head(out, "orrery_set_term", "gauge",
       "Term of a set led here: it rises with each election; set 0 is the catalog");
  for (const cluster::SetOverview& set : here.sets) {
    if (set.leader != self) {
      continue;
    }
    std::string label = "{set=\"" + set.group.ToString() + "\"";
    Line(out, "orrery_set_term", label + "}", static_cast<double>(set.term));
    for (const cluster::MemberOverview& member : set.members) {
      if (member.node != self && member.lag) {
        Line(lags, "orrery_set_lag", label + ",node=\"" + member.node.ToString() + "\"}",
             static_cast<double>(*member.lag));
      }
    }
  }
  out += lags;
  Total(out, "orrery_peer_frames_sent_total", "Frames sent to other nodes", counters.frames_sent);
  Total(out, "orrery_peer_bytes_sent_total", "Bytes of them", counters.bytes_sent);
  Total(out, "orrery_peer_frames_received_total", "Frames of other nodes",
        counters.frames_received);
  Total(out, "orrery_peer_bytes_received_total", "Bytes of them", counters.bytes_received);
  Total(out, "orrery_peer_frames_dropped_total", "Frames that found no room or no connection",
        counters.frames_dropped);
  return out;
}

}  // namespace orrery::server
