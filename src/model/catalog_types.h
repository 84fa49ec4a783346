// What the catalog knows: databases, containers, offers, keys. Values; immutable once published.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "model/index_policy.h"
#include "partition/operation.h"
#include "partition/partition_map.h"
#include "partition/router.h"
#include "types/document.h"
#include "types/partition_key.h"

namespace orrery::model {

// Provisioned throughput of a container or a database.
struct Offer {
  uint32_t number = 0;         // of its rid; never reused
  uint64_t manual = 0;         // RU/s, if not autoscale
  uint64_t autoscale_max = 0;  // RU/s; 0: manual
  bool chosen = true;          // false: nobody chose it, so it throttles only in strict mode
  WallTime time;
  uint64_t etag = 0;

  bool autoscale() const { return autoscale_max != 0; }
  // What may be spent in a second.
  uint64_t spendable() const { return autoscale() ? autoscale_max : manual; }
  // What is reported as provisioned: autoscale idles at a tenth.
  uint64_t reported() const { return autoscale() ? autoscale_max / 10 : manual; }
};

struct Database {
  DatabaseId id;
  std::string name;
  std::string rid;
  WallTime time;
  uint64_t etag = 0;
  std::optional<Offer> offer;

  std::string self() const { return "dbs/" + rid + "/"; }
};

struct Container final : partition::Schema {
  ContainerId id;
  DatabaseId database;
  std::string name;
  std::string rid;
  std::string database_name;
  std::string self;  // dbs/<rid>/colls/<rid>/
  std::string link;  // dbs/<name>/colls/<name>
  WallTime time;
  uint64_t etag = 0;
  types::Document definition;  // as it is shown, without system properties
  std::optional<Offer> offer;  // none: shares the database's
  std::shared_ptr<const partition::PartitionMap> map;

  // Read from the definition:
  types::PartitionKeyDefinition key;
  std::vector<std::vector<std::string>> key_paths;
  std::optional<int32_t> default_ttl;
  std::vector<std::vector<std::vector<std::string>>> unique_keys;  // policies of paths of names
  IndexPolicy index;

  partition::Ring ring() const { return {.container = id, .map = map, .schema_version = version}; }
  // Fills in what is read from the definition. kInvalidArgument if it is not one.
  Status ReadDefinition();
};

enum class KeyName : uint8_t { kPrimary, kSecondary, kPrimaryReadOnly, kSecondaryReadOnly };
inline constexpr size_t kKeyCount = 4;

struct AccountKeys {
  std::array<std::string, kKeyCount> keys;  // raw bytes
};

// One state of the catalog.
struct CatalogView {
  std::map<std::string, std::shared_ptr<const Database>, std::less<>> databases;  // by name
  // By database and name.
  std::map<std::pair<DatabaseId, std::string>, std::shared_ptr<const Container>> containers;
  std::map<ContainerId, std::shared_ptr<const Container>> containers_by_id;
  // Links by name, "dbs/d/colls/c", for the path of every request.
  std::map<std::string, std::shared_ptr<const Container>, std::less<>> containers_by_link;
  AccountKeys keys;
  uint32_t next_database = 1;
  uint32_t next_container = 1;
  uint32_t next_offer = 1;
  uint64_t next_partition = 1;
  std::vector<std::pair<ContainerId, std::vector<PartitionId>>> dropped;  // still to be cleared

  std::shared_ptr<const Database> FindDatabase(std::string_view name) const;
  // By resource id, as links of the form dbs/<rid>/colls/<rid>/ name them; null if there is none.
  std::shared_ptr<const Database> FindDatabaseByRid(std::string_view rid) const;
  std::shared_ptr<const Container> FindContainerByRid(std::string_view rid) const;
  std::shared_ptr<const Container> FindContainer(std::string_view link) const;
  std::shared_ptr<const Container> FindContainer(ContainerId id) const;
  // All containers of a database, by name.
  std::vector<std::shared_ptr<const Container>> ContainersOf(DatabaseId database) const;
};

// Checks the definition that a client sent and fills in defaults, in the order in which it is
// shown. kInvalidArgument says what is wrong. `version_given`: without one, hash version 2 is used.
Result<types::Document> NormalizeContainer(types::Value definition);
// A changed definition: the partition key, unique keys and id must be the same.
Status CheckContainerChange(const Container& before, const Container& after);

// 1 to 255 characters, none of / \ # ?, no space at the end.
Status CheckResourceName(std::string_view name);

// Records of the catalog; see docs/formats/catalog.md.
std::string EncodeDatabase(const Database& database);
Result<Database> DecodeDatabase(std::string_view bytes);
std::string EncodeContainer(const Container& container);
Result<Container> DecodeContainer(std::string_view bytes);

}  // namespace orrery::model
