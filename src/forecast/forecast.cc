#include "forecast/forecast.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "forecast/dice.h"
#include "model/placement.h"
#include "partition/partition_map.h"

namespace orrery::forecast {

namespace {

constexpr size_t kReplicas = 4;
constexpr size_t kPartitionsMax = 4'000'000;
constexpr size_t kNodesMax = 100'000;
constexpr size_t kStepsMax = 10'000;
constexpr size_t kRoundsMax = 30;       // of splits in one step: each may double the partitions
constexpr size_t kCandidates = 12;      // nodes that are looked at for one replica
constexpr size_t kMovesPerNode = 16;    // in one step
constexpr uint64_t kLast = UINT64_MAX;  // of the ring

struct Partition {
  uint64_t first;
  uint64_t last;
  size_t keys_begin;
  size_t keys_end;
  std::array<uint32_t, kReplicas> nodes;
  double bytes = 0;
  double demand = 0;
  bool divisible = true;
};

struct Node {
  model::NodeFill fill;
  double used = 0;  // RU/s of the partitions that it leads
  size_t replicas = 0;
};

double Median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class World {
 public:
  explicit World(const Scenario& scenario)
      : in_(scenario),
        keys_(scenario.keys, scenario.key_count, scenario.steps, scenario.seed),
        dice_(scenario.seed + 1),
        throughput_(scenario.throughput) {
    double needed = scenario.bytes * kReplicas / static_cast<double>(scenario.nodes);
    capacity_ = scenario.node_bytes > 0 ? scenario.node_bytes : needed * 1.5;
    AddNodes(scenario.nodes);
    size_t count = partition::PartitionCount(throughput_, scenario.limits.partition_throughput);
    for (size_t i = 0; i < count; ++i) {
      uint64_t width = kLast / count;
      uint64_t first = i == 0 ? 0 : partitions_.back().last + 1;
      uint64_t last = i + 1 == count ? kLast : first + width;
      partitions_.push_back({first, last, keys_.At(first), EndOf(last), PlaceSet()});
    }
  }

  Sample Step(size_t step) {
    Sample sample{.step = step};
    for (const Event& event : in_.events) {
      if (event.step == step) {
        Happen(event);
      }
    }
    double progress = static_cast<double>(step + 1) / static_cast<double>(in_.steps);
    keys_.MoveTo(step, in_.bytes * progress, in_.demand, in_.limits.logical_bytes);
    Weigh();
    for (size_t round = 0; round < kRoundsMax && Split(sample.splits); ++round) {
    }
    sample.merges = Merge();
    sample.moves = Balance() + repaired_;
    repaired_ = 0;
    Measure(sample);
    return sample;
  }

 private:
  size_t EndOf(uint64_t last) const { return last == kLast ? keys_.size() : keys_.At(last + 1); }

  void AddNodes(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      nodes_.push_back({.fill = {.capacity = capacity_}});
    }
  }

  // A node for a replica of a set that has others on `beside`: the best of a few.
  uint32_t PlaceOne(const std::vector<NodeId>& beside) {
    std::vector<model::NodeLoad> loads;
    for (NodeId node : beside) {
      loads.push_back(LoadOf(node.value()));
    }
    for (size_t i = 0; i < kCandidates; ++i) {
      loads.push_back(LoadOf(AnyNode(i)));
    }
    std::vector<NodeId> placed = model::PlaceNew(loads, 1, beside);
    return placed.empty() ? beside.front().value() : placed.front().value();
  }
  // A node of a zone, the first ones if there are fewer nodes than zones.
  uint32_t AnyNode(size_t zone) {
    uint64_t node = dice_.Below(nodes_.size());
    node = node - node % in_.zones + zone % in_.zones;
    return static_cast<uint32_t>(node < nodes_.size() ? node : node % nodes_.size());
  }
  model::NodeLoad LoadOf(uint32_t node) const {
    return {.id = NodeId(node),
            .zone = std::to_string(node % in_.zones),
            .gone = !nodes_[node].fill.usable,
            .replicas = nodes_[node].replicas};
  }
  std::array<uint32_t, kReplicas> PlaceSet() {
    std::array<uint32_t, kReplicas> set{};
    std::vector<NodeId> beside;
    for (uint32_t& node : set) {
      node = PlaceOne(beside);
      beside.emplace_back(node);
      ++nodes_[node].replicas;
    }
    return set;
  }

