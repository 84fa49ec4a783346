#include "model/catalog_types.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <limits>

#include "types/rid.h"

namespace orrery::model {

using types::Kind;
using types::Member;
using types::Value;

namespace {

constexpr uint8_t kRecordVersion = 1;
// With more than the first version knows: an offer that is more than an amount, reshapes, an
// origin.
constexpr uint8_t kLaterVersion = 2;
// A database with a definition.
constexpr uint8_t kDefinedVersion = 3;
constexpr int64_t kGraceSeconds = 864'000;  // Cassandra's default
constexpr size_t kNameMax = 255;
constexpr size_t kNodeTextMax = 1024;  // an address, an endpoint, a zone
constexpr size_t kUniqueKeysMax = 10;
constexpr size_t kUniquePathsMax = 16;
constexpr size_t kReplicasMax = 10'000;  // of one group; every node has one of the meta group

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// Of a table of Cassandra.
int64_t GraceOf(Value table) {
  int64_t grace = kGraceSeconds;
  const Value given = Member(Member(table, "options"), "gc_grace_seconds");
  if (given.kind() == Kind::kString) {
    const std::string_view text = given.string();
    std::from_chars(text.data(), text.data() + text.size(), grace);
  }
  // Changes of what follows from another table may come late, until they have been done: no one
  // that is newer must be forgotten before.
  const bool derived = Member(table, "view").defined() || Member(table, "indexOf").defined();
  return std::max<int64_t>(grace, derived ? kGraceSeconds : 0);
}

// The key of a container that was made without one: clients that know of it name no value.
constexpr std::string_view kSystemKeyPath = "/_partitionKey";

bool IsSystemKey(Value key) {
  Value system = Member(key, "systemKey");
  return system.kind() == Kind::kBool && system.boolean();
}

Result<types::PartitionKeyDefinition> ReadKeyDefinition(Value value) {
  types::PartitionKeyDefinition key;
  if (!value.defined() || value.kind() == Kind::kNull) {
    key.paths.emplace_back(kSystemKeyPath);
    return key;
  }
  if (value.kind() != Kind::kObject) {
    return Invalid("The partition key definition is not an object.");
  }
  Value paths = Member(value, "paths");
  if (paths.kind() != Kind::kArray) {
    return Invalid("The partition key definition has no array of paths.");
  }
  for (types::ValueIterator path(paths.bson()); path.Next();) {
    if (path.value().kind() != Kind::kString) {
      return Invalid("A partition key path is not a string.");
    }
    key.paths.emplace_back(path.value().string());
  }
  Value kind = Member(value, "kind");
  if (kind.kind() == Kind::kString) {
    if (kind.string() == "Hash") {
      key.kind = types::KeyKind::kHash;
    } else if (kind.string() == "MultiHash") {
      key.kind = types::KeyKind::kMultiHash;
    } else if (kind.string() == "Range") {
      key.kind = types::KeyKind::kRange;
    } else if (kind.string() == "Token") {
      key.kind = types::KeyKind::kToken;
    } else {
      return Invalid("The partition key kind '" + std::string(kind.string()) +
                     "' is not Hash or MultiHash.");
    }
  } else if (kind.defined()) {
    return Invalid("The partition key kind is not a string.");
  } else if (key.paths.size() > 1) {
    key.kind = types::KeyKind::kMultiHash;
  }
  Value version = Member(value, "version");
  if (version.defined()) {
    if (version.kind() != Kind::kNumber || !version.is_integer()) {
      return Invalid("The partition key version is not a whole number.");
    }
    key.version = static_cast<int>(version.integer());
  }
  ORRERY_TRY_STATUS(key.Validate());
  if (IsSystemKey(value) && (key.paths.size() != 1 || key.paths[0] != kSystemKeyPath)) {
    return Invalid("A system partition key has the path " + std::string(kSystemKeyPath) + ".");
  }
  return key;
}

std::string_view KindName(types::KeyKind kind) {
  switch (kind) {
    case types::KeyKind::kHash: return "Hash";
    case types::KeyKind::kMultiHash: return "MultiHash";
    case types::KeyKind::kRange: return "Range";
    case types::KeyKind::kToken: return "Token";
  }
  return "Hash";
}

Result<std::vector<std::vector<std::vector<std::string>>>> ReadUniqueKeys(Value policy) {
  std::vector<std::vector<std::vector<std::string>>> unique;
  if (!policy.defined() || policy.kind() == Kind::kNull) {
    return unique;
  }
  Value keys = Member(policy, "uniqueKeys");
  if (policy.kind() != Kind::kObject || (keys.defined() && keys.kind() != Kind::kArray)) {
    return Invalid("The unique key policy is malformed.");
  }
  if (!keys.defined()) {
    return unique;
  }
  for (types::ValueIterator key(keys.bson()); key.Next();) {
    Value paths = Member(key.value(), "paths");
    if (paths.kind() != Kind::kArray) {
      return Invalid("A unique key has no array of paths.");
    }
    auto& split = unique.emplace_back();
    for (types::ValueIterator path(paths.bson()); path.Next();) {
      if (path.value().kind() != Kind::kString) {
        return Invalid("A unique key path is not a string.");
      }
      ORRERY_TRY(split.emplace_back(), types::SplitPropertyPath(path.value().string()));
    }
    if (split.empty() || split.size() > kUniquePathsMax) {
      return Invalid("A unique key must have 1 to 16 paths.");
    }
  }
  if (unique.size() > kUniqueKeysMax) {
    return Invalid("A container may have at most 10 unique keys.");
  }
  return unique;
}

Result<std::optional<int32_t>> ReadTtl(Value ttl) {
  if (!ttl.defined() || ttl.kind() == Kind::kNull) {
    return std::nullopt;
  }
  bool fits = ttl.kind() == Kind::kNumber && ttl.is_integer() &&
              (ttl.integer() == -1 ||
               (ttl.integer() > 0 && ttl.integer() <= std::numeric_limits<int32_t>::max()));
  if (!fits) {
    return Invalid("The value of defaultTtl must be -1 or a positive 32-bit integer.");
  }
  return static_cast<int32_t>(ttl.integer());
}

// How an offer stands in a record.
enum class OfferForm : uint8_t { kNone = 0, kAmount = 1, kMore = 2 };

OfferForm FormOf(const std::optional<Offer>& offer) {
  if (!offer) {
    return OfferForm::kNone;
  }
  bool more = offer->highest != 0 || offer->buckets.any() || !offer->custom.empty();
  return more ? OfferForm::kMore : OfferForm::kAmount;
}

// Older programs refuse a record with what they would not understand.
uint8_t VersionFor(const std::optional<Offer>& offer) {
  return FormOf(offer) == OfferForm::kMore ? kLaterVersion : kRecordVersion;
}

void EncodeOffer(Encoder& encoder, const std::optional<Offer>& offer) {
  const OfferForm form = FormOf(offer);
  encoder.U8(static_cast<uint8_t>(form));
  if (offer) {
    encoder.U32(offer->number);
    encoder.U64(offer->manual);
    encoder.U64(offer->autoscale_max);
    encoder.Bool(offer->chosen);
    encoder.U64(static_cast<uint64_t>(offer->time.micros));
    encoder.U64(offer->etag);
  }
  if (form == OfferForm::kMore) {
    encoder.U64(offer->highest);
    for (uint8_t percent : offer->buckets.percent) {
      encoder.U8(percent);
    }
    encoder.U8(offer->buckets.unmarked);
    encoder.Varint(offer->custom.size());
    for (const PartitionShare& share : offer->custom) {
      encoder.Varint(share.partition.value());
      encoder.Varint(share.throughput);
    }
  }
}

void DecodeMore(Decoder& decoder, Offer& offer) {
  offer.highest = decoder.U64();
  for (uint8_t& percent : offer.buckets.percent) {
    percent = decoder.U8();
  }
  offer.buckets.unmarked = decoder.U8();
  uint64_t count = decoder.Varint();
  if (count > partition::PartitionMap::kRangesMax || count > decoder.left()) {
    decoder.Fail();
  }
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    PartitionShare& share = offer.custom.emplace_back();
    share.partition = PartitionId(decoder.Varint());
    share.throughput = decoder.Varint();
  }
}

std::optional<Offer> DecodeOffer(Decoder& decoder, uint8_t version) {
  const auto form = static_cast<OfferForm>(decoder.U8());
  if (form > (version >= kLaterVersion ? OfferForm::kMore : OfferForm::kAmount)) {
    decoder.Fail();
  }
  if (form == OfferForm::kNone || !decoder.ok()) {
    return std::nullopt;
  }
  Offer offer;
  offer.number = decoder.U32();
  offer.manual = decoder.U64();
  offer.autoscale_max = decoder.U64();
  offer.chosen = decoder.Bool();
  offer.time = {static_cast<int64_t>(decoder.U64())};
  offer.etag = decoder.U64();
  if (form == OfferForm::kMore) {
    DecodeMore(decoder, offer);
  }
  return offer;
}

void AppendUniqueKeys(types::DocumentBuilder& builder, Value policy) {
  if (policy.kind() == Kind::kObject) {
    builder.Append("uniqueKeyPolicy", policy);
  }
}

}  // namespace

