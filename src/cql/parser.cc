#include "cql/parser.h"

#include <algorithm>
#include <unordered_set>

#include "cql/parse.h"
#include "cql/syntax_error.h"
#include "types/utf8.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

// Runs one rule over the whole of a text.
template <typename T>
Result<T> ParseWhole(std::string_view text, T (Parser::*rule)()) {
  if (text.size() > kTextBytesMax) {
    return Error(Code::kTooLarge, "a statement has " + std::to_string(text.size()) +
                                      " bytes, more than " + std::to_string(kTextBytesMax));
  }
  if (!types::IsUtf8(text)) {
    return Error(Code::kInvalidArgument, "Cannot decode string as UTF8");
  }
  Parser parser(text);
  T tree = (parser.*rule)();
  ORRERY_TRY_STATUS(parser.Finish());
  return tree;
}

}  // namespace

Result<Parsed> Parse(std::string_view text) { return ParseWhole(text, &Parser::Whole); }
Result<TypeName> ParseType(std::string_view text) { return ParseWhole(text, &Parser::Type); }
Result<Where> ParseWhere(std::string_view text) {
  return ParseWhole(text, &Parser::WhereRelations);
}
Result<Expression> ParseTerm(std::string_view text) { return ParseWhole(text, &Parser::Term); }

// ---- Tokens ----

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > kNestingMax) {
    parser_.FailHere("the statement is nested too deep");
  }
}

void Parser::Advance() {
  token_ = next_;
  next_ = lexer_.Next();
  if (++tokens_ > kTokensMax) {
    FailHere("the statement is too long");
  }
}

bool Parser::Accept(TokenKind kind) {
  bool found = Is(kind);
  if (found) {
    Advance();
  }
  return found;
}

bool Parser::Accept(Keyword keyword) {
  bool found = Is(keyword);
  if (found) {
    Advance();
  }
  return found;
}

bool Parser::Accept(Keyword first, Keyword second) {
  bool found = Is(first) && NextIs(second);
  if (found) {
    Advance();
    Advance();
  }
  return found;
}

void Parser::Expect(TokenKind kind) {
  if (!Accept(kind) && BeginsToFail()) {
    error_ = MismatchedInput(text_, token_, TokenName(kind));
  }
}

void Parser::Expect(Keyword keyword) {
  if (!Accept(keyword) && BeginsToFail()) {
    error_ = MismatchedInput(text_, token_, KeywordName(keyword));
  }
}

std::string Parser::ExpectText(TokenKind kind) {
  std::string text = Is(kind) ? TokenText(text_, token_) : std::string();
  Expect(kind);
  return text;
}

bool Parser::BeginsToFail() {
  bool first = !failed_;
  failed_ = true;
  return first && !guessing_;
}

void Parser::Fail(std::string message) {
  if (BeginsToFail()) {
    error_ = Status(Code::kInvalidArgument, std::move(message));
  }
}

void Parser::FailHere() {
  if (BeginsToFail()) {
    error_ = NoViableAlternative(text_, token_);
  }
}

void Parser::FailHere(std::string_view message) {
  if (BeginsToFail()) {
    error_ = SyntaxError(text_, token_, message);
  }
}

Token Parser::AfterNext() const {
  Lexer ahead = lexer_;
  return ahead.Next();
}

Status Parser::Finish() {
  Expect(kEnd);
  return error_;
}

// ---- Small rules ----

bool Parser::IsName(const Token& token) {
  return token.kind == kQuotedName || (token.kind == kName && !IsReserved(token.keyword));
}

std::string Parser::Name() {
  std::string name = IsName() ? TokenText(text_, token_) : std::string();
  if (name.empty()) {
    FailHere();
    return name;
  }
  Advance();
  return name;
}

std::string Parser::KeyspaceName() {
  RefuseMarker("keyspace");
  return Name();
}

QualifiedName Parser::Qualified(std::string_view what) {
  RefuseMarker(what);
  QualifiedName name{.keyspace = {}, .name = Name()};
  if (Accept(kDot)) {
    RefuseMarker(what);
    name.keyspace = std::move(name.name);
    name.name = Name();
  }
  return name;
}

void Parser::RefuseMarker(std::string_view what) {
  if (Is(kQuestion)) {
    Fail("Bind variables cannot be used for " + std::string(what) + " names");
  }
}

std::vector<std::string> Parser::Names() {
  std::vector<std::string> names;
  do {
    names.push_back(Name());
  } while (Accept(kComma));
  return names;
}