  void Happen(const Event& event) {
    switch (event.kind) {
      case Event::Kind::kThroughput: throughput_ = event.value; return;
      case Event::Kind::kAddNodes: return AddNodes(event.value);
      case Event::Kind::kLoseNodes: return LoseNodes(event.value);
    }
  }
  void LoseNodes(size_t count) {
    for (size_t lost = 0; lost < count && Usable() > kReplicas;) {
      Node& node = nodes_[dice_.Below(nodes_.size())];
      lost += node.fill.usable ? 1 : 0;
      node.fill.usable = false;
    }
    for (Partition& partition : partitions_) {
      for (uint32_t& node : partition.nodes) {
        if (!nodes_[node].fill.usable) {
          std::vector<NodeId> beside;
          for (uint32_t other : partition.nodes) {
            if (nodes_[other].fill.usable) {
              beside.emplace_back(other);
            }
          }
          node = PlaceOne(beside.empty() ? std::vector{NodeId(0)} : beside);
          ++nodes_[node].replicas;
          ++repaired_;
        }
      }
    }
  }
  size_t Usable() const {
    return static_cast<size_t>(
        std::ranges::count_if(nodes_, [](const Node& node) { return node.fill.usable; }));
  }

  void Weigh(Partition& one) {
    one.bytes = keys_.Bytes(one.first, one.last, one.keys_begin, one.keys_end);
    one.demand = keys_.Demand(one.first, one.last, one.keys_begin, one.keys_end);
    one.divisible = true;
  }
  void Weigh() {
    for (Partition& partition : partitions_) {
      Weigh(partition);
    }
  }

  std::optional<uint64_t> CutOf(const Partition& one) const {
    return model::ChooseCut(one.first, one.last, [&](uint64_t place) {
      return keys_.Bytes(one.first, place, one.keys_begin,
                         std::clamp(EndOf(place), one.keys_begin, one.keys_end));
    });
  }
  std::vector<model::PartitionLoad> Loads() const {
    std::vector<model::PartitionLoad> loads;
    loads.reserve(partitions_.size());
    double share = model::ShareOf(throughput_, partitions_.size());
    for (const Partition& partition : partitions_) {
      loads.push_back({.bytes = partition.bytes,
                       .used = std::min(partition.demand, share),
                       .divisible = partition.divisible});
    }
    return loads;
  }

  // One round of splits. False: there is nothing more to do.
  bool Split(size_t& splits) {
    std::vector<size_t> chosen = model::ChooseSplits(Loads(), throughput_, in_.limits);
    std::vector<std::pair<size_t, uint64_t>> cuts;
    for (size_t i : chosen) {
      if (partitions_.size() + cuts.size() >= kPartitionsMax) {
        break;
      }
      if (auto cut = CutOf(partitions_[i])) {
        cuts.emplace_back(i, *cut);
      } else {
        partitions_[i].divisible = false;
      }
    }
    if (cuts.empty()) {
      return !chosen.empty();
    }
    std::ranges::sort(cuts);
    std::vector<Partition> next;
    next.reserve(partitions_.size() + cuts.size());
    auto cut = cuts.begin();
    for (size_t i = 0; i < partitions_.size(); ++i) {
      Partition left = partitions_[i];
      if (cut == cuts.end() || cut->first != i) {
        next.push_back(left);
        continue;
      }
      // Both halves stay where they are; the balance of nodes moves them.
      Partition right = left;
      left.last = cut->second - 1;
      right.first = cut->second;
      left.keys_end = right.keys_begin = keys_.At(cut->second);
      Weigh(left);
      Weigh(right);
      std::ranges::rotate(right.nodes, right.nodes.begin() + 1);  // led by another node
      for (uint32_t node : right.nodes) {
        ++nodes_[node].replicas;
      }
      next.push_back(left);
      next.push_back(right);
      ++cut;
    }
    partitions_ = std::move(next);
    splits += cuts.size();
    return true;
  }

  size_t Merge() {
    std::vector<size_t> chosen = model::ChooseMerges(Loads(), throughput_, in_.limits);
    if (chosen.empty()) {
      return 0;
    }
    std::vector<Partition> next;
    auto merge = chosen.begin();
    for (size_t i = 0; i < partitions_.size(); ++i) {
      Partition one = partitions_[i];
      if (merge != chosen.end() && *merge == i) {
        const Partition& right = partitions_[i + 1];
        for (uint32_t node : right.nodes) {
          --nodes_[node].replicas;
        }
        one.last = right.last;
        one.keys_end = right.keys_end;
        Weigh(one);
        ++merge;
        ++i;
      }
      next.push_back(one);
    }
    partitions_ = std::move(next);
    return chosen.size();
  }

