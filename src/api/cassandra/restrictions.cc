#include "api/cassandra/restrictions.h"

#include <algorithm>

#include "cql/ordered_value.h"
#include "cql/partition_token.h"
#include "cql/value.h"

namespace orrery::cassandra {

using cql::Bound;
using cql::Column;
using cql::ColumnKind;
using cql::Comparison;
using cql::DataType;
using cql::Relation;
using cql::RelationTarget;
using Kind = Restriction::Kind;

namespace {

constexpr size_t kKeysMax = 10'000;      // partitions, or spans, that one statement may name
constexpr size_t kKeyBytesMax = 65'535;  // as in Cassandra
constexpr char kAbove = '\xFF';          // behind every key that goes on

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

// Adds a relation to what is known of its column, or columns.
Status AddTo(Restriction& to, const Relation& relation, std::string_view name,
             const cql::Receiver& receiver, const Preparation& in) {
  const bool slice = cql::IsSlice(relation.comparison);
  if (to.kind != Kind::kNone && (to.kind != Kind::kSlice || !slice)) {
    bool equal = to.kind == Kind::kEqual || relation.comparison == Comparison::kEqual;
    return Invalid(std::string(name) +
                   " cannot be restricted by more than one relation if it includes " +
                   (equal ? "an Equal" : "a IN"));
  }
  if (relation.comparison == Comparison::kIn) {
    to.kind = Kind::kIn;
    if (relation.in_marker) {
      auto term = in.Prepare(relation.values.at(0), cql::InReceiver(receiver));
      if (!term) {
        return term.error();
      }
      to.in = std::move(*term);
      return Status::Ok();
    }
  }
  std::vector<cql::Term> terms;
  for (const cql::Expression& value : relation.values) {
    auto term = in.Prepare(value, receiver);
    if (!term) {
      return term.error();
    }
    terms.push_back(std::move(*term));
  }
  if (!slice) {
    to.kind = to.kind == Kind::kIn ? Kind::kIn : Kind::kEqual;
    to.values = std::move(terms);
    return Status::Ok();
  }
  to.kind = Kind::kSlice;
  const Comparison comparison = relation.comparison;
  const bool below = comparison == Comparison::kLess || comparison == Comparison::kLessEqual;
  if (comparison == Comparison::kBetween) {
    if (to.lower || to.upper) {
      return Invalid("More than one restriction was found for the bounds on " + std::string(name));
    }
    to.lower = terms.at(0);
    to.upper = terms.at(1);
    to.lower_closed = to.upper_closed = true;
    return Status::Ok();
  }
  if ((below ? to.upper : to.lower).has_value()) {
    return Invalid("More than one restriction was found for the " +
                   std::string(below ? "end" : "start") + " bound on " + std::string(name));
  }
  (below ? to.upper : to.lower) = terms.at(0);
  (below ? to.upper_closed : to.lower_closed) =
      comparison == Comparison::kLessEqual || comparison == Comparison::kGreaterEqual;
  return Status::Ok();
}

// The values of one side of a restriction: one, or those of a tuple.
using Values = std::vector<std::string>;

Result<std::string> BindKey(const cql::Term& term, const Binding& binding, std::string_view name) {
  ORRERY_TRY(Bound bound, term.Bind(binding.values, binding.context));
  if (bound.is_unset()) {
    return Error(Code::kInvalidArgument, "Invalid unset value for column " + std::string(name));
  }
  if (bound.is_null()) {
    return Error(Code::kInvalidArgument,
                 "Invalid null value in condition for column " + std::string(name));
  }
  return std::move(bound).Take();
}

Result<Values> SplitTuple(const DataType& type, std::string_view bytes, std::string_view name) {
  Values values;
  for (cql::PartReader part(type, bytes); part.Next();) {
    if (!part.value()) {
      return Error(Code::kInvalidArgument,
                   "Invalid null value in condition for column " + std::string(name));
    }
    values.emplace_back(*part.value());
  }
  return values;
}

Result<Values> BindValues(const Restriction& of, const cql::Term& term, const Binding& binding,
                          std::string_view name) {
  ORRERY_TRY(std::string bytes, BindKey(term, binding, name));
  if (!of.tuple) {
    return Values{std::move(bytes)};
  }
  return SplitTuple(term.type(), bytes, name);
}

// All values of an equality or an IN.
Result<std::vector<Values>> BindAll(const Restriction& of, const Binding& binding,
                                    std::string_view name) {
  std::vector<Values> all;
  if (of.in) {
    ORRERY_TRY(Bound bound, of.in->Bind(binding.values, binding.context));
    if (!bound.has_value()) {
      return Error(Code::kInvalidArgument, "Invalid " +
                                               std::string(bound.is_null() ? "null" : "unset") +
                                               " value for column " + std::string(name));
    }
    for (cql::PartReader part(of.in->type(), bound.bytes()); part.Next();) {
      if (!part.value()) {
        return Error(Code::kInvalidArgument,
                     "Invalid null value in condition for column " + std::string(name));
      }
      if (of.tuple) {
        ORRERY_TRY(all.emplace_back(), SplitTuple(part.type(), *part.value(), name));
      } else {
        all.push_back({std::string(*part.value())});
      }
    }
    return all;
  }
  for (const cql::Term& term : of.values) {
    ORRERY_TRY(all.emplace_back(), BindValues(of, term, binding, name));
  }
  return all;
}

void AppendOrdered(std::span<const Column> columns, const Values& values, std::string& out) {
  for (size_t i = 0; i < values.size(); ++i) {
    cql::AppendOrderedValue(columns[i].type, values[i], columns[i].descending, out);
  }
}

}  // namespace

// --- Compiling -----------------------------------------------------------------------------------

Status Restrictions::AddToken(const Relation& relation, const Preparation& in) {
  const auto key = table_->partition_key();
  bool same = relation.columns.size() == key.size();
  for (size_t i = 0; same && i < key.size(); ++i) {
    same = relation.columns[i] == key[i].name;
  }
  if (!same) {
    return Invalid("The token function arguments must be in the partition key order: " + [&] {
      std::string names;
      for (const Column& column : key) {
        names += (names.empty() ? "" : ", ") + column.name;
      }
      return names;
    }());
  }
  if (relation.comparison == Comparison::kIn || relation.comparison > Comparison::kBetween ||
      relation.comparison == Comparison::kNotEqual) {
    return Invalid(std::string(cql::SignOf(relation.comparison)) +
                   " cannot be used with the token function");
  }
  if (!token_) {
    token_.emplace();
  }
  cql::Receiver receiver = cql::TokenReceiver(in.Of(key[0]));
  return AddTo(*token_, relation, "partition key token", receiver, in);
}

Status Restrictions::AddTuple(const Relation& relation, const Preparation& in) {
  const auto clustering = table_->clustering();
  std::vector<DataType> types;
  size_t first = 0;
  for (size_t i = 0; i < relation.columns.size(); ++i) {
    const Column* column = table_->Find(relation.columns[i]);
    if (column == nullptr) {
      return Invalid("Undefined column name " + relation.columns[i] + " in table " +
                     table_->keyspace + "." + table_->name);
    }
    if (column->kind != ColumnKind::kClustering) {
      return Invalid(
          "Multi-column relations can only be applied to clustering columns but was "
          "applied to: " +
          column->name);
    }
    const auto place = static_cast<size_t>(column - clustering.data());
    if (i == 0) {
      first = place;
    } else if (place != first + i) {
      return Invalid(
          "Clustering columns must appear in the PRIMARY KEY order in multi-column "
          "relations");
    }
    types.push_back(column->type);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    Restriction& other = clustering_[first + i];
    if (other.kind != Kind::kNone && !(i == 0 && other.tuple && other.columns == types.size())) {
      return Invalid("Column \"" + clustering[first + i].name +
                     "\" cannot be restricted by both a tuple and another relation");
    }
  }
  if (cql::IsSlice(relation.comparison)) {
    for (size_t i = 1; i < types.size(); ++i) {
      if (clustering[first + i].descending != clustering[first].descending) {
        return Status(Code::kNotSupported,
                      "Slices of tuples over clustering columns of different orders are not "
                      "supported");
      }
    }
  }
  cql::Receiver receiver = in.Of(clustering[first]);
  receiver.type = DataType::Tuple(types);
  Restriction& to = clustering_[first];
  to.tuple = true;
  to.columns = types.size();
  return AddTo(to, relation, clustering[first].name, receiver, in);
}

Status Restrictions::AddColumn(const Relation& relation, const Column& column,
                               const Preparation& in) {
  const bool by_key =
      relation.target == RelationTarget::kColumn &&
      (relation.comparison == Comparison::kEqual || relation.comparison == Comparison::kIn ||
       (cql::IsSlice(relation.comparison) && column.kind == ColumnKind::kClustering));
  if (column.is_key() && by_key) {
    auto place = static_cast<size_t>(&column - table_->columns.data());
    Restriction& to = column.kind == ColumnKind::kPartitionKey
                          ? partition_[place]
                          : clustering_[place - table_->partition_columns];
    if (to.tuple) {
      return Invalid("Column \"" + column.name +
                     "\" cannot be restricted by both a tuple and another relation");
    }
    ORRERY_RETURN_IF_ERROR(AddTo(to, relation, column.name, in.Of(column), in));
  }
  auto filter =
      cql::Filter::Prepare(relation, *table_, cql::Filter::Use::kWhere, in.markers, in.types);
  if (!filter) {
    return filter.error();
  }
  if (column.is_key() && by_key) {
    as_filters_[static_cast<size_t>(&column - table_->columns.data())].push_back(
        std::move(*filter));
  } else {
    filters_.push_back(std::move(*filter));
  }
  return Status::Ok();
}

Status Restrictions::Add(const Relation& relation, const Preparation& in) {
  if (relation.target == RelationTarget::kToken) {
    return AddToken(relation, in);
  }
  if (relation.target == RelationTarget::kTuple) {
    return AddTuple(relation, in);
  }
  const Column* column = table_->Find(relation.columns.at(0));
  if (column == nullptr) {
    return Invalid("Undefined column name " + relation.columns.at(0) + " in table " +
                   table_->keyspace + "." + table_->name);
  }
  return AddColumn(relation, *column, in);
}

Status Restrictions::FinishClustering(Use use) {
  const auto clustering = table_->clustering();
  bool names = true;
  size_t at = 0;
  bool open = false;  // nothing behind it can be found by the key
  const Column* gap = nullptr;
  while (at < clustering.size()) {
    const Restriction& here = clustering_[at];
    if (here.kind == Kind::kNone || open) {
      names = false;
      if (here.kind != Kind::kNone) {
        if (use != Use::kSelect) {
          return Invalid("PRIMARY KEY column \"" + clustering[at].name +
                         "\" cannot be restricted as preceding column \"" + gap->name +
                         "\" is not restricted");
        }
        if (here.tuple) {
          return Invalid("PRIMARY KEY column \"" + clustering[at].name +
                         "\" cannot be restricted as preceding column \"" + gap->name +
                         "\" is not restricted");
        }
        auto& later = as_filters_[table_->partition_columns + at];
        filters_.insert(filters_.end(), later.begin(), later.end());
        needs_filtering_ = true;
      }
      if (!open) {
        gap = &clustering[at];
      }
      open = true;
      at += here.kind == Kind::kNone ? 1 : here.columns;
      continue;
    }
    clustering_columns_ = at + here.columns;
    if (here.kind == Kind::kSlice) {
      open = true;
      names = false;
      gap = &clustering[at];
    }
    at += here.columns;
  }
  names_rows_ = names;
  return Status::Ok();
}

Status Restrictions::Finish(Use use) {
  const auto key = table_->partition_key();
  size_t restricted = 0;
  for (const Restriction& each : partition_) {
    restricted += each.kind != Kind::kNone;
  }
  names_partitions_ = restricted == key.size();
  if (token_ && restricted > 0) {
    return Invalid("Columns \"" + key[0].name +
                   "\" cannot be restricted by both a normal relation and a token relation");
  }
  if (use != Use::kSelect && (!names_partitions_ || token_)) {
    std::string missing;
    for (size_t i = 0; i < key.size(); ++i) {
      if (partition_[i].kind == Kind::kNone) {
        missing += (missing.empty() ? "" : ", ") + key[i].name;
      }
    }
    return token_ ? Invalid("The token function cannot be used in WHERE clauses for this statement")
                  : Invalid("Some partition key parts are missing: " + missing);
  }
  ORRERY_RETURN_IF_ERROR(FinishClustering(use));
  if (use != Use::kSelect && !filters_.empty()) {
    return Invalid("Non PRIMARY KEY columns found in where clause: " +
                   table_->columns[filters_[0].columns()[0]].name);
  }
  if (restricted > 0 && !names_partitions_) {
    for (size_t i = 0; i < key.size(); ++i) {
      filters_.insert(filters_.end(), as_filters_[i].begin(), as_filters_[i].end());
    }
    needs_filtering_ = true;
  }
  needs_filtering_ =
      needs_filtering_ || !filters_.empty() || (!names_partitions_ && clustering_columns_ > 0);
  return Status::Ok();
}

Result<Restrictions> Restrictions::Compile(const cql::Where& where, const Preparation& in,
                                           Use use) {
  Restrictions made;
  made.table_ = &in.table;
  made.partition_.resize(in.table.partition_columns);
  made.clustering_.resize(in.table.clustering_columns);
  made.as_filters_.resize(in.table.columns.size());
  if (!where.index_relations.empty()) {
    return Error(Code::kInvalidArgument,
                 "There is no index '" + where.index_relations[0].index.name + "' of this table");
  }
  for (const Relation& relation : where.relations) {
    ORRERY_TRY_STATUS(made.Add(relation, in));
  }
  if (use == Use::kFilter) {
    if (std::ranges::any_of(made.clustering_, &Restriction::tuple)) {
      return Error(Code::kInvalidArgument,
                   "Multi-column relations are not supported on tables of the system");
    }
    for (auto& filters : made.as_filters_) {
      made.filters_.insert(made.filters_.end(), filters.begin(), filters.end());
    }
    return made;
  }
  ORRERY_TRY_STATUS(made.Finish(use));
  made.ChooseIndex();
  return made;
}

const cql::Index* Restrictions::IndexFor(const cql::Filter& filter) const {
  const Column& column = table_->columns[filter.columns()[0]];
  const bool element = filter.target() == RelationTarget::kElement;
  if (!element && filter.target() != RelationTarget::kColumn) {
    return nullptr;
  }
  auto fits = [&](cql::IndexTargetKind kind) {
    switch (kind) {
      case cql::IndexTargetKind::kSimple:
      case cql::IndexTargetKind::kFull:
        return !element && filter.comparison() == Comparison::kEqual;
      case cql::IndexTargetKind::kValues: return filter.comparison() == Comparison::kContains;
      case cql::IndexTargetKind::kKeys: return filter.comparison() == Comparison::kContainsKey;
      case cql::IndexTargetKind::kEntries:
        return element && filter.comparison() == Comparison::kEqual;
    }
    return false;
  };
  for (const cql::Index& index : table_->indexes) {
    if (index.column == column.name && fits(index.kind)) {
      return &index;
    }
  }
  return nullptr;
}

bool Restrictions::IsIndexed() const {
  std::vector<const cql::Filter*> filters;
  auto add = [&](const cql::Filter& filter) { filters.push_back(&filter); };
  std::ranges::for_each(filters_, add);
  for (size_t at = 0; at < clustering_columns_ && !names_partitions_; ++at) {
    std::ranges::for_each(as_filters_[table_->partition_columns + at], add);
  }
  return filters.size() == 1 && IndexFor(*filters[0]) != nullptr;
}

void Restrictions::ChooseIndex() {
  if (names_partitions_) {
    return;
  }
  auto take = [this](const cql::Filter& filter) {
    const cql::Index* index = IndexFor(filter);
    if (!index_ && index != nullptr && index->state == cql::IndexState::kReady) {
      index_ = IndexUse{index->name, index->kind, filter};
    }
  };
  std::ranges::for_each(filters_, take);
  for (size_t at = 0; at < clustering_columns_; ++at) {
    std::ranges::for_each(as_filters_[table_->partition_columns + at], take);
  }
}

bool Restrictions::many_partitions() const {
  return std::ranges::any_of(partition_, [](const auto& each) { return each.kind == Kind::kIn; });
}

bool Restrictions::many_rows() const {
  return std::ranges::any_of(clustering_, [](const auto& each) { return each.kind == Kind::kIn; });
}

bool Restrictions::restricts_partition_key() const {
  return token_ ||
         std::ranges::any_of(partition_, [](const auto& each) { return each.kind != Kind::kNone; });
}

std::vector<uint16_t> Restrictions::KeyMarkers() const {
  std::vector<uint16_t> markers;
  for (const Restriction& each : partition_) {
    if (each.kind != Kind::kEqual || each.values.at(0).marker() < 0) {
      return {};
    }
    markers.push_back(static_cast<uint16_t>(each.values[0].marker()));
  }
  return markers;
}

// --- Binding -------------------------------------------------------------------------------------

Result<std::string> Restrictions::BindPart(const cql::Term& term, const Binding& binding,
                                           const Column& column) const {
  ORRERY_TRY(std::string bytes, BindKey(term, binding, column.name));
  return CheckPart(*table_, std::move(bytes));
}

Result<std::string> CheckPart(const cql::Table& table, std::string bytes) {
  if (bytes.size() > kKeyBytesMax) {
    return Error(Code::kInvalidArgument, "Key length of " + std::to_string(bytes.size()) +
                                             " is longer than maximum of 65535");
  }
  if (table.partition_columns == 1 && bytes.empty()) {
    return Error(Code::kInvalidArgument, "Key may not be empty");
  }
  return bytes;
}

Status CheckClustering(std::string_view key) {
  return key.size() > 2 * kKeyBytesMax ? Invalid("The clustering key is too long") : Status::Ok();
}

Result<std::vector<std::string>> Restrictions::PartitionKeys(const Binding& binding) const {
  const auto key = table_->partition_key();
  std::vector<std::string> joined;
  if (!many_partitions()) {
    Values parts;
    for (size_t i = 0; i < key.size(); ++i) {
      ORRERY_TRY(parts.emplace_back(), BindPart(partition_[i].values.at(0), binding, key[i]));
    }
    if (parts.size() == 1) {
      return parts;
    }
    joined.push_back(cql::JoinedKey(parts));
    return joined;
  }
  std::vector<Values> keys(1);
  for (size_t i = 0; i < key.size(); ++i) {
    ORRERY_TRY(std::vector<Values> values, BindAll(partition_[i], binding, key[i].name));
    if (values.size() * keys.size() > kKeysMax) {
      return Error(Code::kInvalidArgument, "The statement names too many partitions");
    }
    std::vector<Values> longer;
    for (const Values& begin : keys) {
      for (const Values& value : values) {
        ORRERY_TRY(std::string part, CheckPart(*table_, value[0]));
        longer.push_back(begin);
        longer.back().push_back(std::move(part));
      }
    }
    keys = std::move(longer);
  }
  for (const Values& values : keys) {
    std::string bytes = cql::JoinedKey(values);
    if (std::ranges::find(joined, bytes) == joined.end()) {
      joined.push_back(std::move(bytes));
    }
  }
  if (joined.size() > 1) {
    std::ranges::sort(joined, {},
                      [](const std::string& each) { return types::CassandraEpk(each); });
  }
  return joined;
}

Result<types::EpkRange> Restrictions::Range(const Binding& binding) const {
  types::EpkRange range;
  if (!token_) {
    return range;
  }
  auto token_of = [&](const cql::Term& term) -> Result<int64_t> {
    ORRERY_TRY(std::string bytes, BindKey(term, binding, "partition key token"));
    if (bytes.size() != 8) {
      return Error(Code::kInvalidArgument, "Invalid empty value for the token of a partition key");
    }
    return cql::ReadBigint(bytes);
  };
  // Where the tokens above this one begin.
  auto above = [](int64_t token) {
    return token == INT64_MAX ? types::EpkRange().max : types::TokenEpk(token + 1);
  };
  if (token_->kind == Kind::kEqual) {
    ORRERY_TRY(int64_t token, token_of(token_->values.at(0)));
    return types::EpkRange{types::TokenEpk(token), above(token)};
  }
  if (token_->lower) {
    ORRERY_TRY(int64_t token, token_of(*token_->lower));
    range.min = token_->lower_closed ? types::TokenEpk(token) : above(token);
  }
  if (token_->upper) {
    ORRERY_TRY(int64_t token, token_of(*token_->upper));
    // The smallest token stands for the end of the ring: no key has it.
    if (token != INT64_MIN) {
      range.max = token_->upper_closed ? above(token) : types::TokenEpk(token);
    }
  }
  return range;
}

Result<std::vector<rows::RowSpan>> Restrictions::Spans(const Binding& binding) const {
  const auto clustering = table_->clustering();
  if (clustering_columns_ == 0 && !(clustering.empty() && names_partitions_)) {
    return std::vector<rows::RowSpan>();
  }
  std::vector<std::string> prefixes(1);
  const Restriction* slice = nullptr;
  size_t at = 0;
  while (at < clustering_columns_) {
    const Restriction& here = clustering_[at];
    if (here.kind == Kind::kSlice) {
      slice = &here;
      break;
    }
    ORRERY_TRY(std::vector<Values> values, BindAll(here, binding, clustering[at].name));
    if (values.size() * prefixes.size() > kKeysMax) {
      return Error(Code::kInvalidArgument, "The statement names too many rows");
    }
    std::vector<std::string> longer;
    for (const std::string& begin : prefixes) {
      for (const Values& value : values) {
        std::string& key = longer.emplace_back(begin);
        AppendOrdered(clustering.subspan(at), value, key);
        ORRERY_TRY_STATUS(CheckClustering(key));
      }
    }
    std::ranges::sort(longer);
    longer.erase(std::ranges::unique(longer).begin(), longer.end());
    prefixes = std::move(longer);
    at += here.columns;
  }
  std::string lower;
  std::string upper;
  bool has_lower = false;
  bool has_upper = false;
  if (slice != nullptr) {
    // In a descending column what is greater comes first.
    const bool descending = clustering[at].descending;
    auto bound = [&](const std::optional<cql::Term>& term, bool closed, bool is_lower) -> Status {
      if (!term) {
        return Status::Ok();
      }
      auto values = BindValues(*slice, *term, binding, clustering[at].name);
      if (!values) {
        return values.error();
      }
      const bool begins = is_lower != descending;
      std::string& key = begins ? lower : upper;
      (begins ? has_lower : has_upper) = true;
      AppendOrdered(clustering.subspan(at), *values, key);
      if (begins != closed) {
        key.push_back(kAbove);
      }
      return Status::Ok();
    };
    ORRERY_TRY_STATUS(bound(slice->lower, slice->lower_closed, true));
    ORRERY_TRY_STATUS(bound(slice->upper, slice->upper_closed, false));
  }
  std::vector<rows::RowSpan> spans;
  for (std::string& prefix : prefixes) {
    if (names_rows_) {
      spans.push_back({.begin = std::move(prefix), .end = {}, .one = true});
      continue;
    }
    rows::RowSpan span{.begin = has_lower ? prefix + lower : prefix,
                       .end = has_upper ? prefix + upper : prefix + kAbove,
                       .one = false};
    if (span.begin < span.end) {
      spans.push_back(std::move(span));
    }
  }
  if (spans.empty()) {
    // Nothing can be there: a span without rows.
    spans.push_back({.begin = std::string(1, kAbove), .end = std::string(1, kAbove), .one = false});
  }
  return spans;
}

}  // namespace orrery::cassandra
