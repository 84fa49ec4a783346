#include "query/functions.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "query/lexer.h"
#include "query/numbers.h"
#include "query/string_functions.h"

namespace orrery::query {
namespace {

using types::Kind;
using types::Value;

constexpr size_t kAny = SIZE_MAX;

template <Kind kind>
Value Is(Arguments arguments, Arena&) {
  return Value::Bool(arguments[0].kind() == kind);
}

Value IsDefined(Arguments arguments, Arena&) { return Value::Bool(arguments[0].defined()); }

Value IsFiniteNumber(Arguments arguments, Arena&) {
  return Value::Bool(arguments[0].kind() == Kind::kNumber && std::isfinite(arguments[0].number()));
}

Value IsInteger(Arguments arguments, Arena&) {
  return Value::Bool(WholeNumber(arguments[0]).has_value());
}

Value IsPrimitive(Arguments arguments, Arena&) {
  Kind kind = arguments[0].kind();
  return Value::Bool(kind == Kind::kNull || kind == Kind::kBool || kind == Kind::kNumber ||
                     kind == Kind::kString);
}

template <auto function>
Value Math(Arguments arguments, Arena&) {
  return arguments[0].kind() == Kind::kNumber ? NumberFrom(function(arguments[0].number()))
                                              : Value();
}

template <auto function>
Value Math2(Arguments arguments, Arena&) {
  return arguments[0].kind() == Kind::kNumber && arguments[1].kind() == Kind::kNumber
             ? NumberFrom(function(arguments[0].number(), arguments[1].number()))
             : Value();
}

Value Log(Arguments arguments, Arena& arena) {
  if (arguments.size() == 1) {
    return Math<[](double x) { return std::log(x); }>(arguments, arena);
  }
  return Math2<[](double x, double base) { return std::log(x) / std::log(base); }>(arguments,
                                                                                   arena);
}

// Half away from zero, to the given number of decimals.
Value Round(Arguments arguments, Arena& arena) {
  if (arguments.size() == 1) {
    return Math<[](double x) { return std::round(x); }>(arguments, arena);
  }
  std::optional<int64_t> decimals = WholeNumber(arguments[1]);
  if (arguments[0].kind() != Kind::kNumber || !decimals || *decimals < 0) {
    return {};
  }
  double scale = std::pow(10.0, static_cast<double>(*decimals));
  double scaled = arguments[0].number() * scale;
  return std::isfinite(scaled) ? NumberFrom(std::round(scaled) / scale) : arguments[0];
}

Value Pi(Arguments, Arena&) { return Value::Double(std::numbers::pi); }

Value Iif(Arguments arguments, Arena&) {
  bool holds = arguments[0].kind() == Kind::kBool && arguments[0].boolean();
  return arguments[holds ? 1 : 2];
}

Value ArrayLength(Arguments arguments, Arena&) {
  if (arguments[0].kind() != Kind::kArray) {
    return {};
  }
  int64_t length = 0;
  for (types::ValueIterator it(arguments[0].bson()); it.Next();) {
    ++length;
  }
  return Value::Integer(length);
}

// Every member of `part` is in `whole`, with the same value.
bool HasMembers(Value whole, Value part) {
  for (types::ValueIterator it(part.bson()); it.Next();) {
    if (!types::DeepEqual(types::Member(whole, it.name()), it.value())) {
      return false;
    }
  }
  return true;
}

Value ArrayContains(Arguments arguments, Arena&) {
  bool partial = arguments.size() > 2;
  if (arguments[0].kind() != Kind::kArray || (partial && arguments[2].kind() != Kind::kBool)) {
    return {};
  }
  Value wanted = arguments[1];
  partial = partial && arguments[2].boolean() && wanted.kind() == Kind::kObject;
  for (types::ValueIterator it(arguments[0].bson()); it.Next();) {
    bool same = partial ? it.value().kind() == Kind::kObject && HasMembers(it.value(), wanted)
                        : types::DeepEqual(it.value(), wanted);
    if (same) {
      return Value::Bool(true);
    }
  }
  return Value::Bool(false);
}

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

constexpr double kDegree = std::numbers::pi / 180;

// A row with a name alone is a function that is not supported yet.
constexpr Function kFunctions[] = {
    // Aggregates
    {"AVG"},
    {"COUNT"},
    {"COUNTIF"},
    {"MAX"},
    {"MIN"},
    {"SUM"},
    // Arrays
    {"ARRAY_AVG"},
    {"ARRAY_CONCAT"},
    {"ARRAY_CONTAINS", 2, 3, ArrayContains},
    {"ARRAY_CONTAINS_ALL"},
    {"ARRAY_CONTAINS_ANY"},
    {"ARRAY_LENGTH", 1, 1, ArrayLength},
    {"ARRAY_MAX"},
    {"ARRAY_MEDIAN"},
    {"ARRAY_MIN"},
    {"ARRAY_SLICE"},
    {"ARRAY_SUM"},
    {"CHOOSE"},
    {"OBJECTTOARRAY"},
    {"SETDIFFERENCE"},
    {"SETEQUAL"},
    {"SETINTERSECT"},
    {"SETUNION"},
    // Conditions and items
    {"DOCUMENTID"},
    {"IIF", 3, 3, Iif, true},
    // Dates
    {"AGO"},
    {"DATETIMEADD"},
    {"DATETIMEBIN"},
    {"DATETIMEDIFF"},
    {"DATETIMEFORMAT"},
    {"DATETIMEFROMPARTS"},
    {"DATETIMEPART"},
    {"DATETIMETOTICKS"},
    {"DATETIMETOTIMESTAMP"},
    {"DAY"},
    {"GETCURRENTDATETIME"},
    {"GETCURRENTDATETIMESTATIC"},
    {"GETCURRENTTICKS"},
    {"GETCURRENTTICKSSTATIC"},
    {"GETCURRENTTIMESTAMP"},
    {"GETCURRENTTIMESTAMPSTATIC"},
    {"MONTH"},
    {"NOW"},
    {"TICKSTODATETIME"},
    {"TIMESTAMPTODATETIME"},
    {"YEAR"},
    // Full text
    {"FULLTEXTCONTAINS"},
    {"FULLTEXTCONTAINSALL"},
    {"FULLTEXTCONTAINSANY"},
    {"FULLTEXTSCORE"},
    {"RRF"},
    // Numbers
    {"ABS", 1, 1, Math<[](double x) { return std::abs(x); }>},
    {"ACOS", 1, 1, Math<[](double x) { return std::acos(x); }>},
    {"ASIN", 1, 1, Math<[](double x) { return std::asin(x); }>},
    {"ATAN", 1, 1, Math<[](double x) { return std::atan(x); }>},
    {"ATN2", 2, 2, Math2<[](double y, double x) { return std::atan2(y, x); }>},
    {"CEILING", 1, 1, Math<[](double x) { return std::ceil(x); }>},
    {"COS", 1, 1, Math<[](double x) { return std::cos(x); }>},
    {"COT", 1, 1, Math<[](double x) { return 1 / std::tan(x); }>},
    {"DEGREES", 1, 1, Math<[](double x) { return x / kDegree; }>},
    {"EXP", 1, 1, Math<[](double x) { return std::exp(x); }>},
    {"FLOOR", 1, 1, Math<[](double x) { return std::floor(x); }>},
    {"INTADD"},
    {"INTBITAND"},
    {"INTBITLEFTSHIFT"},
    {"INTBITNOT"},
    {"INTBITOR"},
    {"INTBITRIGHTSHIFT"},
    {"INTBITXOR"},
    {"INTDIV"},
    {"INTMOD"},
    {"INTMUL"},
    {"INTSUB"},
    {"LOG", 1, 2, Log},
    {"LOG10", 1, 1, Math<[](double x) { return std::log10(x); }>},
    {"NUMBERBIN"},
    {"PI", 0, 0, Pi},
    {"POWER", 2, 2, Math2<[](double x, double y) { return std::pow(x, y); }>},
    {"RADIANS", 1, 1, Math<[](double x) { return x * kDegree; }>},
    {"RAND"},
    {"ROUND", 1, 2, Round},
    {"SIGN", 1, 1, Math<Sign>},
    {"SIN", 1, 1, Math<[](double x) { return std::sin(x); }>},
    {"SQRT", 1, 1, Math<[](double x) { return std::sqrt(x); }>},
    {"SQUARE", 1, 1, Math<[](double x) { return x * x; }>},
    {"TAN", 1, 1, Math<[](double x) { return std::tan(x); }>},
    {"TRUNC", 1, 1, Math<[](double x) { return std::trunc(x); }>},
    // Places
    {"ST_AREA"},
    {"ST_DISTANCE"},
    {"ST_INTERSECTS"},
    {"ST_ISVALID"},
    {"ST_ISVALIDDETAILED"},
    {"ST_WITHIN"},
    // Strings
    {"CONCAT", 2, kAny, Concat},
    {"CONTAINS", 2, 3, Contains},
    {"CONTAINS_ALL_CI"},
    {"CONTAINS_ALL_CS"},
    {"CONTAINS_ANY_CI"},
    {"CONTAINS_ANY_CS"},
    {"ENDSWITH", 2, 3, EndsWith},
    {"INDEX_OF", 2, 3, IndexOf},
    {"LASTINDEXOF"},
    {"LEFT", 2, 2, Left},
    {"LENGTH", 1, 1, Length},
    {"LOWER", 1, 1, Lower},
    {"LTRIM", 1, 2, LeftTrim},
    {"REGEXMATCH"},
    {"REPLACE", 3, 3, Replace},
    {"REPLICATE"},
    {"REVERSE"},
    {"RIGHT", 2, 2, Right},
    {"RTRIM", 1, 2, RightTrim},
    {"STARTSWITH", 2, 3, StartsWith},
    {"STRINGEQUALS", 2, 3, StringEquals},
    {"STRINGJOIN"},
    {"STRINGSPLIT"},
    {"STRINGTOARRAY"},
    {"STRINGTOBOOLEAN"},
    {"STRINGTONULL"},
    {"STRINGTONUMBER"},
    {"STRINGTOOBJECT"},
    {"SUBSTRING", 2, 3, Substring},
    {"TOSTRING", 1, 1, ToString},
    {"TRIM", 1, 2, Trim},
    {"UPPER", 1, 1, Upper},
    // Types
    {"IS_ARRAY", 1, 1, Is<Kind::kArray>, true},
    {"IS_BOOL", 1, 1, Is<Kind::kBool>, true},
    {"IS_DATETIME"},
    {"IS_DEFINED", 1, 1, IsDefined, true},
    {"IS_FINITE_NUMBER", 1, 1, IsFiniteNumber, true},
    {"IS_INTEGER", 1, 1, IsInteger, true},
    {"IS_NULL", 1, 1, Is<Kind::kNull>, true},
    {"IS_NUMBER", 1, 1, Is<Kind::kNumber>, true},
    {"IS_OBJECT", 1, 1, Is<Kind::kObject>, true},
    {"IS_PRIMITIVE", 1, 1, IsPrimitive, true},
    {"IS_STRING", 1, 1, Is<Kind::kString>, true},
    // Vectors
    {"VECTORDISTANCE"},
};

}  // namespace

const Function* FindFunction(std::string_view name) {
  for (const Function& function : kFunctions) {
    if (SameWord(function.name, name)) {
      return &function;
    }
  }
  return nullptr;
}

}  // namespace orrery::query
