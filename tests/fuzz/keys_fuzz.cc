// Any bytes as a key, as an entry of the log and as a partition key of a request.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "storage/keys.h"
#include "storage/write_set.h"
#include "types/partition_key.h"

namespace {

using orrery::types::PartitionKey;

// Two byte strings, cut where the first byte says, keep their order and come back.
void FuzzOrderedBytes(std::string_view bytes) {
  size_t cut = bytes.empty() ? 0 : std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size());
  std::string_view a = bytes.substr(0, cut);
  std::string_view b = bytes.substr(cut);
  std::string encoded_a;
  std::string encoded_b;
  orrery::types::AppendOrderedBytes(a, encoded_a);
  orrery::types::AppendOrderedBytes(b, encoded_b);
  ORRERY_CHECK((a <=> b) == (encoded_a <=> encoded_b));
  std::string both = encoded_a + encoded_b;
  std::string_view in = both;
  std::string read_a;
  std::string read_b;
  ORRERY_CHECK(orrery::types::ReadOrderedBytes(in, &read_a) && read_a == a);
  ORRERY_CHECK(orrery::types::ReadOrderedBytes(in, &read_b) && read_b == b && in.empty());
}

void FuzzItemKey(std::string_view bytes) {
  orrery::types::Epk epk;
  if (orrery::storage::ReadItemEpk(bytes, &epk)) {
    std::string again;
    orrery::types::AppendOrderedBytes(epk, again);
    ORRERY_CHECK(bytes.substr(4).starts_with(again));
  }
}

void FuzzWriteSet(std::string_view bytes) {
  auto view = orrery::storage::WriteSetView::Parse(bytes);
  if (!view) {
    return;
  }
  orrery::storage::Batch batch;
  orrery::Status status = view->AddTo(batch, orrery::Lsn(7));
  ORRERY_CHECK(status.ok() || status.code() == orrery::Code::kCorruption);
  size_t seen = 0;
  batch.ForEach([&seen](const orrery::storage::Batch::Change&) { ++seen; });
  ORRERY_CHECK(seen == batch.count());
}

void FuzzPartitionKey(std::string_view text) {
  auto key = PartitionKey::FromJson(text);
  if (!key) {
    return;
  }
  auto again = PartitionKey::FromJson(key->ToJson());
  ORRERY_CHECK(again && *again == *key);
  std::string encoded;
  orrery::Encoder encoder(encoded);
  key->Encode(encoder);
  orrery::Decoder decoder(encoded);
  ORRERY_CHECK(PartitionKey::Decode(decoder) == *key && decoder.done());
  std::string ordered;
  key->AppendOrdered(ordered);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view input(reinterpret_cast<const char*>(data), size);
  FuzzOrderedBytes(input);
  FuzzItemKey(input);
  FuzzWriteSet(input);
  FuzzPartitionKey(input);
  return 0;
}
