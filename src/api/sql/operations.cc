// What the API has, in the order of the REST reference, and how a request finds its row.
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
    {"GET", "/dbs/{db}/colls/{coll}", ReadContainer, "container_read", false, kControl},
    {"PUT", "/dbs/{db}/colls/{coll}", ReplaceContainer, "container_replace", kWrites, kControl},
    {"DELETE", "/dbs/{db}/colls/{coll}", DeleteContainer, "container_delete", kWrites, kControl},
    {"GET", "/dbs/{db}/colls/{coll}/pkranges", ListPartitionRanges, "pkranges_list", false,
     kControl},

    // Create, upsert, batch, bulk, query and query plan: headers tell which.
    {"POST", "/dbs/{db}/colls/{coll}/docs", PostItems, "item_post"},
    {"GET", "/dbs/{db}/colls/{coll}/docs", ListItems, "item_list"},
    {"GET", "/dbs/{db}/colls/{coll}/docs/{id}", ReadItem, "item_read"},
    {"PUT", "/dbs/{db}/colls/{coll}/docs/{id}", ReplaceItem, "item_replace", kWrites},
    {"PATCH", "/dbs/{db}/colls/{coll}/docs/{id}", PatchItem, "item_patch", kWrites},
    {"DELETE", "/dbs/{db}/colls/{coll}/docs/{id}", DeleteItem, "item_delete", kWrites},
    {"POST", "/dbs/{db}/colls/{coll}/operations/partitionkeydelete", DeleteLogicalPartition,
     "partition_key_delete", kWrites},
    {"DELETE", "/dbs/{db}/colls/{coll}/operations/partitionkeydelete", DeleteLogicalPartition,
     "partition_key_delete", kWrites},
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

// The literal parts must be equal; a part in braces takes any segment.
bool Matches(std::string_view pattern, const Call& call) {
  pattern.remove_prefix(1);
  for (size_t i = 0; i < call.segment_count; ++i) {
    if (pattern.empty()) {
      return false;
    }
    size_t end = pattern.find('/');
    std::string_view part = pattern.substr(0, end);
    if (part[0] != '{' && part != call.segments[i]) {
      return false;
    }
    pattern = end == std::string_view::npos ? std::string_view() : pattern.substr(end + 1);
  }
  return pattern.empty();
}

}  // namespace

const Operation* FindOperation(const Call& call, bool* known_path) {
  *known_path = false;
  for (const Operation& operation : kOperations) {
    bool method = operation.method == call.request.method || operation.method == "*";
    if ((method || !*known_path) && Matches(operation.path, call)) {
      if (method) {
        return &operation;
      }
      *known_path = true;
    }
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
