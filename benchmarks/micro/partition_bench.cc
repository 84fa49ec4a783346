// What finding hot keys adds to every operation of a partition.
#include <string>

#include <benchmark/benchmark.h>

#include "partition/hot_keys.h"

namespace orrery::partition {
namespace {

// 30,000 reads of 1 RU a second, over 1,000 keys.
void BM_HotKeysOfBusyPartition(benchmark::State& state) {
  HotKeys keys;
  uint64_t before = 0;
  for (auto _ : state) {
    if (keys.Picks(before, 100)) {
      keys.Add("[\"key " + std::to_string(before / 100 % 1000) + "\"]", 100,
               Instant(Duration(before / 100 * 33)));
    }
    before += 100;
  }
}
BENCHMARK(BM_HotKeysOfBusyPartition);

}  // namespace
}  // namespace orrery::partition
