#include "storage/keys.h"

#include "rows/rows.h"
#include "types/partition_key.h"

namespace orrery::rows {

std::string PartitionPrefix(ContainerId container, std::string_view epk,
                            std::string_view partition_key) {
  // As storage::LogicalPartitionPrefix has it of a key that is one string, which would be copied.
  constexpr auto kText = static_cast<uint8_t>(types::KeyComponent::Kind::kString) + 1;
  std::string out;
  out.reserve(epk.size() + partition_key.size() + 64);
  Encoder(out).U32(container.value());
  types::AppendOrderedBytes(epk, out);
  Encoder(out).U8(kText);
  types::AppendOrderedBytes(partition_key, out);
  Encoder(out).U8(0);
  return out;
}

bool SplitKey(std::string_view item_key, std::string* partition_key, std::string_view* row_key) {
  types::PartitionKey key;
  std::string_view prefix = storage::ReadLogicalPartition(item_key, &key);
  if (prefix.empty() || key.components.size() != 1) {
    return false;
  }
  *partition_key = key.components[0].string();
  *row_key = item_key.substr(prefix.size());
  return !row_key->empty();
}

}  // namespace orrery::rows
