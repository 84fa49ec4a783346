// The admin endpoints for what the SQL API has no requests for: throughput buckets, and the
// redistribution of throughput between partitions.
//
//   POST /_orrery/throughput/buckets       {"database", "container", "buckets": [{"id",
//   "percent"}],
//                                           "default"}; those that are not there are taken away
//   POST /_orrery/throughput/redistribute  {"database", "container",
//                                           "partitions": [{"id", "throughput"}]}, or
//                                          {..., "policy": "Equal"}
#include <charconv>
#include <limits>

#include "base/log.h"
#include "server/node.h"
#include "types/document.h"

namespace orrery::server {

using runtime::Task;
using types::Kind;
using types::Value;

namespace {

constexpr size_t kSharesMax = 10'000;  // of one request

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// A whole number, also as text.
std::optional<uint64_t> WholeOf(Value value) {
  if (value.kind() == Kind::kNumber && value.is_integer() && value.integer() >= 0) {
    return static_cast<uint64_t>(value.integer());
  }
  if (value.kind() != Kind::kString) {
    return std::nullopt;
  }
  std::string_view text = value.string();
  uint64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(number) : std::nullopt;
}

// The elements of a list, each of two numbers.
Result<std::vector<std::pair<uint64_t, uint64_t>>> PairsOf(Value list, std::string_view first,
                                                           std::string_view second) {
  std::vector<std::pair<uint64_t, uint64_t>> pairs;
  if (list.kind() != Kind::kArray) {
    return Invalid("a list is missing");
  }
  for (types::ValueIterator at(list.bson()); at.Next();) {
    auto one = WholeOf(types::Member(at.value(), first));
    auto other = WholeOf(types::Member(at.value(), second));
    if (!one || !other || pairs.size() == kSharesMax) {
      return Invalid("each element must have the whole numbers '" + std::string(first) + "' and '" +
                     std::string(second) + "'");
    }
    pairs.emplace_back(*one, *other);
  }
  return pairs;
}

Result<partition::Buckets> ReadBuckets(const types::Document& body) {
  partition::Buckets buckets;
  ORRERY_TRY(auto pairs, PairsOf(body.Get("buckets"), "id", "percent"));
  for (auto [id, percent] : pairs) {
    if (id == 0 || id > partition::kBucketsMax) {
      return Invalid("buckets are numbered from 1 to " + std::to_string(partition::kBucketsMax));
    }
    if (percent == 0 || percent > 100) {
      return Invalid("a bucket has 1 to 100 percent of the throughput");
    }
    if (std::exchange(buckets.percent[id - 1], static_cast<uint8_t>(percent)) != 0) {
      return Invalid("bucket " + std::to_string(id) + " is named twice");
    }
  }
  if (Value unmarked = body.Get("default"); unmarked.defined() && unmarked.kind() != Kind::kNull) {
    uint64_t id = WholeOf(unmarked).value_or(0);
    if (id == 0 || id > partition::kBucketsMax || buckets.percent[id - 1] == 0) {
      return Invalid("the default must be one of the buckets");
    }
    buckets.unmarked = static_cast<uint8_t>(id);
  }
  return buckets;
}

Result<std::vector<model::PartitionShare>> ReadShares(const types::Document& body) {
  std::vector<model::PartitionShare> shares;
  if (Value policy = body.Get("policy"); policy.defined()) {
    if (policy.kind() != Kind::kString || policy.string() != "Equal") {
      return Invalid("the policy can be set to Equal; Custom is what naming partitions makes it");
    }
    return shares;
  }
  ORRERY_TRY(auto pairs, PairsOf(body.Get("partitions"), "id", "throughput"));
  for (auto [id, throughput] : pairs) {
    shares.push_back({.partition = PartitionId(id), .throughput = throughput});
  }
  if (shares.empty()) {
    return Invalid("no partition is named");
  }
  return shares;
}

}  // namespace

Task<Status> Node::ChangeThroughput(std::string_view what, std::string_view body) {
  auto parsed = types::Document::FromJson(body);
  if (!parsed) {
    co_return parsed.error();
  }
  model::change::ReplaceOffer change;
  Status read = Status::Ok();
  if (what == "buckets") {
    auto buckets = ReadBuckets(*parsed);
    read = buckets ? Status::Ok() : buckets.error();
    change.buckets = buckets.value_or(partition::Buckets());
  } else if (what == "redistribute") {
    auto shares = ReadShares(*parsed);
    read = shares ? Status::Ok() : shares.error();
    change.shares = shares.value_or(std::vector<model::PartitionShare>());
  } else {
    read = Status(Code::kNotFound, "there is no such admin endpoint");
  }
  Value database = parsed->Get("database");
  Value name = parsed->Get("container");
  if (read.ok() && (database.kind() != Kind::kString || name.kind() != Kind::kString)) {
    read = Status(Code::kInvalidArgument, "'database' and 'container' must be names");
  }
  if (!read.ok()) {
    co_return read;
  }
  co_await instance_->CatchUp();
  std::string link =
      "dbs/" + std::string(database.string()) + "/colls/" + std::string(name.string());
  auto container = instance_->catalog().view()->FindContainer(link);
  if (container == nullptr) {
    co_return Status(Code::kNotFound, "there is no container " + std::string(database.string()) +
                                          "/" + std::string(name.string()));
  }
  if (!container->offer) {
    co_return Status(Code::kInvalidArgument,
                     "the container shares the throughput of its database, which has no parts");
  }
  change.number = container->offer->number;
  Status status = co_await instance_->catalog().ReplaceOffer(std::move(change));
  if (status.ok()) {
    log::Info("throughput was changed", {{"container", link}, {"what", std::string(what)}});
  }
  co_return status;
}

}  // namespace orrery::server
