#include "base/mutants.h"
#include "model/item_access.h"
#include "model/items.h"
#include "types/rid.h"

namespace orrery::model {

using partition::Replica;
using partition::Reply;
using runtime::Task;

std::string ItemEtag(const storage::ItemHeader& header) {
  // "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx": number, then time. Written by hand: every read needs
  // it.
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(38, '-');
  text.front() = text.back() = '"';
  const uint64_t words[] = {header.number, static_cast<uint64_t>(header.time.micros)};
  size_t at = 1;
  for (int digit = 0; digit < 32; ++digit) {
    if (digit == 8 || digit == 12 || digit == 16 || digit == 20) {
      ++at;
    }
    text[at++] = kDigits[words[digit / 16] >> (60 - digit % 16 * 4) & 15];
  }
  return text;
}

Status CheckSession(const Replica& replica, Lsn session) {
  if (session > replica.applied() && !Active(Mutant::kIgnoreSession)) {
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

Task<Result<bool>> HoldsUnique(Replica& replica, std::string_view entry, std::string_view id) {
  Result<std::string> holder = co_await replica.Read(storage::Space::kIndex, entry);
  if (!holder && holder.error().code() != Code::kNotFound) {
    co_return Error(holder.error());
  }
  co_return holder && *holder == id;
}

types::Document WithSystemProperties(const Container& container, std::string_view stored) {
  storage::ItemView item = *storage::DecodeItem(stored);
  std::string rid = types::DocumentRid(container.rid, item.header.number);
  types::DocumentBuilder builder;
  for (types::ValueIterator member(item.payload); member.Next();) {
    builder.Append(member.name(), member.value());
  }
  builder.Append("_rid", rid);
  builder.Append("_self", container.self + "docs/" + rid + "/");
  builder.Append("_etag", ItemEtag(item.header));
  builder.Append("_attachments", "attachments/");
  builder.Append("_ts", types::Value::Integer(item.header.time.seconds()));
  return builder.Finish();
}

bool NamesSystemProperty(std::string_view condition) {
  for (std::string_view name : {"_ts", "_etag", "_rid", "_self", "_attachments"}) {
    if (condition.find(name) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

Task<Reply> ReadItem::Run(Replica& replica) {
  const partition::ReadPrice price = partition::PriceOfLevel(level);
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