void CatalogCounters::RaiseTo(const CatalogCounters& other) {
  database = std::max(database, other.database);
  container = std::max(container, other.container);
  offer = std::max(offer, other.offer);
  partition = std::max(partition, other.partition);
  node = std::max(node, other.node);
  replica = std::max(replica, other.replica);
  format = std::max(format, other.format);
}

const PlacedReplica* Placement::Find(NodeId node) const {
  auto found = std::ranges::find(members, node, &PlacedReplica::node);
  return found == members.end() ? nullptr : &*found;
}

bool Placement::founds(ReplicaId replica) const {
  return std::ranges::find(founders, replica, &PlacedReplica::replica) != founders.end();
}

size_t Placement::voters() const {
  return static_cast<size_t>(std::ranges::count(members, true, &PlacedReplica::voter));
}

std::shared_ptr<const NodeRecord> CatalogView::FindNode(NodeId id) const {
  auto found = nodes.find(id);
  return found == nodes.end() ? nullptr : found->second;
}

std::shared_ptr<const Placement> CatalogView::FindPlacement(GroupId group) const {
  auto found = placements.find(group);
  return found == placements.end() ? nullptr : found->second;
}

std::shared_ptr<const Database> CatalogView::FindDatabase(DatabaseId id) const {
  for (const auto& [name, database] : databases) {
    if (database->id == id) {
      return database;
    }
  }
  return nullptr;
}

