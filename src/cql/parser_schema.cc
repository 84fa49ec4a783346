// Indexes, materialized views, functions, aggregates, triggers.
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

}  // namespace

CreateIndex Parser::CreateIndexRule() {
  CreateIndex create;
  create.custom = Accept(Keyword::kCustom);
  Expect(Keyword::kIndex);
  create.if_not_exists = IfNotExists();
  if (!Is(Keyword::kOn)) {
    RefuseMarker("index");
    create.index = Name();
  }
  Expect(Keyword::kOn);
  create.table = Qualified();
  Expect(kLeftParen);
  if (!Is(kRightParen)) {
    do {
      create.targets.push_back(IndexColumn());
    } while (Accept(kComma));
  }
  Expect(kRightParen);
  if (Accept(Keyword::kUsing)) {
    create.implementation = ExpectText(kString);
  }
  if (Accept(Keyword::kWith)) {
    create.options = OptionList();
  }
  return create;
}

// a, keys(a), values(a), entries(a), full(a)
IndexTarget Parser::IndexColumn() {
  struct Form {
    Keyword word;
    IndexTargetKind kind;
  };
  static constexpr Form kForms[] = {
      {Keyword::kKeys, IndexTargetKind::kKeys},
      {Keyword::kValues, IndexTargetKind::kValues},
      {Keyword::kEntries, IndexTargetKind::kEntries},
      {Keyword::kFull, IndexTargetKind::kFull},
  };
  for (const Form& form : kForms) {
    if (Is(form.word) && NextIs(kLeftParen)) {
      Advance();
      Expect(kLeftParen);
      IndexTarget target{.kind = form.kind, .column = Name()};
      Expect(kRightParen);
      return target;
    }
  }
  return {.kind = IndexTargetKind::kSimple, .column = Name()};
}

CreateView Parser::CreateViewRule() {
  CreateView create;
  Expect(Keyword::kView);
  create.if_not_exists = IfNotExists();
  create.view = Qualified();
  Expect(Keyword::kAs);
  Expect(Keyword::kSelect);
  create.selectors = Selectors();
  Expect(Keyword::kFrom);
  create.table = Qualified();
  if (Accept(Keyword::kWhere)) {
    create.where = WhereRelations();
  }
  create.primary_keys.push_back(PrimaryKeyRule());
  if (Accept(Keyword::kWith)) {
    create.with = TableOptionList();
  }
  return create;
}

AlterView Parser::AlterViewRule() {
  AlterView alter;
  Expect(Keyword::kView);
  alter.if_exists = IfExists();
  alter.view = Qualified();
  Expect(Keyword::kWith);
  alter.with.options = OptionList();
  return alter;
}

CreateFunction Parser::CreateFunctionRule(bool or_replace) {
  CreateFunction create{.or_replace = or_replace};
  create.if_not_exists = IfNotExists();
  create.function = Qualified();
  Expect(kLeftParen);
  if (!Is(kRightParen)) {
    do {
      create.arguments.push_back(Field());
    } while (Accept(kComma));
  }
  Expect(kRightParen);
  create.called_on_null = Accept(Keyword::kCalled);
  if (!create.called_on_null) {
    Expect(Keyword::kReturns);
    Expect(Keyword::kNull);
  }
  Expect(Keyword::kOn);
  Expect(Keyword::kNull);
  Expect(Keyword::kInput);
  Expect(Keyword::kReturns);
  create.returns = Type();
  Expect(Keyword::kLanguage);
  create.language = Name();
  Expect(Keyword::kAs);
  create.body = ExpectText(kString);
  return create;
}

CreateAggregate Parser::CreateAggregateRule(bool or_replace) {
  CreateAggregate create{.or_replace = or_replace};
  create.if_not_exists = IfNotExists();
  create.aggregate = Qualified();
  create.arguments = TypeList();
  Expect(Keyword::kSfunc);
  create.state_function = Name();
  Expect(Keyword::kStype);
  create.state_type = Type();
  if (Accept(Keyword::kFinalfunc)) {
    create.final_function = Name();
  }
  if (Accept(Keyword::kInitcond)) {
    create.initial = Term();
  }
  return create;
}

// The types that tell overloads apart.
std::optional<std::vector<TypeName>> Parser::Signature() {
  if (!Is(kLeftParen)) {
    return std::nullopt;
  }
  return TypeList();
}

CreateTrigger Parser::CreateTriggerRule() {
  CreateTrigger create;
  create.if_not_exists = IfNotExists();
  create.trigger = Name();
  Expect(Keyword::kOn);
  create.table = Qualified();
  Expect(Keyword::kUsing);
  create.implementation = ExpectText(kString);
  return create;
}

DropTrigger Parser::DropTriggerRule() {
  DropTrigger drop;
  drop.if_exists = IfExists();
  drop.trigger = Name();
  Expect(Keyword::kOn);
  drop.table = Qualified();
  return drop;
}

}  // namespace orrery::cql
