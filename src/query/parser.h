// The parser: text -> SelectStatement, by recursive descent.
//
//   query     = SELECT ( '*' | ... ) FROM name [ [AS] name ] [ WHERE expr ] ...
//   condition = FROM name [ [AS] name ] [ WHERE expr ]
//   expr      = binary [ '?' expr ':' expr ]
//   binary    = operators of the levels below, the first binds least; all are left-associative
//                  ??   OR   AND   NOT   [NOT] IN, BETWEEN, LIKE   = != <>   < <= > >=
//                  ||   |   ^   &   << >> >>>   + -   * / %
//   unary     = ( '-' | '+' | '~' | NOT ) unary | postfix
//   postfix   = primary { '.' name | '[' expr ']' }
//   primary   = literal | parameter | name | name '(' expr, ... ')' | '(' expr ')'
//             | '[' expr, ... ']' | '{' name ':' expr, ... '}'
//
// The whole language is read, so that text outside of it is told from what is only not supported
// yet: a SELECT list, JOIN, ORDER BY, subqueries. Of two errors a syntax error comes first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "query/ast.h"
#include "query/error.h"
#include "query/lexer.h"
#include "types/document.h"

namespace orrery::query {

enum class Form { kQuery, kCondition };

// `parameters` is the array [{"name":"@a","value":1},...] or Undefined; it is copied.
Result<std::unique_ptr<SelectStatement>> ParseStatement(Form form, std::string_view text,
                                                        types::Value parameters);

struct BinaryOperator;  // parser_expression.cc

class Parser {
 public:
  // REQUIRES: the text is UTF-8. It and the statement outlive the parser.
  Parser(std::string_view text, SelectStatement& statement)
      : text_(text), statement_(statement), lexer_(text) {
    Advance();
    Advance();
  }

  // To be called first.
  Status Bind(types::Value parameters);
  // Fills in the statement.
  Status Run(Form form);

 private:
  // One level of nesting, for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    bool too_deep() const { return parser_.depth_ > kNestingMax; }

   private:
    Parser& parser_;
  };

  void Advance();
  bool Accept(TokenKind kind);
  bool AcceptWord(std::string_view word);
  Status Expect(TokenKind kind);

  // Of the current token.
  Status SyntaxError() const;
  Status TooDeep() const;
  // Errors that give way to a syntax error further on.
  void Refuse(Span where, std::string what);
  void Complain(Span where, std::string_view id, std::string message);

  // Clauses of a statement, parser.cc. Only those of the outer one are kept.
  Status Subquery();
  Status SelectClause();
  Status SelectItem();
  Status FromClause(bool outer);
  Status FromSource(bool outer);
  Status WhereClause(bool outer);
  Status GroupByClause();
  Status OrderByClause();
  Status OffsetClause();
  Status Count();

  // Expressions, parser_expression.cc.
  Result<Node> Expression();
  Result<Node> Binary(int least);
  Result<Node> Predicate(Node left);
  Result<Node> Like(Node node);
  Result<Node> Unary();
  Result<Node> Postfix();
  Result<Node> Primary();
  Result<Node> Name();
  Result<Node> Call();
  Result<Node> ArrayLiteral();
  Result<Node> ObjectLiteral();
  Result<Node> Parenthesis();
  Status List(TokenKind end, std::vector<Node>& out);

  Result<Node> Finish(Node node);
  Result<Node> Chain(const BinaryOperator& binary, Node left, Node right);

  std::string_view text_;
  SelectStatement& statement_;
  std::unordered_map<std::string_view, types::Value> parameters_;
  Lexer lexer_;
  Token token_;
  Token next_;
  int depth_ = 0;
  std::optional<Status> refusal_;
  std::optional<Status> complaint_;
};

}  // namespace orrery::query
