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

constexpr std::string_view kLocal = "Local";

// Where the client should go: first where it is now, by the name that it has for it, which may be
// one that several nodes answer to; then to the other nodes. Names stay what they are: an SDK
// remembers by them what it could not reach.
std::vector<Location> FindLocations(const Call& call) {
  std::string asked = call.options().endpoint;
  if (asked.empty()) {
    std::string_view host = call.Header("host");
    asked = (call.request.secure ? "https://" : "http://") +
            std::string(host.empty() ? "localhost" : host) + "/";
  }
  std::vector<Location> nodes;
  if (call.options().locations) {
    nodes = call.options().locations();
  }
  std::vector<Location> found = {{.name = std::string(kLocal), .endpoint = asked}};
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].endpoint != asked) {
      found.push_back(std::move(nodes[i]));
    }
  }
  if (found.size() > 1 && nodes[0].endpoint == asked) {
    found[0].name = nodes[0].name;
  }
  return found;
}

}  // namespace

runtime::Task<> ReadAccount(Call& call) {
  std::vector<Location> found = FindLocations(call);
  std::string locations;
  for (const Location& location : found) {
    locations += locations.empty() ? "{\"name\":" : ",{\"name\":";
    types::AppendJsonString(location.name, locations);
    AppendText("databaseAccountEndpoint", location.endpoint, locations);
    locations += '}';
  }
  const replication::Staleness& staleness = call.options().staleness;
  std::string& out = call.reply.body;
  out = "{\"_self\":\"\"";
  // Not "localhost": an SDK would then throw the locations away and ask again before every request.
  AppendText("id", call.options().account, out);
  AppendText("_rid", call.options().account, out);
  out += ",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"";
  out += ",\"writableLocations\":[" + locations + "],\"readableLocations\":[" + locations + "]";
  // Every node takes writes. SDKs send a write that got 503 to another location only if told so.
  out += ",\"enableMultipleWriteLocations\":" + std::string(found.size() > 1 ? "true" : "false");
  out += ",\"enablePerPartitionFailoverBehavior\":false";
  out +=
      ",\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":3,"
      "\"maxReplicasetSize\":4}";
  out += ",\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":\"" +
         std::string(ConsistencyName(call.options().consistency)) +
         "\",\"maxStalenessPrefix\":" + std::to_string(staleness.versions) +
         ",\"maxIntervalInSeconds\":" +
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(staleness.time).count()) +
         "}";
  out += ",\"systemReplicationPolicy\":{\"minReplicaSetSize\":3,\"maxReplicasetSize\":4}";
  out += ",\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1}";
  AppendText("queryEngineConfiguration", kQueryEngine, out);
  out += '}';
  call.Succeed(200);
  co_return;
}

}  // namespace orrery::api::sql
