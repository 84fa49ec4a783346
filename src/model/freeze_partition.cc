#include "model/freeze_partition.h"

#include <algorithm>

#include "base/bytes.h"
#include "partition/reshape.h"

namespace orrery::model {

using partition::FreezeMark;
using partition::Replica;
using runtime::Task;

namespace {

void EncodeNodes(Encoder& encoder, const std::vector<NodeId>& nodes) {
  encoder.Varint(nodes.size());
  for (NodeId node : nodes) {
    encoder.U32(node.value());
  }
}

std::vector<NodeId> DecodeNodes(Decoder& decoder) {
  std::vector<NodeId> nodes;
  for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
    nodes.emplace_back(decoder.U32());
  }
  return nodes;
}

}  // namespace

std::string FreezePartition::Answer::Encode() const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.Bool(frozen);
  EncodeParents(encoder, {end});
  EncodeBeginning(encoder, record);
  EncodeNodes(encoder, voters);
  EncodeNodes(encoder, holders);
  encoder.Bytes(outcomes);
  return bytes;
}

Result<FreezePartition::Answer> FreezePartition::Answer::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Answer answer;
  answer.frozen = decoder.Bool();
  std::vector<Origin::Parent> ends = DecodeParents(decoder);
  answer.record = DecodeBeginning(decoder);
  answer.voters = DecodeNodes(decoder);
  answer.holders = DecodeNodes(decoder);
  answer.outcomes = decoder.Bytes();
  if (!decoder.done() || ends.size() != 1) {
    return Error(Code::kUnknownOutcome, "a malformed answer of a partition");
  }
  answer.end = ends.front();
  return answer;
}

void FreezePartition::Encode(Encoder& encoder) const {
  encoder.U64(name.value());
  encoder.Bool(freeze);
}

Result<std::unique_ptr<partition::Operation>> FreezePartition::Decode(Decoder& decoder) {
  auto operation = std::make_unique<FreezePartition>();
  operation->name = PartitionId(decoder.U64());
  operation->freeze = decoder.Bool();
  return operation;
}

Result<FreezePartition::Answer> FreezePartition::Look(Replica& replica) {
  Answer answer{.frozen = !replica.frozen().empty()};
  Lsn lsn = replica.applied();
  ORRERY_TRY(replication::ReplicaSet::Holders known, replica.set().HoldersOf(lsn));
  answer.end = {GroupId(replica.id().value()), lsn, known.term};
  answer.record = {.applied = lsn, .totals = replica.totals(), .time = replica.last_time()};
  answer.voters = std::move(known.voters);
  answer.holders = std::move(known.holders);
  if (!answer.frozen) {
    // They may hold all that there is, but will not hold the entry that freezes it.
    std::erase_if(answer.holders, [&known](NodeId node) {
      return std::ranges::find(known.silent, node) != known.silent.end();
    });
  }
  if (answer.frozen && !replica.set().replicated()) {
    answer.outcomes = replica.Outcomes();
  }
  return answer;
}

Task<Status> FreezePartition::Freeze(Replica& replica, PartitionId name) {
  Result<Replica::Turn> turn = co_await replica.AcquireAll();
  if (!turn) {
    co_return turn.error();
  }
  if (!replica.frozen().empty()) {
    auto mark = FreezeMark::Decode(replica.frozen());
    bool same = mark && mark->heir == name;
    co_return same ? Status::Ok() : Status(Code::kUnavailable, "another change is under way");
  }
  storage::WriteSet set;
  set.frozen = FreezeMark{.heir = name, .left = replica.totals()}.Encode();
  set.frees_space = true;
  set.time = replica.NextTime();
  Result<Lsn> lsn = co_await replica.Commit(std::move(set), *turn);
  co_return lsn ? Status::Ok() : lsn.error();
}

Task<partition::Reply> FreezePartition::Run(Replica& replica) {
  if (freeze) {
    // Late, it would freeze a partition whose merge was called off.
    if (Status ended = replica.CheckNotEnded(*this); !ended.ok()) {
      co_return replica.MakeReply(ended, {});
    }
    if (Status frozen = co_await Freeze(replica, name); !frozen.ok()) {
      co_return replica.MakeReply(frozen, {});
    }
  }
  Result<Answer> answer = Look(replica);
  if (!answer) {
    co_return replica.MakeReply(answer.error(), {});
  }
  partition::Reply reply = replica.MakeReply(Status(), {});
  reply.body = answer->Encode();
  co_return reply;
}

}  // namespace orrery::model
