#include "cql/statement_text.h"

#include "cql/quoted.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

const char* IfExists(bool yes) { return yes ? "IF EXISTS " : ""; }
const char* IfNotExists(bool yes) { return yes ? "IF NOT EXISTS " : ""; }

template <typename List, typename Text>
std::string Join(const List& list, const char* between, Text text) {
  std::string out;
  bool first = true;
  for (const auto& element : list) {
    out += (first ? "" : between) + text(element);
    first = false;
  }
  return out;
}

template <typename T>
std::string Join(const std::vector<T>& list) {
  return Join(list, ", ", [](const T& element) { return ToCql(element); });
}

std::string JoinNames(const std::vector<std::string>& names) {
  return Join(names, ", ", QuotedName);
}

std::string Text(const StringMap& map) {
  auto pair = [](const auto& entry) {
    return QuotedString(entry.first) + ": " + QuotedString(entry.second);
  };
  return "{" + Join(map, ", ", pair) + "}";
}

std::string Text(const Option& option) {
  const std::string* constant = std::get_if<std::string>(&option.value);
  return QuotedName(option.name) + " = " +
         (constant ? QuotedString(*constant) : Text(std::get<StringMap>(option.value)));
}

std::string With(const Options& options) {
  auto text = [](const Option& option) { return Text(option); };
  return options.empty() ? "" : " WITH " + Join(options, " AND ", text);
}

std::string With(const TableOptions& with) {
  std::vector<std::string> parts;
  if (with.compact_storage) {
    parts.push_back("COMPACT STORAGE");
  }
  if (!with.clustering_order.empty()) {
    auto order = [](const ClusteringOrder& column) {
      return QuotedName(column.column) + (column.descending ? " DESC" : " ASC");
    };
    parts.push_back("CLUSTERING ORDER BY (" + Join(with.clustering_order, ", ", order) + ")");
  }
  for (const Option& option : with.options) {
    parts.push_back(Text(option));
  }
  auto same = [](const std::string& part) { return part; };
  return parts.empty() ? "" : " WITH " + Join(parts, " AND ", same);
}

std::string Text(const PrimaryKey& key) {
  std::string clustering = key.clustering.empty() ? "" : ", " + JoinNames(key.clustering);
  return "PRIMARY KEY ((" + JoinNames(key.partition) + ")" + clustering + ")";
}

std::string Text(const ColumnDefinition& column) {
  return QuotedName(column.name) + " " + ToCql(column.type) + (column.is_static ? " STATIC" : "") +
         (column.mask ? " MASKED WITH " + ToCql(*column.mask) : "");
}

std::string Text(const FieldDefinition& field) {
  return QuotedName(field.name) + " " + ToCql(field.type);
}

std::string Text(const std::vector<Rename>& renames) {
  return Join(renames, " AND ", [](const Rename& rename) {
    return QuotedName(rename.from) + " TO " + QuotedName(rename.to);
  });
}

std::string Text(const std::vector<Selector>& selectors) {
  auto text = [](const Selector& selector) {
    return ToCql(selector.expression) +
           (selector.alias ? " AS " + QuotedName(*selector.alias) : "");
  };
  return selectors.empty() ? "*" : Join(selectors, ", ", text);
}

std::string Text(const Using& clause) {
  std::string out = clause.timestamp ? " USING TIMESTAMP " + ToCql(*clause.timestamp) : "";
  if (clause.ttl) {
    out += (out.empty() ? " USING TTL " : " AND TTL ") + ToCql(*clause.ttl);
  }
  return out;
}

std::string Text(const Conditions& conditions) {
  auto text = [](const Relation& relation) { return ToCql(relation); };
  return conditions.if_exists           ? " IF EXISTS"
         : conditions.relations.empty() ? ""
                                        : " IF " + Join(conditions.relations, " AND ", text);
}

std::string Text(const Assignment& assignment) {
  std::string name = QuotedName(assignment.column);
  std::string value = ToCql(assignment.value);
  switch (assignment.kind) {
    case AssignmentKind::kSet: return name + " = " + value;
    case AssignmentKind::kAdd: return name + " += " + value;
    case AssignmentKind::kSubtract: return name + " = " + name + " - " + value;
    case AssignmentKind::kPrepend: return name + " = " + value + " + " + name;
    case AssignmentKind::kSetElement:
      return name + "[" + ToCql(*assignment.element) + "] = " + value;
    case AssignmentKind::kSetField:
      return name + "." + QuotedName(assignment.field) + " = " + value;
  }
  return "";
}

