#include "storage/keys.h"

#include "rows/rows.h"
#include "types/partition_key.h"

namespace orrery::rows {

std::string PartitionPrefix(ContainerId container, std::string_view epk,
                            std::string_view partition_key) {
  types::PartitionKey key;
  key.components.push_back(types::KeyComponent::String(std::string(partition_key)));
  return storage::LogicalPartitionPrefix(container, epk, key);
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
