#include "model/inspect_partition.h"

#include <algorithm>
#include <bit>

namespace orrery::model {

using partition::HotKeys;
using partition::LogicalWalk;
using partition::Replica;
using partition::Reply;
using partition::RequestUnits;
using runtime::Task;

namespace {

constexpr Duration kWalkTime = std::chrono::seconds(1);

RequestUnits DecodeUnits(Decoder& decoder) {
  return RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
}

}  // namespace

void PartitionFindings::Add(LargeKey key) {
  auto at = std::ranges::upper_bound(largest, key.totals.bytes, std::greater(),
                                     [](const LargeKey& one) { return one.totals.bytes; });
  if (at != largest.end() || largest.size() < kKeysMax) {
    largest.insert(at, std::move(key));
    largest.resize(std::min(largest.size(), kKeysMax));
  }
}

std::string PartitionFindings::Encode() const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U64(static_cast<uint64_t>(totals.bytes));
  encoder.U64(static_cast<uint64_t>(totals.items));
  encoder.U64(static_cast<uint64_t>(share.hundredths()));
  encoder.U64(static_cast<uint64_t>(used_last_second.hundredths()));
  encoder.U64(throttled);
  encoder.Varint(largest.size());
  for (const LargeKey& large : largest) {
    encoder.Bytes(large.key);
    encoder.U64(static_cast<uint64_t>(large.totals.bytes));
    encoder.U64(static_cast<uint64_t>(large.totals.items));
  }
  encoder.Varint(hottest.size());
  for (const HotKeys::Key& hot : hottest) {
    encoder.Bytes(hot.key);
    encoder.Double(hot.units_per_second);
    encoder.Double(hot.share);
  }
  walk.Encode(encoder);
  return bytes;
}

Result<PartitionFindings> PartitionFindings::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  PartitionFindings findings;
  findings.totals.bytes = static_cast<int64_t>(decoder.U64());
  findings.totals.items = static_cast<int64_t>(decoder.U64());
  findings.share = DecodeUnits(decoder);
  findings.used_last_second = DecodeUnits(decoder);
  findings.throttled = decoder.U64();
  uint64_t large = decoder.Varint();
  for (uint64_t i = 0; i < large && decoder.ok(); ++i) {
    LargeKey& one = findings.largest.emplace_back();
    one.key = decoder.Bytes();
    one.totals.bytes = static_cast<int64_t>(decoder.U64());
    one.totals.items = static_cast<int64_t>(decoder.U64());
  }
  uint64_t hot = decoder.Varint();
  for (uint64_t i = 0; i < hot && decoder.ok(); ++i) {
    HotKeys::Key& one = findings.hottest.emplace_back();
    one.key = decoder.Bytes();
    one.units_per_second = decoder.Double();
    one.share = decoder.Double();
  }
  findings.walk = LogicalWalk::Decode(decoder);
  if (!decoder.done()) {
    return Error(Code::kInternal, "what was found in a partition is malformed");
  }
  return findings;
}

Result<std::unique_ptr<partition::Operation>> InspectPartition::Decode(Decoder& decoder) {
  auto inspect = std::make_unique<InspectPartition>();
  inspect->walk = LogicalWalk::Decode(decoder);
  if (!decoder.done()) {
    return Error(Code::kInvalidArgument, "operation is malformed");
  }
  return inspect;
}

Task<Reply> InspectPartition::Run(Replica& replica) {
  const Clock& clock = replica.services().clock;
  PartitionFindings findings{
      .totals = replica.totals(),
      .share = replica.governor().share(),
      .used_last_second = replica.governor().UsedLastSecond(clock.Now()),
      .throttled = replica.stats().throttled,
      .hottest = replica.hot_keys().Top(PartitionFindings::kKeysMax, clock.Now()),
      .walk = walk};
  findings.walk.span = storage::ItemSpan(replica.container(), replica.range().range);
  auto found = [&](const std::string& prefix, const storage::Totals& totals) {
    bool large = findings.largest.size() < PartitionFindings::kKeysMax ||
                 findings.largest.back().totals.bytes < totals.bytes;
    types::PartitionKey key;
    if (large && !storage::ReadLogicalPartition(prefix, &key).empty()) {
      findings.Add({.key = key.ToJson(), .totals = totals});
    }
  };
  auto slice = [&] { return findings.walk.Go(replica.state(), nullptr, 0, found); };
  const Instant end = clock.Now() + kWalkTime;
  Status status;
  while (status.ok() && !findings.walk.done && clock.Now() < end) {
    status = co_await runtime::OnBlocking(replica.workers(), slice);
  }
  Reply reply = replica.MakeReply(std::move(status), RequestUnits());
  reply.body = findings.Encode();
  co_return reply;
}

Task<Result<PartitionFindings>> Inspect(partition::Router& router, partition::Ring ring,
                                        partition::PartitionRange range, const Clock& clock,
                                        Duration longest) {
  const Instant end = clock.Now() + longest;
  InspectPartition inspect;
  inspect.walk.done = longest <= Duration::zero();
  std::vector<LargeKey> largest;
  while (true) {
    inspect.id = {};
    Reply reply = co_await router.ExecuteAt(ring, range, inspect);
    if (!reply.status.ok()) {
      co_return Error(reply.status);
    }
    ORRERY_CO_TRY(PartitionFindings findings, PartitionFindings::Decode(reply.body));
    for (LargeKey& before : largest) {
      findings.Add(std::move(before));
    }
    if (longest <= Duration::zero()) {
      findings.walk.done = false;
      co_return findings;
    }
    if (findings.walk.done || clock.Now() >= end) {
      co_return findings;
    }
    largest = std::move(findings.largest);
    inspect.walk = std::move(findings.walk);
  }
}

}  // namespace orrery::model
