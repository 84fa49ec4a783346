// Operation: what a front end asks of one partition, with a body that runs next to the data.
//
// It can be encoded, sent and decoded, so the router does not care where the partition lives. Upper
// folders (model/, later api/) provide the operations and register how to decode them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "partition/claim.h"
#include "partition/pricing.h"
#include "runtime/task.h"
#include "storage/write_set.h"
#include "types/session_token.h"

namespace orrery::partition {

class Replica;

// What a container's definition looks like from below: model/ derives from it.
struct Schema {
  virtual ~Schema() = default;
  uint64_t version = 1;
};

// Where an operation goes, and with which map and catalog it was made.
struct Target {
  ContainerId container;
  PartitionId partition;
  uint64_t generation = 1;
  uint64_t schema_version = 1;
};

struct Reply {
  Status status;
  RequestUnits charge;
  Lsn lsn;                // what the partition has applied, for the session token
  PartitionId partition;  // who answered
  NodeId leader;          // with kNotLeader: who may lead; 0: not known
  // Each operation's own form. With kThrottled: not empty if it is for the bucket alone.
  std::string body;

  void Encode(Encoder& encoder) const;
  static Reply Decode(Decoder& decoder);
};

enum class OperationKind : uint8_t {
  kReadItem = 1,
  kWriteItems = 2,
  kReadFeed = 3,
  kDeleteItems = 4,
  kBorrowUnits = 5,
  kReadTotals = 6,
  kFreezePartition = 7,
  kInspectPartition = 8,
  kReadRows = 9,
  kWriteRows = 10,
  kTruncateRows = 11,
  kEndBatch = 12,
  kPurgeRows = 13,  // never sent
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual OperationKind kind() const = 0;
  virtual void Encode(Encoder& encoder) const = 0;
  // Writes and scans of items run on the partition's worker, other reads where they arrive.
  virtual bool runs_anywhere() const { return false; }
  // Reads are served also by a node whose log has failed.
  virtual bool writes() const = 0;
  // Runs also where the partition takes no more operations, because it is split or merged.
  virtual bool runs_frozen() const { return false; }
  // What admission reserves. Zero: admitted whatever the budget (work of the system itself).
  virtual RequestUnits least_price() const = 0;
  virtual runtime::Task<Reply> Run(Replica& replica) = 0;

  // The partition key that it is about, as JSON, for who looks for hot ones; empty: several.
  virtual std::string logical_partition() const { return {}; }
  // What the client has seen.
  virtual Lsn session_token() const { return Lsn(); }
  virtual void SetSession(Lsn lsn) {}
  // Of which the router takes that of the partition where a try goes. Not sent; outlives it.
  std::span<const types::SessionToken> tokens;

  ReadLevel level = ReadLevel::kSession;
  // Nodes of format 1 cannot read any but the default one.
  Claim claim;
  // The same for every try of the operation.
  storage::OperationId id;
  // All operations with the same `id.high` and a smaller `id.low` have ended for ever: their
  // clients are answered, and no try of them is sent again. 0: nothing is said. Nodes of format 2
  // cannot read any other.
  uint64_t settled = 0;
  // An earlier try may have been done, or may still come: a refusal must end that one too. Sent
  // only with `settled`.
  bool again = false;
  // Where this try goes; set by whoever executes it.
  Target target;
};

class OperationRegistry {
 public:
  using Decode = std::function<Result<std::unique_ptr<Operation>>(Decoder&)>;
  void Register(OperationKind kind, Decode decode) { decoders_[kind] = std::move(decode); }

  // message = version u8, target, id, level u8, [claim, from version 2 on], [settled
  // varint, again bool, from version 3 on], kind u8, body.
  static std::string EncodeMessage(const Operation& operation);
  // What a Decode gives: kInvalidArgument if the decoder has met a fault.
  static Result<std::unique_ptr<Operation>> Checked(const Decoder& decoder,
                                                    std::unique_ptr<Operation> operation);
  // With its target and id. kInvalidArgument for anything malformed.
  Result<std::unique_ptr<Operation>> DecodeMessage(std::string_view bytes) const;

 private:
  std::map<OperationKind, Decode> decoders_;
};

}  // namespace orrery::partition
