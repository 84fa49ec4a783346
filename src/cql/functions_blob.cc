// Values as bytes and as JSON, and the token of a partition key.
#include "cql/function_table.h"
#include "cql/partition_token.h"
#include "cql/value.h"
#include "cql/value_json.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;

void AddToBlob(FunctionTable& table, std::string name, const DataType& type) {
  table.Add({.name = std::move(name),
             .arguments = {type},
             .result = TypeId::kBlob,
             .run = [](Values values, FunctionContext&) -> Result<MaybeBytes> {
               return std::string(*values[0]);
             }});
}

// Under this name only, which its message has.
void AddFromBlob(FunctionTable& table, const std::string& name, const DataType& type) {
  auto run = [type, name](Values values, FunctionContext&) -> Result<MaybeBytes> {
    if (!ValidateValue(type, *values[0]).ok()) {
      return Error(Code::kInvalidArgument,
                   "In call to function system." + name + ", value " + BlobToText(*values[0]) +
                       " is not a valid binary representation for type " + type.ToCql());
    }
    return std::string(*values[0]);
  };
  table.functions[name].push_back(std::make_shared<const Function>(
      Function{.name = name, .arguments = {TypeId::kBlob}, .result = type, .run = run}));
}

void AddBlobFunctionsOf(FunctionTable& table, const std::string& name, TypeId id) {
  AddToBlob(table, name + "_as_blob", id);
  AddFromBlob(table, "blob_as_" + name, id);
  AddFromBlob(table, "blobas" + name, id);
}

Result<FunctionPtr> TokenFunction(const CallSite& site, std::span<const Argument> arguments) {
  if (site.table == nullptr) {
    return FunctionPtr();
  }
  Function token{.name = "token", .arguments = {}, .result = TypeId::kBigint, .run = {}};
  for (const Column& column : site.table->partition_key()) {
    token.arguments.push_back(column.type);
  }
  ORRERY_TRY_STATUS(CheckCount("system.token", token.arguments.size(), arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].fit(token.arguments[i]) == Fit::kNo) {
      return Error(Code::kInvalidArgument,
                   "Type error: " + arguments[i].text() + " cannot be passed as argument " +
                       std::to_string(i) + " of function system.token of type " +
                       token.arguments[i].ToCql());
    }
  }
  token.run = [](Values values, FunctionContext&) -> Result<MaybeBytes> {
    return BigintBytes(TokenOf(values).value_or(0));
  };
  return std::make_shared<const Function>(std::move(token));
}

Result<FunctionPtr> ToJsonFunction(const CallSite& site, std::span<const Argument> arguments) {
  if (!site.selection) {
    return Error(Code::kInvalidArgument,
                 "toJson() may only be used within the selection clause of SELECT statements");
  }
  ORRERY_TRY_STATUS(CheckCount("system." + std::string(site.name), 1, arguments.size()));
  auto type = arguments[0].type ? arguments[0].type : arguments[0].guess;
  if (!type) {
    return Error(Code::kInvalidArgument, "Cannot infer type for term " + arguments[0].text() +
                                             " in selection clause (try using a cast to force a "
                                             "type)");
  }
  auto run = [type = *type](Values values, FunctionContext&) -> Result<MaybeBytes> {
    std::string json;
    AppendValueJson(type, values[0], json);
    return json;
  };
  return std::make_shared<const Function>(Function{.name = std::string(site.name),
                                                   .arguments = {*type},
                                                   .result = TypeId::kText,
                                                   .run = run,
                                                   .takes_null = true});
}

Result<FunctionPtr> FromJsonFunction(const CallSite& site, std::span<const Argument> arguments) {
  if (site.selection) {
    return Error(Code::kInvalidArgument,
                 "fromJson() cannot be used in the selection clause of a SELECT statement");
  }
  ORRERY_TRY_STATUS(CheckCount("system." + std::string(site.name), 1, arguments.size()));
  if (!site.wanted) {
    return Error(Code::kInvalidArgument, "fromJson() cannot be used here: its type is not known");
  }
  auto run = [type = *site.wanted](Values values, FunctionContext&) -> Result<MaybeBytes> {
    return ValueFromJson(type, *values[0]);
  };
  return std::make_shared<const Function>(Function{.name = std::string(site.name),
                                                   .arguments = {TypeId::kText},
                                                   .result = *site.wanted,
                                                   .run = run});
}

}  // namespace

void AddBlobFunctions(FunctionTable& table) {
  for (TypeId id :
       {TypeId::kAscii, TypeId::kBigint, TypeId::kBoolean, TypeId::kCounter, TypeId::kDecimal,
        TypeId::kDouble, TypeId::kFloat, TypeId::kInt, TypeId::kTimestamp, TypeId::kUuid,
        TypeId::kText, TypeId::kVarint, TypeId::kTimeuuid, TypeId::kInet, TypeId::kDate,
        TypeId::kTime, TypeId::kSmallint, TypeId::kDuration, TypeId::kTinyint}) {
    AddBlobFunctionsOf(table, DataType(id).ToCql(), id);
  }
  AddBlobFunctionsOf(table, "varchar", TypeId::kText);
  table.AddFactory("token", TokenFunction);
  table.AddFactory("to_json", ToJsonFunction);
  table.AddFactory("from_json", FromJsonFunction);
}

}  // namespace orrery::cql