std::shared_ptr<const Database> CatalogView::FindDatabase(std::string_view name) const {
  auto found = databases.find(name);
  return found == databases.end() ? nullptr : found->second;
}

std::shared_ptr<const Database> CatalogView::FindDatabaseByRid(std::string_view rid) const {
  for (const auto& [name, database] : databases) {
    if (database->rid == rid) {
      return database;
    }
  }
  return nullptr;
}

std::shared_ptr<const Container> CatalogView::FindContainerByRid(std::string_view rid) const {
  for (const auto& [id, container] : containers_by_id) {
    if (container->rid == rid) {
      return container;
    }
  }
  return nullptr;
}

std::shared_ptr<const Container> CatalogView::FindContainer(std::string_view link) const {
  auto found = containers_by_link.find(link);
  return found == containers_by_link.end() ? nullptr : found->second;
}

std::shared_ptr<const Container> CatalogView::FindContainer(ContainerId id) const {
  auto found = containers_by_id.find(id);
  return found == containers_by_id.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<const Container>> CatalogView::ContainersOf(DatabaseId database) const {
  std::vector<std::shared_ptr<const Container>> all;
  for (auto at = containers.lower_bound({database, ""});
       at != containers.end() && at->first.first == database; ++at) {
    all.push_back(at->second);
  }
  return all;
}

Status CheckResourceName(std::string_view name) {
  size_t characters = 0;
  for (char c : name) {
    characters +=
        (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not the rest of a UTF-8 sequence
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      return Status(Code::kInvalidArgument, "The id must not contain control characters.");
    }
  }
  if (name.empty() || characters > kNameMax) {
    return Status(Code::kInvalidArgument, "The id must have 1 to 255 characters.");
  }
  if (name.find_first_of("/\\#?") != std::string_view::npos || name.back() == ' ') {
    return Status(Code::kInvalidArgument,
                  "The id must not contain '/', '\\', '#' or '?', nor end with a space.");
  }
  return Status::Ok();
}

Status CheckNodeText(const std::string& address, const std::string& endpoint,
                     const std::string& zone) {
  if (address.rfind(':') == std::string::npos || address.size() > kNodeTextMax) {
    return Status(Code::kInvalidArgument, "The address of a node must be host:port.");
  }
  if (endpoint.size() > kNodeTextMax || zone.size() > kNodeTextMax) {
    return Status(Code::kInvalidArgument, "The endpoint or the zone of a node is too long.");
  }
  return Status::Ok();
}

Result<types::Document> NormalizeContainer(Value definition) {
  Value id = Member(definition, "id");
  if (id.kind() != Kind::kString) {
    return Invalid(
        "The input content is invalid because the required properties - 'id; ' - are missing.");
  }
  ORRERY_TRY_STATUS(CheckResourceName(id.string()));
  types::DocumentBuilder builder;
  builder.Append("id", id);

  Value policy = Member(definition, "indexingPolicy");
  types::Document index = IndexPolicy::DefaultJson();
  if (policy.defined() && policy.kind() != Kind::kNull) {
    ORRERY_TRY(index, IndexPolicy::Normalize(policy));
  }
  builder.Append("indexingPolicy", index.root());

  Value given_key = Member(definition, "partitionKey");
  ORRERY_TRY(types::PartitionKeyDefinition key, ReadKeyDefinition(given_key));
  builder.BeginObject("partitionKey");
  builder.BeginArray("paths");
  for (const std::string& path : key.paths) {
    builder.Append("", path);
  }
  builder.End();
  builder.Append("kind", KindName(key.kind));
  builder.Append("version", Value::Integer(key.version));
  if (given_key.kind() != Kind::kObject || IsSystemKey(given_key)) {
    builder.Append("systemKey", Value::Bool(true));
  }
  builder.End();

  ORRERY_TRY(std::optional<int32_t> ttl, ReadTtl(Member(definition, "defaultTtl")));
  if (ttl) {
    builder.Append("defaultTtl", Value::Integer(*ttl));
  }
  auto unique = ReadUniqueKeys(Member(definition, "uniqueKeyPolicy"));
  if (!unique) {
    return Error(unique.error());
  }
  AppendUniqueKeys(builder, Member(definition, "uniqueKeyPolicy"));
  types::Document conflicts = *types::Document::FromJson(
      R"({"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""})");
  Value given = Member(definition, "conflictResolutionPolicy");
  builder.Append("conflictResolutionPolicy",
                 given.kind() == Kind::kObject ? given : conflicts.root());
  types::Document geography = *types::Document::FromJson(R"({"type":"Geography"})");
  Value geo = Member(definition, "geospatialConfig");
  builder.Append("geospatialConfig", geo.kind() == Kind::kObject ? geo : geography.root());
  if ((key.kind == types::KeyKind::kToken) !=
      (Member(definition, "cassandra").kind() == Kind::kObject)) {
    return Invalid("A partition key of kind Token is that of a Cassandra table.");
  }
  for (std::string_view kept :
       {"cassandra", "computedProperties", "vectorEmbeddingPolicy", "fullTextPolicy",
        "changeFeedPolicy", "clientEncryptionPolicy", "analyticalStorageTtl"}) {
    builder.Append(kept, Member(definition, kept));
  }
  return builder.Finish();
}

