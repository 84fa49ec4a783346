// The functions that hide what a value is: mask_null, mask_default, mask_replace, mask_inner,
// mask_outer. mask_hash is not there.
#include "cql/function_table.h"
#include "cql/number.h"
#include "cql/numeric.h"
#include "cql/time_uuid.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// What mask_default shows in place of any value of a type.
std::string DefaultMask(const DataType& type) {
  if (IsNumber(type.id())) {
    return ZeroOf(type.id());
  }
  switch (type.id()) {
    case TypeId::kAscii:
    case TypeId::kText: return "****";
    case TypeId::kBoolean: return BooleanBytes(false);
    case TypeId::kTimestamp:
    case TypeId::kTime: return BigintBytes(0);
    case TypeId::kDate: return IntBytes(INT32_MIN);  // 1970-01-01
    case TypeId::kUuid: return std::string(16, '\0');
    case TypeId::kTimeuuid: return MinTimeUuid(0);
    case TypeId::kInet: return std::string(4, '\0');
    case TypeId::kDuration: return std::string(3, '\0');
    case TypeId::kList:
    case TypeId::kSet:
    case TypeId::kMap: return IntBytes(0);
    case TypeId::kTuple:
    case TypeId::kUdt:
    case TypeId::kVector: {
      std::string out;
      PartWriter writer(type, out);
      size_t parts = type.id() == TypeId::kVector ? type.dimension() : type.parameters().size();
      for (size_t i = 0; i < parts; ++i) {
        writer.Add(DefaultMask(type.parameters()[i % type.parameters().size()]));
      }
      writer.Finish();
      return out;
    }
    default: return "";
  }
}

Result<DataType> TypeOf(const CallSite& site, const Argument& argument) {
  if (auto type = argument.type ? argument.type : argument.guess) {
    return *type;
  }
  return Invalid("Cannot infer type of argument " + argument.text() + " in call to function " +
                 std::string(site.name) + ": use type casts to disambiguate");
}

FunctionPtr Make(const CallSite& site, std::vector<DataType> arguments, DataType result,
                 Function::Run run) {
  return std::make_shared<const Function>(Function{.name = std::string(site.name),
                                                   .arguments = std::move(arguments),
                                                   .result = std::move(result),
                                                   .run = std::move(run),
                                                   .takes_null = true});
}

Result<FunctionPtr> MaskAll(const CallSite& site, std::span<const Argument> arguments, bool null) {
  ORRERY_TRY_STATUS(CheckCount("system." + std::string(site.name), 1, arguments.size()));
  ORRERY_TRY(DataType type, TypeOf(site, arguments[0]));
  auto run = [type, null](Values, FunctionContext&) -> Result<MaybeBytes> {
    return null ? MaybeBytes() : MaybeBytes(DefaultMask(type));
  };
  return Make(site, {type}, type, run);
}

Result<FunctionPtr> MaskReplace(const CallSite& site, std::span<const Argument> arguments) {
  ORRERY_TRY_STATUS(CheckCount("system." + std::string(site.name), 2, arguments.size()));
  ORRERY_TRY(DataType type, TypeOf(site, arguments[0]));
  if (arguments[1].fit(type) == Fit::kNo) {
    return Invalid("Type error: " + arguments[1].text() +
                   " cannot be passed as argument 1 of function system." + std::string(site.name) +
                   " of type " + type.ToCql());
  }
  auto run = [](Values values, FunctionContext&) -> Result<MaybeBytes> {
    return values[1] ? MaybeBytes(std::string(*values[1])) : MaybeBytes();
  };
  return Make(site, {type, type}, type, run);
}

// Where each letter of UTF-8 begins, and the end.
std::vector<size_t> LettersOf(std::string_view text) {
  std::vector<size_t> starts;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((text[i] & 0xC0) != 0x80) {
      starts.push_back(i);
    }
  }
  starts.push_back(text.size());
  return starts;
}

// Hides all but the first `begin` and the last `end` letters, or only those.
std::string MaskPart(std::string_view text, int32_t begin, int32_t end, std::string_view padding,
                     bool inner) {
  std::vector<size_t> starts = LettersOf(text);
  auto count = static_cast<int64_t>(starts.size()) - 1;
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    bool outside = i < begin || i >= count - end;
    auto at = static_cast<size_t>(i);
    out += outside != inner ? padding : text.substr(starts[at], starts[at + 1] - starts[at]);
  }
  return out;
}

Result<FunctionPtr> MaskOfPart(const CallSite& site, std::span<const Argument> arguments,
                               bool inner) {
  size_t count = arguments.size() == 4 ? 4 : 3;  // the last may be left out
  ORRERY_TRY_STATUS(CheckCount("system." + std::string(site.name), count, arguments.size()));
  DataType type = arguments[0].type.value_or(TypeId::kText);
  if (type.id() != TypeId::kText && type.id() != TypeId::kAscii) {
    return Invalid("Function system." + std::string(site.name) +
                   " requires an argument of type [text|varchar|ascii], but found argument " +
                   arguments[0].text() + " of type " + type.ToCql());
  }
  std::vector<DataType> types = {type, TypeId::kInt, TypeId::kInt, TypeId::kText};
  types.resize(count);
  auto run = [inner, name = std::string(site.name)](Values values,
                                                    FunctionContext&) -> Result<MaybeBytes> {
    if (!values[0]) {
      return MaybeBytes();
    }
    auto number = [](const MaybeView& value) {
      return value && value->size() == 4 ? std::max(0, ReadInt(*value)) : 0;
    };
    std::string_view padding = values.size() == 4 && values[3] ? *values[3] : "*";
    if (LettersOf(padding).size() != 2) {
      return Invalid("The padding argument for function system." + name +
                     " should be single-character, but '" + std::string(padding) + "' has " +
                     std::to_string(LettersOf(padding).size() - 1) + " characters.");
    }
    return MaskPart(*values[0], number(values[1]), number(values[2]), padding, inner);
  };
  return Make(site, std::move(types), type, run);
}

}  // namespace

void AddMaskFunctions(FunctionTable& table) {
  using Arguments = std::span<const Argument>;
  for (bool first : {true, false}) {
    table.AddFactory(first ? "mask_null" : "mask_default",
                     [first](const CallSite& site, Arguments arguments) {
                       return MaskAll(site, arguments, /*null=*/first);
                     });
    table.AddFactory(first ? "mask_inner" : "mask_outer",
                     [first](const CallSite& site, Arguments arguments) {
                       return MaskOfPart(site, arguments, /*inner=*/first);
                     });
  }
  table.AddFactory("mask_replace", MaskReplace);
}

}  // namespace orrery::cql
