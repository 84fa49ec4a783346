// The syntax tree of a CQL statement: one plain struct for each statement, in a variant.
//
// It holds what was written. Only one who knows the schema can tell whether it makes sense, so two
// primary keys or more values than columns stand in the tree like everything else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cql/expression.h"

namespace orrery::cql {

// ---- Parts that several statements share ----

using StringMap = std::vector<std::pair<std::string, std::string>>;  // in the order of the text

// `name = value` after WITH. Constants are kept as text: `true` and 'true' are the same.
struct Option {
  std::string name;
  std::variant<std::string, StringMap> value;

  friend bool operator==(const Option&, const Option&) = default;
};
using Options = std::vector<Option>;  // no name twice

struct Rename {
  std::string from;
  std::string to;

  friend bool operator==(const Rename&, const Rename&) = default;
};

// ---- Keyspaces ----

struct UseStatement {
  std::string keyspace;

  friend bool operator==(const UseStatement&, const UseStatement&) = default;
};

struct CreateKeyspace {
  std::string name;
  bool if_not_exists = false;
  Options options;

  friend bool operator==(const CreateKeyspace&, const CreateKeyspace&) = default;
};

struct AlterKeyspace {
  std::string name;
  bool if_exists = false;
  Options options;

  friend bool operator==(const AlterKeyspace&, const AlterKeyspace&) = default;
};

struct DropKeyspace {
  std::string name;
  bool if_exists = false;

  friend bool operator==(const DropKeyspace&, const DropKeyspace&) = default;
};

// ---- Tables ----

struct ColumnDefinition {
  std::string name;
  TypeName type;
  bool is_static = false;
  std::optional<Expression> mask;  // MASKED WITH f(...): a kCall; DEFAULT is mask_default()

  friend bool operator==(const ColumnDefinition&, const ColumnDefinition&) = default;
};

struct PrimaryKey {
  std::vector<std::string> partition;
  std::vector<std::string> clustering;

  friend bool operator==(const PrimaryKey&, const PrimaryKey&) = default;
};

struct ClusteringOrder {
  std::string column;
  bool descending = false;

  friend bool operator==(const ClusteringOrder&, const ClusteringOrder&) = default;
};

// What WITH says of a table or a view. ALTER has options only.
struct TableOptions {
  Options options;
  std::vector<ClusteringOrder> clustering_order;
  bool compact_storage = false;

  friend bool operator==(const TableOptions&, const TableOptions&) = default;
};

struct CreateTable {
  QualifiedName table;
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;
  std::vector<PrimaryKey> primary_keys;  // one, if the statement is right
  TableOptions with;

  friend bool operator==(const CreateTable&, const CreateTable&) = default;
};

struct AddColumns {
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;

  friend bool operator==(const AddColumns&, const AddColumns&) = default;
};

struct DropColumns {
  bool if_exists = false;
  std::vector<std::string> columns;
  std::optional<Expression> timestamp;

  friend bool operator==(const DropColumns&, const DropColumns&) = default;
};

struct RenameColumns {
  bool if_exists = false;
  std::vector<Rename> renames;

  friend bool operator==(const RenameColumns&, const RenameColumns&) = default;
};

// ALTER column TYPE type, which Cassandra no longer allows.
struct ChangeColumnType {
  bool if_exists = false;
  std::string column;
  TypeName type;

  friend bool operator==(const ChangeColumnType&, const ChangeColumnType&) = default;
};

struct MaskColumn {
  bool if_exists = false;
  std::string column;
  std::optional<Expression> mask;  // none: DROP MASKED

  friend bool operator==(const MaskColumn&, const MaskColumn&) = default;
};

struct DropCompactStorage {
  friend bool operator==(const DropCompactStorage&, const DropCompactStorage&) = default;
};

struct AlterTable {
  QualifiedName table;
  bool if_exists = false;
  std::variant<AddColumns, DropColumns, RenameColumns, ChangeColumnType, MaskColumn,
               DropCompactStorage, TableOptions>
      change;

  friend bool operator==(const AlterTable&, const AlterTable&) = default;
};

struct DropTable {
  QualifiedName table;
  bool if_exists = false;