Status Container::ReadDefinition() {
  auto read_key = ReadKeyDefinition(definition.Get("partitionKey"));
  if (!read_key) {
    return read_key.error();
  }
  key = std::move(*read_key);
  keyless = IsSystemKey(definition.Get("partitionKey"));
  if (!is_table()) {
    key_paths = key.SplitPaths();
  }
  auto ttl = ReadTtl(definition.Get("defaultTtl"));
  if (!ttl) {
    return ttl.error();
  }
  default_ttl = *ttl;
  auto unique = ReadUniqueKeys(definition.Get("uniqueKeyPolicy"));
  if (!unique) {
    return unique.error();
  }
  unique_keys = std::move(*unique);
  index = IndexPolicy::Compile(definition.Get("indexingPolicy"));
  if (const Value number = Member(definition.Get("cassandra"), "derived"); number.is_integer()) {
    derived = static_cast<uint32_t>(number.integer());
  }
  grace_seconds = GraceOf(definition.Get("cassandra"));
  link = "dbs/" + database_name + "/colls/" + name;
  self = "dbs/" + types::DatabaseRid(database) + "/colls/" + rid + "/";
  return Status::Ok();
}

Status CheckContainerChange(const Container& before, const Container& after) {
  if (before.name != after.name) {
    return Status(Code::kInvalidArgument, "The id of a container cannot be changed.");
  }
  // The columns of a table may get other names.
  const bool same_key = before.is_table() && after.is_table()
                            ? before.key.paths.size() == after.key.paths.size()
                            : before.key == after.key;
  if (!same_key || before.keyless != after.keyless) {
    return Status(Code::kInvalidArgument, "Document collection partition key cannot be changed.");
  }
  if (before.unique_keys != after.unique_keys) {
    return Status(Code::kForbidden, "The unique index cannot be modified.");
  }
  return Status::Ok();
}

