#include "api/cassandra/writes.h"

#include <algorithm>
#include <utility>

#include "cql/assemble.h"
#include "cql/ordered_value.h"
#include "cql/partition_token.h"
#include "cql/value.h"
#include "cql/value_json.h"

namespace orrery::cassandra {

using cql::AssignmentKind;
using cql::Bound;
using cql::Column;
using cql::ColumnKind;
using cql::DataType;
using cql::TypeId;
using rows::CellAction;
using rows::CellChange;
using rows::RowAction;
using rows::RowChange;

namespace {

constexpr int32_t kTtlMax = 20 * 365 * 24 * 60 * 60;  // 20 years, as in Cassandra

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

Status Undefined(const cql::Table& table, std::string_view column) {
  return Invalid("Undefined column name " + std::string(column) + " in table " + table.keyspace +
                 "." + table.name);
}

// `c = value`, as a relation.
cql::Relation Equality(const std::string& column, const cql::Expression& value) {
  cql::Relation relation;
  relation.columns = {column};
  relation.values = {value};
  return relation;
}

std::string ElementText(std::string_view what, const Column& column) {
  return std::string(what) + " on column " + column.name;
}

// RowChange::whole of what an INSERT writes; the cells of a column stand together.
uint32_t WholeOf(const cql::Table& table, const RowChange& change) {
  if (!change.marks) {
    return 0;
  }
  std::ptrdiff_t written = 0;
  uint32_t last = 0;  // ids begin with 1
  for (const CellChange& cell : change.cells) {
    written += std::exchange(last, cell.column) != cell.column;
  }
  auto regular = std::ranges::count(table.others(), ColumnKind::kRegular, &Column::kind);
  return written == regular ? table.next_column : 0;
}

}  // namespace

void AppendCells(const Column& column, std::optional<std::string_view> value,
                 std::vector<CellChange>& cells) {
  const DataType& type = column.type;
  if (!type.multi_cell()) {
    cells.push_back({.action = value ? CellAction::kSet : CellAction::kDelete,
                     .column = column.id,
                     .path = {},
                     .value = std::string(value.value_or(""))});
    return;
  }
  if (!value) {
    cells.push_back(
        {.action = CellAction::kDeleteColumn, .column = column.id, .path = {}, .value = {}});
    return;
  }
  cells.push_back(
      {.action = CellAction::kReplaceColumn, .column = column.id, .path = {}, .value = {}});
  std::string key;
  for (cql::PartReader part(type, *value); part.Next();) {
    std::string_view bytes = part.value().value_or("");
    switch (type.id()) {
      case TypeId::kList:
        cells.push_back({CellAction::kAppend, column.id, {}, std::string(bytes)});
        break;
      case TypeId::kSet:
        cells.push_back({CellAction::kSet, column.id, cql::ElementPath(type.element(), bytes), {}});
        break;
      case TypeId::kMap:
        if (part.index() % 2 == 0) {
          key = cql::ElementPath(type.element(), bytes);
        } else {
          cells.push_back({CellAction::kSet, column.id, key, std::string(bytes)});
        }
        break;
      default:
        if (part.value()) {
          cells.push_back(
              {CellAction::kSet, column.id, cql::FieldPath(part.index()), std::string(bytes)});
        }
    }
  }
}

// --- Compiling -----------------------------------------------------------------------------------

Status WritePlan::AddUsing(const cql::Using& with, const Preparation& in) {
  const cql::Receiver receiver = in.Of(in.table.columns[0]);
  if (with.timestamp) {
    auto term = in.Prepare(*with.timestamp, cql::TimestampReceiver(receiver));
    if (!term) {
      return term.error();
    }
    timestamp_ = std::move(*term);
  }
  if (with.ttl) {
    auto term = in.Prepare(*with.ttl, cql::TtlReceiver(receiver));
    if (!term) {
      return term.error();
    }
    ttl_ = std::move(*term);
  }
  if (if_not_exists_ && timestamp_) {
    return Invalid("Cannot provide custom timestamp for conditional updates");
  }
  if (counts_ && timestamp_) {
    return Invalid("Cannot provide custom timestamp for counter updates");
  }
  if (counts_ && ttl_) {
    return Invalid("Cannot provide custom TTL for counter updates");
  }
  return Status::Ok();
}

bool WritePlan::only_static() const {
  if (cells_.empty()) {
    return false;
  }
  return std::ranges::all_of(
      cells_, [](const Cell& cell) { return cell.column->kind == ColumnKind::kStatic; });
}

// Whether WHERE, or the columns of INSERT, say which rows are meant.
Status WritePlan::CheckPlace(const Preparation& in) {
  if (conditional() && where_.many_partitions()) {
    return Invalid("IN on the partition key is not supported with conditional " +
                   std::string(kind_ == Kind::kDelete ? "deletions" : "updates"));
  }
  if (conditional() && where_.many_rows()) {
    return Invalid("IN on the clustering key columns is not supported with conditional " +
                   std::string(kind_ == Kind::kDelete ? "deletions" : "updates"));
  }
  const auto clustering = in.table.clustering();
  const bool statics = only_static();
  if (kind_ == Kind::kDelete && cells_.empty()) {
    if (conditional() && !where_.names_rows()) {
      return Invalid(
          "DELETE statements must restrict all PRIMARY KEY columns with equality "
          "relations in order to use IF conditions");
    }
    return Status::Ok();
  }
  if (statics && where_.clustering_columns() == 0) {
    return Status::Ok();
  }
  if (statics && kind_ != Kind::kInsert && conditions_.empty() && !if_exists_) {
    return Invalid("Invalid restrictions on clustering columns since the " +
                   std::string(kind_ == Kind::kDelete ? "DELETE" : "UPDATE") +
                   " statement modifies only static columns");
  }
  if (where_.names_rows()) {
    return Status::Ok();
  }
  std::string missing;
  for (size_t i = where_.clustering_columns(); i < clustering.size(); ++i) {
    missing += (missing.empty() ? "" : ", ") + clustering[i].name;
  }
  if (missing.empty()) {
    return Invalid("Slice restrictions are not supported on the clustering columns in " +
                   std::string(kind_ == Kind::kDelete ? "DELETE" : "UPDATE") + " statements");
  }
  if (kind_ == Kind::kDelete) {
    return Invalid("Range deletions are not supported for specific columns");
  }
  return Invalid("Some clustering keys are missing: " + missing);
}

Result<WritePlan> WritePlan::Compile(const cql::Insert& insert, const Preparation& in) {
  WritePlan plan;
  plan.table_ = &in.table;
  plan.kind_ = Kind::kInsert;
  plan.if_not_exists_ = insert.if_not_exists;
  if (in.table.counts()) {
    return Error(Code::kInvalidArgument,
                 "INSERT statements are not allowed on counter tables, use UPDATE instead");
  }
  if (insert.json) {
    plan.default_unset_ = insert.default_unset;
    ORRERY_TRY(plan.json_, in.Prepare(*insert.json, cql::JsonReceiver(in.Of(in.table.columns[0]))));
    ORRERY_TRY_STATUS(plan.AddUsing(insert.using_, in));
    return plan;
  }
  if (insert.columns.size() != insert.values.size()) {
    return Error(Code::kInvalidArgument, "Unmatched column names/values");
  }
  cql::Where where;
  for (size_t i = 0; i < insert.columns.size(); ++i) {
    const std::string& name = insert.columns[i];
    const Column* column = in.table.Find(name);
    if (column == nullptr) {
      return Error(Undefined(in.table, name));
    }
    if (std::ranges::find(insert.columns.begin(),
                          insert.columns.begin() + static_cast<ptrdiff_t>(i),
                          name) != insert.columns.begin() + static_cast<ptrdiff_t>(i)) {
      return Error(Code::kInvalidArgument, "Multiple definitions found for column " + name);
    }
    if (column->is_key()) {
      where.relations.push_back(Equality(name, insert.values[i]));
      continue;
    }
    Cell& cell = plan.cells_.emplace_back();
    cell.column = column;
    ORRERY_TRY(cell.value, in.Prepare(insert.values[i], in.Of(*column)));
  }
  ORRERY_TRY(plan.where_, Restrictions::Compile(where, in, Restrictions::Use::kUpdate));
  ORRERY_TRY_STATUS(plan.AddUsing(insert.using_, in));
  ORRERY_TRY_STATUS(plan.CheckPlace(in));
  return plan;
}

Status WritePlan::AddAssignment(const cql::Assignment& assignment, const Preparation& in) {
  const Column* column = in.table.Find(assignment.column);
  if (column == nullptr) {
    return Undefined(in.table, assignment.column);
  }
  if (column->is_key()) {
    return Invalid("PRIMARY KEY part " + column->name + " found in SET part");
  }
  const DataType& type = column->type;
  Cell cell{.column = column};
  cql::Receiver receiver = in.Of(*column);
  const bool counter = type.id() == TypeId::kCounter;
  if (counter && assignment.kind != AssignmentKind::kAdd &&
      assignment.kind != AssignmentKind::kSubtract) {
    return Invalid("Cannot set the value of counter column " + column->name +
                   " (counters can only be incremented/decremented, not set)");
  }
  switch (assignment.kind) {
    case AssignmentKind::kSet: cell.action = Action::kSet; break;
    case AssignmentKind::kAdd:
    case AssignmentKind::kSubtract:
    case AssignmentKind::kPrepend: {
      const bool add = assignment.kind != AssignmentKind::kSubtract;
      if (!counter && !type.is_collection()) {
        return Invalid("Invalid operation (" + column->name + " = " + column->name +
                       (add ? " + " : " - ") + "...) for non counter column " + column->name);
      }
      if (!counter && !type.multi_cell()) {
        return Invalid("Invalid operation (" + column->name + " = " + column->name +
                       (add ? " + " : " - ") + "...) for frozen collection column " + column->name);
      }
      if (assignment.kind == AssignmentKind::kPrepend && type.id() != TypeId::kList && !counter) {
        return Invalid("Invalid operation for column " + column->name +
                       ": only a list can be prepended to");
      }
      cell.action = assignment.kind == AssignmentKind::kPrepend ? Action::kPrepend
                    : add                                       ? Action::kAdd
                                                                : Action::kSubtract;
      if (counter) {
        receiver.type = TypeId::kBigint;
      } else if (!add && type.id() == TypeId::kMap) {
        receiver.type = DataType::Set(type.element());
      }
      break;
    }
    case AssignmentKind::kSetElement: {
      cell.action = Action::kSetElement;
      if (type.id() != TypeId::kMap && type.id() != TypeId::kList) {
        return Invalid("Invalid element operation for non-collection column " + column->name);
      }
      if (!type.multi_cell()) {
        return Invalid("Invalid element operation for frozen collection column " + column->name);
      }
      auto element = in.Prepare(*assignment.element, cql::ElementReceiver(receiver, true));
      if (!element) {
        return element.error();
      }
      cell.element = std::move(*element);
      receiver = cql::ElementReceiver(receiver, false);
      break;
    }
    case AssignmentKind::kSetField: {
      cell.action = Action::kSetField;
      auto field = type.id() == TypeId::kUdt ? type.FieldIndex(assignment.field) : std::nullopt;
      if (type.id() != TypeId::kUdt || !type.multi_cell()) {
        return Invalid("Invalid operation (" + column->name + "." + assignment.field +
                       " = ...) for " + (type.id() == TypeId::kUdt ? "frozen UDT" : "non-UDT") +
                       " column " + column->name);
      }
      if (!field) {
        return Invalid("UDT column " + column->name + " does not have a field named " +
                       assignment.field);
      }
      cell.field = *field;
      receiver = cql::FieldReceiver(receiver, *field);
      break;
    }
  }
  auto value = in.Prepare(assignment.value, receiver);
  if (!value) {
    return value.error();
  }
  cell.value = std::move(*value);
  cells_.push_back(std::move(cell));
  return Status::Ok();
}

Result<WritePlan> WritePlan::Compile(const cql::Update& update, const Preparation& in) {
  WritePlan plan;
  plan.table_ = &in.table;
  plan.kind_ = Kind::kUpdate;
  plan.counts_ = in.table.counts();
  for (const cql::Assignment& assignment : update.assignments) {
    ORRERY_TRY_STATUS(plan.AddAssignment(assignment, in));
  }
  ORRERY_TRY(plan.where_, Restrictions::Compile(update.where, in, Restrictions::Use::kUpdate));
  ORRERY_TRY_STATUS(plan.AddUsing(update.using_, in));
  ORRERY_TRY_STATUS(plan.AddConditions(update.conditions, in));
  ORRERY_TRY_STATUS(plan.CheckPlace(in));
  return plan;
}

Status WritePlan::AddDeletion(const cql::Deletion& deletion, const Preparation& in) {
  const Column* column = in.table.Find(deletion.column);
  if (column == nullptr) {
    return Undefined(in.table, deletion.column);
  }
  if (column->is_key()) {
    return Invalid("Invalid identifier " + column->name +
                   " for deletion (should not be a PRIMARY KEY part)");
  }
  const DataType& type = column->type;
  Cell cell{.action = Action::kDelete, .column = column};
  if (deletion.element) {
    if (!type.is_collection() || !type.multi_cell()) {
      return Invalid("Invalid deletion operation for " +
                     std::string(type.is_collection() ? "frozen" : "non-") +
                     (type.is_collection() ? " collection column " : "collection column ") +
                     column->name);
    }
    cql::Receiver receiver = cql::ElementReceiver(in.Of(*column), true);
    if (type.id() == TypeId::kSet) {
      receiver.type = type.element();
    }
    auto element = in.Prepare(*deletion.element, receiver);
    if (!element) {
      return element.error();
    }
    cell.action = Action::kDeleteElement;
    cell.element = std::move(*element);
  } else if (!deletion.field.empty()) {
    auto field = type.id() == TypeId::kUdt ? type.FieldIndex(deletion.field) : std::nullopt;
    if (!field || !type.multi_cell()) {
      return Invalid("Invalid field deletion operation for " +
                     std::string(type.id() == TypeId::kUdt ? "frozen UDT" : "non-UDT") +
                     " column " + column->name);
    }
    cell.action = Action::kDeleteField;
    cell.field = *field;
  }
  cells_.push_back(std::move(cell));
  return Status::Ok();
}

Result<WritePlan> WritePlan::Compile(const cql::Delete& deletion, const Preparation& in) {
  WritePlan plan;
  plan.table_ = &in.table;
  plan.kind_ = Kind::kDelete;
  plan.counts_ = in.table.counts();
  for (const cql::Deletion& each : deletion.deletions) {
    ORRERY_TRY_STATUS(plan.AddDeletion(each, in));
  }
  ORRERY_TRY(plan.where_, Restrictions::Compile(deletion.where, in, Restrictions::Use::kDelete));
  ORRERY_TRY_STATUS(plan.AddUsing(deletion.using_, in));
  ORRERY_TRY_STATUS(plan.AddConditions(deletion.conditions, in));
  ORRERY_TRY_STATUS(plan.CheckPlace(in));
  return plan;
}

Status WritePlan::AddConditions(const cql::Conditions& conditions, const Preparation& in) {
  if_exists_ = conditions.if_exists;
  for (const cql::Relation& relation : conditions.relations) {
    ORRERY_RETURN_IF_ERROR(AddCondition(relation, in));
  }
  if (conditional() && counts_) {
    return Invalid("Conditional updates are not supported on counter tables");
  }
  if (conditional() && timestamp_) {
    return Invalid("Cannot provide custom timestamp for conditional updates");
  }
  return Status::Ok();
}

Status WritePlan::AddCondition(const cql::Relation& relation, const Preparation& in) {
  const Column* column = in.table.Find(relation.columns.at(0));
  if (column == nullptr) {
    return Undefined(in.table, relation.columns.at(0));
  }
  if (column->is_key()) {
    return Invalid("PRIMARY KEY column '" + column->name + "' cannot have IF conditions");
  }
  const DataType& type = column->type;
  ConditionTerm term{
      .column = column, .comparison = relation.comparison, .in_marker = relation.in_marker};
  cql::Receiver receiver = in.Of(*column);
  if (relation.target == cql::RelationTarget::kElement) {
    if (type.id() != TypeId::kMap && type.id() != TypeId::kList) {
      return Invalid(ElementText("Invalid element access syntax", *column));
    }
    auto element = in.Prepare(*relation.element, cql::ElementReceiver(receiver, true));
    if (!element) {
      return element.error();
    }
    term.part = rows::CellCondition::Part::kElement;
    term.element = std::move(*element);
    receiver = cql::ElementReceiver(receiver, false);
  } else if (relation.target == cql::RelationTarget::kField) {
    auto field = type.id() == TypeId::kUdt ? type.FieldIndex(relation.field) : std::nullopt;
    if (!field) {
      return Invalid("Unknown field " + relation.field + " for column " + column->name);
    }
    term.part = rows::CellCondition::Part::kField;
    term.field = static_cast<uint32_t>(*field);
    receiver = cql::FieldReceiver(receiver, *field);
  } else if (relation.comparison == cql::Comparison::kContains ||
             relation.comparison == cql::Comparison::kContainsKey) {
    const bool keys = relation.comparison == cql::Comparison::kContainsKey;
    if (!type.is_collection() || (keys && type.id() != TypeId::kMap)) {
      return Invalid(ElementText("Cannot use CONTAINS", *column));
    }
    receiver.type = keys || type.id() != TypeId::kMap ? type.element() : type.mapped();
  }
  if (relation.comparison > cql::Comparison::kContainsKey) {
    return Invalid(ElementText("Unsupported condition", *column));
  }
  for (const cql::Expression& value : relation.values) {
    auto prepared = in.Prepare(value, relation.in_marker ? cql::InReceiver(receiver) : receiver);
    if (!prepared) {
      return prepared.error();
    }
    term.values.push_back(std::move(*prepared));
  }
  conditions_.push_back(std::move(term));
  return Status::Ok();
}

std::vector<uint16_t> WritePlan::KeyMarkers() const {
  return json_ ? std::vector<uint16_t>() : where_.KeyMarkers();
}

std::vector<const Column*> WritePlan::ShownColumns() const {
  std::vector<const Column*> shown;
  if (conditions_.empty()) {
    for (const Column& column : table_->columns) {
      shown.push_back(&column);
    }
    return shown;
  }
  for (const ConditionTerm& term : conditions_) {
    if (std::ranges::find(shown, term.column) == shown.end()) {
      shown.push_back(term.column);
    }
  }
  return shown;
}

// --- Binding -------------------------------------------------------------------------------------

Result<int32_t> WritePlan::BindTtl(const Binding& binding) const {
  if (!ttl_) {
    return table_->default_ttl;
  }
  ORRERY_TRY(Bound bound, ttl_->Bind(binding.values, binding.context));
  if (bound.is_unset()) {
    return table_->default_ttl;
  }
  if (bound.is_null() || bound.bytes().empty()) {
    return 0;
  }
  const int32_t ttl = cql::ReadInt(bound.bytes());
  if (ttl < 0) {
    return Error(Code::kInvalidArgument,
                 "A TTL must be greater or equal to 0, but was " + std::to_string(ttl));
  }
  if (ttl > kTtlMax) {
    return Error(Code::kInvalidArgument, "ttl is too large. requested (" + std::to_string(ttl) +
                                             ") maximum (" + std::to_string(kTtlMax) + ")");
  }
  return ttl;
}

Result<std::optional<int64_t>> WritePlan::BindTimestamp(const Binding& binding,
                                                        const Defaults& defaults) const {
  if (!timestamp_) {
    return defaults.timestamp;
  }
  ORRERY_TRY(Bound bound, timestamp_->Bind(binding.values, binding.context));
  if (bound.is_null()) {
    return Error(Code::kInvalidArgument, "Invalid null value of timestamp");
  }
  if (bound.is_unset() || bound.bytes().size() != 8) {
    return defaults.timestamp;
  }
  const int64_t timestamp = cql::ReadBigint(bound.bytes());
  if (timestamp == INT64_MIN) {
    return Error(Code::kInvalidArgument,
                 "Out of bound timestamp, must be in [-9223372036854775807, 9223372036854775807]");
  }
  return timestamp;
}

Status WritePlan::BindTimes(const Binding& binding, const Defaults& defaults,
                            RowChange& change) const {
  auto timestamp = BindTimestamp(binding, defaults);
  auto ttl = BindTtl(binding);
  if (!timestamp || !ttl) {
    return timestamp ? ttl.error() : timestamp.error();
  }
  change.timestamp = *timestamp;
  change.ttl = counts_ ? 0 : *ttl;
  if (defaults.now && change.ttl > 0) {
    // 0 would be none.
    change.made = std::max<int64_t>(int64_t{*defaults.now} * 1'000'000, 1);
  }
  return Status::Ok();
}

Result<WritePlan::Place> WritePlan::BindPlace(const Binding& binding) const {
  Place place;
  ORRERY_TRY(place.partitions, where_.PartitionKeys(binding));
  ORRERY_TRY(place.spans, where_.Spans(binding));
  return place;
}

Status WritePlan::BindCell(const Cell& cell, const Binding& binding, RowChange& change) const {
  const Column& column = *cell.column;
  const DataType& type = column.type;
  std::string element;
  if (cell.element) {
    auto bound = cell.element->Bind(binding.values, binding.context);
    if (!bound) {
      return bound.error();
    }
    if (bound->is_unset()) {
      return Invalid("Invalid unset value for the element of column " + column.name);
    }
    if (bound->is_null()) {
      return Invalid(type.id() == TypeId::kMap ? "Invalid null map key"
                                               : "Invalid null value for list index");
    }
    element = std::move(*bound).Take();
  }
  Bound bound;
  if (cell.value) {
    auto value = cell.value->Bind(binding.values, binding.context);
    if (!value) {
      return value.error();
    }
    if (value->is_unset()) {
      return Status::Ok();
    }
    bound = std::move(*value);
  }
  std::vector<CellChange>& cells = change.cells;
  const bool list = type.id() == TypeId::kList;
  switch (cell.action) {
    case Action::kSet:
    case Action::kDelete: AppendCells(column, bound.value(), cells); break;
    case Action::kAdd:
    case Action::kPrepend:
    case Action::kSubtract: {
      if (type.id() == TypeId::kCounter) {
        if (!bound.has_value()) {
          return Invalid("Invalid null value for counter increment");
        }
        int64_t delta = cql::ReadBigint(bound.bytes());
        if (cell.action == Action::kSubtract) {
          delta = static_cast<int64_t>(0 - static_cast<uint64_t>(delta));
        }
        cells.push_back({CellAction::kAdd, column.id, {}, cql::BigintBytes(delta)});
        break;
      }
      if (!bound.has_value()) {
        break;  // nothing is added
      }
      std::string key;
      for (cql::PartReader part(cell.value->type(), bound.bytes()); part.Next();) {
        std::string value(part.value().value_or(""));
        if (list) {
          cells.push_back({cell.action == Action::kAdd       ? CellAction::kAppend
                           : cell.action == Action::kPrepend ? CellAction::kPrepend
                                                             : CellAction::kRemove,
                           column.id,
                           {},
                           std::move(value)});
        } else if (cell.action == Action::kSubtract) {
          cells.push_back(
              {CellAction::kDelete, column.id, cql::ElementPath(type.element(), value), {}});
        } else if (type.id() == TypeId::kSet) {
          cells.push_back(
              {CellAction::kSet, column.id, cql::ElementPath(type.element(), value), {}});
        } else if (part.index() % 2 == 0) {
          key = cql::ElementPath(type.element(), value);
        } else {
          cells.push_back({CellAction::kSet, column.id, key, std::move(value)});
        }
      }
      break;
    }
    case Action::kSetElement:
    case Action::kDeleteElement: {
      const bool set = cell.action == Action::kSetElement && bound.has_value();
      CellAction action = list ? (set ? CellAction::kSetAt : CellAction::kDeleteAt)
                               : (set ? CellAction::kSet : CellAction::kDelete);
      cells.push_back({action, column.id,
                       list ? element : cql::ElementPath(type.element(), element),
                       std::string(bound.bytes())});
      break;
    }
    case Action::kSetField:
    case Action::kDeleteField:
      cells.push_back({bound.has_value() ? CellAction::kSet : CellAction::kDelete, column.id,
                       cql::FieldPath(cell.field), std::string(bound.bytes())});
      break;
  }
  return Status::Ok();
}

Result<std::vector<rows::CellCondition>> WritePlan::BindConditions(const Binding& binding) const {
  std::vector<rows::CellCondition> bound;
  for (const ConditionTerm& term : conditions_) {
    rows::CellCondition& condition = bound.emplace_back();
    condition.column = term.column->id;
    condition.type = term.column->type;
    condition.comparison = term.comparison;
    condition.part = term.part;
    condition.field = term.field;
    if (term.element) {
      ORRERY_TRY(Bound element, term.element->Bind(binding.values, binding.context));
      if (!element.has_value()) {
        return Error(Code::kInvalidArgument,
                     "Invalid null value for the element of column " + term.column->name);
      }
      condition.element = std::move(element).Take();
    }
    for (const cql::Term& value : term.values) {
      ORRERY_TRY(Bound each, value.Bind(binding.values, binding.context));
      if (each.is_unset()) {
        return Error(Code::kInvalidArgument, "Invalid 'unset' value in condition");
      }
      if (term.in_marker) {
        if (each.is_null()) {
          return Error(Code::kInvalidArgument, "Invalid null list in IN condition");
        }
        for (cql::PartReader part(value.type(), each.bytes()); part.Next();) {
          condition.values.emplace_back(part.value());
        }
        continue;
      }
      const bool equality = term.comparison == cql::Comparison::kEqual ||
                            term.comparison == cql::Comparison::kNotEqual ||
                            term.comparison == cql::Comparison::kIn;
      if (each.is_null() && !equality) {
        return Error(Code::kInvalidArgument, "Invalid comparison with null for operator");
      }
      condition.values.push_back(std::move(each).TakeValue());
    }
  }
  return bound;
}

// The changes of every row that is meant.
Result<std::vector<BoundWrite>> WritePlan::Assemble(const Place& place, RowChange statics,
                                                    RowChange regulars,
                                                    const Binding& binding) const {
  ORRERY_TRY(std::vector<rows::CellCondition> conditions, BindConditions(binding));
  regulars.whole = WholeOf(*table_, regulars);
  const bool whole_rows = kind_ == Kind::kDelete && cells_.empty();
  const bool one_static = only_static() && where_.clustering_columns() == 0 && !json_;
  std::vector<BoundWrite> writes;
  for (const std::string& partition : place.partitions) {
    BoundWrite& write = writes.emplace_back();
    write.partition_key = partition;
    if (!statics.cells.empty()) {
      write.changes.push_back(statics);
    }
    if (whole_rows && place.spans.empty()) {
      RowChange change = regulars;
      change.action = RowAction::kDeletePartition;
      change.marks = counts_;
      write.changes.push_back(std::move(change));
    }
    for (const rows::RowSpan& span : place.spans) {
      RowChange change = regulars;
      change.key = span.begin;
      if (whole_rows) {
        change.action = span.one ? RowAction::kDeleteRow : RowAction::kDeleteRange;
        change.end = span.end;
        change.marks = counts_ && !span.one;
        write.changes.push_back(std::move(change));
      } else if (!one_static && (change.marks || !change.cells.empty())) {
        write.changes.push_back(std::move(change));
      }
    }
    if (!conditional()) {
      continue;
    }
    rows::RowCondition condition;
    condition.kind = if_not_exists_ ? rows::RowCondition::Kind::kNotExists
                     : if_exists_   ? rows::RowCondition::Kind::kExists
                                    : rows::RowCondition::Kind::kCells;
    condition.is_static = place.spans.empty();
    condition.key = place.spans.empty() ? std::string() : place.spans[0].begin;
    condition.cells = conditions;
    write.conditions.push_back(std::move(condition));
  }
  return writes;
}

Result<std::vector<BoundWrite>> WritePlan::BindJson(const Binding& binding,
                                                    const Defaults& defaults) const {
  ORRERY_TRY(Bound text, json_->Bind(binding.values, binding.context));
  if (!text.has_value()) {
    return Error(Code::kInvalidArgument, "Got null for INSERT JSON values");
  }
  ORRERY_TRY(std::vector<cql::Json::Member> members, cql::ParseJsonRow(text.bytes()));
  std::vector<std::optional<std::string>> values(table_->columns.size());
  std::vector<bool> given(table_->columns.size());
  for (const auto& member : members) {
    const Column* column = table_->Find(member.name);
    if (column == nullptr) {
      return Error(Code::kInvalidArgument,
                   "JSON values map contains unrecognized column: " + member.name);
    }
    const auto place = static_cast<size_t>(column - table_->columns.data());
    ORRERY_TRY(values[place], cql::ValueFromJson(column->type, member.value));
    given[place] = true;
  }
  RowChange statics{.is_static = true};
  RowChange regulars{.marks = true};
  ORRERY_TRY_STATUS(BindTimes(binding, defaults, statics));
  ORRERY_TRY_STATUS(BindTimes(binding, defaults, regulars));
  std::vector<std::string> key;
  rows::RowSpan span{.begin = {}, .end = {}, .one = true};
  for (size_t i = 0; i < values.size(); ++i) {
    const Column& column = table_->columns[i];
    if (column.is_key() && !values[i]) {
      return Error(Code::kInvalidArgument,
                   "Invalid null value in condition for column " + column.name);
    }
    if (column.kind == ColumnKind::kPartitionKey) {
      ORRERY_TRY(key.emplace_back(), CheckPart(*table_, std::move(*values[i])));
    } else if (column.kind == ColumnKind::kClustering) {
      cql::AppendOrderedValue(column.type, *values[i], column.descending, span.begin);
    } else if (given[i] || !default_unset_) {
      AppendCells(column, values[i],
                  column.kind == ColumnKind::kStatic ? statics.cells : regulars.cells);
    }
  }
  ORRERY_TRY_STATUS(CheckClustering(span.begin));
  return Assemble({.partitions = {cql::JoinedKey(key)}, .spans = {span}}, std::move(statics),
                  std::move(regulars), binding);
}

Result<std::vector<BoundWrite>> WritePlan::Bind(const Binding& binding,
                                                const Defaults& defaults) const {
  if (json_) {
    return BindJson(binding, defaults);
  }
  ORRERY_TRY(Place place, BindPlace(binding));
  RowChange regulars;
  ORRERY_TRY_STATUS(BindTimes(binding, defaults, regulars));
  RowChange statics = regulars;
  statics.is_static = true;
  regulars.marks = kind_ == Kind::kInsert && !(only_static() && where_.clustering_columns() == 0);
  for (const Cell& cell : cells_) {
    ORRERY_TRY_STATUS(
        BindCell(cell, binding, cell.column->kind == ColumnKind::kStatic ? statics : regulars));
  }
  return Assemble(place, std::move(statics), std::move(regulars), binding);
}

}  // namespace orrery::cassandra