// The value of an option.
std::string Parser::Constant() {
  if (Is(kName) && !IsReserved(token_.keyword) && token_.keyword != Keyword::kNone) {
    return Name();
  }
  if (!IsConstant() || Is(Keyword::kNull)) {
    FailHere();
    return {};
  }
  return Unary().text;
}

bool Parser::IfExists() { return Accept(Keyword::kIf, Keyword::kExists); }

bool Parser::IfNotExists() {
  bool found = Accept(Keyword::kIf, Keyword::kNot);
  if (found) {
    Expect(Keyword::kExists);
  }
  return found;
}

StringMap Parser::Map() {
  StringMap map;
  std::unordered_set<std::string> keys;
  Expect(kLeftBrace);
  if (Accept(kRightBrace)) {
    return map;
  }
  do {
    std::string key = Constant();
    Expect(kColon);
    if (!keys.insert(key).second) {
      Fail("Multiple definition for property " + key);
    }
    map.emplace_back(std::move(key), Constant());
  } while (Accept(kComma));
  Expect(kRightBrace);
  return map;
}

Option Parser::OneOption() {
  Option option{.name = Name(), .value = {}};
  Expect(kEqual);
  if (Is(kLeftBrace)) {
    option.value = Map();
  } else {
    option.value = Constant();
  }
  return option;
}

Options Parser::OptionList() {
  Options options;
  do {
    AddOption(options);
  } while (Accept(Keyword::kAnd));
  return options;
}

void Parser::AddOption(Options& options) {
  Option option = OneOption();
  if (!option_names_.insert(option.name).second) {
    Fail("Multiple definition for property '" + option.name + "'");
  }
  options.push_back(std::move(option));
}

// ---- Statements ----

Parsed Parser::Whole() {
  Parsed parsed{.statement = AnyStatement(), .markers = {}};
  while (Accept(kSemicolon)) {
  }
  parsed.markers = std::move(markers_);
  return parsed;
}

Statement Parser::AnyStatement() {
  switch (token_.keyword) {
    case Keyword::kSelect: return SelectRule();
    case Keyword::kInsert: return InsertRule();
    case Keyword::kUpdate: return UpdateRule();
    case Keyword::kDelete: return DeleteRule();
    case Keyword::kBegin: return BatchRule();
    case Keyword::kUse: Advance(); return UseStatement{.keyspace = KeyspaceName()};
    case Keyword::kTruncate:
      Advance();
      if (!Accept(Keyword::kTable)) {
        Accept(Keyword::kColumnfamily);
      }
      return Truncate{.table = Qualified()};
    case Keyword::kCreate: Advance(); return Create();
    case Keyword::kAlter: Advance(); return Alter();
    case Keyword::kDrop: Advance(); return Drop();
    case Keyword::kGrant:
    case Keyword::kRevoke: return Grant();
    case Keyword::kList: Advance(); return ListRule();
    case Keyword::kAdd: Advance(); return AddIdentity();
    case Keyword::kDescribe:
    case Keyword::kDesc: Advance(); return DescribeRule();
    default: FailHere(); return {};
  }
}

Statement Parser::Create() {
  bool or_replace = Accept(Keyword::kOr);
  if (or_replace) {
    Expect(Keyword::kReplace);
  }
  if (Accept(Keyword::kFunction)) {
    return CreateFunctionRule(or_replace);
  }
  if (Accept(Keyword::kAggregate)) {
    return CreateAggregateRule(or_replace);
  }
  if (or_replace) {
    FailHere();
  }
  if (Accept(Keyword::kKeyspace) || Accept(Keyword::kSchema)) {
    return CreateKeyspaceRule();
  }
  if (Accept(Keyword::kTable) || Accept(Keyword::kColumnfamily)) {
    return CreateTableRule();
  }
  if (Accept(Keyword::kType)) {
    return CreateTypeRule();
  }
  if (Is(Keyword::kCustom) || Is(Keyword::kIndex)) {
    return CreateIndexRule();
  }
  if (Accept(Keyword::kMaterialized)) {
    return CreateViewRule();
  }
  if (Accept(Keyword::kTrigger)) {
    return CreateTriggerRule();
  }
  if (Accept(Keyword::kRole)) {
    return CreateRoleRule();
  }
  if (Accept(Keyword::kUser)) {
    return CreateUserRule();
  }
  FailHere();
  return {};
}

