#include "server/print_status.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

namespace orrery::server {

using types::Value;

namespace {

std::string Bytes(double bytes) {
  static constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit < 4) {
    bytes /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

bool Has(Value object, std::string_view name) {
  return types::Member(object, name).kind() == types::Kind::kNumber;
}

double Number(Value object, std::string_view name) {
  Value value = types::Member(object, name);
  return value.kind() == types::Kind::kNumber ? value.number() : 0;
}

std::string Text(Value object, std::string_view name) {
  Value value = types::Member(object, name);
  return value.kind() == types::Kind::kString ? std::string(value.string()) : std::string();
}

bool IsTrue(Value object, std::string_view name) {
  Value value = types::Member(object, name);
  return value.kind() == types::Kind::kBool && value.boolean();
}

// "?" where nobody knows.
std::string Whole(Value object, std::string_view name) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f", Number(object, name));
  return Has(object, name) ? text : "?";
}

std::vector<Value> Elements(Value object, std::string_view name) {
  std::vector<Value> elements;
  Value list = types::Member(object, name);
  if (list.kind() == types::Kind::kArray) {
    for (types::ValueIterator at(list.bson()); at.Next();) {
      elements.push_back(at.value());
    }
  }
  return elements;
}

// Columns as wide as what is in them.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { Add(std::move(head)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void Print() const {
    std::vector<size_t> widths(rows_[0].size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        widths[i] = std::max(widths[i], row[i].size());
      }
    }
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        line += "  " + row[i] + std::string(widths[i] - row[i].size(), ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      std::printf("%s\n", line.c_str());
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string Seen(Value node) {
  if (!IsTrue(node, "alive")) {
    return "SILENT for " + Whole(node, "silentSeconds") + " s";
  }
  if (!Has(node, "replicas")) {
    return "does not answer";
  }
  if (!IsTrue(node, "healthy")) {
    return "LOG FAILED";
  }
  return IsTrue(node, "diskFull") ? "DISK NEARLY FULL" : "alive";
}

// `node` (lag 12), or (silent), or (standby).
std::string Describe(Value member) {
  std::vector<std::string> marks;
  if (Text(member, "role") == "standby") {
    marks.push_back("standby");
  }
  if (!IsTrue(member, "alive")) {
    marks.push_back("silent");
  }
  if (!Has(member, "lag")) {
    marks.push_back("lag ?");
  } else if (Number(member, "lag") > 0) {
    marks.push_back("lag " + Whole(member, "lag"));
  }
  std::string text = Whole(member, "node");
  for (size_t i = 0; i < marks.size(); ++i) {
    text += (i == 0 ? " (" : ", ") + marks[i];
  }
  return text + (marks.empty() ? "" : ")");
}

void PrintSets(Value cluster) {
  Table table({"set", "of", "leader", "term", "replicas", ""});
  for (Value set : Elements(cluster, "replicaSets")) {
    std::string members;
    for (Value member : Elements(set, "members")) {
      members += (members.empty() ? "" : ", ") + Describe(member);
    }
    std::string state;
    if (!Has(set, "leader")) {
      state = "NO LEADER";
    } else if (IsTrue(set, "underReplicated")) {
      state = "UNDER-REPLICATED: " + Whole(set, "alive") + " of " + Whole(set, "wanted");
    }
    if (IsTrue(set, "moving")) {
      state += state.empty() ? "moving" : ", moving";
    }
    table.Add({Text(set, "id"), Text(set, "container"),
               Has(set, "leader") ? Whole(set, "leader") : "-", Whole(set, "term"), members,
               state});
  }
  table.Print();
}

void PrintCluster(Value cluster) {
  std::vector<Value> nodes = Elements(cluster, "nodes");
  auto alive = std::ranges::count_if(nodes, [](Value node) { return IsTrue(node, "alive"); });
  std::printf(
      "cluster of %zu nodes, %zu alive; this is node %s; sets under-replicated: %s, "
      "moving: %s, without a leader: %s\n\n",
      nodes.size(), static_cast<size_t>(alive), Whole(cluster, "node").c_str(),
      Whole(cluster, "underReplicated").c_str(), Whole(cluster, "moving").c_str(),
      Whole(cluster, "withoutLeader").c_str());
  PrintNodes(types::Member(cluster, "nodes"));
  std::printf("\n");
  PrintSets(cluster);
}

// "4000 RU/s (autoscale, now 400)" and what else is special about it.
std::string Throughput(Value owner) {
  std::string text = Whole(owner, "throughput") + " RU/s";
  if (IsTrue(owner, "autoscale")) {
    text += " (autoscale, now " + Whole(owner, "currentThroughput") + ")";
  }
  if (Text(owner, "policy") == "Custom") {
    text += ", set by partition";
  }
  if (IsTrue(owner, "replacePending")) {
    text += ", waits for splits";
  }
  return text;
}

std::string Decimal(Value object, std::string_view name) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", Number(object, name));
  return Has(object, name) ? text : "?";
}

std::string SizeOf(Value object) {
  return Has(object, "bytes") ? Bytes(Number(object, "bytes")) : "?";
}

void PrintOffer(Value container) {
  double throughput = Number(container, "throughput");
  if (throughput == 0) {
    std::printf("shares its database's RU/s\n");
  } else {
    std::printf("%s\n", Throughput(container).c_str());
  }
}

std::string KeyText(Value entry) {
  std::string json;
  types::AppendJson(types::Member(entry, "key"), json);
  return json;
}

void PrintKeys(Value partition) {
  std::vector<Value> largest = Elements(partition, "largestKeys");
  std::vector<Value> hottest = Elements(partition, "hottestKeys");
  std::string id = Text(partition, "id");
  if (!largest.empty()) {
    std::printf("\n%s: largest logical partitions%s\n", id.c_str(),
                IsTrue(partition, "complete") ? "" : " of those that were looked at in time");
    Table table({"size", "items", "key"});
    for (Value large : largest) {
      table.Add({SizeOf(large), Whole(large, "items"), KeyText(large)});
    }
    table.Print();
  }
  if (!hottest.empty()) {
    std::printf("\n%s: hottest logical partitions\n", id.c_str());
    Table table({"RU/s", "share", "key"});
    for (Value hot : hottest) {
      char share[32];
      std::snprintf(share, sizeof(share), "%.0f%%", Number(hot, "share") * 100);
      table.Add({Decimal(hot, "requestUnitsPerSecond"), share, KeyText(hot)});
    }
    table.Print();
  }
}

std::string Listed(const std::vector<Value>& texts) {
  std::string list;
  for (Value text : texts) {
    list += (list.empty() ? "" : " and ") + std::string(text.string());
  }
  return list;
}

void PrintContainer(const std::string& database, Value container) {
  std::printf("\n%s/%s  ", database.c_str(), Text(container, "id").c_str());
  PrintOffer(container);
  std::printf("  %-10s %-34s %12s %12s %10s %10s %10s\n", "partition", "from", "items", "size",
              "RU/s", "used", "429s");
  for (Value partition : Elements(container, "partitions")) {
    std::string from = Text(partition, "min");
    bool known = Has(partition, "items");
    char used[32];
    std::snprintf(used, sizeof(used), "%.2f", Number(partition, "usedLastSecond"));
    std::printf("  %-10s %-34s %12s %12s %10s %10s %10s\n", Text(partition, "id").c_str(),
                from.empty() ? "(start)" : from.c_str(), Whole(partition, "items").c_str(),
                known ? Bytes(Number(partition, "bytes")).c_str() : "?",
                Whole(partition, "share").c_str(), known ? used : "?",
                Whole(partition, "throttled").c_str());
  }
  for (Value reshape : Elements(container, "reshapes")) {
    bool splits = Text(reshape, "kind") == "split";
    std::printf("  %s %s into %s\n", splits ? "splitting" : "merging",
                Listed(Elements(reshape, "parents")).c_str(),
                Listed(Elements(reshape, "heirs")).c_str());
  }
}

}  // namespace

