#include "storage/keys.h"

#include "base/bytes.h"

namespace orrery::storage {

std::string LogicalPartitionPrefix(ContainerId container, std::string_view epk,
                                   const types::PartitionKey& key) {
  std::string out;
  out.reserve(4 + epk.size() + 4 + 64);
  Encoder(out).U32(container.value());
  types::AppendOrderedBytes(epk, out);
  key.AppendOrdered(out);
  return out;
}

std::string ItemKey::Encode() const {
  std::string out = LogicalPartitionPrefix(container, epk, partition_key);
  out += row_key;
  return out;
}

std::string UniquePrefix(std::string_view logical_partition_prefix) {
  return "u" + std::string(logical_partition_prefix);
}

KeySpan ItemSpan(ContainerId container, const types::EpkRange& range) {
  KeySpan span;
  Encoder(span.begin).U32(container.value());
  if (range.max == "\xFF") {
    span.end = PrefixEnd(span.begin);
  } else {
    span.end = span.begin;
    types::AppendOrderedPrefix(range.max, span.end);
  }
  types::AppendOrderedPrefix(range.min, span.begin);
  return span;
}

KeySpan UniqueSpan(ContainerId container, const types::EpkRange& range) {
  KeySpan span = ItemSpan(container, range);
  return {"u" + span.begin, span.end.empty() ? PrefixEnd("u") : "u" + span.end};
}

bool ReadItemEpk(std::string_view item_key, types::Epk* epk) {
  if (item_key.size() < 4) {
    return false;
  }
  item_key.remove_prefix(4);
  return types::ReadOrderedBytes(item_key, epk);
}

std::string_view ReadLogicalPartition(std::string_view item_key, types::PartitionKey* key) {
  if (item_key.size() < 4) {
    return {};
  }
  std::string_view rest = item_key.substr(4);
  types::Epk epk;
  if (!types::ReadOrderedBytes(rest, &epk) || !types::PartitionKey::ReadOrdered(rest, key)) {
    return {};
  }
  return item_key.substr(0, item_key.size() - rest.size());
}

std::string ReplicaKey(GroupId group) {
  std::string out;
  Encoder(out).U64(group.value());
  return out;
}

std::string ReplicaExtraKey(GroupId group) { return ReplicaKey(group) + 'o'; }

std::string PrefixEnd(std::string prefix) {
  while (!prefix.empty()) {
    if (static_cast<unsigned char>(prefix.back()) != 0xFF) {
      prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
      return prefix;
    }
    prefix.pop_back();
  }
  return prefix;
}

}  // namespace orrery::storage
