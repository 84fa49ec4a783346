// Cassandra's native protocol as the generator speaks it: version 4, prepared statements, several
// requests at once on each connection. The data set is a table of rows with one column of text, by
// a key of text, and one with clustering rows for scans.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "load/http_client.h"
#include "load/loop.h"
#include "load/workload.h"

namespace orrery::load {

struct CqlData {
  uint64_t items = 0;
  size_t value_bytes = 1024;
  uint64_t scan_rows = 100;     // rows that a scan reads
  size_t row_bytes = 100;       // in each of them; every size has its own table
  uint16_t consistency = 0x0A;  // of all requests but the first ones: LOCAL_ONE
};

// The ids of the statements, as the server has named them.
struct CqlStatements {
  std::string insert;
  std::string select;
  std::string insert_row;
  std::string scan;
};

// Makes the tables if they are not there, and prepares the statements at every node.
Result<CqlStatements> PrepareCql(const std::vector<Endpoint>& nodes, const CqlData& data);

struct CqlOptions {
  LoopOptions loop;
  int streams = 1;
  size_t found_bytes_min = 0;  // a shorter reply counts as 404
};
std::unique_ptr<Loop> MakeCqlLoop(CqlOptions options, Workload& workload, LoopWatch& watch);

// The least size of a reply to this command that has the rows; 0 if some replies have none.
size_t FoundBytesMin(std::string_view command, const CqlData& data);

// Writes rows `first`, `first + step`... once each, then the partitions for scans.
class CqlSetupWorkload final : public Workload {
 public:
  CqlSetupWorkload(CqlData data, CqlStatements statements, uint64_t first, uint64_t step);
  bool Next(std::string& request, uint64_t& number) override;
  void Done(uint64_t number, int status) override;

 private:
  void Append(uint64_t number, std::string& request) const;

  const CqlData data_;
  const CqlStatements statements_;
  const std::string filler_;
  const uint64_t count_;  // of all writes
  uint64_t next_;
  const uint64_t step_;
  std::vector<uint64_t> again_;
};

// Reads, writes and scans of random rows, for ever.
class CqlWorkload final : public Workload {
 public:
  enum class Kind : uint8_t { kPoints, kScans, kNewRows };
  CqlWorkload(CqlData data, CqlStatements statements, Kind kind, double read_share, uint64_t seed);
  bool Next(std::string& request, uint64_t& number) override;

 private:
  const CqlData data_;
  const CqlStatements statements_;
  const Kind kind_;
  const double read_share_;
  const std::string filler_;
  const std::string new_keys_;  // what the keys of new rows begin with
  uint64_t made_ = 0;           // of them
  SeededRandom random_;
};

}  // namespace orrery::load
