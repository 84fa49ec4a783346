// SELECT.
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

}  // namespace

Select Parser::SelectRule() {
  Select select;
  Expect(Keyword::kSelect);
  select.json = SelectWord(Keyword::kJson);
  select.distinct = SelectWord(Keyword::kDistinct);
  select.selectors = Selectors();
  Expect(Keyword::kFrom);
  select.table = Qualified();
  if (Accept(Keyword::kWhere)) {
    select.where = WhereRelations();
  }
  if (Accept(Keyword::kGroup)) {
    Expect(Keyword::kBy);
    columns_ = Columns::kYes;
    do {
      select.group_by.push_back(Sum());
    } while (Accept(kComma));
    columns_ = Columns::kNo;
  }
  if (Accept(Keyword::kOrder)) {
    Expect(Keyword::kBy);
    do {
      select.order_by.push_back(OneOrdering());
    } while (Accept(kComma));
  }
  if (Accept(Keyword::kPer)) {
    Expect(Keyword::kPartition);
    Expect(Keyword::kLimit);
    select.per_partition_limit = IntegerOrMarker();
  }
  if (Accept(Keyword::kLimit)) {
    select.limit = IntegerOrMarker();
  }
  if (Accept(Keyword::kAllow)) {
    Expect(Keyword::kFiltering);
    select.allow_filtering = true;
  }
  return select;
}

// JSON and DISTINCT, which are columns of that name if what follows cannot begin a selector.
bool Parser::SelectWord(Keyword keyword) {
  switch (next_.kind) {
    case kComma:
    case kDot:
    case kPlus:
    case kSlash:
    case kPercent: return false;
    default: return !NextIs(Keyword::kFrom) && !NextIs(Keyword::kAs) && Accept(keyword);
  }
}

std::vector<Selector> Parser::Selectors() {
  std::vector<Selector> selectors;
  if (Accept(kStar)) {
    return selectors;
  }
  columns_ = Columns::kYes;
  do {
    Selector selector{.expression = Sum(), .alias = {}};
    if (Accept(Keyword::kAs)) {
      selector.alias = Name();
    }
    selectors.push_back(std::move(selector));
  } while (Accept(kComma));
  columns_ = Columns::kNo;
  return selectors;
}

Ordering Parser::OneOrdering() {
  Ordering ordering{.column = Name()};
  if (Accept(Keyword::kAnn)) {
    Expect(Keyword::kOf);
    ordering.nearest = Term();
  }
  ordering.descending = Accept(Keyword::kDesc);
  if (!ordering.descending) {
    Accept(Keyword::kAsc);
  }
  return ordering;
}

}  // namespace orrery::cql
