#include "model/catalog_change.h"

#include <concepts>
#include <utility>

#include "model/catalog_records.h"

namespace orrery::model {

namespace {

constexpr uint8_t kChangeVersion = 1;
// Of an offer with buckets or shares; from kThroughputFormat on.
constexpr uint8_t kPartsVersion = 2;
constexpr uint8_t kAnswerVersion = 1;
constexpr uint8_t kOutcomeVersion = 1;

// --- parts ---------------------------------------------------------------------------------------

void Put(Encoder& encoder, const std::optional<uint64_t>& value) {
  encoder.Bool(value.has_value());
  if (value) {
    encoder.Varint(*value);
  }
}
void Put(Encoder& encoder, const std::optional<std::string>& value) {
  encoder.Bool(value.has_value());
  if (value) {
    encoder.Bytes(*value);
  }
}
void Put(Encoder& encoder, const ThroughputRequest& throughput) {
  Put(encoder, throughput.manual);
  Put(encoder, throughput.autoscale_max);
}

std::optional<uint64_t> TakeNumber(Decoder& decoder) {
  return decoder.Bool() ? std::optional(decoder.Varint()) : std::nullopt;
}
std::optional<std::string> TakeText(Decoder& decoder) {
  return decoder.Bool() ? std::optional(std::string(decoder.Bytes())) : std::nullopt;
}
void Take(Decoder& decoder, std::string& text) { text = decoder.Bytes(); }
void Take(Decoder& decoder, ThroughputRequest& throughput) {
  throughput.manual = TakeNumber(decoder);
  throughput.autoscale_max = TakeNumber(decoder);
}
void Take(Decoder& decoder, types::Document& document) {
  auto read = types::Document::FromBson(std::string(decoder.Bytes()));
  if (!read) {
    decoder.Fail();
    return;
  }
  document = std::move(*read);
}

// How many elements follow; each takes at least one byte.
size_t TakeCount(Decoder& decoder) {
  uint64_t count = decoder.Varint();
  if (count > decoder.left()) {
    decoder.Fail();
    return 0;
  }
  return static_cast<size_t>(count);
}

// --- changes -------------------------------------------------------------------------------------

void Put(Encoder& encoder, const change::CreateDatabase& what) {
  encoder.Bytes(what.name);
  Put(encoder, what.throughput);
}
void Take(Decoder& decoder, change::CreateDatabase& what) {
  Take(decoder, what.name);
  Take(decoder, what.throughput);
}

void Put(Encoder& encoder, const change::DropDatabase& what) {
  encoder.Bytes(what.name);
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, change::DropDatabase& what) {
  Take(decoder, what.name);
  Take(decoder, what.if_match);
}

void Put(Encoder& encoder, const change::CreateContainer& what) {
  encoder.Bytes(what.database);
  encoder.Bytes(what.definition.bson());
  Put(encoder, what.throughput);
}
void Take(Decoder& decoder, change::CreateContainer& what) {
  Take(decoder, what.database);
  Take(decoder, what.definition);
  Take(decoder, what.throughput);
}

template <typename T>
concept Redefines =
    std::same_as<T, change::ReplaceContainer> || std::same_as<T, change::RenewContainer>;

void Put(Encoder& encoder, const Redefines auto& what) {
  encoder.Bytes(what.link);
  encoder.Bytes(what.definition.bson());
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, Redefines auto& what) {
  Take(decoder, what.link);
  Take(decoder, what.definition);
  Take(decoder, what.if_match);
}

void Put(Encoder& encoder, const change::DropContainer& what) {
  encoder.Bytes(what.link);
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, change::DropContainer& what) {
  Take(decoder, what.link);
  Take(decoder, what.if_match);
}

void Put(Encoder& encoder, const change::ReplaceOffer& what) {
  encoder.U32(what.number);
  Put(encoder, what.throughput);
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, change::ReplaceOffer& what) {
  what.number = decoder.U32();
  Take(decoder, what.throughput);
  Take(decoder, what.if_match);
}
// What version 2 of a change has behind it.
bool HasParts(const CatalogChange::What& what) {
  const auto* offer = std::get_if<change::ReplaceOffer>(&what);
  const auto* keyspace = std::get_if<change::DefineDatabase>(&what);
  return (offer != nullptr && (offer->buckets || offer->shares)) ||
         (keyspace != nullptr &&
          (keyspace->throughput.manual || keyspace->throughput.autoscale_max));
}
void PutParts(Encoder& encoder, const change::ReplaceOffer& what) {
  encoder.Bool(what.buckets.has_value());
  if (what.buckets) {
    for (uint8_t percent : what.buckets->percent) {
      encoder.U8(percent);
    }
    encoder.U8(what.buckets->unmarked);
  }
  encoder.Bool(what.shares.has_value());
  if (what.shares) {
    encoder.Varint(what.shares->size());
    for (const PartitionShare& share : *what.shares) {
      encoder.Varint(share.partition.value());
      encoder.Varint(share.throughput);
    }
  }
}
void TakeParts(Decoder& decoder, change::ReplaceOffer& what) {
  if (decoder.Bool()) {
    for (uint8_t& percent : what.buckets.emplace().percent) {
      percent = decoder.U8();
    }
    what.buckets->unmarked = decoder.U8();
  }
  if (decoder.Bool()) {
    size_t count = TakeCount(decoder);
    auto& shares = what.shares.emplace();
    for (size_t i = 0; i < count && decoder.ok(); ++i) {
      PartitionShare& share = shares.emplace_back();
      share.partition = PartitionId(decoder.Varint());
      share.throughput = decoder.Varint();
    }
  }
  if (!what.buckets && !what.shares) {
    decoder.Fail();
  }
}

void Put(Encoder& encoder, const change::ChangeKeys& what) {
  encoder.Varint(what.keys.size());
  for (const KeyChange& key : what.keys) {
    encoder.U8(static_cast<uint8_t>(key.name));
    encoder.Bytes(key.key);
    encoder.Varint(key.only_over.size());
    for (const std::string& value : key.only_over) {
      encoder.Bytes(value);
    }
  }
}
void Take(Decoder& decoder, change::ChangeKeys& what) {
  size_t count = TakeCount(decoder);
  for (size_t i = 0; i < count && decoder.ok(); ++i) {
    KeyChange& key = what.keys.emplace_back();
    uint8_t name = decoder.U8();
    if (name >= kKeyCount) {
      decoder.Fail();
      return;
    }
    key.name = static_cast<KeyName>(name);
    Take(decoder, key.key);
    size_t values = TakeCount(decoder);
    for (size_t j = 0; j < values && decoder.ok(); ++j) {
      Take(decoder, key.only_over.emplace_back());
    }
  }
}

void Put(Encoder& encoder, const change::Cleared& what) { encoder.U32(what.container.value()); }
void Take(Decoder& decoder, change::Cleared& what) { what.container = ContainerId(decoder.U32()); }

void Put(Encoder& encoder, const change::AddNode& what) {
  encoder.Bytes(what.address);
  encoder.Bytes(what.endpoint);
  encoder.Bytes(what.zone);
  encoder.U32(what.version);
}
void Take(Decoder& decoder, change::AddNode& what) {
  Take(decoder, what.address);
  Take(decoder, what.endpoint);
  Take(decoder, what.zone);
  what.version = decoder.U32();
}

void Put(Encoder& encoder, const change::ChangeNode& what) {
  encoder.U32(what.node.value());
  Put(encoder, what.address);
  Put(encoder, what.endpoint);
  Put(encoder, what.zone);
  encoder.Bool(what.version.has_value());
  encoder.U32(what.version.value_or(0));
  encoder.U8(what.state ? static_cast<uint8_t>(*what.state) : 0);
}
void Take(Decoder& decoder, change::ChangeNode& what) {
  what.node = NodeId(decoder.U32());
  what.address = TakeText(decoder);
  what.endpoint = TakeText(decoder);
  what.zone = TakeText(decoder);
  bool has_version = decoder.Bool();
  uint32_t version = decoder.U32();
  if (has_version) {
    what.version = version;
  }
  uint8_t state = decoder.U8();
  if (state > static_cast<uint8_t>(NodeState::kRemoved)) {
    decoder.Fail();
  } else if (state != 0) {
    what.state = static_cast<NodeState>(state);
  }
}

void Put(Encoder& encoder, const change::SetPlacements& what) {
  encoder.Varint(what.placements.size());
  for (const PlacementChange& placement : what.placements) {
    encoder.Varint(placement.group.value());
    encoder.Varint(placement.epoch);
    EncodeReplicas(encoder, placement.members);
  }
}
void Take(Decoder& decoder, change::SetPlacements& what) {
  size_t count = TakeCount(decoder);
  for (size_t i = 0; i < count && decoder.ok(); ++i) {
    PlacementChange& placement = what.placements.emplace_back();
    placement.group = GroupId(decoder.Varint());
    placement.epoch = decoder.Varint();
    placement.members = DecodeReplicas(decoder);
  }
}

template <typename Id>
void PutIds(Encoder& encoder, const std::vector<Id>& ids) {
  encoder.Varint(ids.size());
  for (Id id : ids) {
    encoder.Varint(id.value());
  }
}
template <typename Id, typename Rep>
void TakeIds(Decoder& decoder, std::vector<Id>& ids) {
  size_t count = TakeCount(decoder);
  for (size_t i = 0; i < count && decoder.ok(); ++i) {
    ids.emplace_back(static_cast<Rep>(decoder.Varint()));
  }
}

void Put(Encoder& encoder, const change::BeginReshape& what) {
  encoder.U32(what.container.value());
  PutIds(encoder, what.parents);
  encoder.Bytes(what.cut);
}
void Take(Decoder& decoder, change::BeginReshape& what) {
  what.container = ContainerId(decoder.U32());
  TakeIds<PartitionId, uint64_t>(decoder, what.parents);
  Take(decoder, what.cut);
}

void Put(Encoder& encoder, const change::FinishReshape& what) {
  encoder.U32(what.container.value());
  encoder.Varint(what.name.value());
  encoder.Bytes(what.cut);
  EncodeParents(encoder, what.parents);
  encoder.Varint(what.heirs.size());
  for (const storage::ReplicaRecord& heir : what.heirs) {
    EncodeBeginning(encoder, heir);
  }
  PutIds(encoder, what.nodes);
}
void Take(Decoder& decoder, change::FinishReshape& what) {
  what.container = ContainerId(decoder.U32());
  what.name = PartitionId(decoder.Varint());
  Take(decoder, what.cut);
  what.parents = DecodeParents(decoder);
  size_t count = TakeCount(decoder);
  for (size_t i = 0; i < count && decoder.ok(); ++i) {
    what.heirs.push_back(DecodeBeginning(decoder));
  }
  TakeIds<NodeId, uint32_t>(decoder, what.nodes);
}

void Put(Encoder& encoder, const change::AbortReshape& what) {
  encoder.U32(what.container.value());
  encoder.Varint(what.name.value());
}
void Take(Decoder& decoder, change::AbortReshape& what) {
  what.container = ContainerId(decoder.U32());
  what.name = PartitionId(decoder.Varint());
}

void Put(Encoder& encoder, const change::PauseBalancer& what) { encoder.Bool(what.paused); }
void Take(Decoder& decoder, change::PauseBalancer& what) { what.paused = decoder.Bool(); }

void Put(Encoder& encoder, const change::DefineDatabase& what) {
  encoder.Bytes(what.name);
  encoder.Bytes(what.definition.bson());
  encoder.Bool(what.creates);
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, change::DefineDatabase& what) {
  Take(decoder, what.name);
  Take(decoder, what.definition);
  what.creates = decoder.Bool();
  Take(decoder, what.if_match);
}

void Put(Encoder& encoder, const change::PutRoles& what) {
  encoder.Bytes(what.roles.bson());
  encoder.Bytes(what.if_match);
}
void Take(Decoder& decoder, change::PutRoles& what) {
  Take(decoder, what.roles);
  Take(decoder, what.if_match);
}

// Makes the alternative with this number, from 1, and reads it.
template <size_t... I>
bool TakeWhat(Decoder& decoder, uint8_t kind, CatalogChange::What& what,
              std::index_sequence<I...>) {
  auto take = [&]<size_t Index>() {
    if (kind != Index + 1) {
      return false;
    }
    Take(decoder, what.emplace<Index>());
    return true;
  };
  return (take.template operator()<I>() || ...);
}

// --- results -------------------------------------------------------------------------------------

void Put(Encoder& encoder, const Joined& joined) {
  encoder.U64(joined.cluster);
  encoder.U32(joined.node.value());
  encoder.U64(joined.meta_replica.value());
  encoder.Varint(joined.nodes.size());
  for (const NodeRecord& node : joined.nodes) {
    encoder.Bytes(EncodeNode(node));
  }
}
void Take(Decoder& decoder, Joined& joined) {
  joined.cluster = decoder.U64();
  joined.node = NodeId(decoder.U32());
  joined.meta_replica = ReplicaId(decoder.U64());
  size_t count = TakeCount(decoder);
  for (size_t i = 0; i < count && decoder.ok(); ++i) {
    auto node = DecodeNode(decoder.Bytes());
    if (!node) {
      decoder.Fail();
      return;
    }
    joined.nodes.push_back(std::move(*node));
  }
}

void Put(Encoder& encoder, const ChangeResult& result) {
  encoder.Varint(result.lsn.value());
  encoder.Bytes(result.database == nullptr ? "" : EncodeDatabase(*result.database));
  encoder.Bytes(result.container == nullptr ? "" : EncodeContainer(*result.container));
  encoder.Bool(result.keys.has_value());
  if (result.keys) {
    for (const std::string& key : result.keys->keys) {
      encoder.Bytes(key);
    }
  }
  encoder.Bool(result.joined.has_value());
  if (result.joined) {
    Put(encoder, *result.joined);
  }
}

template <typename T>
std::shared_ptr<const T> TakeRecord(Decoder& decoder, Result<T> (*decode)(std::string_view)) {
  std::string_view bytes = decoder.Bytes();
  if (bytes.empty()) {
    return nullptr;
  }
  auto record = decode(bytes);
  if (!record) {
    decoder.Fail();
    return nullptr;
  }
  return std::make_shared<const T>(std::move(*record));
}

void Take(Decoder& decoder, ChangeResult& result) {
  result.lsn = Lsn(decoder.Varint());
  result.database = TakeRecord<Database>(decoder, DecodeDatabase);
  result.container = TakeRecord<Container>(decoder, DecodeContainer);
  if (decoder.Bool()) {
    for (std::string& key : result.keys.emplace().keys) {
      Take(decoder, key);
    }
  }
  if (decoder.Bool()) {
    Take(decoder, result.joined.emplace());
  }
}

}  // namespace

std::string CatalogChange::Encode() const {
  std::string out;
  Encoder encoder(out);
  encoder.U8(HasParts(what) ? kPartsVersion : kChangeVersion);
  encoder.U64(id.high);
  encoder.U64(id.low);
  encoder.U8(static_cast<uint8_t>(kind()));
  std::visit([&encoder](const auto& what) { Put(encoder, what); }, what);
  if (const auto* offer = std::get_if<change::ReplaceOffer>(&what); offer && HasParts(what)) {
    PutParts(encoder, *offer);
  } else if (HasParts(what)) {
    Put(encoder, std::get<change::DefineDatabase>(what).throughput);
  }
  return out;
}

Result<CatalogChange> CatalogChange::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  CatalogChange change;
  change.id.high = decoder.U64();
  change.id.low = decoder.U64();
  uint8_t kind = decoder.U8();
  bool known = (version == kChangeVersion || version == kPartsVersion) &&
               TakeWhat(decoder, kind, change.what,
                        std::make_index_sequence<std::variant_size_v<CatalogChange::What>>());
  if (known && version == kPartsVersion) {
    if (auto* offer = std::get_if<change::ReplaceOffer>(&change.what)) {
      TakeParts(decoder, *offer);
    } else if (auto* keyspace = std::get_if<change::DefineDatabase>(&change.what)) {
      Take(decoder, keyspace->throughput);
    } else {
      known = false;
    }
  }
  if (!known || !decoder.done()) {
    return Error(Code::kInvalidArgument,
                 "change of the catalog is malformed or newer than this program");
  }
  return change;
}