std::string Text(const Deletion& deletion) {
  return QuotedName(deletion.column) +
         (deletion.element ? "[" + ToCql(*deletion.element) + "]" : "") +
         (deletion.field.empty() ? "" : "." + QuotedName(deletion.field));
}

std::string Text(const RoleOptions& options) {
  std::vector<std::string> parts;
  if (options.password) {
    parts.push_back("PASSWORD = " + QuotedString(*options.password));
  }
  if (options.hashed_password) {
    parts.push_back("HASHED PASSWORD = " + QuotedString(*options.hashed_password));
  }
  if (options.login) {
    parts.push_back(*options.login ? "LOGIN = true" : "LOGIN = false");
  }
  if (options.superuser) {
    parts.push_back(*options.superuser ? "SUPERUSER = true" : "SUPERUSER = false");
  }
  if (options.custom) {
    parts.push_back("OPTIONS = " + Text(*options.custom));
  }
  auto places = [](const std::vector<std::string>& list, const std::string& what) {
    return list.empty() ? "ALL " + what : what + " {" + Join(list, ", ", QuotedString) + "}";
  };
  if (options.datacenters) {
    parts.push_back("ACCESS TO " + places(*options.datacenters, "DATACENTERS"));
  }
  if (options.cidr_groups) {
    parts.push_back("ACCESS FROM " + places(*options.cidr_groups, "CIDRS"));
  }
  auto same = [](const std::string& part) { return part; };
  return parts.empty() ? "" : " WITH " + Join(parts, " AND ", same);
}

std::string UserText(const RoleOptions& options) {
  std::string out = options.password ? " WITH PASSWORD " + QuotedString(*options.password) : "";
  if (options.hashed_password) {
    out = " WITH HASHED PASSWORD " + QuotedString(*options.hashed_password);
  }
  if (options.superuser) {
    out += *options.superuser ? " SUPERUSER" : " NOSUPERUSER";
  }
  return out;
}

std::string Text(const std::vector<Permission>& permissions) {
  static constexpr const char* kNames[] = {"CREATE", "ALTER",        "DROP",     "SELECT",
                                           "MODIFY", "AUTHORIZE",    "DESCRIBE", "EXECUTE",
                                           "UNMASK", "SELECT_MASKED"};
  auto text = [](Permission permission) {
    return std::string(kNames[static_cast<size_t>(permission)]);
  };
  return permissions.empty() ? "ALL" : Join(permissions, ", ", text) + " PERMISSION";
}

std::string Text(const Resource& resource) {
  switch (resource.kind) {
    case ResourceKind::kAllKeyspaces: return "ALL KEYSPACES";
    case ResourceKind::kKeyspace: return "KEYSPACE " + QuotedName(resource.name.keyspace);
    case ResourceKind::kAllTables:
      return "ALL TABLES IN KEYSPACE " + QuotedName(resource.name.keyspace);
    case ResourceKind::kTable: return "TABLE " + ToCql(resource.name);
    case ResourceKind::kAllRoles: return "ALL ROLES";
    case ResourceKind::kRole: return "ROLE " + QuotedString(resource.name.name);
    case ResourceKind::kAllFunctions: return "ALL FUNCTIONS";
    case ResourceKind::kFunctionsOf:
      return "ALL FUNCTIONS IN KEYSPACE " + QuotedName(resource.name.keyspace);
    case ResourceKind::kFunction:
      return "FUNCTION " + ToCql(resource.name) + "(" + Join(resource.arguments) + ")";
    case ResourceKind::kAllMbeans: return "ALL MBEANS";
    case ResourceKind::kMbeans: return "MBEANS " + QuotedString(resource.name.name);
    case ResourceKind::kMbean: return "MBEAN " + QuotedString(resource.name.name);
  }
  return "";
}

std::string Signature(const std::optional<std::vector<TypeName>>& arguments) {
  return arguments ? "(" + Join(*arguments) + ")" : "";
}

// One overload for each statement.
struct Printer {
  std::string operator()(const UseStatement& s) { return "USE " + QuotedName(s.keyspace); }

  std::string operator()(const CreateKeyspace& s) {
    return std::string("CREATE KEYSPACE ") + IfNotExists(s.if_not_exists) + QuotedName(s.name) +
           With(s.options);
  }
  std::string operator()(const AlterKeyspace& s) {
    return std::string("ALTER KEYSPACE ") + IfExists(s.if_exists) + QuotedName(s.name) +
           With(s.options);
  }
  std::string operator()(const DropKeyspace& s) {
    return std::string("DROP KEYSPACE ") + IfExists(s.if_exists) + QuotedName(s.name);
  }