void PrintNodes(Value nodes) {
  Table table(
      {"node", "address", "endpoint", "zone", "state", "seen", "leaders", "replicas", "disk free"});
  for (types::ValueIterator at(nodes.bson()); at.Next();) {
    Value node = at.value();
    std::string zone = Text(node, "zone");
    table.Add({Whole(node, "id"), Text(node, "address"), Text(node, "endpoint"),
               zone.empty() ? "-" : zone, Text(node, "state"), Seen(node), Whole(node, "leaders"),
               Whole(node, "replicas"),
               Has(node, "freeBytes") ? Bytes(Number(node, "freeBytes")) : "?"});
  }
  table.Print();
}

bool PrintThroughput(Value status, std::string_view database, std::string_view name) {
  for (Value owner : Elements(status, "databases")) {
    for (Value container : Elements(owner, "containers")) {
      if (Text(owner, "id") != database || Text(container, "id") != name) {
        continue;
      }
      PrintContainer(std::string(database), container);
      Value least = Has(container, "throughput") ? container : owner;
      std::printf("  least that can be asked for: %s RU/s\n",
                  Whole(least, "minimumThroughput").c_str());
      std::vector<Value> buckets = Elements(container, "buckets");
      for (Value bucket : buckets) {
        bool unmarked = Has(container, "defaultBucket") &&
                        Whole(container, "defaultBucket") == Whole(bucket, "id");
        std::printf("  bucket %s: at most %s percent%s\n", Whole(bucket, "id").c_str(),
                    Whole(bucket, "percent").c_str(), unmarked ? ", the default" : "");
      }
      if (buckets.empty()) {
        std::printf("  no throughput buckets\n");
      }
      return true;
    }
  }
  return false;
}

