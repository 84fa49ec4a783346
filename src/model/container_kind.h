// What kind of container one is, and what follows from it. Pure functions.
//
//   fixed      one physical partition that never splits: at most 10 GB and 10,000 RU/s. Every
//              container without a partition key; by the rules of the documents also one with a key
//              while its throughput is under 1,000 RU/s
//   unlimited  splits as it grows; only its logical partitions have a limit
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/catalog_evaluate.h"
#include "model/catalog_types.h"
#include "partition/replica.h"

namespace orrery::model {

enum class ContainerKind : uint8_t { kFixed, kUnlimited };

ContainerKind KindOf(const Container& container, const CatalogLimits& limits);
std::string_view KindName(ContainerKind kind);
// Whether its partitions may be split.
bool MaySplit(const Container& container, const CatalogLimits& limits);

// kInvalidArgument: more RU/s than its kind can have.
Status CheckThroughput(const Container& container, const CatalogLimits& limits);
// What each of its partitions may store.
partition::StorageLimits StorageLimitsOf(const Container& container, const CatalogLimits& limits);

// "20 GB", "5 MB", "1000 bytes": the largest unit that it is a whole number of.
std::string SizeText(int64_t bytes);

}  // namespace orrery::model
