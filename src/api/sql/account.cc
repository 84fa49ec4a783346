#include "api/sql/call.h"

namespace orrery::api::sql {

namespace {

// Limits of the query engine, which other SDKs parse.
constexpr std::string_view kQueryEngine =
    R"({"maxSqlQueryInputLength":524288,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,)"
    R"("maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,)"
    R"("queryMaxInMemorySortDocumentCount":500,"maxQueryRequestTimeoutFraction":0.9,)"
    R"("sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,)"
    R"("sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,)"
    R"("maxSpatialQueryCells":12,"spatialMaxGeometryPointCount":256,"sqlDisableOptimizationFlags":0,)"
    R"("sqlAllowTop":true,"enableSpatialIndexing":true})";

}  // namespace

runtime::Task<> ReadAccount(Call& call) {
  std::string endpoint = call.options().endpoint;
  if (endpoint.empty()) {
    std::string_view host = call.Header("host");
    endpoint = (call.request.secure ? "https://" : "http://") +
               std::string(host.empty() ? "localhost" : host) + "/";
  }
  std::string location = "{\"name\":\"Local\"";
  AppendText("databaseAccountEndpoint", endpoint, location);
  location += '}';
  std::string& out = call.reply.body;
  out = "{\"_self\":\"\"";
  // Not "localhost": an SDK would then throw the locations away and ask again before every request.
  AppendText("id", call.options().account, out);
  AppendText("_rid", call.options().account, out);
  out += ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"";
  out += ",\"writableLocations\":[" + location + "],\"readableLocations\":[" + location + "]";
  out += ",\"enableMultipleWriteLocations\":false,\"enablePerPartitionFailoverBehavior\":false";
  out +=
      ",\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":3,"
      "\"maxReplicasetSize\":4}";
  out += ",\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"" +
         std::string(ConsistencyName(call.options().consistency)) +
         "\",\"maxStalenessPrefix\":100,\"maxIntervalInSeconds\":5}";
  out += ",\"systemReplicationPolicy\":{\"minReplicaSetSize\":3,\"maxReplicasetSize\":4}";
  out += ",\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1}";
  AppendText("queryEngineConfiguration", kQueryEngine, out);
  out += '}';
  call.Succeed(200);
  co_return;
}

}  // namespace orrery::api::sql
