// The roles of Cassandra's clients in the catalog: one record, which is replaced as a whole.
//
// See docs/formats/catalog.md.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"
#include "cql/roles.h"
#include "model/catalog_types.h"

namespace orrery::model {

inline constexpr size_t kRolesBytesMax = 1 << 20;  // of the document

// Those of the record, or those that there are without one. Never null; the same object until they
// change.
std::shared_ptr<const cql::Roles> RolesOf(const CatalogView& view);
// What a change of them is to match; of default ones too.
std::string RolesEtag(const CatalogView& view);

std::string EncodeRoles(const RolesRecord& record);
// kCorruption if it is malformed or newer than this program.
Result<RolesRecord> DecodeRoles(std::string_view bytes);
// What a client sent. kInvalidArgument, kTooLarge: it cannot be kept.
Result<RolesRecord> MakeRoles(const types::Document& document, WallTime now);

// The record without what was granted on a database that is gone, or on one of its containers.
// Nothing if that changes nothing.
std::optional<RolesRecord> RolesWithout(const CatalogView& view, std::string_view database,
                                        WallTime now);
std::optional<RolesRecord> RolesWithout(const CatalogView& view, const Container& container,
                                        WallTime now);

}  // namespace orrery::model