void PrintPartitions(Value container) {
  double most = Number(container, "bytesMax");
  std::printf("%s/%s  %s", Text(container, "database").c_str(),
              Text(container, "container").c_str(), Text(container, "kind").c_str());
  if (most > 0) {
    std::printf(", holds at most %s", Bytes(most).c_str());
  }
  std::printf(", a logical partition at most %s; ",
              Bytes(Number(container, "logicalPartitionBytesMax")).c_str());
  PrintOffer(container);
  std::vector<Value> partitions = Elements(container, "partitions");
  Table ranges({"partition", "from", "to", "parents", "generation", "leader", "items", "size",
                "RU/s", "used", "429s", ""});
  for (Value partition : partitions) {
    std::string parents;
    for (Value parent : Elements(partition, "parents")) {
      parents += (parents.empty() ? "" : ",") + std::string(parent.string());
    }
    std::string from = Text(partition, "min");
    ranges.Add({Text(partition, "id"), from.empty() ? "(start)" : from, Text(partition, "max"),
                parents.empty() ? "-" : parents, Whole(partition, "generation"),
                Has(partition, "leader") ? Whole(partition, "leader") : "-",
                Whole(partition, "items"), SizeOf(partition), Whole(partition, "share"),
                Decimal(partition, "usedLastSecond"), Whole(partition, "throttled"),
                Text(partition, "error")});
  }
  ranges.Print();
  for (Value partition : partitions) {
    PrintKeys(partition);
  }
}

void PrintStatus(Value status) {
  std::printf("orrery %s at %s, %s\n", Text(status, "version").c_str(),
              Text(status, "endpoint").c_str(),
              IsTrue(status, "healthy") ? "healthy" : "LOG FAILED: restart to take writes");
  if (IsTrue(status, "balancerPaused")) {
    std::printf("the balancer is paused: partitions stay as they are\n");
  }
  if (IsTrue(status, "diskFull")) {
    std::printf("DISK NEARLY FULL: writes are refused\n");
  }
  Value cluster = types::Member(status, "cluster");
  if (cluster.kind() == types::Kind::kObject) {
    PrintCluster(cluster);
  }
  for (Value database : Elements(status, "databases")) {
    std::string name = Text(database, "id");
    std::vector<Value> containers = Elements(database, "containers");
    if (Has(database, "throughput")) {
      std::printf("\n%s  %s, shared\n", name.c_str(), Throughput(database).c_str());
    }
    for (Value container : containers) {
      PrintContainer(name, container);
    }
    if (containers.empty()) {
      std::printf("\n%s  (no containers)\n", name.c_str());
    }
  }
}

}  // namespace orrery::server
