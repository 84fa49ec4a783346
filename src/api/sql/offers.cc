#include "api/sql/call.h"
#include "api/sql/listing.h"
#include "types/rid.h"

namespace orrery::api::sql {

using runtime::Task;

namespace {

// Calls `visit` with every offer of the account.
template <typename F>
void ForEachOffer(const model::CatalogView& view, F visit) {
  for (const auto& [name, database] : view.databases) {
    if (database->offer) {
      visit(OfferOwner{.offer = *database->offer, .self = database->self(), .rid = database->rid});
    }
  }
  for (const auto& [id, container] : view.containers_by_id) {
    if (container->offer) {
      visit(OfferOwner{.offer = *container->offer, .self = container->self, .rid = container->rid});
    }
  }
}

// The floor of a container is taken to be the smallest that can be asked for.
void AddOfferHeaders(Call& call, const model::Offer& offer) {
  const model::CatalogLimits& limits = call.catalog().limits();
  call.reply.Add("etag", model::EtagText(offer.etag, offer.time));
  call.reply.Add("x-ms-offer-replace-pending", "false");
  call.reply.Add("x-ms-cosmos-min-throughput",
                 std::to_string(offer.autoscale() ? limits.autoscale_min : limits.throughput_min));
}

bool Answer(Call& call, std::string_view id) {
  bool found = false;
  auto view = call.catalog().view();
  ForEachOffer(*view, [&](const OfferOwner& owner) {
    if (types::OfferRid(owner.offer.number) == id) {
      found = true;
      AppendOffer(owner, call.reply.body);
      AddOfferHeaders(call, owner.offer);
    }
  });
  call.Succeed(200);
  return found;
}

Result<model::ThroughputRequest> ReadContent(types::Value content) {
  model::ThroughputRequest throughput;
  types::Value settings = types::Member(content, "offerAutopilotSettings");
  types::Value manual = types::Member(content, "offerThroughput");
  types::Value most = types::Member(settings, "maxThroughput");
  if (settings.kind() == types::Kind::kObject) {
    if (most.kind() != types::Kind::kNumber || !most.is_integer() || most.integer() < 0) {
      return Error(Code::kInvalidArgument,
                   "The autoscale settings must hold a whole number maxThroughput.");
    }
    throughput.autoscale_max = static_cast<uint64_t>(most.integer());
    return throughput;
  }
  if (manual.kind() != types::Kind::kNumber || !manual.is_integer() || manual.integer() < 0) {
    return Error(Code::kInvalidArgument,
                 "The content of an offer must hold a whole number offerThroughput.");
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
  std::vector<std::string> all;
  ForEachOffer(*call.catalog().view(),
               [&](const OfferOwner& owner) { AppendOffer(owner, all.emplace_back()); });
  AnswerList(call, "Offers", "", all);
  co_return;
}

Task<> QueryOffers(Call& call) {
  if (!IsQuery(call)) {
    call.Fail(Status(Code::kInvalidArgument, "Offers are made with their database or container."));
    co_return;
  }
  co_await ListOffers(call);
}

Task<> ReadOffer(Call& call) {
  if (!Answer(call, call.segments[1])) {
    call.Fail(OfferNotFound());
  }
  co_return;
}

Task<> ReplaceOffer(Call& call) {
  Result<types::Document> body = types::Document::FromJson(call.request.body);
  if (!body) {
    call.Fail(body.error());
    co_return;
  }
  auto throughput = ReadContent(body->Get("content"));
  if (!throughput) {
    call.Fail(throughput.error());
    co_return;
  }
  std::optional<uint32_t> number;
  ForEachOffer(*call.catalog().view(), [&](const OfferOwner& owner) {
    if (types::OfferRid(owner.offer.number) == call.segments[1]) {
      number = owner.offer.number;
    }
  });
  Status status = number ? co_await call.catalog().ReplaceOffer(
                               *number, *throughput, std::string(call.Header("if-match")))
                         : OfferNotFound();
  if (!status.ok()) {
    call.Fail(status);
    co_return;
  }
  Answer(call, call.segments[1]);
}

}  // namespace orrery::api::sql