  std::string operator()(const CreateTable& s) {
    auto column = [](const ColumnDefinition& definition) { return Text(definition); };
    std::string parts = Join(s.columns, ", ", column);
    for (const PrimaryKey& key : s.primary_keys) {
      parts += (parts.empty() ? "" : ", ") + Text(key);
    }
    return std::string("CREATE TABLE ") + IfNotExists(s.if_not_exists) + ToCql(s.table) + " (" +
           parts + ")" + With(s.with);
  }
  std::string operator()(const AlterTable& s) {
    return std::string("ALTER TABLE ") + IfExists(s.if_exists) + ToCql(s.table) +
           std::visit(*this, s.change);
  }
  std::string operator()(const AddColumns& s) {
    auto column = [](const ColumnDefinition& definition) { return Text(definition); };
    return std::string(" ADD ") + IfNotExists(s.if_not_exists) + "(" +
           Join(s.columns, ", ", column) + ")";
  }
  std::string operator()(const DropColumns& s) {
    return std::string(" DROP ") + IfExists(s.if_exists) + "(" + JoinNames(s.columns) + ")" +
           (s.timestamp ? " USING TIMESTAMP " + ToCql(*s.timestamp) : "");
  }
  std::string operator()(const RenameColumns& s) {
    return std::string(" RENAME ") + IfExists(s.if_exists) + Text(s.renames);
  }
  std::string operator()(const ChangeColumnType& s) {
    return std::string(" ALTER ") + IfExists(s.if_exists) + QuotedName(s.column) + " TYPE " +
           ToCql(s.type);
  }
  std::string operator()(const MaskColumn& s) {
    return std::string(" ALTER ") + IfExists(s.if_exists) + QuotedName(s.column) +
           (s.mask ? " MASKED WITH " + ToCql(*s.mask) : " DROP MASKED");
  }
  std::string operator()(const DropCompactStorage&) { return " DROP COMPACT STORAGE"; }
  std::string operator()(const TableOptions& with) { return With(with); }
  std::string operator()(const DropTable& s) {
    return std::string("DROP TABLE ") + IfExists(s.if_exists) + ToCql(s.table);
  }
  std::string operator()(const Truncate& s) { return "TRUNCATE " + ToCql(s.table); }

  std::string operator()(const CreateType& s) {
    auto field = [](const FieldDefinition& definition) { return Text(definition); };
    return std::string("CREATE TYPE ") + IfNotExists(s.if_not_exists) + ToCql(s.type) + " (" +
           Join(s.fields, ", ", field) + ")";
  }
  std::string operator()(const AlterType& s) {
    return std::string("ALTER TYPE ") + IfExists(s.if_exists) + ToCql(s.type) +
           std::visit(*this, s.change);
  }
  std::string operator()(const AddField& s) {
    return std::string(" ADD ") + IfNotExists(s.if_not_exists) + Text(s.field);
  }
  std::string operator()(const RenameFields& s) {
    return std::string(" RENAME ") + IfExists(s.if_exists) + Text(s.renames);
  }
  std::string operator()(const ChangeFieldType& s) {
    return std::string(" ALTER ") + IfExists(s.if_exists) + QuotedName(s.field.name) + " TYPE " +
           ToCql(s.field.type);
  }
  std::string operator()(const DropType& s) {
    return std::string("DROP TYPE ") + IfExists(s.if_exists) + ToCql(s.type);
  }

