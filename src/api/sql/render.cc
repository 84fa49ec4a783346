#include "api/sql/call.h"
#include "model/throughput.h"
#include "storage/item.h"
#include "types/rid.h"

namespace orrery::api::sql {

void AppendText(std::string_view name, std::string_view text, std::string& out) {
  out += ",\"";
  out += name;
  out += "\":";
  types::AppendJsonString(text, out);
}

namespace {

void AppendSystem(std::string_view rid, std::string_view self, std::string_view etag, WallTime time,
                  std::string& out) {
  AppendText("_rid", rid, out);
  AppendText("_self", self, out);
  AppendText("_etag", etag, out);
  out += ",\"_ts\":" + std::to_string(time.seconds());
}

}  // namespace

void AppendDatabase(const model::Database& database, std::string& out) {
  out += "{\"id\":";
  types::AppendJsonString(database.name, out);
  AppendSystem(database.rid, database.self(), model::EtagText(database.etag, database.time),
               database.time, out);
  out += ",\"_colls\":\"colls/\",\"_users\":\"users/\"}";
}

void AppendContainer(const model::Container& container, std::string& out) {
  out += '{';
  types::AppendJsonMembers(container.definition.root(), out);
  AppendSystem(container.rid, container.self, model::EtagText(container.etag, container.time),
               container.time, out);
  out +=
      ",\"_docs\":\"docs/\",\"_sprocs\":\"sprocs/\",\"_triggers\":\"triggers/\",\"_udfs\":\"udfs/"
      "\","
      "\"_conflicts\":\"conflicts/\"}";
}

void AppendPartitionRange(const model::Container& container, const partition::PartitionRange& range,
                          std::string& out) {
  std::string rid = types::PartitionRangeRid(container.rid, range.id);
  double part = 1.0 / static_cast<double>(container.map->ranges().size());
  if (container.offer && !container.offer->custom.empty()) {
    part = model::ShareOf(*container.offer, *container.map, range.id).value() /
           static_cast<double>(container.offer->spendable());
  }
  out += "{\"id\":\"" + range.id.ToString() + "\",\"minInclusive\":\"" + ToHex(range.range.min) +
         "\",\"maxExclusive\":\"" + ToHex(range.range.max) +
         "\",\"ridPrefix\":" + range.id.ToString() +
         ",\"throughputFraction\":" + std::to_string(part) + ",\"status\":\"online\",\"parents\":[";
  for (size_t i = 0; i < range.parents.size(); ++i) {
    out += (i == 0 ? "\"" : ",\"") + range.parents[i].ToString() + "\"";
  }
  out += ']';
  AppendSystem(rid, container.self + "pkranges/" + rid + "/",
               model::EtagText(container.etag, container.time), container.time, out);
  out += '}';
}

void AppendOffer(const OfferOwner& owner, std::string& out) {
  std::string rid = types::OfferRid(owner.offer.number);
  out += "{\"resource\":";
  types::AppendJsonString(owner.self, out);
  out += ",\"offerType\":\"Invalid\"";
  AppendText("offerResourceId", owner.rid, out);
  out +=
      ",\"offerVersion\":\"V2\",\"content\":{\"offerThroughput\":" + std::to_string(owner.current);
  if (owner.offer.autoscale()) {
    out += ",\"offerAutopilotSettings\":{\"maxThroughput\":" +
           std::to_string(owner.offer.autoscale_max) + "}";
  }
  out +=
      ",\"offerIsRUPerMinuteThroughputEnabled\":false,\"offerMinimumThroughputParameters\":{"
      "\"maxThroughputEverProvisioned\":" +
      std::to_string(owner.offer.most()) + "}}";
  AppendText("id", rid, out);
  AppendSystem(rid, "offers/" + rid + "/", model::EtagText(owner.offer.etag, owner.offer.time),
               owner.offer.time, out);
  out += '}';
}

void AppendItemProperties(const model::Container& container, uint64_t number, std::string_view etag,
                          WallTime time, std::string& out) {
  const std::string rid = types::DocumentRid(container.rid, number);
  // Nothing here needs escapes but the quotes of the etag.
  out += ",\"_rid\":\"";
  out += rid;
  out += "\",\"_self\":\"";
  out += container.self;
  out += "docs/";
  out += rid;
  out += "/\",\"_etag\":\"\\";
  out += etag.substr(0, etag.size() - 1);
  out += "\\\"\",\"_attachments\":\"attachments/\",\"_ts\":";
  out += std::to_string(time.seconds());
}

Status AppendItem(const model::Container& container, std::string_view stored, std::string& out) {
  Result<storage::ItemView> item = storage::DecodeItem(stored);
  if (!item) {
    return item.error();
  }
  out += '{';
  types::AppendJsonMembers(types::Value::Object(item->payload), out);
  AppendItemProperties(container, item->header.number, model::ItemEtag(item->header),
                       item->header.time, out);
  out += '}';
  return Status::Ok();
}

}  // namespace orrery::api::sql
