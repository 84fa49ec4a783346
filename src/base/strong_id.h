// StrongId: an integer that cannot be mixed up with another kind of integer.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace orrery {

template <typename Tag, typename Rep = uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;
  std::string ToString() const { return std::to_string(value_); }

 private:
  Rep value_ = 0;
};

using NodeId = StrongId<struct NodeIdTag, uint32_t>;
using DatabaseId = StrongId<struct DatabaseIdTag, uint32_t>;
using ContainerId = StrongId<struct ContainerIdTag, uint32_t>;
// A physical partition; never reused within an account.
using PartitionId = StrongId<struct PartitionIdTag>;
// The replicated log of one partition, or of the catalog (group 0). Equal to the partition's id.
using GroupId = StrongId<struct GroupIdTag>;
// One replica of a group; never reused, also not on the same node.
using ReplicaId = StrongId<struct ReplicaIdTag>;
// A place in a group's log. 0 is before the first entry.
using Lsn = StrongId<struct LsnTag>;

}  // namespace orrery

template <typename Tag, typename Rep>
struct std::hash<orrery::StrongId<Tag, Rep>> {
  size_t operator()(orrery::StrongId<Tag, Rep> id) const noexcept {
    return std::hash<Rep>()(id.value());
  }
};
