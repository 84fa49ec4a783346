// What each request of a document API pays: the place of its key on the ring, JSON in and JSON out.
#include <string>

#include <benchmark/benchmark.h>

#include "types/document.h"
#include "types/epk.h"
#include "types/partition_key.h"

namespace orrery::types {
namespace {

// About 1 KB with the usual mix: short strings, numbers, an array, an object and one long text.
std::string SampleJson() {
  std::string json =
      R"({"id":"item-0000000042","pk":"key-0000000042","kind":"reading","sequence":8123456,)"
      R"("temperature":21.5,"pressure":1013.25,"active":true,"note":null,)"
      R"("tags":["north","outdoor","calibrated"],"place":{"city":"Uppsala","floor":3},)"
      R"("samples":[1,2,3,5,8,13,21,34,55,89],"text":")";
  for (size_t i = 0; json.size() < 1022; ++i) {
    json += static_cast<char>('a' + i * 7 % 26);
  }
  return json + "\"}";
}

void BM_EpkOfStringKey(benchmark::State& state) {
  PartitionKeyDefinition definition{.paths = {"/pk"}};
  PartitionKey key{.components = {KeyComponent::String("key-0000000042")}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(ComputeEpk(definition, key));
  }
}
BENCHMARK(BM_EpkOfStringKey);

void BM_PartitionKeyFromHeader(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(PartitionKey::FromJson(R"(["key-0000000042"])"));
  }
}
BENCHMARK(BM_PartitionKeyFromHeader);

void BM_JsonToBson(benchmark::State& state) {
  std::string json = SampleJson();
  for (auto _ : state) {
    auto document = Document::FromJson(json);
    if (!document) {
      state.SkipWithError(document.error().message().c_str());
      break;
    }
    benchmark::DoNotOptimize(*document);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(json.size()));
}
BENCHMARK(BM_JsonToBson);

void BM_BsonToJson(benchmark::State& state) {
  std::string json = SampleJson();
  auto document = Document::FromJson(json);
  if (!document) {
    state.SkipWithError(document.error().message().c_str());
    return;
  }
  std::string out;
  for (auto _ : state) {
    out.clear();
    benchmark::DoNotOptimize(AppendJson(document->root(), out));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(json.size()));
}
BENCHMARK(BM_BsonToJson);

}  // namespace
}  // namespace orrery::types

BENCHMARK_MAIN();
