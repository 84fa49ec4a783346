#include "cql/selection.h"

#include "cql/selection_builder.h"
#include "cql/value.h"
#include "cql/value_json.h"

namespace orrery::cql {

Result<Selection> Selection::Prepare(const Select& select, const Table& table, MarkerSpecs& markers,
                                     const TypeScope& scope,
                                     const std::function<bool(const Column&)>& fixed) {
  return SelectionBuilder(table, markers, scope).Build(select, fixed);
}

Status Selection::Evaluate(const RowInput& row, const Bindings& bindings,
                           std::vector<Bound>& out) const {
  out.clear();
  if (plain_) {
    for (uint16_t column : *plain_) {
      out.push_back(Bound::View(row.values[column]));
    }
    return Status::Ok();
  }
  NodeInputs inputs{.markers = bindings.markers, .context = bindings.context, .row = &row};
  for (const Part& part : parts_) {
    auto value = part.node->Evaluate(inputs);
    if (!value) {
      return value.error();
    }
    out.push_back(*std::move(value));
  }
  if (json_) {
    ToJson(out);
  }
  return Status::Ok();
}

void Selection::ToJson(std::vector<Bound>& row) const {
  std::string json = "{";
  for (size_t i = 0; i < parts_.size(); ++i) {
    json += i == 0 ? "" : ", ";
    AppendJsonName(parts_[i].name, json);
    json += ": ";
    AppendValueJson(parts_[i].node->type(), row[i].value(), json);
  }
  json += "}";
  row.clear();
  row.push_back(Bound::Own(std::move(json)));
}

Aggregator::Aggregator(const Selection& selection, const Bindings& bindings, Sink sink)
    : selection_(selection), bindings_(bindings), sink_(std::move(sink)) {}

Result<std::vector<std::optional<std::string>>> Aggregator::KeyOf(const RowInput& row) const {
  NodeInputs inputs{.markers = bindings_.markers, .context = bindings_.context, .row = &row};
  std::vector<std::optional<std::string>> key;
  for (const NodePtr& node : selection_.group_by_) {
    ORRERY_TRY(Bound value, node->Evaluate(inputs));
    key.push_back(std::move(value).TakeValue());
  }
  return key;
}

bool Aggregator::SameKey(const std::vector<std::optional<std::string>>& key) const {
  for (size_t i = 0; i < key.size(); ++i) {
    if (key[i].has_value() != key_[i].has_value()) {
      return false;
    }
    if (key[i] && CompareValues(selection_.group_by_[i]->type(), *key[i], *key_[i]) != 0) {
      return false;
    }
  }
  return true;
}

Status Aggregator::Add(const RowInput& row) {
  auto key = KeyOf(row);
  if (!key) {
    return key.error();
  }
  if (in_group_ && !SameKey(*key)) {
    ORRERY_RETURN_IF_ERROR(Emit());
  }
  if (!in_group_) {
    key_ = *std::move(key);
    ORRERY_RETURN_IF_ERROR(Begin(row));
  }
  NodeInputs inputs{.markers = bindings_.markers, .context = bindings_.context, .row = &row};
  for (size_t i = 0; i < states_.size(); ++i) {
    const NodePtr& argument = selection_.aggregates_[i].argument;
    if (argument == nullptr) {
      ORRERY_RETURN_IF_ERROR(states_[i]->Add({}));
      continue;
    }
    auto value = argument->Evaluate(inputs);
    if (!value) {
      return value.error();
    }
    if (value->has_value()) {
      ORRERY_RETURN_IF_ERROR(states_[i]->Add(value->bytes()));
    }
  }
  return Status::Ok();
}

Status Aggregator::Begin(const RowInput& row) {
  in_group_ = true;
  states_.clear();
  for (const auto& aggregate : selection_.aggregates_) {
    states_.push_back(aggregate.function->start());
  }
  first_parts_.clear();
  NodeInputs inputs{.markers = bindings_.markers, .context = bindings_.context, .row = &row};
  for (const auto& part : selection_.parts_) {
    first_parts_.emplace_back();
    if (part.aggregated) {
      continue;
    }
    auto value = part.node->Evaluate(inputs);
    if (!value) {
      return value.error();
    }
    first_parts_.back() = std::move(*value).TakeValue();
  }
  first_row_.assign(row.values.begin(), row.values.end());
  return Status::Ok();
}

Status Aggregator::Emit() {
  std::vector<std::optional<std::string>> results;
  for (const auto& state : states_) {
    auto value = state->Finish();
    if (!value) {
      return value.error();
    }
    results.push_back(*std::move(value));
  }
  std::vector<std::optional<std::string_view>> first(first_row_.begin(), first_row_.end());
  RowInput row{.values = first};
  NodeInputs inputs{.markers = bindings_.markers,
                    .context = bindings_.context,
                    .row = first.empty() ? nullptr : &row,
                    .aggregates = results};
  std::vector<Bound> out;
  for (size_t i = 0; i < selection_.parts_.size(); ++i) {
    if (!selection_.parts_[i].aggregated) {
      out.push_back(Bound::Own(first_parts_[i]));
      continue;
    }
    auto value = selection_.parts_[i].node->Evaluate(inputs);
    if (!value) {
      return value.error();
    }
    out.push_back(*std::move(value));
  }
  in_group_ = false;
  if (selection_.json_) {
    selection_.ToJson(out);
  }
  return sink_(out);
}

Status Aggregator::Finish() {
  if (in_group_) {
    return Emit();
  }
  if (selection_.has_group_by()) {
    return Status::Ok();
  }
  // No row came: what is no aggregate is null.
  first_row_.clear();
  states_.clear();
  for (const auto& aggregate : selection_.aggregates_) {
    states_.push_back(aggregate.function->start());
  }
  first_parts_.assign(selection_.parts_.size(), std::nullopt);
  return Emit();
}

}  // namespace orrery::cql
