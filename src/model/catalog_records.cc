#include "model/catalog_records.h"

#include <set>

#include "model/catalog_roles.h"

namespace orrery::model {

namespace {

enum Kind : char {
  kDatabase = 'd',
  kContainer = 'c',
  kCounters = 'n',
  kKeys = 'k',
  kDropped = 'x',
  kCluster = 'g',
  kNode = 'm',
  kPlacement = 'p',
  kBalancer = 'b',
  kRoles = 'r',
};
constexpr uint8_t kClusterVersion = 2;

std::string Key(Kind kind, uint32_t id = 0) {
  std::string key(1, kind);
  Encoder(key).U32(id);
  return key;
}

Status Malformed() { return Status(Code::kCorruption, "catalog record is malformed"); }

void EraseContainer(CatalogView& view, ContainerId id) {
  auto found = view.containers_by_id.find(id);
  if (found == view.containers_by_id.end()) {
    return;
  }
  std::shared_ptr<const Container> container = found->second;
  view.containers_by_id.erase(found);
  // Another container may have taken the name.
  if (auto link = view.containers_by_link.find(container->link);
      link != view.containers_by_link.end() && link->second == container) {
    view.containers_by_link.erase(link);
    view.containers.erase({container->database, container->name});
  }
}

Status PutContainer(CatalogView& view, std::string_view value) {
  auto container = DecodeContainer(value);
  if (!container) {
    return container.error();
  }
  auto shared = std::make_shared<const Container>(std::move(*container));
  view.containers[{shared->database, shared->name}] = shared;
  view.containers_by_id[shared->id] = shared;
  view.containers_by_link[shared->link] = shared;
  return Status::Ok();
}

Status PutDatabase(CatalogView& view, std::string_view value) {
  auto database = DecodeDatabase(value);
  if (!database) {
    return database.error();
  }
  auto shared = std::make_shared<const Database>(std::move(*database));
  view.databases[shared->name] = shared;
  return Status::Ok();
}

void EraseDatabase(CatalogView& view, DatabaseId id) {
  std::erase_if(view.databases, [id](const auto& entry) { return entry.second->id == id; });
}

Status PutNode(CatalogView& view, std::string_view value) {
  auto node = DecodeNode(value);
  if (!node) {
    return node.error();
  }
  view.nodes[node->id] = std::make_shared<const NodeRecord>(*node);
  return Status::Ok();
}

Status PutPlacement(CatalogView& view, GroupId group, std::string_view value) {
  auto placement = DecodePlacement(value);
  if (!placement) {
    return placement.error();
  }
  view.placements[group] = std::make_shared<const Placement>(std::move(*placement));
  return Status::Ok();
}

Status PutRoles(CatalogView& view, std::string_view value) {
  auto record = DecodeRoles(value);
  if (!record) {
    return record.error();
  }
  view.roles = std::make_shared<const RolesRecord>(std::move(*record));
  return Status::Ok();
}

Status DeleteRecord(CatalogView& view, char kind, Decoder id) {
  switch (kind) {
    case kDatabase: EraseDatabase(view, DatabaseId(id.U32())); break;
    case kContainer: EraseContainer(view, ContainerId(id.U32())); break;
    case kDropped: view.dropped.erase(ContainerId(id.U32())); break;
    case kNode: view.nodes.erase(NodeId(id.U32())); break;
    case kPlacement: view.placements.erase(GroupId(id.U64())); break;
    default: return Status(Code::kCorruption, "catalog record of a kind that is never deleted");
  }
  return id.done() ? Status::Ok() : Malformed();
}

// Those without a version of their own.
Status PutPlainRecord(CatalogView& view, char kind, Decoder id, Decoder decoder) {
  switch (kind) {
    case kCounters:
      view.next.database = decoder.U32();
      view.next.container = decoder.U32();
      view.next.offer = decoder.U32();
      view.next.partition = decoder.U64();
      break;
    case kKeys:
      for (std::string& key : view.keys.keys) {
        key = decoder.Bytes();
      }
      break;
    case kDropped: {
      std::vector<PartitionId> partitions;
      while (decoder.ok() && decoder.left() > 0) {
        partitions.emplace_back(decoder.U64());
      }
      view.dropped[ContainerId(id.U32())] = std::move(partitions);
      break;
    }
    case kBalancer: view.balancer_paused = decoder.Bool(); break;
    case kCluster:
      if (decoder.U8() != kClusterVersion) {
        return Malformed();
      }
      view.cluster = decoder.U64();
      view.next.node = decoder.U32();
      view.next.replica = decoder.U64();
      view.next.format = decoder.U32();
      break;
    default: return Status(Code::kCorruption, "catalog record of an unknown kind");
  }
  return decoder.done() ? Status::Ok() : Malformed();
}

template <typename T, typename Encode>
bool Same(const std::shared_ptr<const T>& a, const std::shared_ptr<const T>& b, Encode encode) {
  return a == b || encode(*a) == encode(*b);
}

// Databases whose containers have another throughput now.
std::set<DatabaseId> WithOtherOffer(const CatalogView& before, const CatalogView& after) {
  std::set<DatabaseId> changed;
  for (const auto& [name, database] : after.databases) {
    auto old = before.databases.find(name);
    if (old != before.databases.end() && old->second->id == database->id &&
        old->second->offer != database->offer) {
      changed.insert(database->id);
    }
  }
  return changed;
}

void ComparePlacements(const CatalogView& before, const CatalogView& after,
                       CatalogDifference& difference) {
  for (const auto& [group, placement] : after.placements) {
    auto old = before.placements.find(group);
    if (old == before.placements.end() ||
        (old->second != placement && *old->second != *placement)) {
      difference.placed.push_back(group);
    }
  }
  for (const auto& [group, placement] : before.placements) {
    if (!after.placements.contains(group)) {
      difference.unplaced.push_back(group);
    }
  }
}

bool SameNodes(const CatalogView& before, const CatalogView& after) {
  return std::ranges::equal(before.nodes, after.nodes, [](const auto& a, const auto& b) {
    return a.second == b.second || *a.second == *b.second;
  });
}

}  // namespace

std::string DatabaseKey(DatabaseId id) { return Key(kDatabase, id.value()); }
std::string ContainerKey(ContainerId id) { return Key(kContainer, id.value()); }
std::string DroppedKey(ContainerId id) { return Key(kDropped, id.value()); }
std::string CountersKey() { return Key(kCounters); }
std::string KeysKey() { return Key(kKeys); }
std::string ClusterKey() { return Key(kCluster); }
std::string BalancerKey() { return Key(kBalancer); }
std::string RolesKey() { return Key(kRoles); }
std::string NodeKey(NodeId id) { return Key(kNode, id.value()); }
std::string PlacementKey(GroupId id) {
  std::string key(1, kPlacement);
  Encoder(key).U64(id.value());
  return key;
}

std::string EncodeCounters(const CatalogCounters& next) {
  std::string out;
  Encoder encoder(out);
  encoder.U32(next.database);
  encoder.U32(next.container);
  encoder.U32(next.offer);
  encoder.U64(next.partition);
  return out;
}

std::string EncodeKeys(const AccountKeys& keys) {
  std::string out;
  Encoder encoder(out);
  for (const std::string& key : keys.keys) {
    encoder.Bytes(key);
  }
  return out;
}

std::string EncodeDropped(const std::vector<PartitionId>& partitions) {
  std::string out;
  Encoder encoder(out);
  for (PartitionId id : partitions) {
    encoder.U64(id.value());
  }
  return out;
}

std::string EncodeCluster(uint64_t cluster, const CatalogCounters& next) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kClusterVersion);
  encoder.U64(cluster);
  encoder.U32(next.node);
  encoder.U64(next.replica);
  encoder.U32(next.format);
  return out;
}

