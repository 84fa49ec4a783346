// What stands out in a partition: its largest logical partitions, and those that use most of its
// request units.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "partition/hot_keys.h"
#include "partition/logical_walk.h"
#include "partition/operation.h"
#include "partition/replica.h"
#include "partition/router.h"

namespace orrery::model {

struct LargeKey {
  std::string key;  // the partition key, as JSON
  storage::Totals totals;
  bool operator==(const LargeKey&) const = default;
};

// What the leader of a partition knows of it.
struct PartitionFindings {
  static constexpr size_t kKeysMax = 10;

  storage::Totals totals;
  partition::RequestUnits share;  // RU/s
  partition::RequestUnits used_last_second;
  uint64_t throttled = 0;
  std::vector<LargeKey> largest;  // of what was walked over, the largest first
  std::vector<partition::HotKeys::Key> hottest;
  partition::LogicalWalk walk;  // where to go on, unless it is done

  void Add(LargeKey key);
  std::string Encode() const;
  static Result<PartitionFindings> Decode(std::string_view bytes);
};

// Walks over the items of the partition for about a second, at its leader; the body of the reply is
// PartitionFindings. Costs nothing.
class InspectPartition final : public partition::Operation {
 public:
  partition::LogicalWalk walk;  // from here on

  partition::OperationKind kind() const override {
    return partition::OperationKind::kInspectPartition;
  }
  bool writes() const override { return false; }
  void Encode(Encoder& encoder) const override { walk.Encode(encoder); }
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return {}; }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

// All of a partition, or as far as the walk over it comes in `longest`; not at all if that is zero.
runtime::Task<Result<PartitionFindings>> Inspect(partition::Router& router, partition::Ring ring,
                                                 partition::PartitionRange range,
                                                 const Clock& clock, Duration longest);

}  // namespace orrery::model
