// What `orrery partitions` shows, as JSON: the ranges of one container, what is in them, and what
// stands out. The leaders are asked, so any node can show all.
#include <map>

#include "base/bytes.h"
#include "cluster/overview.h"
#include "model/container_kind.h"
#include "model/inspect_partition.h"
#include "runtime/when_all.h"
#include "server/json_text.h"
#include "server/node.h"

namespace orrery::server {

using model::PartitionFindings;
using runtime::Task;

namespace {

// How long all partitions together are walked over; few at a time, each keeps a blocking thread
// busy.
constexpr Duration kWalkLongest = std::chrono::seconds(20);
constexpr size_t kAtOnce = 2;

std::string Decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value);
  return text;
}

void AppendFindings(std::string& out, const PartitionFindings& findings) {
  Field(out, "items", std::to_string(findings.totals.items));
  Field(out, "bytes", std::to_string(findings.totals.bytes));
  Field(out, "share", findings.share.ToString());
  Field(out, "usedLastSecond", findings.used_last_second.ToString());
  Count(out, "throttled", findings.throttled);
  // Of all that is there, or of what could be walked over in time.
  Flag(out, "complete", findings.walk.done);
  Field(out, "largestKeys", "[");
  for (const model::LargeKey& large : findings.largest) {
    Separate(out);
    out += '{';
    Field(out, "key", large.key);
    Field(out, "bytes", std::to_string(large.totals.bytes));
    Field(out, "items", std::to_string(large.totals.items));
    out += '}';
  }
  out += ']';
  Field(out, "hottestKeys", "[");
  for (const partition::HotKeys::Key& hot : findings.hottest) {
    Separate(out);
    out += '{';
    Field(out, "key", hot.key);
    Field(out, "requestUnitsPerSecond", Decimal(hot.units_per_second));
    Field(out, "share", Decimal(hot.share));
    out += '}';
  }
  out += ']';
}

struct Shown {
  const partition::PartitionRange& range;
  Result<PartitionFindings> findings;
  std::optional<NodeId> leader;  // of a cluster
};

void AppendRange(std::string& out, const Shown& shown) {
  Separate(out);
  out += '{';
  Field(out, "id", Quoted(shown.range.id.ToString()));
  Field(out, "min", Quoted(ToHex(shown.range.range.min)));
  Field(out, "max", Quoted(ToHex(shown.range.range.max)));
  Field(out, "parents", "[");
  for (PartitionId parent : shown.range.parents) {
    Separate(out);
    out += Quoted(parent.ToString());
  }
  out += ']';
  Count(out, "generation", shown.range.generation);
  if (shown.leader) {
    Field(out, "leader", *shown.leader == NodeId() ? "null" : shown.leader->ToString());
  }
  if (shown.findings) {
    AppendFindings(out, *shown.findings);
  } else {
    Field(out, "error", Quoted(shown.findings.error().message()));
  }
  out += '}';
}

}  // namespace

Task<Result<std::string>> Node::PartitionsJson(std::string database, std::string name) {
  co_await instance_->CatchUp();
  auto view = instance_->catalog().view();
  auto container = view->FindContainer("dbs/" + database + "/colls/" + name);
  if (container == nullptr) {
    co_return Error(Code::kNotFound, "there is no container " + database + "/" + name);
  }
  std::map<GroupId, NodeId> leaders;
  if (instance_->clustered()) {
    cluster::Overview overview = co_await instance_->Look();
    for (const cluster::SetOverview& set : overview.sets) {
      leaders[set.group] = set.leader;
    }
  }
  const model::CatalogLimits& limits = instance_->catalog().limits();
  partition::StorageLimits storage = model::StorageLimitsOf(*container, limits);
  std::string out = "{";
  Field(out, "database", Quoted(container->database_name));
  Field(out, "container", Quoted(container->name));
  Field(out, "kind", Quoted(model::KindName(model::KindOf(*container, limits))));
  Field(out, "throughput",
        container->offer ? std::to_string(container->offer->spendable()) : "null");
  Flag(out, "autoscale", container->offer && container->offer->autoscale());
  Field(out, "logicalPartitionBytesMax", std::to_string(storage.logical_partition));
  Field(out, "bytesMax", storage.all == 0 ? "null" : std::to_string(storage.all));
  Field(out, "partitions", "[");
  const Instant end = clock_.Now() + kWalkLongest;
  auto ranges = container->map->ranges();
  for (size_t i = 0; i < ranges.size(); i += kAtOnce) {
    std::vector<Task<Result<PartitionFindings>>> tasks;
    for (size_t k = i; k < std::min(ranges.size(), i + kAtOnce); ++k) {
      tasks.push_back(model::Inspect(instance_->router(), container->ring(), ranges[k], clock_,
                                     end - clock_.Now()));
    }
    std::vector<Result<PartitionFindings>> found = co_await runtime::WhenAll(std::move(tasks));
    for (size_t k = 0; k < found.size(); ++k) {
      Shown shown{ranges[i + k], std::move(found[k]), std::nullopt};
      if (instance_->clustered()) {
        shown.leader = leaders[GroupId(shown.range.id.value())];
      }
      AppendRange(out, shown);
    }
  }
  co_return out + "]}";
}

}  // namespace orrery::server