std::string EncodeAnswer(const Result<ChangeResult>& answer) {
  Status status = answer ? Status::Ok() : answer.error();
  std::string out;
  Encoder encoder(out);
  encoder.U8(kAnswerVersion);
  encoder.U8(static_cast<uint8_t>(status.code()));
  encoder.Varint(status.retry_after_ms());
  encoder.Bytes(status.message());
  if (answer) {
    Put(encoder, *answer);
  }
  return out;
}

Result<ChangeResult> DecodeAnswer(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  uint8_t code = decoder.U8();
  auto retry_after_ms = static_cast<uint32_t>(decoder.Varint());
  std::string message(decoder.Bytes());
  ChangeResult result;
  if (decoder.ok() && code == 0) {
    Take(decoder, result);
  }
  if (!decoder.done() || version != kAnswerVersion ||
      code > static_cast<uint8_t>(Code::kInternal)) {
    return Error(Code::kUnknownOutcome,
                 "the answer of the node that leads the catalog is malformed");
  }
  if (code != 0) {
    Status status(static_cast<Code>(code), std::move(message));
    status.set_retry_after_ms(retry_after_ms);
    return Error(std::move(status));
  }
  return result;
}

std::string ChangeOutcome::Encode() const {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kOutcomeVersion);
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.U32(id);
  return out;
}

Result<ChangeOutcome> ChangeOutcome::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  uint8_t version = decoder.U8();
  ChangeOutcome outcome{.kind = static_cast<ChangeKind>(decoder.U8()), .id = decoder.U32()};
  if (!decoder.done() || version != kOutcomeVersion) {
    return Error(Code::kCorruption, "the remembered outcome of a change is malformed");
  }
  return outcome;
}

}  // namespace orrery::model
