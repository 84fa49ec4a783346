#include "model/room.h"

#include "model/container_kind.h"

namespace orrery::model {

using partition::Replica;
using runtime::Task;

bool MayBeFull(Replica& replica, int64_t growth) {
  int64_t all = replica.totals().bytes + replica.sizes().pending() + growth;
  return (replica.bytes_max() > 0 && all > replica.bytes_max()) ||
         (replica.sizes().limit() > 0 && all > replica.sizes().limit());
}

Task<Status> CheckRoom(Replica& replica, const std::string& prefix, int64_t growth) {
  partition::LogicalSizes& sizes = replica.sizes();
  using Room = partition::LogicalSizes::Room;
  const int64_t all = replica.bytes_max();
  if (all > 0 && replica.totals().bytes + sizes.pending() + growth > all) {
    co_return Status(Code::kForbidden,
                     "Storage quota for 'Document' exceeded. The container is fixed and holds at "
                     "most " +
                         SizeText(all) + ".");
  }
  Room room = sizes.RoomFor(prefix, growth);
  for (int tries = 0; room == Room::kUnknown && tries < 3; ++tries) {
    if (Status measured = co_await sizes.Measure(prefix); !measured.ok()) {
      co_return measured;
    }
    room = sizes.RoomFor(prefix, growth);
  }
  if (room == Room::kUnknown) {
    co_return Status(Code::kUnavailable, "the sizes of logical partitions are counted anew");
  }
  co_return room == Room::kYes
      ? Status::Ok()
      : Status(Code::kQuotaExceeded,
               "Partition key reached maximum size of " + SizeText(sizes.limit()) +
                   ". Learn more: https://aka.ms/CosmosDB/sql/errors/full-pk");
}

}  // namespace orrery::model
