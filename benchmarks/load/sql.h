// The SQL API as the generator speaks it: the requests, and the workloads made of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "load/http_client.h"
#include "load/signer.h"
#include "load/workload.h"

namespace orrery::load {

struct SqlOptions {
  Endpoint endpoint;
  std::string key{kEmulatorKey};
  std::string database = "bench";
  std::string container = "items";
  uint64_t items = 100'000;
  uint64_t keys = 0;  // different partition keys; 0: one per item
  size_t item_bytes = 1024;
  uint64_t throughput = 1'000'000;  // RU/s of the container
  bool index = false;               // true: the default indexing policy; false: none
};

// Text without a pattern that a compressor could use much.
std::string MakeFiller(size_t bytes);

// Item `i` of the data set has the id and the partition key of its number, so that any run can read
// what any other has loaded. Immutable, so any thread may use it.
class SqlRequests {
 public:
  // Signs the read of every item when `sign_reads`; the signatures hold for 15 minutes.
  static Result<SqlRequests> Make(SqlOptions options, bool sign_reads);

  const SqlOptions& options() const { return options_; }
  std::string CreateDatabase() const;
  std::string CreateContainer() const;
  // REQUIRES: made with sign_reads; item < options().items.
  void AppendRead(uint64_t item, std::string& out) const;
  // Creates, or with `upsert` creates or replaces, an item. `chance` chooses the content.
  void AppendWrite(std::string_view id, uint64_t key, bool upsert, uint64_t chance,
                   std::string& out) const;
  uint64_t KeyOf(uint64_t item) const { return item % options_.keys; }

 private:
  SqlRequests(SqlOptions options, Signer signer);
  std::string Post(std::string_view type, const std::string& link, std::string_view headers,
                   std::string_view body) const;
  // Appends the lines from the authorization to the date.
  void AppendAuthorized(const Digest& digest, std::string& out) const;
  void AppendItem(std::string_view id, uint64_t key, uint64_t chance, std::string& out) const;

  SqlOptions options_;
  Signer signer_;
  std::string items_link_;            // dbs/{db}/colls/{coll}/docs
  std::string common_headers_;        // the same on every request
  Digest write_digest_{};             // all writes are signed for the container
  std::vector<Digest> read_digests_;  // by item
  std::string filler_;                // text that items take a piece of
};

// Reads and writes of random items, for ever.
class SqlWorkload final : public Workload {
 public:
  enum class Write : uint8_t { kCreate, kUpsert };

  // A `read_share` of 1 reads only, 0 writes only. kCreate makes ids that start with `id_prefix`,
  // which no other workload may use; kUpsert replaces items of the data set.
  SqlWorkload(const SqlRequests& requests, double read_share, Write write, std::string id_prefix,
              uint64_t seed);
  bool Next(std::string& request, uint64_t& number) override;

 private:
  const SqlRequests& requests_;
  const double read_share_;
  const Write write_;
  const std::string id_prefix_;
  uint64_t created_ = 0;
  SeededRandom random_;
};

// Writes the items `first`, `first + step`... of the data set once each, and again those that were
// throttled.
class SqlSetupWorkload final : public Workload {
 public:
  SqlSetupWorkload(const SqlRequests& requests, uint64_t first, uint64_t step);
  bool Next(std::string& request, uint64_t& number) override;
  void Done(uint64_t number, int status) override;

 private:
  const SqlRequests& requests_;
  uint64_t next_;
  const uint64_t step_;
  std::vector<uint64_t> again_;
};

}  // namespace orrery::load