  std::string operator()(const CreateIndex& s) {
    static constexpr const char* kKinds[] = {"", "keys", "values", "entries", "full"};
    auto target = [](const IndexTarget& t) {
      std::string name = QuotedName(t.column);
      return t.kind == IndexTargetKind::kSimple
                 ? name
                 : kKinds[static_cast<size_t>(t.kind)] + ("(" + name + ")");
    };
    return std::string(s.custom ? "CREATE CUSTOM INDEX " : "CREATE INDEX ") +
           IfNotExists(s.if_not_exists) + (s.index.empty() ? "" : QuotedName(s.index)) + " ON " +
           ToCql(s.table) + " (" + Join(s.targets, ", ", target) + ")" +
           (s.implementation.empty() ? "" : " USING " + QuotedString(s.implementation)) +
           With(s.options);
  }
  std::string operator()(const DropIndex& s) {
    return std::string("DROP INDEX ") + IfExists(s.if_exists) + ToCql(s.index);
  }
  std::string operator()(const CreateView& s) {
    return std::string("CREATE MATERIALIZED VIEW ") + IfNotExists(s.if_not_exists) + ToCql(s.view) +
           " AS SELECT " + Text(s.selectors) + " FROM " + ToCql(s.table) +
           (s.where.empty() ? "" : " WHERE " + ToCql(s.where)) + " " + Text(s.primary_keys[0]) +
           With(s.with);
  }
  std::string operator()(const AlterView& s) {
    return std::string("ALTER MATERIALIZED VIEW ") + IfExists(s.if_exists) + ToCql(s.view) +
           With(s.with);
  }
  std::string operator()(const DropView& s) {
    return std::string("DROP MATERIALIZED VIEW ") + IfExists(s.if_exists) + ToCql(s.view);
  }

  std::string operator()(const CreateFunction& s) {
    auto field = [](const FieldDefinition& definition) { return Text(definition); };
    return std::string(s.or_replace ? "CREATE OR REPLACE FUNCTION " : "CREATE FUNCTION ") +
           IfNotExists(s.if_not_exists) + ToCql(s.function) + "(" + Join(s.arguments, ", ", field) +
           ")" + (s.called_on_null ? " CALLED" : " RETURNS NULL") + " ON NULL INPUT RETURNS " +
           ToCql(s.returns) + " LANGUAGE " + QuotedName(s.language) + " AS " + QuotedString(s.body);
  }
  std::string operator()(const DropFunction& s) {
    return std::string("DROP FUNCTION ") + IfExists(s.if_exists) + ToCql(s.function) +
           Signature(s.arguments);
  }
  std::string operator()(const CreateAggregate& s) {
    return std::string(s.or_replace ? "CREATE OR REPLACE AGGREGATE " : "CREATE AGGREGATE ") +
           IfNotExists(s.if_not_exists) + ToCql(s.aggregate) + "(" + Join(s.arguments) +
           ") SFUNC " + QuotedName(s.state_function) + " STYPE " + ToCql(s.state_type) +
           (s.final_function ? " FINALFUNC " + QuotedName(*s.final_function) : "") +
           (s.initial ? " INITCOND " + ToCql(*s.initial) : "");
  }
  std::string operator()(const DropAggregate& s) {
    return std::string("DROP AGGREGATE ") + IfExists(s.if_exists) + ToCql(s.aggregate) +
           Signature(s.arguments);
  }
  std::string operator()(const CreateTrigger& s) {
    return std::string("CREATE TRIGGER ") + IfNotExists(s.if_not_exists) + QuotedName(s.trigger) +
           " ON " + ToCql(s.table) + " USING " + QuotedString(s.implementation);
  }
  std::string operator()(const DropTrigger& s) {
    return std::string("DROP TRIGGER ") + IfExists(s.if_exists) + QuotedName(s.trigger) + " ON " +
           ToCql(s.table);
  }

  std::string operator()(const CreateRole& s) {
    return std::string(s.user ? "CREATE USER " : "CREATE ROLE ") + IfNotExists(s.if_not_exists) +
           QuotedString(s.role) + (s.user ? UserText(s.options) : Text(s.options));
  }
  std::string operator()(const AlterRole& s) {
    return std::string(s.user ? "ALTER USER " : "ALTER ROLE ") + IfExists(s.if_exists) +
           QuotedString(s.role) + (s.user ? UserText(s.options) : Text(s.options));
  }
  std::string operator()(const DropRole& s) {
    return std::string(s.user ? "DROP USER " : "DROP ROLE ") + IfExists(s.if_exists) +
           QuotedString(s.role);
  }
  std::string operator()(const ListRoles& s) {
    return s.users ? "LIST USERS"
                   : "LIST ROLES" + (s.of ? " OF " + QuotedString(*s.of) : "") +
                         (s.recursive ? "" : " NORECURSIVE");
  }
  std::string operator()(const GrantRole& s) {
    return (s.revoke ? "REVOKE " : "GRANT ") + QuotedString(s.role) +
           (s.revoke ? " FROM " : " TO ") + QuotedString(s.grantee);
  }
  std::string operator()(const GrantPermissions& s) {
    return (s.revoke ? "REVOKE " : "GRANT ") + Text(s.permissions) + " ON " + Text(s.resource) +
           (s.revoke ? " FROM " : " TO ") + QuotedString(s.grantee);
  }
  std::string operator()(const ListPermissions& s) {
    return "LIST " + Text(s.permissions) + (s.resource ? " ON " + Text(*s.resource) : "") +
           (s.of ? " OF " + QuotedString(*s.of) : "") + (s.recursive ? "" : " NORECURSIVE");
  }
  std::string operator()(const ChangeIdentity& s) {
    if (s.drop) {
      return std::string("DROP IDENTITY ") + IfExists(s.only_if) + QuotedString(s.identity);
    }
    return std::string("ADD IDENTITY ") + IfNotExists(s.only_if) + QuotedString(s.identity) +
           " TO ROLE " + QuotedString(s.role);
  }

