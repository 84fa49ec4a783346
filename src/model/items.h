// The operations on items: what runs at a partition for every document-shaped API.
//
// WriteItems is one transaction on one logical partition: a single create is a transaction of one
// step, a transactional batch has up to 100. Steps see what the steps before them did; at the end
// everything is one WriteSet, or nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "model/catalog_types.h"
#include "model/patch.h"
#include "partition/operation.h"
#include "partition/replica.h"
#include "storage/item.h"
#include "types/document.h"
#include "types/partition_key.h"

namespace orrery::model {

inline constexpr size_t kItemBytesMax = 2 << 20;
inline constexpr size_t kBatchStepsMax = 100;
inline constexpr size_t kIdBytesMax = 1023;
inline constexpr size_t kKeyBytesMax = 2048;
inline constexpr size_t kPageBytesMax = 4 << 20;
// What the steps of one transaction may give back, and put into the log.
inline constexpr size_t kResultBytesMax = 8 << 20;
inline constexpr size_t kWriteSetBytesMax = 16 << 20;

// Where a logical partition is.
struct ItemAddress {
  types::Epk epk;
  types::PartitionKey key;

  void Encode(Encoder& encoder) const;
  static ItemAddress Decode(Decoder& decoder);
};

// The etag of a stored item, with quotes, from its header alone.
std::string ItemEtag(const storage::ItemHeader& header);

class ReadItem final : public partition::Operation {
 public:
  ItemAddress address;
  std::string id;
  std::string if_none_match;
  Lsn session;  // what the client has seen; 0: nothing

  partition::OperationKind kind() const override { return partition::OperationKind::kReadItem; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  bool runs_anywhere() const override { return true; }
  bool writes() const override { return false; }
  std::string logical_partition() const override { return address.key.ToJson(); }
  Lsn session_token() const override { return session; }
  void SetSession(Lsn lsn) override { session = lsn; }
  partition::RequestUnits least_price() const override { return partition::LeastPriceOfRead(); }
  // The body of the reply is the stored value.
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

enum class StepKind : uint8_t { kCreate = 1, kUpsert, kReplace, kDelete, kPatch, kRead };

struct ItemStep {
  StepKind kind = StepKind::kCreate;
  std::string id;
  types::Document body;  // of create, upsert and replace; without system properties
  Patch patch;           // of patch
  std::string if_match;
  std::string if_none_match;
};

struct StepResult {
  Status status;  // ok; kUnavailable: not tried, or undone, because of another step
  bool created = false;
  bool undone = false;        // another step failed
  bool without_body = false;  // `item` is only its header: the reply would have been too large
  partition::RequestUnits charge;
  std::string item;  // the stored value after the step; empty after a delete
};

std::string EncodeStepResults(const std::vector<StepResult>& results);
// kUnknownOutcome if it is malformed.
Result<std::vector<StepResult>> DecodeStepResults(std::string_view bytes);

class WriteItems final : public partition::Operation {
 public:
  ItemAddress address;
  std::vector<ItemStep> steps;
  Lsn session;

  partition::OperationKind kind() const override { return partition::OperationKind::kWriteItems; }
  bool writes() const override { return true; }
  Lsn session_token() const override { return session; }
  void SetSession(Lsn lsn) override { session = lsn; }
  std::string logical_partition() const override { return address.key.ToJson(); }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override;
  // The body of the reply is EncodeStepResults; its status is ok if all steps were, else the first
  // failure.
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;

 private:
  static std::string Remembered(const partition::Reply& reply,
                                const std::vector<StepResult>& results);
  // A refusal that holds: as an entry of the log if another try may still come.
  runtime::Task<Status> Refuse(partition::Replica& replica, const partition::Replica::Turn& turn,
                               const partition::Reply& reply,
                               const std::vector<StepResult>& results);
  // The reply to an operation that was already done.
  runtime::Task<partition::Reply> Repeat(partition::Replica& replica, const Container& container,
                                         const partition::Replica::Outcome& outcome);
};

// A page of the items of a range of the ring, in key order.
class ReadFeed final : public partition::Operation {
 public:
  types::EpkRange range;  // cut to the partition
  std::optional<types::PartitionKey>
      only_key;       // only this logical partition (its EPK is range.min)
  std::string after;  // continue behind this item key; "" = from the start
  uint32_t items_max = 1000;
  std::string filter;          // text of a query, "" = all
  types::Document parameters;  // of the filter; its member "v" is the array
  Lsn session;

  struct Page {
    std::vector<std::string> items;  // stored values
    std::string last;                // continue behind it; "" = the range is exhausted
    std::string Encode() const;
    static Result<Page> Decode(std::string_view bytes);
  };

  partition::OperationKind kind() const override { return partition::OperationKind::kReadFeed; }
  bool writes() const override { return false; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  std::string logical_partition() const override { return only_key ? only_key->ToJson() : ""; }
  Lsn session_token() const override { return session; }
  void SetSession(Lsn lsn) override { session = lsn; }
  partition::RequestUnits least_price() const override { return partition::LeastPriceOfRead(); }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
};

// Deletes items without their owner asking for each: a whole logical partition, or those whose time
// to live has passed. Works on at most kDeletesMax items a run, in key order behind `after`; the
// body of the reply is the key to go on behind, or empty when there are no more.
class DeleteItems final : public partition::Operation {
 public:
  static constexpr size_t kDeletesMax =
      50;  // small, so that others of the partition come in between
  static constexpr size_t kScannedMax = 5000;

  std::optional<ItemAddress> logical_partition;  // none: the expired ones of the whole partition
  std::string after;

  partition::OperationKind kind() const override { return partition::OperationKind::kDeleteItems; }
  bool writes() const override { return true; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override;
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;

 private:
  // Says in the set what a late try of a delete of a logical partition gets.
  void Remember(const partition::Reply& reply, storage::WriteSet& set) const;
};

// How much a partition holds, as its leader counts it. Costs nothing.
class ReadTotals final : public partition::Operation {
 public:
  // Also what its budget sustained; only where every node has kThroughputFormat.
  bool with_use = false;

  partition::OperationKind kind() const override { return partition::OperationKind::kReadTotals; }
  bool writes() const override { return false; }
  bool runs_anywhere() const override { return true; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<partition::Operation>> Decode(Decoder& decoder);
  partition::RequestUnits least_price() const override { return {}; }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;
  static Result<storage::Totals> DecodeTotals(std::string_view body);
  struct Use {
    storage::Totals totals;
    partition::RequestUnits sustained;  // of the budget that the partition owns
  };
  static Result<Use> DecodeUse(std::string_view body);
};

void RegisterItemOperations(partition::OperationRegistry& registry);

// Checks of an item that need no stored state: id, size, nesting, partition key of the right shape.
// Gives the body without system properties; an absent id is made up when `make_id` is set.
struct CheckedItem {
  types::Document body;
  std::string id;
  types::PartitionKey key;
};
Result<CheckedItem> CheckItem(const Container& container, types::Document body, Random* make_id);
Status CheckItemId(std::string_view id);
// The address of a key that a request names. kInvalidArgument if it has the wrong number of
// components.
Result<ItemAddress> AddressOf(const Container& container, const types::PartitionKey& key);

}  // namespace orrery::model