std::vector<PartitionId> PartitionsOf(const Container& container) {
  std::vector<PartitionId> ids;
  for (const auto& range : container.map->ranges()) {
    ids.push_back(range.id);
  }
  for (const auto& range : container.map->retired()) {
    ids.push_back(range.id);
  }
  for (const Reshape& reshape : container.reshapes) {
    ids.insert(ids.end(), reshape.heirs.begin(), reshape.heirs.end());
  }
  return ids;
}

Status ApplyRecord(CatalogView& view, std::string_view key, std::optional<std::string_view> value) {
  if (key.empty()) {
    return Malformed();
  }
  Decoder id(key.substr(1));
  if (!value) {
    return DeleteRecord(view, key[0], id);
  }
  switch (key[0]) {
    case kDatabase: return PutDatabase(view, *value);
    case kContainer: return PutContainer(view, *value);
    case kNode: return PutNode(view, *value);
    case kRoles: return PutRoles(view, *value);
    case kPlacement: {
      GroupId group(id.U64());
      return id.done() ? PutPlacement(view, group, *value) : Malformed();
    }
    default: return PutPlainRecord(view, key[0], id, Decoder(*value));
  }
}

Result<std::shared_ptr<CatalogView>> LoadView(storage::Engine& state) {
  auto view = std::make_shared<CatalogView>();
  auto records = state.NewIterator(storage::Index(storage::Space::kCatalog), "", "");
  for (records->SeekToFirst(); records->Valid(); records->Next()) {
    ORRERY_TRY_STATUS(ApplyRecord(*view, records->key(), records->value()));
  }
  ORRERY_TRY_STATUS(records->status());
  return view;
}

CatalogDifference Compare(const CatalogView& before, const CatalogView& after) {
  CatalogDifference difference;
  std::set<DatabaseId> other_offer = WithOtherOffer(before, after);
  for (const auto& [id, container] : after.containers_by_id) {
    auto old = before.FindContainer(id);
    if (old == nullptr) {
      difference.created.push_back(container);
    } else if (!Same(old, container, EncodeContainer) ||
               (!container->offer && other_offer.contains(container->database))) {
      difference.changed.push_back(container);
    }
  }
  for (const auto& [id, container] : before.containers_by_id) {
    if (!after.containers_by_id.contains(id)) {
      difference.dropped.push_back(container);
    }
  }
  ComparePlacements(before, after, difference);
  difference.keys = before.keys != after.keys;
  difference.nodes = !SameNodes(before, after);
  return difference;
}

}  // namespace orrery::model
