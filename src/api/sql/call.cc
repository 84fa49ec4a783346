#include "api/sql/call.h"

#include <charconv>

#include "api/sql/errors.h"

namespace orrery::api::sql {

using partition::Reply;

void Seen::Add(const Reply& reply) {
  if (reply.partition != PartitionId()) {
    Lsn& lsn = applied_[reply.partition];
    lsn = std::max(lsn, reply.lsn);
  }
}

std::string Seen::Tokens() const {
  std::string tokens;
  for (const auto& [partition, lsn] : applied_) {
    tokens += (tokens.empty() ? "" : ",") +
              types::FormatSessionToken({.partition = partition, .lsn = lsn});
  }
  return tokens;
}

bool Call::Flag(std::string_view name) const {
  std::string_view value = Header(name);
  return value == "true" || value == "True" || value == "TRUE";
}

Status Call::FindContainer() {
  auto view = catalog().view();
  found = view->FindContainer(container_link());
  if (found != nullptr) {
    return Status::Ok();
  }
  if (view->FindDatabase(database()) == nullptr || segment_count > 4) {
    return Status(Code::kOwnerNotFound, "Owner resource does not exist");
  }
  return Status(Code::kNotFound,
                "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
}

void Call::Fail(const Status& status) {
  SqlError error = ToSqlError(status);
  if (status.code() == Code::kThrottled && bucket_full) {
    error.substatus = kBucketFull;
  }
  reply.status = error.http;
  reply.body.clear();
  if (error.substatus != 0) {
    reply.Add("x-ms-substatus", std::to_string(error.substatus));
  }
  if (status.code() == Code::kThrottled) {
    reply.Add("x-ms-retry-after-ms", std::to_string(status.retry_after_ms()));
  }
  if (error.http != 304) {
    WriteError(error.code, status.message());
  }
}

void Call::RefuseMethod(const std::string& message) {
  reply.status = kMethodNotAllowed.http;
  WriteError(kMethodNotAllowed.code, message);
}

void Call::WriteError(std::string_view code, const std::string& message) {
  reply.body = "{\"code\":\"";
  reply.body += code;
  reply.body += '"';
  // Query errors bring their own JSON; all others are wrapped as the service does.
  std::string errors = "{\"Errors\":[";
  types::AppendJsonString(message, errors);
  errors += "]}";
  AppendText("message",
             "Message: " + (message.starts_with("{\"errors\"") ? message : errors) +
                 "\r\nActivityId: " + activity_id + ", Request URI: /" + link,
             reply.body);
  reply.body += '}';
}

void Call::AddPartitionHeaders(const Reply& from, const Seen* seen) {
  charge += from.charge;
  bucket_full = from.status.code() == Code::kThrottled && !from.body.empty();
  if (from.partition != PartitionId()) {
    std::string id = from.partition.ToString();
    std::string lsn = from.lsn.ToString();
    reply.Add("x-ms-session-token", seen != nullptr ? seen->Tokens() : id + ":-1#" + lsn);
    reply.Add("lsn", lsn);
    reply.Add("x-ms-documentdb-partitionkeyrangeid", id);
  }
}

void Call::AddContainerHeaders(const model::Container& container) {
  reply.Add("x-ms-alt-content-path", container.link);
  reply.Add("x-ms-content-path", container.rid);
}

Result<Consistency> ParseConsistency(std::string_view name) {
  for (Consistency level : {Consistency::kStrong, Consistency::kBounded, Consistency::kSession,
                            Consistency::kPrefix, Consistency::kEventual}) {
    if (ConsistencyName(level) == name) {
      return level;
    }
  }
  return Error(Code::kInvalidArgument,
               "The consistency level '" + std::string(name) +
                   "' is not one of Strong, BoundedStaleness, Session, ConsistentPrefix, "
                   "Eventual.");
}

std::string_view ConsistencyName(Consistency level) {
  switch (level) {
    case Consistency::kStrong: return "Strong";
    case Consistency::kBounded: return "BoundedStaleness";
    case Consistency::kSession: return "Session";
    case Consistency::kPrefix: return "ConsistentPrefix";
    case Consistency::kEventual: return "Eventual";
  }
  return "Session";
}

Result<Consistency> Call::Level() const {
  Consistency level = options().consistency;
  if (std::string_view asked = Header("x-ms-consistency-level"); !asked.empty()) {
    ORRERY_TRY(Consistency wanted, ParseConsistency(asked));
    if (wanted < level) {
      return Error(Code::kInvalidArgument,
                   "ConsistencyLevel " + std::string(asked) +
                       " specified in the request is stronger than the account's " +
                       std::string(ConsistencyName(level)) + ".");
    }
    level = wanted;
  }
  return level;
}

Status Call::ReadSession() {
  std::string_view text = Header("x-ms-session-token");
  if (text.empty()) {
    return Status::Ok();
  }
  auto parsed = types::ParseSessionTokens(text);
  if (!parsed) {
    return parsed.error();
  }
  tokens = std::move(*parsed);
  return Status::Ok();
}

PartitionId Call::NamedRange() const {
  std::string_view id = Header("x-ms-documentdb-partitionkeyrangeid");
  uint64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return PartitionId(number);
}

bool Call::HasSeenNewer() const {
  const PartitionId newest = found->map->newest();
  return NamedRange() > newest ||
         std::ranges::any_of(tokens, [newest](const types::SessionToken& token) {
           return token.partition > newest;
         });
}

namespace {

Result<uint64_t> ParseThroughput(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Error(Code::kInvalidArgument,
                 "The throughput '" + std::string(text) + "' is not a whole number.");
  }
  return value;
}

}  // namespace

Status Call::ReadClaim() {
  std::string_view priority = Header("x-ms-cosmos-priority-level");
  if (!priority.empty() && priority != "High" && priority != "Low") {
    return Status(Code::kInvalidArgument,
                  "The priority level '" + std::string(priority) + "' is not High or Low.");
  }
  std::string_view bucket = Header("x-ms-cosmos-throughput-bucket");
  if (!bucket.empty() && (bucket.size() != 1 || bucket[0] < '1' ||
                          bucket[0] > static_cast<char>('0' + partition::kBucketsMax))) {
    return Status(Code::kInvalidArgument, "The throughput bucket '" + std::string(bucket) +
                                              "' is not a number from 1 to " +
                                              std::to_string(partition::kBucketsMax) + ".");
  }
  // An older node could not read it.
  if ((priority.empty() && bucket.empty()) || !catalog().view()->writes(model::kThroughputFormat)) {
    return Status::Ok();
  }
  claim.priority = priority == "Low" ? partition::Priority::kLow : partition::Priority::kHigh;
  claim.bucket = bucket.empty() ? 0 : static_cast<uint8_t>(bucket[0] - '0');
  return Status::Ok();
}

Result<model::ThroughputRequest> Call::Throughput() const {
  model::ThroughputRequest throughput;
  if (std::string_view manual = Header("x-ms-offer-throughput"); !manual.empty()) {
    ORRERY_TRY(throughput.manual, ParseThroughput(manual));
  }
  if (std::string_view settings = Header("x-ms-cosmos-offer-autopilot-settings");
      !settings.empty()) {
    ORRERY_TRY(types::Document parsed, types::Document::FromJson(settings));
    types::Value most = parsed.Get("maxThroughput");
    if (most.kind() != types::Kind::kNumber || !most.is_integer() || most.integer() < 0) {
      return Error(Code::kInvalidArgument,
                   "The autoscale settings must hold a whole number maxThroughput.");
    }
    throughput.autoscale_max = static_cast<uint64_t>(most.integer());
  }
  return throughput;
}

}  // namespace orrery::api::sql
