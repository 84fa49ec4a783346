// The words that mean something in CQL, in any case of their letters.
//
// A reserved word is a name only in quotes. The others are keywords where the grammar asks for them
// and names everywhere else.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::cql {

// X(constant, text, reserved), in the order of the text.
#define ORRERY_CQL_KEYWORDS(X)                \
  X(kAccess, "access", false)                 \
  X(kAdd, "add", true)                        \
  X(kAggregate, "aggregate", false)           \
  X(kAggregates, "aggregates", false)         \
  X(kAll, "all", false)                       \
  X(kAllow, "allow", true)                    \
  X(kAlter, "alter", true)                    \
  X(kAnd, "and", true)                        \
  X(kAnn, "ann", false)                       \
  X(kApply, "apply", true)                    \
  X(kAs, "as", false)                         \
  X(kAsc, "asc", true)                        \
  X(kAuthorize, "authorize", true)            \
  X(kBatch, "batch", true)                    \
  X(kBegin, "begin", true)                    \
  X(kBetween, "between", false)               \
  X(kBy, "by", true)                          \
  X(kCalled, "called", false)                 \
  X(kCast, "cast", false)                     \
  X(kCidrs, "cidrs", false)                   \
  X(kCluster, "cluster", false)               \
  X(kClustering, "clustering", false)         \
  X(kColumnfamilies, "columnfamilies", false) \
  X(kColumnfamily, "columnfamily", true)      \
  X(kCompact, "compact", false)               \
  X(kContains, "contains", false)             \
  X(kCount, "count", false)                   \
  X(kCounter, "counter", false)               \
  X(kCreate, "create", true)                  \
  X(kCustom, "custom", false)                 \
  X(kDatacenters, "datacenters", false)       \
  X(kDefault, "default", false)               \
  X(kDelete, "delete", true)                  \
  X(kDesc, "desc", true)                      \
  X(kDescribe, "describe", true)              \
  X(kDistinct, "distinct", false)             \
  X(kDrop, "drop", true)                      \
  X(kEntries, "entries", true)                \
  X(kExecute, "execute", true)                \
  X(kExists, "exists", false)                 \
  X(kExpr, "expr", false)                     \
  X(kFalse, "false", true)                    \
  X(kFiltering, "filtering", false)           \
  X(kFinalfunc, "finalfunc", false)           \
  X(kFrom, "from", true)                      \
  X(kFrozen, "frozen", false)                 \
  X(kFull, "full", true)                      \
  X(kFunction, "function", false)             \
  X(kFunctions, "functions", false)           \
  X(kGrant, "grant", true)                    \
  X(kGroup, "group", false)                   \
  X(kHashed, "hashed", false)                 \
  X(kIdentity, "identity", false)             \
  X(kIf, "if", true)                          \
  X(kIn, "in", true)                          \
  X(kIndex, "index", true)                    \
  X(kInfinity, "infinity", true)              \
  X(kInitcond, "initcond", false)             \
  X(kInput, "input", false)                   \
  X(kInsert, "insert", true)                  \
  X(kInternals, "internals", false)           \
  X(kInto, "into", true)                      \
  X(kIs, "is", true)                          \
  X(kJson, "json", false)                     \
  X(kKey, "key", false)                       \
  X(kKeys, "keys", false)                     \
  X(kKeyspace, "keyspace", true)              \
  X(kKeyspaces, "keyspaces", false)           \
  X(kLanguage, "language", false)             \
  X(kLike, "like", false)                     \
  X(kLimit, "limit", true)                    \
  X(kList, "list", false)                     \
  X(kLogged, "logged", false)                 \
  X(kLogin, "login", false)                   \
  X(kMap, "map", false)                       \
  X(kMasked, "masked", false)                 \
  X(kMaterialized, "materialized", true)      \
  X(kMaxwritetime, "maxwritetime", false)     \
  X(kMbean, "mbean", false)                   \
  X(kMbeans, "mbeans", false)                 \
  X(kModify, "modify", true)                  \
  X(kNan, "nan", true)                        \
  X(kNologin, "nologin", false)               \
  X(kNorecursive, "norecursive", true)        \
  X(kNosuperuser, "nosuperuser", false)       \
  X(kNot, "not", true)                        \
  X(kNull, "null", true)                      \
  X(kOf, "of", true)                          \
  X(kOn, "on", true)                          \
  X(kOnly, "only", false)                     \
  X(kOptions, "options", false)               \
  X(kOr, "or", true)                          \
  X(kOrder, "order", true)                    \
  X(kPartition, "partition", false)           \
  X(kPassword, "password", false)             \
  X(kPer, "per", false)                       \
  X(kPermission, "permission", false)         \
  X(kPermissions, "permissions", false)       \
  X(kPrimary, "primary", true)                \
  X(kRename, "rename", true)                  \
  X(kReplace, "replace", false)               \
  X(kReturns, "returns", false)               \
  X(kRevoke, "revoke", true)                  \
  X(kRole, "role", false)                     \
  X(kRoles, "roles", false)                   \
  X(kSchema, "schema", true)                  \
  X(kSelect, "select", true)                  \
  X(kSelectMasked, "select_masked", false)    \
  X(kSet, "set", true)                        \
  X(kSfunc, "sfunc", false)                   \
  X(kStatic, "static", false)                 \
  X(kStorage, "storage", false)               \
  X(kStype, "stype", false)                   \
  X(kSuperuser, "superuser", false)           \
  X(kTable, "table", true)                    \
  X(kTables, "tables", false)                 \
  X(kTimestamp, "timestamp", false)           \
  X(kTo, "to", true)                          \
  X(kToken, "token", true)                    \
  X(kTrigger, "trigger", false)               \
  X(kTrue, "true", true)                      \
  X(kTruncate, "truncate", true)              \
  X(kTtl, "ttl", false)                       \
  X(kTuple, "tuple", false)                   \
  X(kType, "type", false)                     \
  X(kTypes, "types", false)                   \
  X(kUnlogged, "unlogged", true)              \
  X(kUnmask, "unmask", false)                 \
  X(kUnset, "unset", false)                   \
  X(kUpdate, "update", true)                  \
  X(kUse, "use", true)                        \
  X(kUser, "user", false)                     \
  X(kUsers, "users", false)                   \
  X(kUsing, "using", true)                    \
  X(kValues, "values", false)                 \
  X(kVector, "vector", false)                 \
  X(kView, "view", true)                      \
  X(kWhere, "where", true)                    \
  X(kWith, "with", true)                      \
  X(kWritetime, "writetime", false)

enum class Keyword : uint8_t {
  kNone,  // a name and nothing else
#define ORRERY_CQL_KEYWORD(constant, text, reserved) constant,
  ORRERY_CQL_KEYWORDS(ORRERY_CQL_KEYWORD)
#undef ORRERY_CQL_KEYWORD
};

Keyword FindKeyword(std::string_view word);

// In lower case. REQUIRES: not kNone.
std::string_view KeywordText(Keyword keyword);

bool IsReserved(Keyword keyword);

}  // namespace orrery::cql
