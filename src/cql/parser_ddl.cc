// Keyspaces, tables, user-defined types.
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

}  // namespace

// ---- Keyspaces ----

CreateKeyspace Parser::CreateKeyspaceRule() {
  CreateKeyspace create;
  create.if_not_exists = IfNotExists();
  create.name = KeyspaceName();
  Expect(Keyword::kWith);
  create.options = OptionList();
  return create;
}

AlterKeyspace Parser::AlterKeyspaceRule() {
  AlterKeyspace alter;
  alter.if_exists = IfExists();
  alter.name = KeyspaceName();
  Expect(Keyword::kWith);
  alter.options = OptionList();
  return alter;
}

// ---- Tables ----

CreateTable Parser::CreateTableRule() {
  CreateTable create;
  create.if_not_exists = IfNotExists();
  create.table = Qualified();
  Expect(kLeftParen);
  do {
    if (Is(kRightParen) && !create.columns.empty()) {
      continue;  // a comma too many is no error
    }
    if (Is(Keyword::kPrimary)) {
      create.primary_keys.push_back(PrimaryKeyRule());
      continue;
    }
    create.columns.push_back(Column());
    if (Accept(Keyword::kPrimary)) {
      Expect(Keyword::kKey);
      create.primary_keys.push_back({.partition = {create.columns.back().name}, .clustering = {}});
    }
  } while (Accept(kComma));
  Expect(kRightParen);
  if (Accept(Keyword::kWith)) {
    create.with = TableOptionList();
  }
  return create;
}

ColumnDefinition Parser::Column() {
  ColumnDefinition column{.name = Name(), .type = Type()};
  column.is_static = Accept(Keyword::kStatic);
  column.mask = Mask();
  return column;
}

// MASKED WITH DEFAULT, MASKED WITH f(1, 2)
std::optional<Expression> Parser::Mask() {
  if (!Accept(Keyword::kMasked)) {
    return std::nullopt;
  }
  Expect(Keyword::kWith);
  if (Accept(Keyword::kDefault)) {
    return Expression{.kind = ExpressionKind::kCall, .text = "mask_default"};
  }
  if (!IsCall()) {
    FailHere();
  }
  return NamedCall();
}

// PRIMARY KEY (a, b), PRIMARY KEY ((a, b), c)
PrimaryKey Parser::PrimaryKeyRule() {
  PrimaryKey key;
  Expect(Keyword::kPrimary);
  Expect(Keyword::kKey);
  Expect(kLeftParen);
  if (Accept(kLeftParen)) {
    key.partition = Names();
    Expect(kRightParen);
  } else {
    key.partition.push_back(Name());
  }
  if (Accept(kComma)) {
    key.clustering = Names();
  }
  Expect(kRightParen);
  return key;
}

TableOptions Parser::TableOptionList() {
  TableOptions with;
  do {
    if (Accept(Keyword::kCompact, Keyword::kStorage)) {
      with.compact_storage = true;
    } else if (Accept(Keyword::kClustering, Keyword::kOrder)) {
      Expect(Keyword::kBy);
      Expect(kLeftParen);
      do {
        with.clustering_order.push_back({.column = Name(), .descending = Descending()});
      } while (Accept(kComma));
      Expect(kRightParen);
    } else {
      AddOption(with.options);
    }
  } while (Accept(Keyword::kAnd));
  return with;
}

// ASC or DESC, which must be there.
bool Parser::Descending() {
  bool descending = Accept(Keyword::kDesc);
  if (!descending && !Accept(Keyword::kAsc)) {
    FailHere();
  }
  return descending;
}

