// The aggregate functions of the language: count, min, max, sum, avg.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cql/data_type.h"
#include "cql/functions.h"

namespace orrery::cql {

// What one aggregate has seen so far of one group.
class AggregateState {
 public:
  virtual ~AggregateState() = default;
  // Rows without a value count only for count(*), which is asked with any value.
  virtual Status Add(std::string_view value) = 0;
  virtual Result<MaybeBytes> Finish() const = 0;
};

struct AggregateFunction {
  std::string name;                  // in lower case
  std::optional<DataType> argument;  // count(*) has none
  DataType result;
  std::function<std::unique_ptr<AggregateState>()> start;
};
using AggregatePtr = std::shared_ptr<const AggregateFunction>;

bool IsAggregate(std::string_view keyspace, std::string_view name);
AggregatePtr CountRows();
// REQUIRES: IsAggregate. kInvalidArgument in Cassandra's words.
Result<AggregatePtr> FindAggregate(const CallSite& site, std::span<const Argument> arguments);

}  // namespace orrery::cql
