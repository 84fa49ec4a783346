// What each row of the Cassandra API pays: to be read, and to be merged with a write.
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "cql/row.h"

namespace orrery::cql {
namespace {

constexpr int64_t kTimestamp = 1'700'000'000'000'000;

// Five cells of 200 bytes, written together.
std::string SampleRow() {
  RowWriter writer;
  writer.Mark({kTimestamp});
  for (uint32_t column = 0; column < 5; ++column) {
    writer.Set(column, "", {kTimestamp}, std::string(200, static_cast<char>('a' + column)));
  }
  return writer.Finish();
}

std::string OneCell(uint32_t column, int64_t timestamp) {
  RowWriter writer;
  writer.Set(column, "", {timestamp}, std::string(200, 'z'));
  return writer.Finish();
}

void BM_WriteRow(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(SampleRow());
  }
}
BENCHMARK(BM_WriteRow);

void BM_ReadRow(benchmark::State& state) {
  std::string row = SampleRow();
  for (auto _ : state) {
    benchmark::DoNotOptimize(ReadRow(row, 0));
  }
}
BENCHMARK(BM_ReadRow);

// A row and a write of one cell.
void BM_MergeCellIntoRow(benchmark::State& state) {
  std::string row = SampleRow();
  std::string write = OneCell(2, kTimestamp + 1);
  std::vector<std::string_view> operands = {write};
  for (auto _ : state) {
    benchmark::DoNotOptimize(MergeRows(row, operands));
  }
}
BENCHMARK(BM_MergeCellIntoRow);

// A row and a write of all its cells.
void BM_MergeRowIntoRow(benchmark::State& state) {
  std::string row = SampleRow();
  std::vector<std::string_view> operands = {row};
  for (auto _ : state) {
    benchmark::DoNotOptimize(MergeRows(row, operands));
  }
}
BENCHMARK(BM_MergeRowIntoRow);

// A row and so many writes of one cell each, in one fold.
void BM_MergeCellsIntoRow(benchmark::State& state) {
  std::string row = SampleRow();
  std::vector<std::string> writes;
  for (int64_t i = 0; i < state.range(0); ++i) {
    writes.push_back(OneCell(static_cast<uint32_t>(i % 5), kTimestamp + i));
  }
  std::vector<std::string_view> operands(writes.begin(), writes.end());
  for (auto _ : state) {
    benchmark::DoNotOptimize(MergeRows(row, operands));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_MergeCellsIntoRow)->Range(8, 4096);

}  // namespace
}  // namespace orrery::cql