  friend bool operator==(const DropTable&, const DropTable&) = default;
};

struct Truncate {
  QualifiedName table;

  friend bool operator==(const Truncate&, const Truncate&) = default;
};

// ---- User-defined types ----

struct FieldDefinition {
  std::string name;
  TypeName type;

  friend bool operator==(const FieldDefinition&, const FieldDefinition&) = default;
};

struct CreateType {
  QualifiedName type;
  bool if_not_exists = false;
  std::vector<FieldDefinition> fields;

  friend bool operator==(const CreateType&, const CreateType&) = default;
};

struct AddField {
  bool if_not_exists = false;
  FieldDefinition field;

  friend bool operator==(const AddField&, const AddField&) = default;
};

struct RenameFields {
  bool if_exists = false;
  std::vector<Rename> renames;

  friend bool operator==(const RenameFields&, const RenameFields&) = default;
};

// ALTER field TYPE type, which Cassandra no longer allows.
struct ChangeFieldType {
  bool if_exists = false;
  FieldDefinition field;

  friend bool operator==(const ChangeFieldType&, const ChangeFieldType&) = default;
};

struct AlterType {
  QualifiedName type;
  bool if_exists = false;
  std::variant<AddField, RenameFields, ChangeFieldType> change;

  friend bool operator==(const AlterType&, const AlterType&) = default;
};

struct DropType {
  QualifiedName type;
  bool if_exists = false;

  friend bool operator==(const DropType&, const DropType&) = default;
};

// ---- Indexes, views ----

enum class IndexTargetKind : uint8_t {
  kSimple,  // the column, or the values of its collection
  kKeys,
  kValues,
  kEntries,
  kFull,
};

struct IndexTarget {
  IndexTargetKind kind = IndexTargetKind::kSimple;
  std::string column;

  friend bool operator==(const IndexTarget&, const IndexTarget&) = default;
};

struct CreateIndex {
  std::string index;  // empty: the server chooses a name
  bool if_not_exists = false;
  bool custom = false;
  QualifiedName table;
  std::vector<IndexTarget> targets;  // may be empty with CUSTOM
  std::string implementation;        // USING 'sai'; empty if it was left out
  Options options;

  friend bool operator==(const CreateIndex&, const CreateIndex&) = default;
};

struct DropIndex {
  QualifiedName index;
  bool if_exists = false;

  friend bool operator==(const DropIndex&, const DropIndex&) = default;
};

struct Selector {
  Expression expression;
  std::optional<std::string> alias;

  friend bool operator==(const Selector&, const Selector&) = default;
};

struct CreateView {
  QualifiedName view;
  bool if_not_exists = false;
  std::vector<Selector> selectors;  // empty: *
  QualifiedName table;
  Where where;
  std::vector<PrimaryKey> primary_keys;  // one, if the statement is right
  TableOptions with;

  friend bool operator==(const CreateView&, const CreateView&) = default;
};

struct AlterView {
  QualifiedName view;
  bool if_exists = false;
  TableOptions with;

  friend bool operator==(const AlterView&, const AlterView&) = default;
};

struct DropView {
  QualifiedName view;
  bool if_exists = false;

  friend bool operator==(const DropView&, const DropView&) = default;
};

// ---- Functions, aggregates, triggers ----

struct CreateFunction {
  QualifiedName function;
  bool or_replace = false;
  bool if_not_exists = false;
  std::vector<FieldDefinition> arguments;
  bool called_on_null = false;
  TypeName returns;
  std::string language;
  std::string body;

  friend bool operator==(const CreateFunction&, const CreateFunction&) = default;
};

struct DropFunction {
  QualifiedName function;
  bool if_exists = false;
  std::optional<std::vector<TypeName>> arguments;

  friend bool operator==(const DropFunction&, const DropFunction&) = default;
};

struct CreateAggregate {
  QualifiedName aggregate;
  bool or_replace = false;
  bool if_not_exists = false;
  std::vector<TypeName> arguments;
  std::string state_function;
  TypeName state_type;
  std::optional<std::string> final_function;
  std::optional<Expression> initial;

  friend bool operator==(const CreateAggregate&, const CreateAggregate&) = default;
};

struct DropAggregate {
  QualifiedName aggregate;
  bool if_exists = false;
  std::optional<std::vector<TypeName>> arguments;

