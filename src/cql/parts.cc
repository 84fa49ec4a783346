#include "cql/parts.h"

#include "cql/value.h"

namespace orrery::cql {
namespace {

bool ByIndex(const DataType& type) {
  return type.id() == TypeId::kList || type.id() == TypeId::kVector;
}

}  // namespace

std::optional<size_t> PlaceOf(const DataType& type, std::string_view bytes, std::string_view key) {
  PartReader parts(type, bytes);
  if (ByIndex(type)) {
    int32_t index = key.size() == 4 ? ReadInt(key) : -1;
    bool there = index >= 0 && static_cast<size_t>(index) < parts.count();
    return there ? std::optional(static_cast<size_t>(index)) : std::nullopt;
  }
  size_t step = type.id() == TypeId::kMap ? 2 : 1;
  while (parts.Next()) {
    if (parts.index() % step == 0 && parts.value() &&
        CompareValues(type.element(), *parts.value(), key) == 0) {
      return parts.index() / step;
    }
  }
  return std::nullopt;
}

std::optional<std::string_view> FindPart(const DataType& type, std::string_view bytes,
                                         std::string_view key) {
  std::optional<size_t> place = PlaceOf(type, bytes, key);
  if (!place) {
    return std::nullopt;
  }
  size_t index = type.id() == TypeId::kMap ? *place * 2 + 1 : *place;
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (parts.index() == index) {
      return parts.value();
    }
  }
  return std::nullopt;
}

PlaceRange PlacesBetween(const DataType& type, std::string_view bytes,
                         std::optional<std::string_view> lower,
                         std::optional<std::string_view> upper) {
  size_t step = type.id() == TypeId::kMap ? 2 : 1;
  PlaceRange range;
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (parts.index() % step != 0 || !parts.value()) {
      continue;
    }
    size_t place = parts.index() / step;
    if (lower && CompareValues(type.element(), *parts.value(), *lower) < 0) {
      range.first = place + 1;
    }
    if (!upper || CompareValues(type.element(), *parts.value(), *upper) <= 0) {
      range.last = place + 1;
    }
  }
  range.last = std::max(range.first, range.last);
  return range;
}

std::string SliceOf(const DataType& type, std::string_view bytes,
                    std::optional<std::string_view> lower, std::optional<std::string_view> upper) {
  size_t step = type.id() == TypeId::kMap ? 2 : 1;
  auto [first, last] = PlacesBetween(type, bytes, lower, upper);
  std::string out;
  PartWriter writer(type, out);
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (parts.index() >= first * step && parts.index() < last * step) {
      writer.Add(parts.value());
    }
  }
  writer.Finish();
  return out;
}

std::optional<std::string_view> FieldOf(const DataType& type, std::string_view bytes,
                                        size_t field) {
  PartReader parts(type, bytes);
  while (parts.Next()) {
    if (parts.index() == field) {
      return parts.value();
    }
  }
  return std::nullopt;
}

}  // namespace orrery::cql
