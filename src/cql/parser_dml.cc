// INSERT, UPDATE, DELETE, BATCH.
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

std::string BadForm(std::string_view form) {
  return "Only expressions of the form " + std::string(form) + " are supported.";
}

}  // namespace

Insert Parser::InsertRule() {
  Insert insert;
  Expect(Keyword::kInsert);
  Expect(Keyword::kInto);
  insert.table = Qualified();
  if (Accept(Keyword::kJson)) {
    InsertJson(insert);
  } else {
    Expect(kLeftParen);
    insert.columns = Names();
    Expect(kRightParen);
    Expect(Keyword::kValues);
    Expect(kLeftParen);
    if (Is(kRightParen)) {
      FailHere();
    }
    insert.values = List(kRightParen);
  }
  insert.if_not_exists = IfNotExists();
  insert.using_ = UsingClause(/*ttl=*/true);
  return insert;
}

void Parser::InsertJson(Insert& insert) {
  if (Is(kQuestion) || Is(kColon)) {
    insert.json = Marker();
  } else {
    insert.json = Expression{.kind = ExpressionKind::kString, .text = ExpectText(kString)};
  }
  if (Accept(Keyword::kDefault)) {
    insert.default_unset = Accept(Keyword::kUnset);
    if (!insert.default_unset) {
      Expect(Keyword::kNull);
    }
  }
}

Using Parser::UsingClause(bool ttl) {
  Using clause;
  if (!Accept(Keyword::kUsing)) {
    return clause;
  }
  do {
    if (ttl && Accept(Keyword::kTtl)) {
      clause.ttl = IntegerOrMarker();
    } else {
      Expect(Keyword::kTimestamp);
      clause.timestamp = IntegerOrMarker();
    }
  } while (ttl && Accept(Keyword::kAnd));
  return clause;
}

Update Parser::UpdateRule() {
  Update update;
  Expect(Keyword::kUpdate);
  update.table = Qualified();
  update.using_ = UsingClause(/*ttl=*/true);
  Expect(Keyword::kSet);
  do {
    update.assignments.push_back(OneAssignment());
  } while (Accept(kComma));
  RefuseConflicts(update.assignments);
  Expect(Keyword::kWhere);
  update.where = WhereRelations();
  update.conditions = IfClause();
  return update;
}

// A column is either set, or changed in any number of ways; a field is set once.
void Parser::RefuseConflicts(const std::vector<Assignment>& assignments) {
  if (assignments.size() < 2) {
    return;
  }
  std::unordered_set<std::string> set;
  std::unordered_set<std::string> changed;
  for (const Assignment& assignment : assignments) {
    const std::string& column = assignment.column;
    bool whole = assignment.kind == AssignmentKind::kSet;
    bool conflict = set.contains(column) || (whole && changed.contains(column));
    if (assignment.kind == AssignmentKind::kSetField) {
      conflict |= !changed.insert(column + '\0' + assignment.field).second;
    }
    if (conflict) {
      Fail("Multiple incompatible setting of column " + column);
    }
    (whole ? set : changed).insert(column);
  }
}

Assignment Parser::OneAssignment() {
  Assignment assignment{.column = Name()};
  if (Accept(kLeftBracket)) {
    assignment.kind = AssignmentKind::kSetElement;
    assignment.element = Term();
    Expect(kRightBracket);
    Expect(kEqual);
    assignment.value = Term();
  } else if (Accept(kDot)) {
    assignment.kind = AssignmentKind::kSetField;
    assignment.field = Name();
    Expect(kEqual);
    assignment.value = Term();
  } else if (Is(kPlusEqual) || Is(kMinusEqual)) {
    assignment.kind = Is(kPlusEqual) ? AssignmentKind::kAdd : AssignmentKind::kSubtract;
    Advance();
    assignment.value = Term();
  } else {
    Expect(kEqual);
    AssignedValue(assignment);
  }
  return assignment;
}

// value, c + value, c - value, value + c
void Parser::AssignedValue(Assignment& assignment) {
  if (IsName() && (NextIs(kPlus) || NextIs(kMinus))) {
    std::string source = Name();
    bool add = Is(kPlus);
    assignment.kind = add ? AssignmentKind::kAdd : AssignmentKind::kSubtract;
    Advance();
    bool number = Is(kInteger);
    assignment.value = Term();
    if (source != assignment.column) {
      Fail(BadForm(add ? "X = X +<value>" : number ? "X = X - <value>" : "X = X -<value>"));
    }
    return;
  }
  assignment.value = Term();
  if (Accept(kPlus)) {
    assignment.kind = AssignmentKind::kPrepend;
    if (Name() != assignment.column) {
      Fail(BadForm("X = <value> + X"));
    }
  }
}

Delete Parser::DeleteRule() {
  Delete statement;
  Expect(Keyword::kDelete);
  if (!Is(Keyword::kFrom)) {
    do {
      statement.deletions.push_back(OneDeletion());
    } while (Accept(kComma));
  }
  Expect(Keyword::kFrom);
  statement.table = Qualified();
  statement.using_ = UsingClause(/*ttl=*/false);
  Expect(Keyword::kWhere);
  statement.where = WhereRelations();
  statement.conditions = IfClause();
  return statement;
}

Deletion Parser::OneDeletion() {
  Deletion deletion{.column = Name()};
  if (Accept(kLeftBracket)) {
    deletion.element = Term();
    Expect(kRightBracket);
  } else if (Accept(kDot)) {
    deletion.field = Name();
  }
  return deletion;
}

Batch Parser::BatchRule() {
  Batch batch;
  Expect(Keyword::kBegin);
  if (Accept(Keyword::kUnlogged)) {
    batch.kind = BatchKind::kUnlogged;
  } else if (Accept(Keyword::kCounter)) {
    batch.kind = BatchKind::kCounter;
  } else {
    Accept(Keyword::kLogged);
  }
  Expect(Keyword::kBatch);
  batch.using_ = UsingClause(/*ttl=*/true);
  while (!failed_ && !Is(Keyword::kApply)) {
    if (Is(Keyword::kInsert)) {
      batch.changes.emplace_back(InsertRule());
    } else if (Is(Keyword::kUpdate)) {
      batch.changes.emplace_back(UpdateRule());
    } else if (Is(Keyword::kDelete)) {
      batch.changes.emplace_back(DeleteRule());
    } else {
      Expect(Keyword::kApply);
    }
    Accept(kSemicolon);
  }
  Expect(Keyword::kApply);
  Expect(Keyword::kBatch);
  return batch;
}

}  // namespace orrery::cql