  friend bool operator==(const DropAggregate&, const DropAggregate&) = default;
};

struct CreateTrigger {
  std::string trigger;
  bool if_not_exists = false;
  QualifiedName table;
  std::string implementation;

  friend bool operator==(const CreateTrigger&, const CreateTrigger&) = default;
};

struct DropTrigger {
  std::string trigger;
  bool if_exists = false;
  QualifiedName table;

  friend bool operator==(const DropTrigger&, const DropTrigger&) = default;
};

// ---- Roles and permissions ----

struct RoleOptions {
  std::optional<std::string> password;
  std::optional<std::string> hashed_password;
  std::optional<bool> login;
  std::optional<bool> superuser;
  std::optional<StringMap> custom;
  // Data centers and CIDR groups: an empty list stands for ALL.
  std::optional<std::vector<std::string>> datacenters;
  std::optional<std::vector<std::string>> cidr_groups;

  friend bool operator==(const RoleOptions&, const RoleOptions&) = default;
};

// CREATE ROLE, and CREATE USER, whose role may log in.
struct CreateRole {
  std::string role;
  bool if_not_exists = false;
  bool user = false;
  RoleOptions options;

  friend bool operator==(const CreateRole&, const CreateRole&) = default;
};

struct AlterRole {
  std::string role;
  bool if_exists = false;
  bool user = false;
  RoleOptions options;

  friend bool operator==(const AlterRole&, const AlterRole&) = default;
};

struct DropRole {
  std::string role;
  bool if_exists = false;
  bool user = false;

  friend bool operator==(const DropRole&, const DropRole&) = default;
};

struct ListRoles {
  std::optional<std::string> of;
  bool recursive = true;
  bool users = false;  // LIST USERS

  friend bool operator==(const ListRoles&, const ListRoles&) = default;
};

struct GrantRole {
  std::string role;
  std::string grantee;
  bool revoke = false;

  friend bool operator==(const GrantRole&, const GrantRole&) = default;
};

enum class Permission : uint8_t {
  kCreate,
  kAlter,
  kDrop,
  kSelect,
  kModify,
  kAuthorize,
  kDescribe,
  kExecute,
  kUnmask,
  kSelectMasked,
};

enum class ResourceKind : uint8_t {
  kAllKeyspaces,
  kKeyspace,   // name.keyspace
  kAllTables,  // name.keyspace
  kTable,      // name
  kAllRoles,
  kRole,  // name.name
  kAllFunctions,
  kFunctionsOf,  // name.keyspace
  kFunction,     // name, arguments
  kAllMbeans,
  kMbeans,  // name.name: a pattern
  kMbean,   // name.name
};

struct Resource {
  ResourceKind kind = ResourceKind::kAllKeyspaces;
  QualifiedName name;
  std::vector<TypeName> arguments;

  friend bool operator==(const Resource&, const Resource&) = default;
};

struct GrantPermissions {
  std::vector<Permission> permissions;  // empty: ALL
  Resource resource;
  std::string grantee;
  bool revoke = false;

  friend bool operator==(const GrantPermissions&, const GrantPermissions&) = default;
};

struct ListPermissions {
  std::vector<Permission> permissions;  // empty: ALL
  std::optional<Resource> resource;
  std::optional<std::string> of;
  bool recursive = true;

  friend bool operator==(const ListPermissions&, const ListPermissions&) = default;
};

// ADD IDENTITY 'i' TO ROLE r; DROP IDENTITY 'i'.
struct ChangeIdentity {
  std::string identity;
  std::string role;  // empty if dropped
  bool drop = false;
  bool only_if = false;  // IF NOT EXISTS, IF EXISTS

  friend bool operator==(const ChangeIdentity&, const ChangeIdentity&) = default;
};

// ---- Data ----

// USING TIMESTAMP t AND TTL t: an integer or a marker each.
struct Using {
  std::optional<Expression> timestamp;
  std::optional<Expression> ttl;

  friend bool operator==(const Using&, const Using&) = default;
};

// IF after a change.
struct Conditions {
  bool if_exists = false;
  std::vector<Relation> relations;  // all must hold

