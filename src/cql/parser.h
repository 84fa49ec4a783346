// The parser: recursive descent, one function for each rule, in files by the family of statements.
//
// The first error is kept, and from then on no token is accepted, so rules run out without asking
// whether they should: loops go on only after something was accepted. What they made is thrown
// away.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "cql/ast.h"
#include "cql/lexer.h"

namespace orrery::cql {

class Parser {
 public:
  // REQUIRES: the text is UTF-8 and outlives the parser.
  explicit Parser(std::string_view text) : text_(text), lexer_(text) {
    Advance();
    Advance();
  }

  Parsed Whole();
  TypeName Type();
  Where WhereRelations();
  Expression Term();

  // To be called last: the error, also if there is text left.
  Status Finish();

 private:
  // One level of nesting, for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };

  // Whether a name alone is a column, as in the list of a SELECT, or wrong.
  enum class Columns : uint8_t { kNo, kYes };

  // Tokens, parser.cc.
  void Advance();
  bool Is(TokenKind kind) const { return !failed_ && token_.kind == kind; }
  bool Is(Keyword keyword) const { return !failed_ && token_.keyword == keyword; }
  bool NextIs(TokenKind kind) const { return !failed_ && next_.kind == kind; }
  bool NextIs(Keyword keyword) const { return !failed_ && next_.keyword == keyword; }
  bool Accept(TokenKind kind);
  bool Accept(Keyword keyword);
  bool Accept(Keyword first, Keyword second);  // both or none
  void Expect(TokenKind kind);
  void Expect(Keyword keyword);
  std::string ExpectText(TokenKind kind);
  // True if an error is to be set: it is the first, and no guess.
  bool BeginsToFail();
  void Fail(std::string message);  // without a place
  void FailHere();                 // no viable alternative
  void FailHere(std::string_view message);
  // What follows the next token, for the few rules that must know.
  Token AfterNext() const;

  // Small rules, parser.cc.
  bool IsName() const { return !failed_ && IsName(token_); }
  static bool IsName(const Token& token);
  std::string Name();
  std::string KeyspaceName();
  QualifiedName Qualified(std::string_view what = "table");
  void RefuseMarker(std::string_view what);
  std::vector<std::string> Names();
  std::string Constant();
  bool IfExists();
  bool IfNotExists();
  StringMap Map();
  Option OneOption();
  Options OptionList();
  void AddOption(Options& options);
  Statement AnyStatement();
  Statement Create();
  Statement Alter();
  Statement Drop();
  Describe DescribeRule();

  // Types and expressions, parser_terms.cc.
  TypeName TypeOf(TypeId id, size_t arguments_max);
  TypeName NamedType();
  QualifiedName UserType();
  std::vector<TypeName> TypeList();
  Expression Sum();
  Expression Product();
  Expression Unary();
  Expression Postfix();
  Expression Primary();
  bool IsConstant() const;
  Expression ConstantTerm();
  Expression Marker();
  Expression Brackets();
  Expression Braces();
  Expression Parentheses();
  std::optional<Expression> Hint();
  bool BeginsPrimary(bool sign) const;
  bool IsCall() const;
  Expression Call();
  Expression NamedCall();
  Expression Cast();
  Expression CellCall(ExpressionKind kind);
  Expression Subscript(Expression base);
  Expression Measured(Expression node);
  Expression IntegerOrMarker();
  std::vector<Expression> List(TokenKind end);

  // WHERE and IF, parser_where.cc.
  void WhereTerm(Where& where);
  Relation OneRelation();
  Relation ColumnRelation(bool condition);
  Relation TokenRelation();
  Relation TupleRelation();
  void Compare(Relation& relation, bool condition);
  void CompareByWord(Relation& relation);
  Expression Compared(const Relation& relation);
  void InValues(Relation& relation);
  bool TupleOfColumns() const;
  Conditions IfClause();

  // Data, parser_dml.cc and parser_select.cc.
  Select SelectRule();
  bool SelectWord(Keyword keyword);
  std::vector<Selector> Selectors();
  Ordering OneOrdering();
  Insert InsertRule();
  void InsertJson(Insert& insert);
  Update UpdateRule();
  Assignment OneAssignment();
  void RefuseConflicts(const std::vector<Assignment>& assignments);
  void AssignedValue(Assignment& assignment);
  Delete DeleteRule();
  Deletion OneDeletion();
  Batch BatchRule();
  Using UsingClause(bool ttl);

  // Schema, parser_ddl.cc and parser_schema.cc.
  CreateKeyspace CreateKeyspaceRule();
  AlterKeyspace AlterKeyspaceRule();
  CreateTable CreateTableRule();
  ColumnDefinition Column();
  std::optional<Expression> Mask();
  PrimaryKey PrimaryKeyRule();
  TableOptions TableOptionList();
  bool Descending();
  AlterTable AlterTableRule();
  AddColumns AddColumnsRule();
  DropColumns DropColumnsRule();
  std::vector<Rename> Renames();
  void AlterColumn(AlterTable& alter);
  CreateType CreateTypeRule();
  AlterType AlterTypeRule();
  FieldDefinition Field();
  CreateIndex CreateIndexRule();
  IndexTarget IndexColumn();
  CreateView CreateViewRule();
  AlterView AlterViewRule();
  CreateFunction CreateFunctionRule(bool or_replace);
  CreateAggregate CreateAggregateRule(bool or_replace);
  CreateTrigger CreateTriggerRule();
  DropTrigger DropTriggerRule();
  std::optional<std::vector<TypeName>> Signature();

  // Roles, parser_roles.cc.
  std::string RoleName();
  std::string UserName();
  RoleOptions RoleOptionList();
  void OneRoleOption(RoleOptions& options);
  RoleOptions UserOptions();
  bool Boolean();
  std::vector<std::string> StringSet();
  CreateRole CreateRoleRule();
  CreateRole CreateUserRule();
  AlterRole AlterRoleRule();
  AlterRole AlterUserRule();
  DropRole DropRoleRule(bool user);
  Statement Grant();
  Statement ListRule();
  std::optional<std::vector<Permission>> Permissions();
  Resource ResourceRule();
  ChangeIdentity AddIdentity();
  ChangeIdentity DropIdentity();

  std::string_view text_;
  Lexer lexer_;
  Token token_;
  Token next_;
  bool failed_ = false;
  bool guessing_ = false;  // a failure is no error: another rule will be tried
  Status error_;
  int depth_ = 0;
  size_t tokens_ = 0;
  Columns columns_ = Columns::kNo;
  std::vector<std::string> markers_;
  std::unordered_set<std::string> option_names_;
};

}  // namespace orrery::cql
