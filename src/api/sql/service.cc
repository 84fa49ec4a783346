#include "api/sql/service.h"

#include "api/sql/auth.h"
#include "api/sql/call.h"
#include "api/sql/errors.h"
#include "api/sql/listing.h"
#include "base/log.h"

namespace orrery::api::sql {

using runtime::Task;

namespace {

// What every reply carries, ready to send.
constexpr std::string_view kCommonHeaders =
    "content-type: application/json\r\n"
    "cache-control: no-store, no-cache\r\n"
    "x-ms-gatewayversion: version=2.14.0\r\n"
    "x-ms-serviceversion: version=2.14.0.0\r\n"
    "x-ms-schemaversion: 1.18\r\n"
    "server: orrery\r\n";

bool SplitPath(std::string_view target, Call& call) {
  target = target.substr(0, target.find('?'));
  while (!target.empty()) {
    if (target[0] == '/') {
      target.remove_prefix(1);
      continue;
    }
    size_t end = std::min(target.find('/'), target.size());
    if (call.segment_count == Call::kSegmentsMax ||
        !PercentDecode(target.substr(0, end), &call.segments[call.segment_count])) {
      return false;
    }
    if (call.segment_count > 0) {
      call.link += '/';
    }
    call.link += call.segments[call.segment_count++];
    target.remove_prefix(end);
  }
  return true;
}

bool IsGuid(std::string_view text) {
  return text.size() == 36 &&
         text.find_first_not_of("0123456789abcdefABCDEF-") == std::string_view::npos;
}

std::string MakeActivityId(Random& random) {
  static constexpr char kHex[] = "0123456789abcdef";
  uint64_t words[2] = {random.Next(), random.Next()};
  std::string id;
  id.reserve(36);
  for (int i = 0; i < 32; ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) {
      id += '-';
    }
    id += kHex[words[i / 16] >> (i % 16 * 4) & 15];
  }
  return id;
}

// A link may name databases and containers by their resource ids (`_self`). Such a path is signed
// with the last id of it, in lower case; for everything after that it is turned into names. Items
// have no such form.
void ResolveRids(const model::CatalogView& view, Call& call, SignedResource& resource) {
  if (call.segment_count < 2 || call.segments[0] != "dbs" ||
      view.FindDatabase(call.segments[1]) != nullptr) {
    return;
  }
  auto database = view.FindDatabaseByRid(call.segments[1]);
  bool item = call.segment_count > 5 && call.segments[4] == "docs";
  if (database == nullptr || item) {
    return;
  }
  size_t last = std::min<size_t>((call.segment_count - 2) / 2 * 2 + 1, 3);
  resource.link.clear();
  for (char c : call.segments[last]) {
    resource.link.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  call.segments[1] = database->name;
  if (call.segment_count >= 4 && call.segments[2] == "colls") {
    auto container = view.FindContainerByRid(call.segments[3]);
    if (container != nullptr && container->database == database->id) {
      call.segments[3] = container->name;
    }
  }
}

// Some POSTs are queries. Only those whose handlers then really query may be signed with a key that
// only reads; a batch needs one that may write, whatever is in it.
bool NeedsWriteKey(const Operation& operation, const Call& call) {
  if (operation.handler == PostItems) {
    return !IsQuery(call) && !call.Flag("x-ms-cosmos-is-query-plan-request");
  }
  if (operation.handler == CreateDatabase || operation.handler == CreateContainer) {
    return !IsQuery(call);
  }
  return operation.writes;
}

}  // namespace

Service::Service(model::Catalog& catalog, partition::Router& router,
                 partition::ReplicaTable& replicas, const Clock& clock, Random& random,
                 ServiceOptions options, RequestObserver* observer)
    : catalog_(catalog),
      router_(router),
      replicas_(replicas),
      clock_(clock),
      random_(random),
      options_(std::move(options)),
      observer_(observer),
      control_budget_(partition::RequestUnits(static_cast<double>(options_.control_throughput))) {}

Status Service::Authorize(const net::HttpRequest& request, std::string_view type,
                          std::string_view link, bool write) const {
  SignedRequest sign{.method = request.method,
                     .type = type,
                     .link = link,
                     .ms_date = request.Get("x-ms-date"),
                     .date = request.Get("date"),
                     .authorization = request.Get("authorization")};
  return CheckSignature(sign, catalog_.view()->keys, write, clock_.Wall());
}

Task<> Service::Dispatch(Call& call) {
  if (!SplitPath(call.request.target, call)) {
    call.Fail(Status(Code::kInvalidArgument, "The path of the request is malformed."));
    co_return;
  }
  bool known_path = false;
  const Operation* operation = FindOperation(call, &known_path);
  SignedResource resource = ResourceOfPath(call.segments.data(), call.segment_count, call.link);
  ResolveRids(*catalog_.view(), call, resource);
  // Before anything is said about the path: strangers learn nothing.
  bool write = operation == nullptr || NeedsWriteKey(*operation, call);
  if (Status allowed = Authorize(call.request, resource.type, resource.link, write);
      !allowed.ok()) {
    call.Fail(allowed);
    co_return;
  }
  if (operation == nullptr) {
    if (known_path) {
      call.RefuseMethod("This resource does not have the method " +
                        std::string(call.request.method) + ".");
    } else {
      call.Fail(Status(Code::kNotFound, "There is no resource at this path."));
    }
    co_return;
  }
  call.operation = operation->name;
  if (operation->control) {
    partition::RequestUnits price = partition::PriceOfControl(write);
    Duration wait = control_budget_.Reserve(price, clock_.Now());
    if (wait > Duration::zero()) {
      call.charge = partition::PriceOfThrottled();
      call.Fail(Status::Throttled(static_cast<uint32_t>((wait.count() + 999) / 1000)));
      co_return;
    }
    call.charge = price;
  }
  bool behind = options_.catch_up != nullptr && operation->handler != ReadAccount;
  if (behind && operation->control) {
    co_await options_.catch_up();
    behind = false;
  }
  if (operation->scope == Scope::kContainer) {
    Status there = call.FindContainer();
    if (!there.ok() && behind) {
      // It may have been made through another node just now.
      co_await options_.catch_up();
      there = call.FindContainer();
    }
    if (there.ok() && call.found->is_table() && !operation->control && write) {
      call.RefuseMethod(
          "The container is a table of Cassandra: its rows can be read here as items, and are "
          "written with CQL.");
      co_return;
    }
    if (there.ok()) {
      there = call.ReadClaim();
    }
    if (there.ok() && !operation->control) {
      there = call.ReadSession();
    }
    if (there.ok() && behind && call.HasSeenNewer()) {
      // Partitions were split or merged, and this node has not heard of it yet.
      co_await options_.catch_up();
      there = call.FindContainer();
    }
    if (!there.ok()) {
      call.Fail(there);
      co_return;
    }
  }
  co_await operation->handler(call);
}

Task<> Service::Handle(const net::HttpRequest& request, net::HttpReply& reply) {
  Instant start = clock_.Now();
  Call call(*this, request, reply);
  std::string_view given = request.Get("x-ms-activity-id");
  call.activity_id = IsGuid(given) ? std::string(given) : MakeActivityId(random_);
  reply.headers += kCommonHeaders;
  try {
    co_await Dispatch(call);
  } catch (const std::exception& e) {
    log::Error("request failed", {{"activity", call.activity_id}, {"what", e.what()}});
    call.Fail(Status(Code::kInternal, "The request failed inside the server; its log says more."));
  }
  reply.Add("x-ms-activity-id", call.activity_id);
  reply.Add("x-ms-request-charge", call.charge.ToString());
  if (reply.status >= 500) {
    log::Warning("request failed", {{"operation", std::string(call.operation)},
                                    {"status", std::to_string(reply.status)},
                                    {"activity", call.activity_id}});
  } else if (log::Enabled(log::Level::kDebug)) {
    log::Debug("request", {{"operation", std::string(call.operation)},
                           {"status", std::to_string(reply.status)},
                           {"charge", call.charge.ToString()},
                           {"activity", call.activity_id}});
  }
  if (observer_ != nullptr) {
    observer_->OnRequest(call.operation, reply.status, call.charge.value(), clock_.Now() - start);
  }
}

}  // namespace orrery::api::sql
