// Condition: a compiled WHERE clause. The language lives in query/, above this folder; server/
// hands its compiler down.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "types/document.h"

namespace orrery::model {

class Condition {
 public:
  virtual ~Condition() = default;
  // kInvalidArgument if it takes too much work to know.
  virtual Result<bool> Holds(types::Value item) const = 0;
};

// Of a patch (`from c where c.a = 1`) or of a query; `parameters` is the array of the query, or
// Undefined.
using CompileCondition = std::function<Result<std::unique_ptr<Condition>>(std::string_view text,
                                                                          types::Value parameters)>;

// Set once at start, before the first operation.
void SetConditionCompiler(CompileCondition compile);
Result<std::unique_ptr<Condition>> Compile(std::string_view text, types::Value parameters = {});

}  // namespace orrery::model
