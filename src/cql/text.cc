#include "cql/text.h"

#include "cql/keywords.h"
#include "cql/quoted.h"

namespace orrery::cql {
namespace {

// Words that are no reserved ones and yet would be read as keywords where a column may stand.
std::string ColumnName(std::string_view name) {
  switch (FindKeyword(name)) {
    case Keyword::kAs:
    case Keyword::kDistinct:
    case Keyword::kExists:
    case Keyword::kJson: return Quoted(name, '"');
    default: return QuotedName(name);
  }
}

// The same for what a '(' follows.
std::string FunctionName(const Expression& call) {
  if (!call.keyspace.empty()) {
    return ToCql(QualifiedName{call.keyspace, call.text});
  }
  switch (FindKeyword(call.text)) {
    case Keyword::kCast:
    case Keyword::kDefault:
    case Keyword::kMaxwritetime:
    case Keyword::kTtl:
    case Keyword::kWritetime: return Quoted(call.text, '"');
    case Keyword::kCount: {
      bool rows = call.children.size() == 1 && call.children[0].kind > ExpressionKind::kNull &&
                  call.children[0].kind < ExpressionKind::kMarker;
      return rows ? Quoted(call.text, '"') : call.text;
    }
    case Keyword::kToken: return call.text;
    default: return ColumnName(call.text);
  }
}

template <typename T>
std::string Joined(const std::vector<T>& list, size_t first = 0) {
  std::string out;
  for (size_t i = first; i < list.size(); ++i) {
    out += (i == first ? "" : ", ") + ToCql(list[i]);
  }
  return out;
}

std::string Columns(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) {
    out += (out.empty() ? "" : ", ") + ColumnName(name);
  }
  return out;
}

std::string_view Sign(Operator op) {
  switch (op) {
    case Operator::kNone: return "";
    case Operator::kAdd: return " + ";
    case Operator::kSubtract: return " - ";
    case Operator::kMultiply: return " * ";
    case Operator::kDivide: return " / ";
    case Operator::kModulo: return " % ";
  }
  return "";
}

// key: value, key: value
std::string Pairs(const std::vector<Expression>& children) {
  std::string out;
  for (size_t i = 0; i + 1 < children.size(); i += 2) {
    out += (i == 0 ? "" : ", ") + ToCql(children[i]) + ": " + ToCql(children[i + 1]);
  }
  return out;
}

std::string Negated(const Expression& operand) {
  std::string text = ToCql(operand);
  return (text.starts_with('-') ? "- " : "-") + text;  // two would begin a comment
}

std::string Call(std::string_view function, const Expression& expression) {
  return std::string(function) + "(" + Joined(expression.children) + ")";
}

std::string Sum(const Expression& chain) {
  std::string out;
  for (const Expression& child : chain.children) {
    out += std::string(Sign(child.joint)) + ToCql(child);
  }
  return out;
}

std::string_view Sign(Comparison comparison) {
  switch (comparison) {
    case Comparison::kEqual: return " = ";
    case Comparison::kNotEqual: return " != ";
    case Comparison::kLess: return " < ";
    case Comparison::kLessEqual: return " <= ";
    case Comparison::kGreater: return " > ";
    case Comparison::kGreaterEqual: return " >= ";
    case Comparison::kIn: return " IN ";
    case Comparison::kContains: return " CONTAINS ";
    case Comparison::kContainsKey: return " CONTAINS KEY ";
    case Comparison::kLike: return " LIKE ";
    case Comparison::kBetween: return " BETWEEN ";
    case Comparison::kIsNotNull: return " IS NOT NULL";
  }
  return "";
}

std::string Target(const Relation& relation) {
  std::string names = Columns(relation.columns);
  switch (relation.target) {
    case RelationTarget::kColumn: return names;
    case RelationTarget::kTuple: return "(" + names + ")";
    case RelationTarget::kToken: return "token(" + names + ")";
    case RelationTarget::kElement: return names + "[" + ToCql(*relation.element) + "]";
    case RelationTarget::kField: return names + "." + QuotedName(relation.field);
  }
  return names;
}

}  // namespace

