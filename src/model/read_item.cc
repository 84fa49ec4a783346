
#include "model/item_access.h"
#include "model/items.h"

namespace orrery::model {

using partition::Replica;
using partition::Reply;
using runtime::Task;

std::string ItemEtag(const storage::ItemHeader& header) {
  char text[48];
  auto micros = static_cast<uint64_t>(header.time.micros);
  std::snprintf(text, sizeof(text), "\"%08x-%04x-%04x-%04x-%012llx\"",
                static_cast<unsigned>(header.number >> 32),
                static_cast<unsigned>(header.number >> 16 & 0xFFFF),
                static_cast<unsigned>(header.number & 0xFFFF), static_cast<unsigned>(micros >> 48),
                static_cast<unsigned long long>(micros & 0xFFFFFFFFFFFFull));
  return text;
}

Status CheckSession(const Replica& replica, Lsn session) {
  if (session > replica.applied()) {
    return Status(Code::kSessionNotReached,
                  "The read session is not available for the input session token.");
  }
  return Status::Ok();
}

Task<Result<std::string>> ReadLive(Replica& replica, const Container& container,
                                   std::string_view key) {
  Result<std::string> value = co_await replica.Read(storage::Space::kItems, key);
  if (!value) {
    if (value.error().code() == Code::kNotFound) {
      co_return Error(ItemNotFound());
    }
    co_return value;
  }
  ORRERY_CO_TRY(storage::ItemView item, storage::DecodeItem(*value));
  if (item.header.Expired(container.default_ttl, replica.wall())) {
    co_return Error(ItemNotFound());
  }
  co_return value;
}

Status ItemNotFound() {
  return Status(Code::kNotFound,
                "Entity with the specified id does not exist in the system. More info: "
                "https://aka.ms/cosmosdb-tsg-not-found");
}

Task<Reply> ReadItem::Run(Replica& replica) {
  auto schema = replica.schema();
  const auto& container = static_cast<const Container&>(*schema);
  if (Status reached = CheckSession(replica, session); !reached.ok()) {
    co_return replica.MakeReply(std::move(reached), partition::PriceOfMiss(price));
  }
  std::string key = storage::LogicalPartitionPrefix(container.id, address.epk, address.key);
  key += id;
  // Taken before the read: the reply must not claim to have seen what came after it.
  Lsn lsn = replica.applied();
  Result<std::string> value = co_await ReadLive(replica, container, key);
  Reply reply = replica.MakeReply(value ? Status() : value.error(), partition::PriceOfMiss(price));
  reply.lsn = lsn;
  if (value) {
    size_t bytes = value->size() - storage::kItemHeaderBytes;
    if (!if_none_match.empty() &&
        (if_none_match == "*" || if_none_match == ItemEtag(storage::DecodeItem(*value)->header))) {
      reply.status = Status(Code::kNotModified);
    } else {
      reply.charge = partition::PriceOfRead(bytes, price);
    }
    reply.body = std::move(*value);
  }
  co_return reply;
}

}  // namespace orrery::model