  std::string operator()(const Insert& s) {
    std::string values =
        s.json ? " JSON " + ToCql(*s.json) + (s.default_unset ? " DEFAULT UNSET" : " DEFAULT NULL")
               : " (" + JoinNames(s.columns) + ") VALUES (" + Join(s.values) + ")";
    return "INSERT INTO " + ToCql(s.table) + values + (s.if_not_exists ? " IF NOT EXISTS" : "") +
           Text(s.using_);
  }
  std::string operator()(const Update& s) {
    auto text = [](const Assignment& assignment) { return Text(assignment); };
    return "UPDATE " + ToCql(s.table) + Text(s.using_) + " SET " + Join(s.assignments, ", ", text) +
           " WHERE " + ToCql(s.where) + Text(s.conditions);
  }
  std::string operator()(const Delete& s) {
    auto text = [](const Deletion& deletion) { return Text(deletion); };
    return "DELETE " + Join(s.deletions, ", ", text) + " FROM " + ToCql(s.table) + Text(s.using_) +
           " WHERE " + ToCql(s.where) + Text(s.conditions);
  }
  std::string operator()(const Batch& s) {
    static constexpr const char* kKinds[] = {"", "UNLOGGED ", "COUNTER "};
    auto text = [this](const auto& change) { return std::visit(*this, change) + "; "; };
    return std::string("BEGIN ") + kKinds[static_cast<size_t>(s.kind)] + "BATCH" + Text(s.using_) +
           " " + Join(s.changes, "", text) + "APPLY BATCH";
  }
  std::string operator()(const Select& s) {
    auto order = [](const Ordering& ordering) {
      return QuotedName(ordering.column) +
             (ordering.nearest ? " ANN OF " + ToCql(*ordering.nearest) : "") +
             (ordering.descending ? " DESC" : "");
    };
    return std::string("SELECT ") + (s.json ? "JSON " : "") + (s.distinct ? "DISTINCT " : "") +
           Text(s.selectors) + " FROM " + ToCql(s.table) +
           (s.where.empty() ? "" : " WHERE " + ToCql(s.where)) +
           (s.group_by.empty() ? "" : " GROUP BY " + Join(s.group_by)) +
           (s.order_by.empty() ? "" : " ORDER BY " + Join(s.order_by, ", ", order)) +
           (s.per_partition_limit ? " PER PARTITION LIMIT " + ToCql(*s.per_partition_limit) : "") +
           (s.limit ? " LIMIT " + ToCql(*s.limit) : "") +
           (s.allow_filtering ? " ALLOW FILTERING" : "");
  }
  std::string operator()(const Describe& s) {
    if (s.kind == DescribeKind::kAnything && s.name.keyspace.empty()) {
      return "DESCRIBE \"" + s.name.name + "\"" + (s.internals ? " WITH INTERNALS" : "");
    }
    static constexpr const char* kKinds[] = {"CLUSTER",
                                             "SCHEMA",
                                             "KEYSPACES",
                                             "TABLES",
                                             "TYPES",
                                             "FUNCTIONS",
                                             "AGGREGATES",
                                             "KEYSPACE ",
                                             "TABLE ",
                                             "INDEX ",
                                             "MATERIALIZED VIEW ",
                                             "TYPE ",
                                             "FUNCTION ",
                                             "AGGREGATE ",
                                             ""};
    return std::string("DESCRIBE ") + (s.full ? "FULL " : "") + (s.only ? "ONLY " : "") +
           kKinds[static_cast<size_t>(s.kind)] + (s.name.name.empty() ? "" : ToCql(s.name)) +
           (s.internals ? " WITH INTERNALS" : "");
  }
};

}  // namespace

std::string StatementText(const Statement& statement) { return std::visit(Printer(), statement); }

}  // namespace orrery::cql