Statement Parser::Alter() {
  if (Accept(Keyword::kKeyspace) || Accept(Keyword::kSchema)) {
    return AlterKeyspaceRule();
  }
  if (Accept(Keyword::kTable) || Accept(Keyword::kColumnfamily)) {
    return AlterTableRule();
  }
  if (Accept(Keyword::kType)) {
    return AlterTypeRule();
  }
  if (Accept(Keyword::kMaterialized)) {
    return AlterViewRule();
  }
  if (Accept(Keyword::kRole)) {
    return AlterRoleRule();
  }
  if (Accept(Keyword::kUser)) {
    return AlterUserRule();
  }
  FailHere();
  return {};
}

Statement Parser::Drop() {
  if (Accept(Keyword::kKeyspace) || Accept(Keyword::kSchema)) {
    bool if_exists = IfExists();
    return DropKeyspace{.name = KeyspaceName(), .if_exists = if_exists};
  }
  if (Accept(Keyword::kTable) || Accept(Keyword::kColumnfamily)) {
    bool if_exists = IfExists();
    return DropTable{.table = Qualified(), .if_exists = if_exists};
  }
  if (Accept(Keyword::kType)) {
    bool if_exists = IfExists();
    return DropType{.type = UserType(), .if_exists = if_exists};
  }
  if (Accept(Keyword::kIndex)) {
    bool if_exists = IfExists();
    return DropIndex{.index = Qualified("index"), .if_exists = if_exists};
  }
  if (Accept(Keyword::kMaterialized)) {
    Expect(Keyword::kView);
    bool if_exists = IfExists();
    return DropView{.view = Qualified(), .if_exists = if_exists};
  }
  if (Accept(Keyword::kFunction)) {
    bool if_exists = IfExists();
    QualifiedName name = Qualified();
    return DropFunction{std::move(name), if_exists, Signature()};
  }
  if (Accept(Keyword::kAggregate)) {
    bool if_exists = IfExists();
    QualifiedName name = Qualified();
    return DropAggregate{std::move(name), if_exists, Signature()};
  }
  if (Accept(Keyword::kTrigger)) {
    return DropTriggerRule();
  }
  if (Is(Keyword::kRole) || Is(Keyword::kUser)) {
    bool user = Is(Keyword::kUser);
    Advance();
    return DropRoleRule(user);
  }
  if (Accept(Keyword::kIdentity)) {
    return DropIdentity();
  }
  FailHere();
  return {};
}

Describe Parser::DescribeRule() {
  struct Form {
    Keyword word;
    DescribeKind kind;
    bool named;
  };
  static constexpr Form kForms[] = {
      {Keyword::kCluster, DescribeKind::kCluster, false},
      {Keyword::kSchema, DescribeKind::kSchema, false},
      {Keyword::kKeyspaces, DescribeKind::kKeyspaces, false},
      {Keyword::kTables, DescribeKind::kTables, false},
      {Keyword::kColumnfamilies, DescribeKind::kTables, false},
      {Keyword::kTypes, DescribeKind::kTypes, false},
      {Keyword::kFunctions, DescribeKind::kFunctions, false},
      {Keyword::kAggregates, DescribeKind::kAggregates, false},
      {Keyword::kTable, DescribeKind::kTable, true},
      {Keyword::kColumnfamily, DescribeKind::kTable, true},
      {Keyword::kIndex, DescribeKind::kIndex, true},
      {Keyword::kType, DescribeKind::kType, true},
      {Keyword::kFunction, DescribeKind::kFunction, true},
      {Keyword::kAggregate, DescribeKind::kAggregate, true},
  };
  Describe describe{.kind = DescribeKind::kAnything};
  describe.full = Accept(Keyword::kFull);
  describe.only = !describe.full && Is(Keyword::kOnly) && NextIs(Keyword::kKeyspace);
  if (describe.only) {
    Advance();
  }
  const Form* form = std::ranges::find(kForms, token_.keyword, &Form::word);
  bool named = true;
  if (form != std::end(kForms) && !NextIs(kDot) && (!describe.full || Is(Keyword::kSchema))) {
    Advance();
    describe.kind = form->kind;
    named = form->named;
  } else if (!describe.full && Accept(Keyword::kKeyspace)) {
    describe.kind = DescribeKind::kKeyspace;
    describe.name.name = IsName() ? Name() : std::string();
    named = false;
  } else if (!describe.full && Accept(Keyword::kMaterialized)) {
    Expect(Keyword::kView);
    describe.kind = DescribeKind::kView;
  } else if (describe.full) {
    Expect(Keyword::kSchema);
  }
  if (named) {
    describe.name = Qualified();
  }
  if (Accept(Keyword::kWith)) {
    Expect(Keyword::kInternals);
    describe.internals = true;
  }
  return describe;
}

}  // namespace orrery::cql
