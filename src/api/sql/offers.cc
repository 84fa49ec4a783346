#include "api/sql/call.h"
#include "api/sql/listing.h"
#include "model/items.h"
#include "model/throughput.h"
#include "types/rid.h"

namespace orrery::api::sql {

using runtime::Task;

namespace {

using model::CatalogView;
using partition::RequestUnits;

// An offer, with what it belongs to.
struct FoundOffer {
  std::shared_ptr<const CatalogView> view;
  // One of them.
  std::shared_ptr<const model::Database> database;
  std::shared_ptr<const model::Container> container;

  const model::Offer& offer() const { return container ? *container->offer : *database->offer; }
  OfferOwner owner(uint64_t current) const {
    return {.offer = offer(),
            .self = container ? container->self : database->self(),
            .rid = container ? container->rid : database->rid,
            .current = current};
  }
  // Those that it is for.
  std::vector<std::shared_ptr<const model::Container>> containers() const {
    if (container) {
      return {container};
    }
    auto all = view->ContainersOf(database->id);
    std::erase_if(all, [](const auto& one) { return one->offer.has_value(); });
    return all;
  }
};

std::vector<FoundOffer> OffersOf(const std::shared_ptr<const CatalogView>& view) {
  std::vector<FoundOffer> all;
  for (const auto& [name, database] : view->databases) {
    if (database->offer) {
      all.push_back({.view = view, .database = database, .container = nullptr});
    }
  }
  for (const auto& [id, container] : view->containers_by_id) {
    if (container->offer) {
      all.push_back({.view = view, .database = nullptr, .container = container});
    }
  }
  return all;
}

std::optional<FoundOffer> FindOffer(const Call& call, std::string_view id) {
  for (FoundOffer& found : OffersOf(call.catalog().view())) {
    if (types::OfferRid(found.offer().number) == id) {
      return std::move(found);
    }
  }
  return std::nullopt;
}

// What the partitions say about an offer.
struct OfferFigures {
  model::OfferUse use;
  uint64_t current = 0;  // RU/s that it is scaled to
};

// Asks the leaders of all partitions, until one does not answer. What is not known counts as
// nothing.
Task<OfferFigures> FiguresOf(Call& call, FoundOffer found) {
  const model::Offer& offer = found.offer();
  OfferFigures figures{.use = {.most = offer.most()}};
  RequestUnits scaled;
  PartitionId first;
  bool answers = true;
  for (const auto& container : found.containers()) {
    figures.use.sharing += found.container ? 0 : 1;
    for (const auto& range : container->map->ranges()) {
      model::ReadTotals::Use use;
      if (answers) {
        model::ReadTotals read;
        read.with_use = found.view->writes(model::kThroughputFormat);
        partition::Reply reply = co_await call.router().ExecuteAt(container->ring(), range, read);
        answers = reply.status.ok() || reply.status.code() == Code::kMoved;
        if (read.with_use) {
          use = model::ReadTotals::DecodeUse(reply.body).value_or(use);
        } else {
          use.totals = model::ReadTotals::DecodeTotals(reply.body).value_or(use.totals);
        }
      }
      figures.use.bytes += static_cast<uint64_t>(std::max<int64_t>(use.totals.bytes, 0));
      if (found.container) {
        scaled +=
            model::ScaledShare(model::ShareOf(offer, *container->map, range.id), use.sustained);
      } else if (first == PartitionId() || range.id < first) {
        // That of the database is counted where its first partition is led.
        first = range.id;
        scaled = use.sustained;
      }
    }
  }
  if (!found.container) {
    scaled = model::ScaledShare(RequestUnits(static_cast<double>(offer.spendable())), scaled);
  }
  figures.current =
      offer.autoscale() ? std::min(model::WholeUnits(scaled), offer.autoscale_max) : offer.manual;
  co_return figures;
}

void Answer(Call& call, const FoundOffer& found, const OfferFigures& figures) {
  const model::CatalogLimits& limits = call.catalog().limits();
  const model::Offer& offer = found.offer();
  bool pending = found.container &&
                 model::ReplacePending(offer, *found.container->map, limits.partition_throughput);
  AppendOffer(found.owner(figures.current), call.reply.body);
  call.reply.Add("etag", model::EtagText(offer.etag, offer.time));
  call.reply.Add("x-ms-offer-replace-pending", pending ? "true" : "false");
  call.reply.Add("x-ms-cosmos-min-throughput",
                 std::to_string(model::LeastThroughput(figures.use, offer.autoscale(), limits)));
  call.Succeed(200);
}

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// Between manual throughput and autoscale: asked for by a header; the new value is not the
// client's.
Result<model::ThroughputRequest> ReadMigration(const Call& call, types::Value settings,
                                               const model::Offer& offer,
                                               const model::OfferUse& use) {
  if (call.Flag("x-ms-cosmos-migrate-offer-to-autopilot")) {
    if (offer.autoscale() || settings.kind() == types::Kind::kObject) {
      return Invalid(
          "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must not "
          "contain autopilotSettings for migration from manual throughput to autoscale.");
    }
    return model::ThroughputRequest{
        .autoscale_max = model::MigratedMaximum(offer, use, call.catalog().limits())};
  }
  if (!offer.autoscale()) {
    return Invalid("The offer has manual throughput already.");
  }
  return model::ThroughputRequest{.manual = offer.autoscale_max};
}

Result<model::ThroughputRequest> ReadContent(const Call& call, types::Value content,
                                             const model::Offer& offer,
                                             const model::OfferUse& use) {
  model::ThroughputRequest throughput;
  types::Value settings = types::Member(content, "offerAutopilotSettings");
  types::Value manual = types::Member(content, "offerThroughput");
  types::Value most = types::Member(settings, "maxThroughput");
  if (call.Flag("x-ms-cosmos-migrate-offer-to-autopilot") ||
      call.Flag("x-ms-cosmos-migrate-offer-to-manual-throughput")) {
    return ReadMigration(call, settings, offer, use);
  }
  if (settings.kind() == types::Kind::kObject) {
    if (most.kind() != types::Kind::kNumber || !most.is_integer() || most.integer() < 0) {
      return Invalid("The autoscale settings must hold a whole number maxThroughput.");
    }
    if (!offer.autoscale()) {
      return Invalid(
          "x-ms-cosmos-migrate-offer-to-autopilot must be supplied and offercontent must not "
          "contain autopilotSettings for migration from manual throughput to autoscale.");
    }
    throughput.autoscale_max = static_cast<uint64_t>(most.integer());
    return throughput;
  }
  if (manual.kind() != types::Kind::kNumber || !manual.is_integer() || manual.integer() < 0) {
    return Invalid("The content of an offer must hold a whole number offerThroughput.");
  }
  if (offer.autoscale()) {
    return Invalid(
        "Updating offer to manually provisioned throughput is not allowed. Please invoke "
        "migration API to migrate this offer.");
  }
  throughput.manual = static_cast<uint64_t>(manual.integer());
  return throughput;
}

Status OfferNotFound() {
  return Status(Code::kNotFound,
                "Resource Not Found. Learn more: https://aka.ms/cosmosdb-tsg-not-found");
}

}  // namespace

Task<> ListOffers(Call& call) {
  std::vector<FoundOffer> offers = OffersOf(call.catalog().view());
  std::vector<std::string> all;
  for (const FoundOffer& found : offers) {
    AppendOffer(found.owner(found.offer().reported()), all.emplace_back());
  }
  auto wanted = WantedOf(call, all);
  if (!wanted) {
    call.Fail(wanted.error());
    co_return;
  }
  std::vector<std::string> shown;
  for (size_t place : *wanted) {
    const FoundOffer& found = offers[place];
    if (!found.offer().autoscale()) {
      shown.push_back(std::move(all[place]));
      continue;
    }
    OfferFigures figures = co_await FiguresOf(call, found);
    AppendOffer(found.owner(figures.current), shown.emplace_back());
  }
  AnswerAll(call, "Offers", "", shown);
}

Task<> QueryOffers(Call& call) {
  if (!IsQuery(call)) {
    call.Fail(Status(Code::kInvalidArgument, "Offers are made with their database or container."));
    co_return;
  }
  co_await ListOffers(call);
}

Task<> ReadOffer(Call& call) {
  auto found = FindOffer(call, call.segments[1]);
  if (!found) {
    call.Fail(OfferNotFound());
    co_return;
  }
  OfferFigures figures = co_await FiguresOf(call, *found);
  Answer(call, *found, figures);
}

Task<> ReplaceOffer(Call& call) {
  Result<types::Document> body = types::Document::FromJson(call.request.body);
  if (!body) {
    call.Fail(body.error());
    co_return;
  }
  auto found = FindOffer(call, call.segments[1]);
  if (!found) {
    call.Fail(OfferNotFound());
    co_return;
  }
  OfferFigures figures = co_await FiguresOf(call, *found);
  auto throughput = ReadContent(call, body->Get("content"), found->offer(), figures.use);
  if (!throughput) {
    call.Fail(throughput.error());
    co_return;
  }
  // The catalog does not know how much data there is.
  bool autoscale = throughput->autoscale_max.has_value();
  uint64_t amount = autoscale ? *throughput->autoscale_max : *throughput->manual;
  Status status = model::CheckAmount(amount, autoscale, figures.use, call.catalog().limits());
  if (status.ok()) {
    status = co_await call.catalog().ReplaceOffer(found->offer().number, *throughput,
                                                  std::string(call.Header("if-match")));
  }
  if (status.ok()) {
    found = FindOffer(call, call.segments[1]);
    status = found ? Status::Ok() : OfferNotFound();
  }
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  figures = co_await FiguresOf(call, *found);
  Answer(call, *found, figures);
}

}  // namespace orrery::api::sql
