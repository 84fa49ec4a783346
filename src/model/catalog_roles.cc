#include "model/catalog_roles.h"

#include <utility>

#include "base/bytes.h"
#include "model/catalog_evaluate.h"

namespace orrery::model {

namespace {

constexpr uint8_t kRolesVersion = 1;

std::optional<RolesRecord> Changed(const RolesRecord& before, cql::Roles after, WallTime now) {
  if (after == *before.roles) {
    return std::nullopt;
  }
  return RolesRecord{.time = now, .roles = std::make_shared<const cql::Roles>(std::move(after))};
}

}  // namespace

std::shared_ptr<const cql::Roles> RolesOf(const CatalogView& view) {
  return view.roles == nullptr ? cql::DefaultRoles() : view.roles->roles;
}

std::string RolesEtag(const CatalogView& view) {
  const WallTime time = view.roles == nullptr ? WallTime() : view.roles->time;
  return EtagText(static_cast<uint64_t>(time.micros), time);
}

std::string EncodeRoles(const RolesRecord& record) {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kRolesVersion);
  encoder.U64(static_cast<uint64_t>(record.time.micros));
  encoder.Bytes(cql::RolesToDocument(*record.roles).bson());
  return out;
}

Result<RolesRecord> DecodeRoles(std::string_view bytes) {
  Decoder decoder(bytes);
  const uint8_t version = decoder.U8();
  RolesRecord record{.time = {static_cast<int64_t>(decoder.U64())}, .roles = nullptr};
  const std::string_view definition = decoder.Bytes();
  if (!decoder.done() || version != kRolesVersion) {
    return Error(Code::kCorruption, "the record of roles is malformed or newer than this program");
  }
  ORRERY_TRY(types::Document document, types::Document::FromBson(std::string(definition)));
  ORRERY_TRY(cql::Roles roles, cql::RolesFromDocument(document.root()));
  record.roles = std::make_shared<const cql::Roles>(std::move(roles));
  return record;
}

Result<RolesRecord> MakeRoles(const types::Document& document, WallTime now) {
  if (document.bson().size() > kRolesBytesMax) {
    return Error(Code::kTooLarge, "The roles and their permissions take more than 1 MB.");
  }
  auto roles = cql::RolesFromDocument(document.root());
  if (!roles) {
    return Error(Code::kInvalidArgument, roles.error().message());
  }
  return RolesRecord{.time = now, .roles = std::make_shared<const cql::Roles>(std::move(*roles))};
}

std::optional<RolesRecord> RolesWithout(const CatalogView& view, std::string_view database,
                                        WallTime now) {
  if (view.roles == nullptr) {
    return std::nullopt;
  }
  return Changed(*view.roles, cql::WithoutKeyspace(*view.roles->roles, database), now);
}

std::optional<RolesRecord> RolesWithout(const CatalogView& view, const Container& container,
                                        WallTime now) {
  if (view.roles == nullptr) {
    return std::nullopt;
  }
  return Changed(*view.roles,
                 cql::WithoutTable(*view.roles->roles, container.database_name, container.name),
                 now);
}

}  // namespace orrery::model
