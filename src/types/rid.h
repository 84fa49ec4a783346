// Rid: the resource ids that clients see. They are load-bearing: an SDK keeps a session token only
// if the container's rid decodes to exactly 8 bytes.
//
//   database    4 bytes
//   container   database + 4 bytes, high bit of the first set
//   document    container + 8 bytes, little endian; top nibble = type:
//               0 document, 5 partition key range
// as text: base64 with '-' for '/'. Rids are passed around as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/strong_id.h"

namespace orrery::types {

std::string DatabaseRid(DatabaseId database);
std::string ContainerRid(DatabaseId database, ContainerId container);
std::string DocumentRid(std::string_view container_rid, uint64_t number);  // number < 2^60
std::string PartitionRangeRid(std::string_view container_rid, PartitionId id);
std::string OfferRid(uint32_t number);  // 3 bytes, 4 letters

// The base64 of resource ids and back. False: not in that form.
std::string RidText(std::string_view bytes);
bool ReadRid(std::string_view text, std::string* bytes);

}  // namespace orrery::types
