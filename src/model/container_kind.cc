#include "model/container_kind.h"

#include <algorithm>
#include <utility>

namespace orrery::model {

ContainerKind KindOf(const Container& container, const CatalogLimits& limits) {
  if (container.keyless) {
    return ContainerKind::kFixed;
  }
  if (container.is_table()) {
    return ContainerKind::kUnlimited;  // nobody made it with a kind in mind
  }
  bool divided = container.map != nullptr && container.map->ranges().size() > 1;
  if (limits.rules == RuleSet::kCurrent || !container.offer || divided) {
    return ContainerKind::kUnlimited;
  }
  uint64_t throughput = container.offer->spendable();
  bool small =
      throughput < limits.unlimited_throughput && throughput <= limits.partition_throughput;
  return small ? ContainerKind::kFixed : ContainerKind::kUnlimited;
}

std::string_view KindName(ContainerKind kind) {
  return kind == ContainerKind::kFixed ? "fixed" : "unlimited";
}

bool MaySplit(const Container& container, const CatalogLimits& limits) {
  return KindOf(container, limits) == ContainerKind::kUnlimited;
}

Status CheckThroughput(const Container& container, const CatalogLimits& limits) {
  if (!container.offer || container.offer->spendable() <= limits.fixed_throughput ||
      KindOf(container, limits) == ContainerKind::kUnlimited) {
    return Status::Ok();
  }
  return Status(Code::kInvalidArgument,
                "A container without a partition key has at most " +
                    std::to_string(limits.fixed_throughput) +
                    " RU/s. For more, create a container with a partition key.");
}

partition::StorageLimits StorageLimitsOf(const Container& container, const CatalogLimits& limits) {
  auto logical = static_cast<int64_t>(limits.logical_bytes);
  if (KindOf(container, limits) == ContainerKind::kUnlimited) {
    return {.logical_partition = logical};
  }
  auto all = static_cast<int64_t>(limits.fixed_bytes);
  return {.logical_partition = std::min(logical, all), .all = all};
}

std::string SizeText(int64_t bytes) {
  constexpr std::pair<int, std::string_view> kUnits[] = {{30, " GB"}, {20, " MB"}, {10, " KB"}};
  for (const auto& [bits, unit] : kUnits) {
    if (bytes >> bits << bits == bytes && bytes >> bits > 0) {
      return std::to_string(bytes >> bits) + std::string(unit);
    }
  }
  return std::to_string(bytes) + " bytes";
}

}  // namespace orrery::model