std::string EncodeDatabase(const Database& database) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(database.definition ? kDefinedVersion : VersionFor(database.offer));
  encoder.U32(database.id.value());
  encoder.Bytes(database.name);
  encoder.U64(static_cast<uint64_t>(database.time.micros));
  encoder.U64(database.etag);
  EncodeOffer(encoder, database.offer);
  if (database.definition) {
    encoder.Bytes(database.definition->bson());
  }
  return out;
}

Result<Database> DecodeDatabase(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  Database database;
  database.id = DatabaseId(decoder.U32());
  database.name = decoder.Bytes();
  database.time = {static_cast<int64_t>(decoder.U64())};
  database.etag = decoder.U64();
  database.offer = DecodeOffer(decoder, version);
  std::string bson(version == kDefinedVersion ? decoder.Bytes() : std::string_view());
  if (!decoder.done() || version < kRecordVersion || version > kDefinedVersion) {
    return Error(Code::kCorruption, "database record is malformed or newer than this program");
  }
  if (version == kDefinedVersion) {
    ORRERY_TRY(database.definition, types::Document::FromBson(std::move(bson)));
  }
  database.rid = types::DatabaseRid(database.id);
  return database;
}

namespace {

void EncodeReshapes(Encoder& encoder, const std::vector<Reshape>& reshapes) {
  auto ids = [&encoder](const std::vector<PartitionId>& list) {
    encoder.Varint(list.size());
    for (PartitionId id : list) {
      encoder.Varint(id.value());
    }
  };
  encoder.Varint(reshapes.size());
  for (const Reshape& reshape : reshapes) {
    ids(reshape.parents);
    ids(reshape.heirs);
    encoder.Bytes(reshape.cut);
  }
}

std::vector<Reshape> DecodeReshapes(Decoder& decoder) {
  auto ids = [&decoder] {
    std::vector<PartitionId> list;
    for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
      list.emplace_back(decoder.Varint());
    }
    if (list.empty()) {
      decoder.Fail();
    }
    return list;
  };
  std::vector<Reshape> reshapes;
  for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
    Reshape& reshape = reshapes.emplace_back();
    reshape.parents = ids();
    reshape.heirs = ids();
    reshape.cut = decoder.Bytes();
  }
  return reshapes;
}

}  // namespace

