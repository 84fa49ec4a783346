// FreezePartition: what the leader of one partition asks of its neighbour's when they are merged.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/catalog_types.h"
#include "partition/operation.h"
#include "partition/replica.h"

namespace orrery::model {

class FreezePartition final : public partition::Operation {
 public:
  PartitionId name;     // of the merge
  bool freeze = false;  // else it is only looked

  // How far a frozen partition is, and who holds all of it.
  struct Answer {
    bool frozen = false;
    Origin::Parent end;
    storage::ReplicaRecord record;
    std::vector<NodeId> voters;   // empty on a lone node
    std::vector<NodeId> holders;  // before it is frozen: without those that are silent
    std::string outcomes;         // on a lone node

    std::string Encode() const;
    static Result<Answer> Decode(std::string_view bytes);
  };
  // How it stands with a replica. REQUIRES: on its worker. kNotLeader where that cannot be known.
  static Result<Answer> Look(partition::Replica& replica);
  // Freezes it. REQUIRES: as above.
  static runtime::Task<Status> Freeze(partition::Replica& replica, PartitionId name);

  partition::OperationKind kind() const override {
    return partition::OperationKind::kFreezePartition;
  }
  bool writes() const override { return true; }
  bool runs_frozen() const override { return true; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return {}; }
  // The body of the reply is an Answer.
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

}  // namespace orrery::model