std::string ToCql(const QualifiedName& name) {
  return (name.keyspace.empty() ? "" : QuotedName(name.keyspace) + ".") + QuotedName(name.name);
}

std::string ToCql(const TypeName& type) {
  std::string text;
  switch (type.id) {
    case TypeId::kList: text = "list<" + Joined(type.arguments) + ">"; break;
    case TypeId::kSet: text = "set<" + Joined(type.arguments) + ">"; break;
    case TypeId::kMap: text = "map<" + Joined(type.arguments) + ">"; break;
    case TypeId::kTuple: text = "tuple<" + Joined(type.arguments) + ">"; break;
    case TypeId::kVector:
      text = "vector<" + Joined(type.arguments) + ", " + std::to_string(type.dimension) + ">";
      break;
    case TypeId::kUdt:
      text = (type.name.keyspace.empty() ? "" : QuotedName(type.name.keyspace) + ".") +
             QuotedTypeName(type.name.name);
      break;
    case TypeId::kCustom: text = QuotedString(type.name.name); break;
    default: text = FindNativeType(type.id)->cql; break;
  }
  return type.frozen ? "frozen<" + text + ">" : text;
}

std::string ToCql(const Expression& expression) {
  const std::vector<Expression>& children = expression.children;
  switch (expression.kind) {
    using enum ExpressionKind;
    case kNull: return "null";
    case kString: return QuotedString(expression.text);
    case kInteger:
    case kFloat:
    case kBoolean:
    case kUuid:
    case kBlob:
    case kDuration: return expression.text;
    case kMarker: return expression.text.empty() ? "?" : ":" + QuotedName(expression.text);
    case kColumn: return ColumnName(expression.text);
    case kList: return "[" + Joined(children) + "]";
    case kSet: return "{" + Joined(children) + "}";
    case kMap:
    case kUser: return "{" + Pairs(children) + "}";
    case kTuple: return "(" + Joined(children) + ")";
    case kElement: return ToCql(children[0]) + "[" + ToCql(children[1]) + "]";
    case kSlice:
      return ToCql(children[0]) + "[" + ToCql(children[1]) + " .. " + ToCql(children[2]) + "]";
    case kField: return ToCql(children[0]) + "." + QuotedName(expression.text);
    case kAbsent: return "";
    case kCall: return Call(FunctionName(expression), expression);
    case kCountRows: return "count(*)";
    case kWritetime: return Call("writetime", expression);
    case kMaxWritetime: return Call("maxwritetime", expression);
    case kTtl: return Call("ttl", expression);
    case kCast: return "CAST(" + ToCql(children[0]) + " AS " + ToCql(*expression.type) + ")";
    case kHint: return "(" + ToCql(*expression.type) + ")" + ToCql(children[0]);
    case kNegate: return Negated(children[0]);
    case kChain: return Sum(expression);
  }
  return "";
}

std::string ToCql(const Relation& relation) {
  std::string text = Target(relation) + std::string(Sign(relation.comparison));
  switch (relation.comparison) {
    case Comparison::kIsNotNull: return text;
    case Comparison::kIn:
      return text +
             (relation.in_marker ? ToCql(relation.values[0]) : "(" + Joined(relation.values) + ")");
    case Comparison::kBetween:
      return text + ToCql(relation.values[0]) + " AND " + ToCql(relation.values[1]);
    default: return text + ToCql(relation.values[0]);
  }
}

std::string ToCql(const Where& where) {
  std::string text;
  for (const Relation& relation : where.relations) {
    text += (text.empty() ? "" : " AND ") + ToCql(relation);
  }
  for (const IndexRelation& relation : where.index_relations) {
    text += (text.empty() ? "" : " AND ") + ("expr(" + ToCql(relation.index)) + ", " +
            ToCql(relation.value) + ")";
  }
  return text;
}

}  // namespace orrery::cql