  void Fill() {
    for (Node& node : nodes_) {
      node.fill.bytes = 0;
      node.used = 0;
      node.replicas = 0;
    }
    double share = model::ShareOf(throughput_, partitions_.size());
    for (const Partition& partition : partitions_) {
      for (uint32_t node : partition.nodes) {
        nodes_[node].fill.bytes += partition.bytes;
        ++nodes_[node].replicas;
      }
      nodes_[partition.nodes[0]].used += std::min(partition.demand, share);
    }
  }
  std::vector<model::NodeFill> Fills() const {
    std::vector<model::NodeFill> fills;
    for (const Node& node : nodes_) {
      fills.push_back(node.fill);
    }
    return fills;
  }

  // Replicas of full nodes move to emptier ones, a few of each node in one step.
  size_t Balance() {
    Fill();
    double mean = model::MeanFill(Fills());
    std::vector<size_t> left(nodes_.size(), kMovesPerNode);
    size_t moves = 0;
    size_t start = dice_.Below(partitions_.size());
    for (size_t n = 0; n < partitions_.size(); ++n) {
      Partition& partition = partitions_[(start + n) % partitions_.size()];
      for (uint32_t& node : partition.nodes) {
        if (left[node] == 0 || nodes_[node].fill.bytes <= mean * nodes_[node].fill.capacity) {
          continue;
        }
        for (size_t tries = 0; tries < kCandidates; ++tries) {
          uint32_t to = AnyNode(tries % 2 == 0 ? node : tries);
          bool fits = std::ranges::none_of(partition.nodes, [&](uint32_t other) {
            return other == to || (other != node && ZoneTaken(other, to));
          });
          if (fits && left[to] > 0 &&
              model::ShouldMove(nodes_[node].fill, nodes_[to].fill, partition.bytes, mean)) {
            Move(partition, node, to);
            --left[to];
            ++moves;
            break;
          }
        }
      }
    }
    return moves;
  }
  // Whether two nodes are in one zone though there are zones enough.
  bool ZoneTaken(uint32_t a, uint32_t b) const {
    return in_.zones >= kReplicas && a % in_.zones == b % in_.zones;
  }
  void Move(const Partition& partition, uint32_t& node, uint32_t to) {
    nodes_[node].fill.bytes -= partition.bytes;
    --nodes_[node].replicas;
    nodes_[to].fill.bytes += partition.bytes;
    ++nodes_[to].replicas;
    node = to;
  }

  void Measure(Sample& sample) {
    Fill();
    double share = model::ShareOf(throughput_, partitions_.size());
    std::vector<double> bytes;
    std::vector<double> used;
    bytes.reserve(partitions_.size());
    used.reserve(partitions_.size());
    for (const Partition& partition : partitions_) {
      bytes.push_back(partition.bytes);
      used.push_back(std::min(partition.demand, share));
      sample.used += used.back();
      sample.throttled += partition.demand - used.back();
      sample.over_limit += partition.bytes > in_.limits.partition_bytes ? 1 : 0;
    }
    sample.partitions = partitions_.size();
    sample.throughput = throughput_;
    sample.share = share;
    sample.bytes = keys_.bytes();
    sample.refused_bytes = keys_.refused_bytes();
    sample.keys_at_limit = keys_.over_limit();
    sample.bytes_largest = *std::ranges::max_element(bytes);
    sample.used_largest = *std::ranges::max_element(used);
    sample.bytes_median = Median(std::move(bytes));
    sample.used_median = Median(std::move(used));
    bool first = true;
    for (const Node& node : nodes_) {
      if (!node.fill.usable) {
        continue;
      }
      ++sample.nodes;
      sample.node_bytes_least =
          first ? node.fill.bytes : std::min(sample.node_bytes_least, node.fill.bytes);
      sample.node_bytes_most = std::max(sample.node_bytes_most, node.fill.bytes);
      sample.node_bytes_mean += node.fill.bytes;
      sample.node_used_most = std::max(sample.node_used_most, node.used);
      sample.node_used_mean += node.used;
      first = false;
    }
    sample.node_bytes_mean /= static_cast<double>(sample.nodes);
    sample.node_used_mean /= static_cast<double>(sample.nodes);
  }

  const Scenario& in_;
  Keys keys_;
  Dice dice_;
  uint64_t throughput_;
  double capacity_ = 0;
  std::vector<Node> nodes_;
  std::vector<Partition> partitions_;
  size_t repaired_ = 0;  // replicas that took the place of lost ones
};

std::string Percent(double part) {
  return std::to_string(static_cast<int>(part * 100 + 0.5)) + "%";
}

}  // namespace

