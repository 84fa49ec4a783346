#include "query/parser.h"

#include <utility>

#include "query/query.h"
#include "types/utf8.h"

namespace orrery::query {
namespace {

using types::Kind;
using types::Value;
using enum TokenKind;

}  // namespace

void Parser::Advance() {
  token_ = std::move(next_);
  next_ = lexer_.Next();
}

bool Parser::Accept(TokenKind kind) {
  bool found = token_.kind == kind;
  if (found) {
    Advance();
  }
  return found;
}

bool Parser::AcceptWord(std::string_view word) {
  bool found = token_.kind == kName && SameWord(token_.text, word);
  if (found) {
    Advance();
  }
  return found;
}

Status Parser::Expect(TokenKind kind) { return Accept(kind) ? Status::Ok() : SyntaxError(); }

Status Parser::SyntaxError() const {
  if (token_.kind == kEnd) {
    return QueryError(Code::kInvalidArgument, text_, token_.span, "SC1002",
                      "Syntax error, unexpected end-of-file.");
  }
  bool bad = token_.kind == kBad;
  std::string message =
      bad ? "Syntax error, invalid token '" : "Syntax error, incorrect syntax near '";
  message += std::string(Excerpt(text_, token_.span)) + "'.";
  return QueryError(Code::kInvalidArgument, text_, token_.span, bad ? "SC1010" : "SC1001", message);
}

Status Parser::TooDeep() const {
  return QueryError(Code::kInvalidArgument, text_, token_.span, "SC1001",
                    "Syntax error, the expression is nested too deep.");
}

void Parser::Refuse(Span where, std::string what) {
  if (!refusal_) {
    refusal_ = QueryError(Code::kNotSupported, text_, where, "NotSupported",
                          std::move(what) + " is not supported.");
  }
}

void Parser::Complain(Span where, std::string_view id, std::string message) {
  if (!complaint_) {
    complaint_ = QueryError(Code::kInvalidArgument, text_, where, id, message);
  }
}

Status Parser::Bind(Value parameters) {
  auto wrong = [](const char* what) {
    return QueryError(Code::kInvalidArgument, {}, {}, "SC2019", what);
  };
  if (!parameters.defined()) {
    return Status::Ok();
  }
  if (parameters.kind() != Kind::kArray) {
    return wrong("The parameters of a query must be an array.");
  }
  types::DocumentBuilder builder;
  builder.Append("p", parameters);
  const types::Document& copy = statement_.constants.Keep(builder.Finish());
  for (types::ValueIterator it(copy.Get("p").bson()); it.Next();) {
    Value parameter = it.value();
    Value name = parameter.kind() == Kind::kObject ? types::Member(parameter, "name") : Value();
    if (name.kind() != Kind::kString || !name.string().starts_with('@')) {
      return wrong("The name of a query parameter must be a string that begins with '@'.");
    }
    if (!parameters_.emplace(name.string(), types::Member(parameter, "value")).second) {
      return wrong("A query parameter is given twice.");
    }
  }
  return Status::Ok();
}

Status Parser::Run(Form form) {
  if (form == Form::kQuery) {
    ORRERY_RETURN_IF_ERROR(Expect(kSelect));
    ORRERY_RETURN_IF_ERROR(SelectClause());
  }
  if (form == Form::kQuery && token_.kind != kFrom) {
    Complain(token_.span, "SC2040", "'SELECT *' is not valid if FROM clause is omitted.");
  } else {
    ORRERY_RETURN_IF_ERROR(FromClause(true));
  }
  ORRERY_RETURN_IF_ERROR(WhereClause(true));
  if (form == Form::kQuery) {
    ORRERY_RETURN_IF_ERROR(GroupByClause());
    ORRERY_RETURN_IF_ERROR(OrderByClause());
    ORRERY_RETURN_IF_ERROR(OffsetClause());
  }
  ORRERY_RETURN_IF_ERROR(Expect(kEnd));
  return refusal_ ? *refusal_ : complaint_ ? *complaint_ : Status::Ok();
}

// From its SELECT up to the parenthesis that ends it.
Status Parser::Subquery() {
  Nesting nesting(*this);
  if (nesting.too_deep()) {
    return TooDeep();
  }
  Refuse(token_.span, "A subquery");
  ORRERY_RETURN_IF_ERROR(Expect(kSelect));
  ORRERY_RETURN_IF_ERROR(SelectClause());
  if (token_.kind == kFrom) {
    ORRERY_RETURN_IF_ERROR(FromClause(false));
  }
  ORRERY_RETURN_IF_ERROR(WhereClause(false));
  ORRERY_RETURN_IF_ERROR(GroupByClause());
  ORRERY_RETURN_IF_ERROR(OrderByClause());
  return OffsetClause();
}

Status Parser::SelectClause() {
  if (token_.kind == kDistinct) {
    Refuse(token_.span, "DISTINCT");
    Advance();
  }
  if (token_.kind == kTop) {
    Refuse(token_.span, "TOP");
    Advance();
    ORRERY_RETURN_IF_ERROR(Count());
  }
  if (Accept(kStar)) {
    return Status::Ok();
  }
  Span start = token_.span;
  if (Accept(kValue)) {
    Refuse(start, "SELECT VALUE");
    Result<Node> value = Expression();
    return value ? Status::Ok() : value.error();
  }
  do {
    ORRERY_RETURN_IF_ERROR(SelectItem());
  } while (Accept(kComma));
  Refuse(start, "A SELECT list");
  return Status::Ok();
}

Status Parser::SelectItem() {
  Result<Node> value = Expression();
  if (!value) {
    return value.error();
  }
  if (Accept(kAs)) {
    return Expect(kName);
  }
  Accept(kName);
  return Status::Ok();
}

Status Parser::FromClause(bool outer) {
  ORRERY_RETURN_IF_ERROR(Expect(kFrom));
  ORRERY_RETURN_IF_ERROR(FromSource(outer));
  while (token_.kind == kJoin) {
    Refuse(token_.span, "JOIN");
    Advance();
    ORRERY_RETURN_IF_ERROR(FromSource(false));
  }
  return Status::Ok();
}

Status Parser::FromSource(bool outer) {
  std::string alias = token_.text;
  if (Accept(kLeftParen)) {
    ORRERY_RETURN_IF_ERROR(Subquery());
    ORRERY_RETURN_IF_ERROR(Expect(kRightParen));
  } else {
    ORRERY_RETURN_IF_ERROR(Expect(kName));
  }
  if (token_.kind == kIn) {
    Refuse(token_.span, "IN in FROM");
    Advance();
    if (Accept(kLeftParen)) {
      ORRERY_RETURN_IF_ERROR(Subquery());
      return Expect(kRightParen);
    }
    ORRERY_RETURN_IF_ERROR(Expect(kName));
  }
  while (token_.kind == kDot || token_.kind == kLeftBracket) {
    Refuse(token_.span, "A path in FROM");
    if (Accept(kDot)) {
      ORRERY_RETURN_IF_ERROR(Expect(kName));
      continue;
    }
    Advance();
    if (!Accept(kString)) {
      ORRERY_RETURN_IF_ERROR(Expect(kNumber));
    }
    ORRERY_RETURN_IF_ERROR(Expect(kRightBracket));
  }
  bool as = Accept(kAs);
  if (token_.kind == kName) {
    alias = token_.text;
    Advance();
  } else if (as) {
    return SyntaxError();
  }
  if (outer) {
    statement_.alias = std::move(alias);
  }
  return Status::Ok();
}

Status Parser::WhereClause(bool outer) {
  if (!Accept(kWhere)) {
    return Status::Ok();
  }
  Result<Node> filter = Expression();
  if (!filter) {
    return filter.error();
  }
  if (outer) {
    statement_.filter = std::make_unique<Node>(std::move(*filter));
  }
  return Status::Ok();
}

Status Parser::GroupByClause() {
  Span start = token_.span;
  if (!Accept(kGroup)) {
    return Status::Ok();
  }
  Refuse(start, "GROUP BY");
  ORRERY_RETURN_IF_ERROR(Expect(kBy));
  do {
    Result<Node> key = Expression();
    if (!key) {
      return key.error();
    }
  } while (Accept(kComma));
  return Status::Ok();
}

Status Parser::OrderByClause() {
  Span start = token_.span;
  if (!Accept(kOrder)) {
    return Status::Ok();
  }
  Refuse(start, "ORDER BY");
  ORRERY_RETURN_IF_ERROR(Expect(kBy));
  if (next_.kind == kName) {
    AcceptWord("RANK");
  }
  do {
    Result<Node> key = Expression();
    if (!key) {
      return key.error();
    }
    if (!Accept(kAsc)) {
      Accept(kDesc);
    }
  } while (Accept(kComma));
  return Status::Ok();
}

Status Parser::OffsetClause() {
  Span start = token_.span;
  if (!Accept(kOffset)) {
    return Status::Ok();
  }
  Refuse(start, "OFFSET LIMIT");
  ORRERY_RETURN_IF_ERROR(Count());
  ORRERY_RETURN_IF_ERROR(Expect(kLimit));
  return Count();
}

Status Parser::Count() { return Accept(kNumber) ? Status::Ok() : Expect(kParameter); }

Result<std::unique_ptr<SelectStatement>> ParseStatement(Form form, std::string_view text,
                                                        Value parameters) {
  auto refuse = [](const std::string& message) {
    return Error(QueryError(Code::kInvalidArgument, {}, {}, "SC1001", message));
  };
  if (text.size() > kTextBytesMax) {
    return refuse("The SQL query text exceeded the maximum limit of " +
                  std::to_string(kTextBytesMax) + " characters.");
  }
  if (!types::IsUtf8(text)) {
    return refuse("The SQL query text is not UTF-8.");
  }
  auto statement = std::make_unique<SelectStatement>();
  Parser parser(text, *statement);
  ORRERY_TRY_STATUS(parser.Bind(parameters));
  ORRERY_TRY_STATUS(parser.Run(form));
  return statement;
}

}  // namespace orrery::query