AlterTable Parser::AlterTableRule() {
  AlterTable alter;
  alter.if_exists = IfExists();
  alter.table = Qualified();
  if (Accept(Keyword::kAdd)) {
    alter.change = AddColumnsRule();
  } else if (Accept(Keyword::kDrop)) {
    if (Accept(Keyword::kCompact, Keyword::kStorage)) {
      alter.change = DropCompactStorage{};
    } else {
      alter.change = DropColumnsRule();
    }
  } else if (Accept(Keyword::kRename)) {
    bool if_exists = IfExists();
    alter.change = RenameColumns{.if_exists = if_exists, .renames = Renames()};
  } else if (Accept(Keyword::kAlter)) {
    AlterColumn(alter);
  } else if (Accept(Keyword::kWith)) {
    alter.change = TableOptions{.options = OptionList()};
  } else {
    FailHere();
  }
  return alter;
}

// ADD a int, ADD (a int, b int)
AddColumns Parser::AddColumnsRule() {
  AddColumns add;
  add.if_not_exists = IfNotExists();
  bool parenthesis = Accept(kLeftParen);
  do {
    add.columns.push_back(Column());
  } while (parenthesis && Accept(kComma));
  if (parenthesis) {
    Expect(kRightParen);
  }
  return add;
}

DropColumns Parser::DropColumnsRule() {
  DropColumns drop;
  drop.if_exists = IfExists();
  bool parenthesis = Accept(kLeftParen);
  if (parenthesis) {
    drop.columns = Names();
    Expect(kRightParen);
  } else {
    drop.columns.push_back(Name());
  }
  if (Accept(Keyword::kUsing)) {
    Expect(Keyword::kTimestamp);
    drop.timestamp = IntegerOrMarker();
  }
  return drop;
}

std::vector<Rename> Parser::Renames() {
  std::vector<Rename> renames;
  do {
    Rename rename{.from = Name(), .to = {}};
    Expect(Keyword::kTo);
    rename.to = Name();
    renames.push_back(std::move(rename));
  } while (Accept(Keyword::kAnd));
  return renames;
}

// ALTER c TYPE int, ALTER c MASKED WITH ..., ALTER c DROP MASKED
void Parser::AlterColumn(AlterTable& alter) {
  bool if_exists = IfExists();
  std::string column = Name();
  if (Accept(Keyword::kType)) {
    alter.change = ChangeColumnType{if_exists, std::move(column), Type()};
  } else if (Accept(Keyword::kDrop)) {
    Expect(Keyword::kMasked);
    alter.change = MaskColumn{if_exists, std::move(column), std::nullopt};
  } else if (Is(Keyword::kMasked)) {
    alter.change = MaskColumn{if_exists, std::move(column), Mask()};
  } else {
    FailHere();
  }
}

// ---- User-defined types ----

FieldDefinition Parser::Field() { return {.name = Name(), .type = Type()}; }

CreateType Parser::CreateTypeRule() {
  CreateType create;
  create.if_not_exists = IfNotExists();
  create.type = UserType();
  Expect(kLeftParen);
  do {
    if (Is(kRightParen) && !create.fields.empty()) {
      continue;  // a comma too many is no error
    }
    create.fields.push_back(Field());
  } while (Accept(kComma));
  Expect(kRightParen);
  return create;
}

AlterType Parser::AlterTypeRule() {
  AlterType alter;
  alter.if_exists = IfExists();
  alter.type = UserType();
  if (Accept(Keyword::kAdd)) {
    bool if_not_exists = IfNotExists();
    alter.change = AddField{.if_not_exists = if_not_exists, .field = Field()};
  } else if (Accept(Keyword::kRename)) {
    bool if_exists = IfExists();
    alter.change = RenameFields{.if_exists = if_exists, .renames = Renames()};
  } else if (Accept(Keyword::kAlter)) {
    bool if_exists = IfExists();
    ChangeFieldType change{.if_exists = if_exists, .field = {.name = Name(), .type = {}}};
    Expect(Keyword::kType);
    change.field.type = Type();
    alter.change = std::move(change);
  } else {
    FailHere();
  }
  return alter;
}

}  // namespace orrery::cql