Result<Event> ParseEvent(std::string_view text) {
  auto wrong = [text] {
    return Error(Code::kInvalidArgument,
                 "an event is DAY:lose=N, DAY:add=N or DAY:throughput=N, "
                 "not '" +
                     std::string(text) + "'");
  };
  size_t colon = text.find(':');
  size_t equals = text.find('=');
  if (colon == std::string_view::npos || equals == std::string_view::npos || equals < colon) {
    return wrong();
  }
  Event event;
  std::string_view day = text.substr(0, colon);
  std::string_view what = text.substr(colon + 1, equals - colon - 1);
  std::string_view value = text.substr(equals + 1);
  auto number = [](std::string_view digits, auto& out) {
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  if (!number(day, event.step) || !number(value, event.value) || event.step == 0) {
    return wrong();
  }
  --event.step;
  if (what == "lose") {
    event.kind = Event::Kind::kLoseNodes;
  } else if (what == "add") {
    event.kind = Event::Kind::kAddNodes;
  } else if (what == "throughput" && event.value > 0) {
    event.kind = Event::Kind::kThroughput;
  } else {
    return wrong();
  }
  return event;
}

Status Check(const Scenario& scenario) {
  size_t nodes = scenario.nodes;
  uint64_t throughput = scenario.throughput;
  for (const Event& event : scenario.events) {
    nodes += event.kind == Event::Kind::kAddNodes ? event.value : 0;
    throughput =
        event.kind == Event::Kind::kThroughput ? std::max(throughput, event.value) : throughput;
  }
  const model::ElasticLimits& limits = scenario.limits;
  auto refuse = [](const char* why) { return Status(Code::kInvalidArgument, why); };
  if (scenario.nodes < kReplicas || nodes > kNodesMax) {
    return refuse("there are 4 to 100,000 nodes");
  }
  if (scenario.steps < 1 || scenario.steps > kStepsMax) {
    return refuse("there are 1 to 10,000 days");
  }
  if (scenario.zones < 1 || scenario.key_count < 1 || scenario.throughput < 1) {
    return refuse("zones, keys and throughput are at least 1");
  }
  if (!(scenario.bytes > 0) || !(scenario.demand >= 0) || !(scenario.node_bytes >= 0) ||
      !(limits.partition_bytes > 0) || !(limits.logical_bytes > 0) ||
      limits.partition_throughput < 1) {
    return refuse("sizes and limits are above zero");
  }
  double partitions =
      std::max(static_cast<double>(throughput) / static_cast<double>(limits.partition_throughput),
               2 * scenario.bytes / limits.partition_bytes);
  if (partitions > static_cast<double>(kPartitionsMax)) {
    return refuse("that would be more than 4,000,000 partitions");
  }
  return Status::Ok();
}

std::vector<Sample> Simulate(const Scenario& scenario) {
  World world(scenario);
  std::vector<Sample> samples;
  for (size_t step = 0; step < scenario.steps; ++step) {
    samples.push_back(world.Step(step));
  }
  return samples;
}

std::vector<std::string> Verdicts(const Scenario& scenario, const std::vector<Sample>& samples) {
  std::vector<std::string> out;
  const Sample& last = samples.back();
  double demand = last.used + last.throttled;
  double idle = static_cast<double>(last.throughput) - last.used;
  if (demand > 0 && last.throttled > 0.01 * demand) {
    std::string text = Percent(last.throttled / demand) + " of the requests are throttled";
    if (idle > 0.2 * static_cast<double>(last.throughput)) {
      text += ", while " + Percent(idle / static_cast<double>(last.throughput)) +
              " of the throughput is not used: the requests are in too few partitions";
    }
    out.push_back(text + ".");
  }
  if (last.keys_at_limit > 0) {
    out.push_back(std::to_string(last.keys_at_limit) +
                  " logical partitions are full: writes to them are refused (403/1014), " +
                  Percent(last.refused_bytes / (last.bytes + last.refused_bytes)) +
                  " of the data have no place.");
  }
  if (last.over_limit > 0) {
    out.push_back(std::to_string(last.over_limit) +
                  " physical partitions are larger than they should be, because one logical "
                  "partition is nearly all of them.");
  }
  if (last.bytes_largest > 4 * last.bytes_median && last.partitions > 4) {
    out.push_back("The largest partition has " +
                  std::to_string(static_cast<int>(last.bytes_largest / last.bytes_median)) +
                  " times the bytes of the median.");
  }
  if (out.empty()) {
    out.emplace_back("Data and requests are spread evenly: a good key for this.");
  }
  return out;
}

}  // namespace orrery::forecast
