// Any bytes as the message of another node, as a reply, and as the body of one: what is accepted
// can be sent on, and then is the same.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/items.h"
#include "partition/operation.h"

namespace {

using orrery::Decoder;
using orrery::Encoder;
using orrery::partition::OperationRegistry;
using orrery::partition::Reply;

const OperationRegistry& Registry() {
  static const auto* registry = [] {
    auto* made = new OperationRegistry;
    orrery::model::RegisterItemOperations(*made);
    return made;
  }();
  return *registry;
}

void FuzzMessage(std::string_view bytes) {
  auto operation = Registry().DecodeMessage(bytes);
  if (!operation) {
    return;
  }
  (void)(*operation)->least_price();
  std::string sent = OperationRegistry::EncodeMessage(**operation);
  auto again = Registry().DecodeMessage(sent);
  ORRERY_CHECK(again);
  ORRERY_CHECK(OperationRegistry::EncodeMessage(**again) == sent);
}

void FuzzReply(std::string_view bytes) {
  Decoder decoder(bytes);
  Reply reply = Reply::Decode(decoder);
  std::string sent;
  Encoder encoder(sent);
  reply.Encode(encoder);
  Decoder second(sent);
  Reply again = Reply::Decode(second);
  ORRERY_CHECK(second.done() && again.status.code() == reply.status.code());
  ORRERY_CHECK(again.body == reply.body && again.charge == reply.charge);
}

void FuzzBodies(std::string_view bytes) {
  if (auto results = orrery::model::DecodeStepResults(bytes)) {
    std::string sent = orrery::model::EncodeStepResults(*results);
    auto again = orrery::model::DecodeStepResults(sent);
    ORRERY_CHECK(again && orrery::model::EncodeStepResults(*again) == sent);
  }
  if (auto page = orrery::model::ReadFeed::Page::Decode(bytes)) {
    std::string sent = page->Encode();
    auto again = orrery::model::ReadFeed::Page::Decode(sent);
    ORRERY_CHECK(again && again->items == page->items && again->last == page->last);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  FuzzMessage(input);
  FuzzReply(input);
  FuzzBodies(input);
  return 0;
}
