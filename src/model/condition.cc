#include "model/condition.h"

namespace orrery::model {

namespace {
CompileCondition& Compiler() {
  static CompileCondition compiler;
  return compiler;
}
}  // namespace

void SetConditionCompiler(CompileCondition compile) { Compiler() = std::move(compile); }

Result<std::unique_ptr<Condition>> Compile(std::string_view text, types::Value parameters) {
  if (!Compiler()) {
    return Error(Code::kNotSupported, "conditions are not available");
  }
  return Compiler()(text, parameters);
}

}  // namespace orrery::model