std::string EncodeContainer(const Container& container) {
  std::string out;
  Encoder encoder(out);
  bool later = !container.reshapes.empty() || VersionFor(container.offer) == kLaterVersion;
  encoder.U8(later ? kLaterVersion : kRecordVersion);
  encoder.U32(container.id.value());
  encoder.U32(container.database.value());
  encoder.Bytes(container.database_name);
  encoder.Bytes(container.name);
  encoder.U64(container.version);
  encoder.U64(static_cast<uint64_t>(container.time.micros));
  encoder.U64(container.etag);
  encoder.Bytes(container.definition.bson());
  EncodeOffer(encoder, container.offer);
  container.map->Encode(encoder);
  if (later) {
    EncodeReshapes(encoder, container.reshapes);
  }
  return out;
}

Result<Container> DecodeContainer(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  Container container;
  container.id = ContainerId(decoder.U32());
  container.database = DatabaseId(decoder.U32());
  container.database_name = decoder.Bytes();
  container.name = decoder.Bytes();
  container.version = decoder.U64();
  container.time = {static_cast<int64_t>(decoder.U64())};
  container.etag = decoder.U64();
  std::string bson(decoder.Bytes());
  container.offer = DecodeOffer(decoder, version);
  if (!decoder.ok() || (version != kRecordVersion && version != kLaterVersion)) {
    return Error(Code::kCorruption, "container record is malformed or newer than this program");
  }
  ORRERY_TRY(partition::PartitionMap map, partition::PartitionMap::Decode(decoder));
  container.map = std::make_shared<const partition::PartitionMap>(std::move(map));
  if (version == kLaterVersion) {
    container.reshapes = DecodeReshapes(decoder);
    if (!decoder.ok()) {
      return Error(Code::kCorruption, "container record is malformed");
    }
  }
  ORRERY_TRY(container.definition, types::Document::FromBson(std::move(bson)));
  container.rid = types::ContainerRid(container.database, container.id);
  ORRERY_TRY_STATUS(container.ReadDefinition());
  return container;
}

std::string EncodeNode(const NodeRecord& node) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kRecordVersion);
  encoder.U32(node.id.value());
  encoder.Bytes(node.address);
  encoder.Bytes(node.endpoint);
  encoder.Bytes(node.zone);
  encoder.U32(node.version);
  encoder.U8(static_cast<uint8_t>(node.state));
  encoder.U64(static_cast<uint64_t>(node.joined.micros));
  return out;
}

Result<NodeRecord> DecodeNode(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  NodeRecord node;
  node.id = NodeId(decoder.U32());
  node.address = decoder.Bytes();
  node.endpoint = decoder.Bytes();
  node.zone = decoder.Bytes();
  node.version = decoder.U32();
  node.state = static_cast<NodeState>(decoder.U8());
  node.joined = {static_cast<int64_t>(decoder.U64())};
  if (!decoder.done() || version != kRecordVersion || node.state < NodeState::kActive ||
      node.state > NodeState::kRemoved) {
    return Error(Code::kCorruption, "node record is malformed or newer than this program");
  }
  return node;
}

void EncodeReplicas(Encoder& encoder, const std::vector<PlacedReplica>& replicas) {
  encoder.Varint(replicas.size());
  for (const PlacedReplica& replica : replicas) {
    encoder.Varint(replica.replica.value());
    encoder.Varint(replica.node.value());
    encoder.Bool(replica.voter);
  }
}

