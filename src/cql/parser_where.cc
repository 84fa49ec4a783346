// WHERE and IF.
//
//   relation = target comparison
//   target   = name | name '[' term ']' | name '.' name | '(' name, ... ')' | TOKEN '(' name, ...
//   ')'
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

}  // namespace

Where Parser::WhereRelations() {
  Where where;
  do {
    WhereTerm(where);
  } while (Accept(Keyword::kAnd));
  return where;
}

void Parser::WhereTerm(Where& where) {
  if (!Is(Keyword::kExpr) || !NextIs(kLeftParen)) {
    where.relations.push_back(OneRelation());
    return;
  }
  Advance();
  Expect(kLeftParen);
  IndexRelation relation{.index = Qualified("index"), .value = {}};
  Expect(kComma);
  relation.value = Term();
  Expect(kRightParen);
  where.index_relations.push_back(std::move(relation));
}

Relation Parser::OneRelation() {
  Nesting nesting(*this);
  if (Is(Keyword::kToken)) {
    return TokenRelation();
  }
  if (!Is(kLeftParen)) {
    return ColumnRelation(/*condition=*/false);
  }
  if (TupleOfColumns()) {
    return TupleRelation();
  }
  Expect(kLeftParen);
  Relation relation = OneRelation();
  Expect(kRightParen);
  return relation;
}

// (a) or (a, rather than (a = 1).
bool Parser::TupleOfColumns() const {
  if (!Is(kLeftParen) || !IsName(next_)) {
    return false;
  }
  Token after = AfterNext();
  return after.kind == kComma || after.kind == kRightParen;
}

Relation Parser::TokenRelation() {
  Relation relation{.target = RelationTarget::kToken};
  Expect(Keyword::kToken);
  Expect(kLeftParen);
  relation.columns = Names();
  Expect(kRightParen);
  Compare(relation, /*condition=*/false);
  return relation;
}

Relation Parser::TupleRelation() {
  Relation relation{.target = RelationTarget::kTuple};
  Expect(kLeftParen);
  relation.columns = Names();
  Expect(kRightParen);
  Compare(relation, /*condition=*/false);
  return relation;
}

Relation Parser::ColumnRelation(bool condition) {
  Relation relation{.columns = {Name()}};
  if (Accept(kLeftBracket)) {
    relation.target = RelationTarget::kElement;
    relation.element = Term();
    Expect(kRightBracket);
  } else if (condition && Accept(kDot)) {
    relation.target = RelationTarget::kField;
    relation.field = Name();
  }
  Compare(relation, condition);
  return relation;
}

void Parser::Compare(Relation& relation, bool condition) {
  struct Sign {
    TokenKind kind;
    Comparison comparison;
  };
  static constexpr Sign kSigns[] = {
      {kEqual, Comparison::kEqual},     {kNotEqual, Comparison::kNotEqual},
      {kLess, Comparison::kLess},       {kLessEqual, Comparison::kLessEqual},
      {kGreater, Comparison::kGreater}, {kGreaterEqual, Comparison::kGreaterEqual},
  };
  for (const Sign& sign : kSigns) {
    if (Accept(sign.kind)) {
      relation.comparison = sign.comparison;
      relation.values.push_back(Compared(relation));
      return;
    }
  }
  bool column = relation.target == RelationTarget::kColumn;
  bool in = condition || column || relation.target == RelationTarget::kTuple;
  if (in && Accept(Keyword::kIn)) {
    InValues(relation);
  } else if (column && Accept(Keyword::kContains)) {
    bool key = Accept(Keyword::kKey);
    relation.comparison = key ? Comparison::kContainsKey : Comparison::kContains;
    relation.values.push_back(Term());
  } else if (!condition) {
    CompareByWord(relation);
  } else {
    FailHere();
  }
}

// What only WHERE may ask.
void Parser::CompareByWord(Relation& relation) {
  bool column = relation.target == RelationTarget::kColumn;
  if (relation.target != RelationTarget::kElement && Accept(Keyword::kBetween)) {
    relation.comparison = Comparison::kBetween;
    relation.values.push_back(Compared(relation));
    Expect(Keyword::kAnd);
    relation.values.push_back(Compared(relation));
  } else if (column && Accept(Keyword::kLike)) {
    relation.comparison = Comparison::kLike;
    relation.values.push_back(Term());
  } else if (column && Accept(Keyword::kIs)) {
    relation.comparison = Comparison::kIsNotNull;
    Expect(Keyword::kNot);
    Expect(Keyword::kNull);
  } else {
    FailHere();
  }
}

// A term; with several columns a tuple or a marker.
Expression Parser::Compared(const Relation& relation) {
  Expression value = Term();
  if (relation.target == RelationTarget::kTuple && value.kind != ExpressionKind::kTuple &&
      value.kind != ExpressionKind::kMarker) {
    FailHere();
  }
  return value;
}

// IN (1, 2), IN (), IN ?
void Parser::InValues(Relation& relation) {
  relation.comparison = Comparison::kIn;
  if (Is(kQuestion) || Is(kColon)) {
    relation.in_marker = true;
    relation.values.push_back(Marker());
    return;
  }
  Expect(kLeftParen);
  if (Accept(kRightParen)) {
    return;
  }
  do {
    relation.values.push_back(Compared(relation));
  } while (Accept(kComma));
  Expect(kRightParen);
}

Conditions Parser::IfClause() {
  Conditions conditions;
  if (!Accept(Keyword::kIf)) {
    return conditions;
  }
  if (Accept(Keyword::kExists)) {
    conditions.if_exists = true;
    return conditions;
  }
  do {
    conditions.relations.push_back(ColumnRelation(/*condition=*/true));
  } while (Accept(Keyword::kAnd));
  return conditions;
}

}  // namespace orrery::cql
