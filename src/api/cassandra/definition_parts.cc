#include "api/cassandra/definition_parts.h"

#include "api/cassandra/failures.h"
#include "base/bytes.h"
#include "cql/system_tables.h"
#include "model/catalog_evaluate.h"

namespace orrery::cassandra {

Response Refuse(const cql::DefineError& error, std::string_view keyspace, std::string_view name,
                int version) {
  switch (error.kind) {
    case cql::DefineError::Kind::kSyntax:
      return MakeError(ErrorCode::kSyntaxError, error.message, version);
    case cql::DefineError::Kind::kConfig:
      return MakeError(ErrorCode::kConfigError, error.message, version);
    case cql::DefineError::Kind::kExists:
      return MakeError({.code = ErrorCode::kAlreadyExists,
                        .message = error.message,
                        .keyspace = std::string(keyspace),
                        .name = std::string(name)},
                       version);
    case cql::DefineError::Kind::kInvalid: break;
  }
  return Refused(error.message, version);
}

std::string NewUuid(Random& random) {
  std::string bytes;
  Encoder(bytes).U64((random.Next() & ~0xF000ull) | 0x4000);
  Encoder(bytes).U64((random.Next() & ~(3ull << 62)) | (2ull << 62));
  return bytes;
}

Response NotModifiable(std::string_view keyspace, int version) {
  return MakeError(ErrorCode::kUnauthorized,
                   std::string(keyspace) + " keyspace is not user-modifiable.", version);
}

Response NoKeyspace(std::string_view keyspace, int version) {
  return keyspace.empty()
             ? Refused(
                   "No keyspace has been specified. USE a keyspace, or explicitly "
                   "specify keyspace.tablename",
                   version)
             : Refused("Keyspace '" + std::string(keyspace) + "' doesn't exist", version);
}

std::string EtagOf(const model::Database& database) {
  return model::EtagText(database.etag, database.time);
}
std::string EtagOf(const model::Container& container) {
  return model::EtagText(container.etag, container.time);
}

model::ThroughputRequest RequestOf(const std::optional<int32_t>& throughput) {
  model::ThroughputRequest request;
  if (throughput) {
    request.manual = static_cast<uint64_t>(*throughput);
  }
  return request;
}

Place PlaceOf(const cql::QualifiedName& name, const Execution& execution,
              std::shared_ptr<const SchemaView> view) {
  Place place{.keyspace = name.keyspace.empty() ? execution.client.keyspace : name.keyspace,
              .view = std::move(view),
              .found = nullptr,
              .refusal = {}};
  if (cql::IsSystemKeyspace(place.keyspace)) {
    place.refusal = NotModifiable(place.keyspace, execution.version);
    return place;
  }
  place.found = place.view->schema->FindKeyspace(place.keyspace);
  if (place.found == nullptr) {
    place.refusal = NoKeyspace(place.keyspace, execution.version);
  }
  return place;
}

}  // namespace orrery::cassandra
