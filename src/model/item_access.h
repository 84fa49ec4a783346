// What the operations on items share. Private to model/.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "model/catalog_types.h"
#include "partition/replica.h"
#include "runtime/task.h"

namespace orrery::model {

// kSessionNotReached if this replica has not applied what the client has seen.
Status CheckSession(const partition::Replica& replica, Lsn session);
// The stored value of an item that has not expired, or ItemNotFound().
runtime::Task<Result<std::string>> ReadLive(partition::Replica& replica, const Container& container,
                                            std::string_view key);
Status ItemNotFound();
// kInvalidArgument unless the item's ttl is absent, null, -1 or a positive 32-bit integer.
Status CheckTtl(types::Value ttl);

// Whether a unique value is held by this item.
runtime::Task<Result<bool>> HoldsUnique(partition::Replica& replica, std::string_view entry,
                                        std::string_view id);

// The item as clients see it, for conditions that ask for `_ts` and its like. REQUIRES: a valid
// item.
types::Document WithSystemProperties(const Container& container, std::string_view stored);
// Whether a condition may ask for them: building them for every item would be a waste.
bool NamesSystemProperty(std::string_view condition);

// Latches of a logical partition (by the prefix of its keys) and of one of its items.
partition::Latch LogicalPartitionLatch(std::string_view prefix, bool exclusive);
partition::Latch ItemLatch(std::string_view prefix, std::string_view id);

// The entries that enforce the container's unique keys for one item, one per policy.
std::set<std::string> UniqueEntries(const Container& container, std::string_view prefix,
                                    types::Value item);

}  // namespace orrery::model
