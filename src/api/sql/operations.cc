// What the API has, in the order of the REST reference, and how a request finds its row.
#include <algorithm>
#include <vector>

#include "api/sql/call.h"

namespace orrery::api::sql {

namespace {

constexpr bool kWrites = true;
constexpr bool kControl = true;

const Operation kOperations[] = {
    {"GET", "/", ReadAccount, "account_read", false, kControl},

    {"POST", "/dbs", CreateDatabase, "database_create", kWrites, kControl},
    {"GET", "/dbs", ListDatabases, "database_list", false, kControl},
    {"GET", "/dbs/{db}", ReadDatabase, "database_read", false, kControl},
    {"DELETE", "/dbs/{db}", DeleteDatabase, "database_delete", kWrites, kControl},

    {"POST", "/dbs/{db}/colls", CreateContainer, "container_create", kWrites, kControl},
    {"GET", "/dbs/{db}/colls", ListContainers, "container_list", false, kControl},
    {"GET", "/dbs/{db}/colls/{coll}", ReadContainer, "container_read", false, kControl,
     Scope::kContainer},
    {"PUT", "/dbs/{db}/colls/{coll}", ReplaceContainer, "container_replace", kWrites, kControl},
    {"DELETE", "/dbs/{db}/colls/{coll}", DeleteContainer, "container_delete", kWrites, kControl},
    {"GET", "/dbs/{db}/colls/{coll}/pkranges", ListPartitionRanges, "pkranges_list", false,
     kControl, Scope::kContainer},

    // Create, upsert, batch, bulk, query and query plan: headers tell which.
    {"POST", "/dbs/{db}/colls/{coll}/docs", PostItems, "item_post", false, false,
     Scope::kContainer},
    {"GET", "/dbs/{db}/colls/{coll}/docs", ListItems, "item_list", false, false, Scope::kContainer},
    {"GET", "/dbs/{db}/colls/{coll}/docs/{id}", ReadItem, "item_read", false, false,
     Scope::kContainer},
    {"PUT", "/dbs/{db}/colls/{coll}/docs/{id}", ReplaceItem, "item_replace", kWrites, false,
     Scope::kContainer},
    {"PATCH", "/dbs/{db}/colls/{coll}/docs/{id}", PatchItem, "item_patch", kWrites, false,
     Scope::kContainer},
    {"DELETE", "/dbs/{db}/colls/{coll}/docs/{id}", DeleteItem, "item_delete", kWrites, false,
     Scope::kContainer},
    {"POST", "/dbs/{db}/colls/{coll}/operations/partitionkeydelete", DeleteLogicalPartition,
     "partition_key_delete", kWrites, false, Scope::kContainer},
    {"DELETE", "/dbs/{db}/colls/{coll}/operations/partitionkeydelete", DeleteLogicalPartition,
     "partition_key_delete", kWrites, false, Scope::kContainer},
    {"*", "/dbs/{db}/colls/{coll}/docs/{id}/attachments", NotSupported, "not_supported"},

    {"GET", "/offers", ListOffers, "offer_list", false, kControl},
    {"POST", "/offers", QueryOffers, "offer_query", false, kControl},
    {"GET", "/offers/{id}", ReadOffer, "offer_read", false, kControl},
    {"PUT", "/offers/{id}", ReplaceOffer, "offer_replace", kWrites, kControl},

    {"*", "/dbs/{db}/users", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/users/{user}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/users/{user}/permissions", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/users/{user}/permissions/{id}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/clientencryptionkeys", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/clientencryptionkeys/{id}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/sprocs", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/sprocs/{id}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/triggers", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/triggers/{id}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/udfs", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/udfs/{id}", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/conflicts", NotSupported, "not_supported"},
    {"*", "/dbs/{db}/colls/{coll}/conflicts/{id}", NotSupported, "not_supported"},
    {"*", "/operations/dtc", NotSupported, "not_supported"},
};

// A row with its path cut into parts; a part in braces takes any segment.
struct Route {
  const Operation* operation;
  std::vector<std::string_view> parts;
};

std::vector<Route> MakeRoutes() {
  std::vector<Route> routes;
  for (const Operation& operation : kOperations) {
    Route& route = routes.emplace_back(Route{.operation = &operation});
    for (std::string_view rest = operation.path.substr(1); !rest.empty();) {
      size_t end = std::min(rest.find('/'), rest.size());
      route.parts.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return routes;
}

bool Matches(const Route& route, const Call& call) {
  if (route.parts.size() != call.segment_count) {
    return false;
  }
  for (size_t i = 0; i < route.parts.size(); ++i) {
    if (route.parts[i][0] != '{' && route.parts[i] != call.segments[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

const Operation* FindOperation(const Call& call, bool* known_path) {
  static const std::vector<Route> routes = MakeRoutes();
  *known_path = false;
  for (const Route& route : routes) {
    if (!Matches(route, call)) {
      continue;
    }
    if (route.operation->method == call.request.method || route.operation->method == "*") {
      return route.operation;
    }
    *known_path = true;
  }
  return nullptr;
}

runtime::Task<> NotSupported(Call& call) {
  call.Fail(Status(Code::kNotSupported,
                   "'" +
                       call.segments[call.segment_count % 2 == 0 ? call.segment_count - 2
                                                                 : call.segment_count - 1] +
                       "' is not supported yet."));
  co_return;
}

}  // namespace orrery::api::sql
