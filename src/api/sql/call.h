// Call: one request of the SQL API on its way. Private to api/sql.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "api/sql/service.h"
#include "model/catalog.h"
#include "model/items.h"
#include "net/http_server.h"
#include "types/session_token.h"

namespace orrery::api::sql {

// What the partitions that took part in a request have applied, for the session token.
class Seen {
 public:
  void Add(const partition::Reply& reply);
  size_t size() const { return applied_.size(); }
  // Comma-joined; empty if no partition has answered.
  std::string Tokens() const;

 private:
  std::map<PartitionId, Lsn> applied_;
};

struct Call {
  Call(Service& service, const net::HttpRequest& request, net::HttpReply& reply)
      : service(service), request(request), reply(reply) {}

  Service& service;
  const net::HttpRequest& request;
  net::HttpReply& reply;

  // The path, percent-decoded: segments, and their join without a leading slash.
  static constexpr size_t kSegmentsMax = 8;
  std::array<std::string, kSegmentsMax> segments;
  size_t segment_count = 0;
  std::string link;

  std::string activity_id;
  std::string_view operation = "unknown";
  partition::RequestUnits charge;
  // Of the operations that the request becomes.
  partition::Claim claim;
  std::vector<types::SessionToken> tokens;  // what the client has seen
  bool bucket_full = false;  // what was refused was refused for its throughput bucket

  model::Catalog& catalog() const { return service.catalog_; }
  partition::Router& router() const { return service.router_; }
  partition::ReplicaTable& replicas() const { return service.replicas_; }
  const ServiceOptions& options() const { return service.options_; }
  Random& random() const { return service.random_; }
  const Clock& clock() const { return service.clock_; }
  std::string_view Header(std::string_view name) const { return request.Get(name); }
  // True for `true`, `True`.
  bool Flag(std::string_view name) const;

  // The named parts of the path. REQUIRES: the route has them.
  const std::string& database() const { return segments[1]; }
  const std::string& container() const { return segments[3]; }
  const std::string& item() const { return segments[5]; }
  std::string container_link() const { return "dbs/" + segments[1] + "/colls/" + segments[3]; }
  // The container of the path, for operations of Scope::kContainer.
  std::shared_ptr<const model::Container> found;
  // kNotFound if it is not there.
  Status FindContainer();

  // Answers ------------------------------------------------------------------------------------
  void Fail(const Status& status);
  // The resource does not have the method: 405.
  void RefuseMethod(const std::string& message);
  // The body is in reply.body.
  void Succeed(int status) { reply.status = status; }
  // Headers that come with a partition's reply: charge, session token, lsn, range id. `seen`: those
  // of several, of which it is the last.
  void AddPartitionHeaders(const partition::Reply& from, const Seen* seen = nullptr);
  void AddContainerHeaders(const model::Container& container);

  // Request headers that data operations share -------------------------------------------------
  // How new what is read must be. kInvalidArgument: unknown, or stronger than the account's.
  Result<Consistency> Level() const;
  // Reads `tokens`. kInvalidArgument if they are malformed.
  Status ReadSession();
  // The partition that the request names; 0: none.
  PartitionId NamedRange() const;
  // Whether the client names a partition, or has seen one, that came after those that are known
  // here.
  bool HasSeenNewer() const;
  Result<model::ThroughputRequest> Throughput() const;
  // Reads `claim`. kInvalidArgument if a header is malformed.
  Status ReadClaim();

 private:
  void WriteError(std::string_view code, const std::string& message);
};

// Each in the file named after it.
using Handler = runtime::Task<> (*)(Call&);
runtime::Task<> ReadAccount(Call& call);     // account.cc
runtime::Task<> CreateDatabase(Call& call);  // databases.cc
runtime::Task<> ListDatabases(Call& call);
runtime::Task<> ReadDatabase(Call& call);
runtime::Task<> DeleteDatabase(Call& call);
runtime::Task<> CreateContainer(Call& call);  // containers.cc
runtime::Task<> ListContainers(Call& call);
runtime::Task<> ReadContainer(Call& call);
runtime::Task<> ReplaceContainer(Call& call);
runtime::Task<> DeleteContainer(Call& call);
runtime::Task<> ListPartitionRanges(Call& call);
runtime::Task<> PostItems(Call& call);  // items.cc; hands over to batch.cc and feed.cc
runtime::Task<> ReadItem(Call& call);
runtime::Task<> ReplaceItem(Call& call);
runtime::Task<> PatchItem(Call& call);
runtime::Task<> DeleteItem(Call& call);
runtime::Task<> DeleteLogicalPartition(Call& call);
runtime::Task<> RunBatch(Call& call,
                         std::shared_ptr<const model::Container> container);  // batch.cc
runtime::Task<> ListItems(Call& call);                                        // feed.cc
runtime::Task<> QueryItems(Call& call, std::shared_ptr<const model::Container> container);
runtime::Task<> PlanQuery(Call& call, std::shared_ptr<const model::Container> container);
runtime::Task<> ReadRow(Call& call);     // tables.cc
runtime::Task<> ListOffers(Call& call);  // offers.cc
runtime::Task<> QueryOffers(Call& call);
runtime::Task<> ReadOffer(Call& call);
runtime::Task<> ReplaceOffer(Call& call);
runtime::Task<> NotSupported(Call& call);  // operations.cc

enum class Scope : uint8_t {
  kAccount,
  kContainer,  // the container of the path is looked up before the handler runs
};

struct Operation {
  std::string_view method;
  std::string_view path;
  Handler handler;
  std::string_view name;  // in metrics
  bool writes = false;    // not with a read-only key
  bool control = false;   // paid from the control plane's budget
  Scope scope = Scope::kAccount;
};
// The row for a request; null if the path is not one of ours, `*known_path` tells if only the
// method is wrong.
const Operation* FindOperation(const Call& call, bool* known_path);

// JSON of resources ----------------------------------------------------------------------------
// render.cc
void AppendDatabase(const model::Database& database, std::string& out);
void AppendContainer(const model::Container& container, std::string& out);
void AppendPartitionRange(const model::Container& container, const partition::PartitionRange& range,
                          std::string& out);
struct OfferOwner {
  const model::Offer& offer;
  std::string self;
  std::string_view rid;
  uint64_t current = 0;  // RU/s that it is scaled to
};
void AppendOffer(const OfferOwner& owner, std::string& out);
// An item as it is stored, with its system properties. kCorruption if the bytes are malformed.
Status AppendItem(const model::Container& container, std::string_view stored, std::string& out);
// `_rid`, `_self`, `_etag`, `_attachments` and `_ts` of what stands in a container as an item, each
// preceded by a comma. `number` < 2^60; the etag with its quotes.
void AppendItemProperties(const model::Container& container, uint64_t number, std::string_view etag,
                          WallTime time, std::string& out);
// `"name":"text"`, preceded by a comma.
void AppendText(std::string_view name, std::string_view text, std::string& out);

}  // namespace orrery::api::sql
