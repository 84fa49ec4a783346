// writetime, maxwritetime and ttl: of a cell, or of each cell of a column with many.
#include <algorithm>

#include "cql/parts.h"
#include "cql/selection_builder.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

class Times final : public Node {
 public:
  explicit Times(TimesOf of) : Node(of.ResultType()), of_(std::move(of)) {}

  Result<Bound> Evaluate(const NodeInputs& inputs) const override {
    if (inputs.row == nullptr || inputs.row->times == nullptr) {
      return Bound();
    }
    if (!of_.type.multi_cell()) {
      return OfCell(inputs.row->times->Of(of_.column));
    }
    std::optional<std::string_view> value = inputs.row->values[of_.column];
    if (!value) {
      return Bound();
    }
    std::vector<std::optional<CellTimes>> parts = inputs.row->times->OfParts(of_.column);
    if (of_.field) {
      return *of_.field < parts.size() ? OfCell(parts[*of_.field]) : Bound();
    }
    if (of_.element != nullptr) {
      ORRERY_TRY(Bound key, of_.element->Evaluate(inputs));
      auto place = key.has_value() ? PlaceOf(of_.type, *value, key.bytes()) : std::nullopt;
      return place && *place < parts.size() ? OfCell(parts[*place]) : Bound();
    }
    if (of_.slice) {
      ORRERY_TRY(PlaceRange range, RangeOf(*value, inputs));
      range.last = std::min(range.last, parts.size());
      range.first = std::min(range.first, range.last);
      parts = {parts.begin() + static_cast<std::ptrdiff_t>(range.first),
               parts.begin() + static_cast<std::ptrdiff_t>(range.last)};
    }
    return OfMany(parts);
  }

 private:
  std::optional<std::string> BytesOf(const std::optional<CellTimes>& cell) const {
    if (!cell) {
      return std::nullopt;
    }
    if (of_.kind == TimesKind::kTtl) {
      return cell->ttl ? std::optional(IntBytes(*cell->ttl)) : std::nullopt;
    }
    return BigintBytes(cell->timestamp);
  }

  Bound OfCell(const std::optional<CellTimes>& cell) const { return Bound::Own(BytesOf(cell)); }

  Bound OfMany(const std::vector<std::optional<CellTimes>>& cells) const {
    if (of_.kind == TimesKind::kMaxWritetime) {
      std::optional<CellTimes> latest;
      for (const auto& cell : cells) {
        if (cell && (!latest || cell->timestamp > latest->timestamp)) {
          latest = cell;
        }
      }
      return OfCell(latest);
    }
    std::string out;
    PartWriter writer(type(), out);
    for (const auto& cell : cells) {
      writer.Add(BytesOf(cell));
    }
    writer.Finish();
    return Bound::Own(std::move(out));
  }

  Result<PlaceRange> RangeOf(std::string_view value, const NodeInputs& inputs) const {
    Bound lower;
    Bound upper;
    if (of_.lower != nullptr) {
      ORRERY_TRY(lower, of_.lower->Evaluate(inputs));
    }
    if (of_.upper != nullptr) {
      ORRERY_TRY(upper, of_.upper->Evaluate(inputs));
    }
    return PlacesBetween(of_.type, value, lower.value(), upper.value());
  }

  const TimesOf of_;
};

}  // namespace

DataType TimesOf::ResultType() const {
  DataType one = kind == TimesKind::kTtl ? TypeId::kInt : TypeId::kBigint;
  return many() && kind != TimesKind::kMaxWritetime ? DataType::List(one) : one;
}

NodePtr TimesNode(TimesOf times) { return std::make_shared<Times>(std::move(times)); }

}  // namespace orrery::cql