std::vector<PlacedReplica> DecodeReplicas(Decoder& decoder) {
  std::vector<PlacedReplica> replicas;
  uint64_t count = decoder.Varint();
  if (count > kReplicasMax) {
    decoder.Fail();
  }
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    PlacedReplica& replica = replicas.emplace_back();
    replica.replica = ReplicaId(decoder.Varint());
    uint64_t node = decoder.Varint();
    if (node > std::numeric_limits<uint32_t>::max()) {
      decoder.Fail();
    }
    replica.node = NodeId(static_cast<uint32_t>(node));
    replica.voter = decoder.Bool();
  }
  return replicas;
}

void EncodeParents(Encoder& encoder, const std::vector<Origin::Parent>& parents) {
  encoder.Varint(parents.size());
  for (const Origin::Parent& parent : parents) {
    encoder.Varint(parent.group.value());
    encoder.Varint(parent.lsn.value());
    encoder.Varint(parent.term);
  }
}

std::vector<Origin::Parent> DecodeParents(Decoder& decoder) {
  std::vector<Origin::Parent> parents;
  for (uint64_t left = decoder.Varint(); left > 0 && decoder.ok(); --left) {
    Origin::Parent& parent = parents.emplace_back();
    parent.group = GroupId(decoder.Varint());
    parent.lsn = Lsn(decoder.Varint());
    parent.term = decoder.Varint();
  }
  return parents;
}

void EncodeBeginning(Encoder& encoder, const storage::ReplicaRecord& record) {
  encoder.U64(record.applied.value());
  encoder.U64(static_cast<uint64_t>(record.totals.bytes));
  encoder.U64(static_cast<uint64_t>(record.totals.items));
  encoder.U64(static_cast<uint64_t>(record.time.micros));
}

storage::ReplicaRecord DecodeBeginning(Decoder& decoder) {
  storage::ReplicaRecord record;
  record.applied = Lsn(decoder.U64());
  record.totals.bytes = static_cast<int64_t>(decoder.U64());
  record.totals.items = static_cast<int64_t>(decoder.U64());
  record.time = {static_cast<int64_t>(decoder.U64())};
  return record;
}

std::string EncodePlacement(const Placement& placement) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(placement.origin ? kLaterVersion : kRecordVersion);
  encoder.Varint(placement.epoch);
  EncodeReplicas(encoder, placement.members);
  EncodeReplicas(encoder, placement.founders);
  if (placement.origin) {
    EncodeParents(encoder, placement.origin->parents);
    EncodeBeginning(encoder, placement.origin->record);
  }
  return out;
}

Result<Placement> DecodePlacement(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  Placement placement;
  placement.epoch = decoder.Varint();
  placement.members = DecodeReplicas(decoder);
  placement.founders = DecodeReplicas(decoder);
  if (version == kLaterVersion) {
    Origin& origin = placement.origin.emplace();
    origin.parents = DecodeParents(decoder);
    origin.record = DecodeBeginning(decoder);
  }
  if (!decoder.done() || (version != kRecordVersion && version != kLaterVersion)) {
    return Error(Code::kCorruption, "placement record is malformed or newer than this program");
  }
  return placement;
}

std::string EtagText(uint64_t etag, WallTime time) {
  char text[64];
  auto seconds = static_cast<uint32_t>(time.seconds());
  std::snprintf(text, sizeof(text), "\"%08" PRIx32 "-%04x-%04x-%04x-%08" PRIx32 "%04x\"",
                static_cast<uint32_t>(etag >> 32), static_cast<unsigned>(etag >> 16 & 0xFFFF),
                static_cast<unsigned>(etag & 0xFFFF),
                static_cast<unsigned>(time.micros >> 16 & 0xFFFF), seconds,
                static_cast<unsigned>(time.micros & 0xFFFF));
  return text;
}

}  // namespace orrery::model