  bool empty() const { return !if_exists && relations.empty(); }
  friend bool operator==(const Conditions&, const Conditions&) = default;
};

struct Insert {
  QualifiedName table;
  std::vector<std::string> columns;
  std::vector<Expression> values;  // may differ from the columns in number, which is wrong
  std::optional<Expression> json;  // INSERT ... JSON: a string or a marker
  bool default_unset = false;      // of JSON
  bool if_not_exists = false;
  Using using_;

  friend bool operator==(const Insert&, const Insert&) = default;
};

enum class AssignmentKind : uint8_t {
  kSet,         // c = value
  kAdd,         // c = c + value, c += value
  kSubtract,    // c = c - value, c -= value
  kPrepend,     // c = value + c
  kSetElement,  // c[element] = value
  kSetField,    // c.field = value
};

struct Assignment {
  AssignmentKind kind = AssignmentKind::kSet;
  std::string column;
  std::optional<Expression> element;
  std::string field;
  Expression value;

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct Update {
  QualifiedName table;
  Using using_;
  std::vector<Assignment> assignments;
  Where where;
  Conditions conditions;

  friend bool operator==(const Update&, const Update&) = default;
};

// c, c[element] or c.field.
struct Deletion {
  std::string column;
  std::optional<Expression> element;
  std::string field;

  friend bool operator==(const Deletion&, const Deletion&) = default;
};

struct Delete {
  QualifiedName table;
  std::vector<Deletion> deletions;  // empty: whole rows
  Using using_;                     // timestamp only
  Where where;
  Conditions conditions;

  friend bool operator==(const Delete&, const Delete&) = default;
};

enum class BatchKind : uint8_t { kLogged, kUnlogged, kCounter };

struct Batch {
  BatchKind kind = BatchKind::kLogged;
  Using using_;
  std::vector<std::variant<Insert, Update, Delete>> changes;

  friend bool operator==(const Batch&, const Batch&) = default;
};

struct Ordering {
  std::string column;
  std::optional<Expression> nearest;  // ANN OF value
  bool descending = false;

  friend bool operator==(const Ordering&, const Ordering&) = default;
};

struct Select {
  bool json = false;
  bool distinct = false;
  std::vector<Selector> selectors;  // empty: *
  QualifiedName table;
  Where where;
  std::vector<Expression> group_by;
  std::vector<Ordering> order_by;
  std::optional<Expression> per_partition_limit;  // an integer or a marker
  std::optional<Expression> limit;                // "
  bool allow_filtering = false;

  friend bool operator==(const Select&, const Select&) = default;
};

enum class DescribeKind : uint8_t {
  kCluster,
  kSchema,  // FULL: the system's keyspaces too
  kKeyspaces,
  kTables,
  kTypes,
  kFunctions,
  kAggregates,
  kKeyspace,  // name.name, empty for the session's; ONLY: without what is in it
  kTable,
  kIndex,
  kView,
  kType,
  kFunction,
  kAggregate,
  kAnything,  // DESCRIBE a: the keyspace, table, index or view of the name
};

struct Describe {
  DescribeKind kind = DescribeKind::kCluster;
  QualifiedName name;
  bool full = false;
  bool only = false;
  bool internals = false;

  friend bool operator==(const Describe&, const Describe&) = default;
};

// ---- All of them ----

using Statement =
    std::variant<UseStatement, CreateKeyspace, AlterKeyspace, DropKeyspace, CreateTable, AlterTable,
                 DropTable, Truncate, CreateType, AlterType, DropType, CreateIndex, DropIndex,
                 CreateView, AlterView, DropView, CreateFunction, DropFunction, CreateAggregate,
                 DropAggregate, CreateTrigger, DropTrigger, CreateRole, AlterRole, DropRole,
                 ListRoles, GrantRole, GrantPermissions, ListPermissions, ChangeIdentity, Insert,
                 Update, Delete, Batch, Select, Describe>;

// A statement and the names of its markers, in the order of the text; `?` has an empty name.
struct Parsed {
  Statement statement;
  std::vector<std::string> markers;

  friend bool operator==(const Parsed&, const Parsed&) = default;
};

}  // namespace orrery::cql
