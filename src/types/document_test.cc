#include "types/document.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "types/bson.h"

namespace orrery::types {
namespace {

using namespace std::string_literals;

std::string RoundTrip(std::string_view json) {
  auto document = Document::FromJson(json);
  return document ? document->ToJson() : document.error().ToString();
}

Code CodeOf(const Result<Document>& result) { return result ? Code::kOk : result.error().code(); }

Code JsonCode(std::string_view json) { return CodeOf(Document::FromJson(json)); }

// A document of one element "a".
std::string OneElement(BsonType type, std::string_view payload) {
  std::string bson(4, '\0');
  bson.push_back(static_cast<char>(type));
  bson.append("a\0"s).append(payload).push_back('\0');
  StoreLittle(bson.data(), static_cast<uint32_t>(bson.size()));
  return bson;
}

std::string NestedJson(int levels) {
  std::string json = "{\"a\":";
  json.append(levels, '[').append(levels, ']').append("}");
  return json;
}

Value Parsed(std::string_view json, Document& keeper) {
  keeper = ParseJsonValue(json).value();
  return keeper.Get("v");
}

bool JsonEqual(std::string_view a, std::string_view b) {
  Document left;
  Document right;
  return DeepEqual(Parsed(a, left), Parsed(b, right));
}

TEST(DocumentTest, AnEmptyDocumentIsAnEmptyObject) {
  EXPECT_EQ(Document().ToJson(), "{}");
  EXPECT_EQ(RoundTrip(" { } "), "{}");
  EXPECT_EQ(Document::FromJson("{}")->bson(), Document().bson());
}

TEST(DocumentTest, EveryKindComesBackAsItWasWritten) {
  std::string json =
      R"({"id":"x","n":null,"t":true,"f":false,"i":-7,"l":5000000000,"d":1.5,"s":"","a":[1,"b",[],{}],"o":{"p":{"q":1}}})";
  EXPECT_EQ(RoundTrip(json), json);
}

TEST(DocumentTest, BlanksBetweenTokensAreDropped) {
  EXPECT_EQ(RoundTrip(" {\r\n\t\"a\" : [ 1 , 2.5 , true , null , \"x\" ] , \"b\" : 3 } \n"),
            R"({"a":[1,2.5,true,null,"x"],"b":3})");
}

TEST(DocumentTest, NumbersTakeTheSmallestBsonTypeThatHoldsThem) {
  auto document = Document::FromJson(R"({"a":2147483647,"b":2147483648,"c":1.0})").value();
  EXPECT_EQ(document.Get("a").bson_type(), 0x10);
  EXPECT_EQ(document.Get("b").bson_type(), 0x12);
  EXPECT_EQ(document.Get("c").bson_type(), 0x01);
}

struct NumberRow {
  const char* in;
  const char* out;
};

TEST(DocumentTest, NumbersArePrintedAsTheServicePrintsThem) {
  const NumberRow rows[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "0"},
      {"0.0", "0"},
      {"1.0", "1"},
      {"-1.0", "-1"},
      {"1e2", "100"},
      {"1E+2", "100"},
      {"0.1", "0.1"},
      {"-129.95", "-129.95"},
      {"2.5e-7", "2.5e-07"},
      {"123456789012345.0", "123456789012345"},
      {"999999999999999.0", "999999999999999"},
      {"1e15", "1e+15"},
      {"1e300", "1e+300"},
      {"9007199254740993", "9007199254740993"},
      {"999999999999999999", "999999999999999999"},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775808", "9.223372036854776e+18"},
      {"-9223372036854775809", "-9.223372036854776e+18"},
      {"18446744073709551615", "1.8446744073709552e+19"},
      {"100000000000000000000000000", "1e+26"},
      {"3.14159265358979323846264338327950288", "3.141592653589793"},
      {"0.443488147419179707392", "0.4434881474191797"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"5e-324", "5e-324"},
      {"1e-400", "0"},
  };
  for (const NumberRow& row : rows) {
    EXPECT_EQ(RoundTrip("{\"a\":"s + row.in + "}"), "{\"a\":"s + row.out + "}") << row.in;
    EXPECT_EQ(RoundTrip("{\"a\":[ "s + row.in + " ]}"), "{\"a\":["s + row.out + "]}") << row.in;
  }
}

TEST(DocumentTest, NumbersThatAreNoneAreRefused) {
  for (const char* text : {"1e400", "-1e400", "NaN", "Infinity", "-", "01", "-01", "1.", ".5", "+1",
                           "1e", "1e+", "0x1", "1a", "1 2", "--1", "00", "1.5.5", "12\"x\""}) {
    EXPECT_EQ(JsonCode("{\"a\":"s + text + "}"), Code::kInvalidArgument) << text;
  }
  EXPECT_EQ(JsonCode("{\"a\":" + std::string(400, '9') + "}"), Code::kInvalidArgument);
}

TEST(DocumentTest, EscapesAreReadAndWritten) {
  auto document = Document::FromJson(
      R"({"a":"\"\\\/\b\f\n\r\t\u0000\u001f\u00e9\u20ac\ud83d\ude00","b\u0061\"":1})");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->Get("a").string(), "\"\\/\b\f\n\r\t\0\x1f\u00e9\u20ac\U0001F600"s);
  EXPECT_EQ(document->Get("ba\"").integer(), 1);
  EXPECT_EQ(
      document->ToJson(),
      "{\"a\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\u00e9\u20ac\U0001F600\",\"ba\\\"\":1}");
}

TEST(DocumentTest, ALoneSurrogateBecomesTheReplacementCharacter) {
  EXPECT_EQ(RoundTrip(R"({"a":"x\ud800y"})"), "{\"a\":\"x\uFFFDy\"}");
  EXPECT_EQ(RoundTrip(R"({"a":"\udc00"})"), "{\"a\":\"\uFFFD\"}");
  EXPECT_EQ(RoundTrip(R"({"a":"\ud800\ud800"})"), "{\"a\":\"\uFFFD\uFFFD\"}");
  EXPECT_EQ(RoundTrip(R"({"a":"\ud800\u0041"})"), "{\"a\":\"\uFFFDA\"}");
  EXPECT_EQ(RoundTrip(R"({"a":"\ud800\n"})"), "{\"a\":\"\uFFFD\\n\"}");
  EXPECT_EQ(RoundTrip(R"({"\udfff":1})"), "{\"\uFFFD\":1}");
}

TEST(DocumentTest, WrongEscapesAreRefused) {
  for (const char* text : {R"("\x")", R"("\u12")", R"("\u12g4")", R"("\u+123")", R"("\ud800\u12")",
                           R"("\)", R"("\")", "\"a\nb\"", "\"a"}) {
    EXPECT_EQ(JsonCode("{\"a\":"s + text + "}"), Code::kInvalidArgument) << text;
  }
}

TEST(DocumentTest, ANameWithANulIsRefusedAndAStringWithOneIsKept) {
  EXPECT_EQ(JsonCode(R"({"a\u0000b":1})"), Code::kInvalidArgument);
  EXPECT_EQ(JsonCode(R"({"o":{"\u0000":1}})"), Code::kInvalidArgument);
  EXPECT_EQ(RoundTrip(R"({"a":"x\u0000y"})"), R"({"a":"x\u0000y"})");
}

TEST(DocumentTest, StringsOfEveryLengthComeBackTheSame) {
  for (size_t size = 0; size < 70; ++size) {
    for (std::string_view mark : {"", "\\\"", "\\n", "\u00e9"}) {
      std::string text = std::string(size, 'x') + std::string(mark) + std::string(size / 3, 'y');
      std::string json = "{\"" + text + "\":\"" + text + "\"}";
      EXPECT_EQ(RoundTrip(json), json);
    }
  }
}

TEST(DocumentTest, TextThatIsNotOneObjectIsRefused) {
  for (const char* text : {"",
                           "  ",
                           "1",
                           "\"a\"",
                           "[]",
                           "null",
                           "true",
                           "{",
                           "}",
                           "{}}",
                           "{}{}",
                           "{},",
                           "{\"a\":1}x",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{,}",
                           "{\"a\":1 \"b\":2}",
                           "{a:1}",
                           "{\"a\":1]",
                           "{\"a\":[1}",
                           "{\"a\":[1,]}",
                           "{\"a\":[,1]}",
                           "{\"a\":[1 2]}",
                           "{\"a\":tru}",
                           "{\"a\":truex}",
                           "{\"a\":falsy}",
                           "{\"a\":nul}",
                           "{\"a\":nullx}",
                           "{\"a\":1:2}",
                           "{'a':1}",
                           "{\"a\":\xff}",
                           "{\"a\":\"\xff\"}",
                           "{\"a\":\"\xed\xa0\x80\"}",
                           "{1:2}",
                           "{\"a\":[}]}",
                           "{\"a\":{]}}",
                           "{\"a\":1}/**/"}) {
    EXPECT_EQ(JsonCode(text), Code::kInvalidArgument) << text;
  }
  EXPECT_EQ(JsonCode("{\"a\":1}\0"s), Code::kInvalidArgument);
}

TEST(DocumentTest, AnErrorSaysWhatAndWhere) {
  auto number = Document::FromJson(R"({"abc":1e400})");
  ASSERT_FALSE(number);
  EXPECT_NE(number.error().message().find("byte 7"), std::string::npos) << number.error().message();
  auto value = ParseJsonValue("[1,@]");
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message().find("byte 3"), std::string::npos) << value.error().message();
  EXPECT_EQ(Document::FromJson("[]").error().message(),
            "a JSON object is expected, found another value");
}

TEST(DocumentTest, AThreadThatFailedOnceParsesTheNextTextWell) {
  EXPECT_FALSE(Document::FromJson(R"({"a":{"b":[1,{"c":)"));
  EXPECT_FALSE(Document::FromJson(R"({"a":{"a":1,"a":@}})"));
  EXPECT_EQ(RoundTrip(R"({"a":1})"), R"({"a":1})");
}

TEST(DocumentTest, NestingIsLimited) {
  EXPECT_EQ(JsonCode(NestedJson(kNestingMax)), Code::kOk);
  EXPECT_EQ(JsonCode(NestedJson(kNestingMax + 1)), Code::kTooLarge);
  EXPECT_EQ(JsonCode(NestedJson(5000)), Code::kTooLarge);
  EXPECT_EQ(RoundTrip(NestedJson(kNestingMax)), NestedJson(kNestingMax));
}

TEST(DocumentTest, OfDuplicateNamesTheLastWins) {
  EXPECT_EQ(RoundTrip(R"({"a":1,"b":2,"a":{"x":[3]},"c":4})"), R"({"a":{"x":[3]},"b":2,"c":4})");
  EXPECT_EQ(RoundTrip(R"({"o":{"a":1,"\u0061":"longer","b":1,"b":null}})"),
            R"({"o":{"a":"longer","b":null}})");
  EXPECT_EQ(RoundTrip(R"({"":1,"":2})"), R"({"":2})");
  EXPECT_EQ(RoundTrip(R"({"a":{"a":1},"b":{"a":1}})"), R"({"a":{"a":1},"b":{"a":1}})");
}

TEST(DocumentTest, OfDuplicateNamesAmongManyTheLastWins) {
  std::string json = "{";
  for (int i = 0; i < 1000; ++i) {
    json += "\"name" + std::to_string(i % 500) + "\":" + std::to_string(i) + ",";
  }
  json.back() = '}';
  auto document = Document::FromJson(json).value();
  EXPECT_EQ(document.Get("name0").integer(), 500);
  EXPECT_EQ(document.Get("name499").integer(), 999);
  EXPECT_TRUE(Document::FromBson(std::string(document.bson())));
}

TEST(DocumentTest, LargeTextsGrowTheBufferAndStayWhole) {
  std::string json = "{\"a\":[1";
  for (int i = 0; i < 100000; ++i) {
    json += ",1";
  }
  json += "],\"s\":\"" + std::string(5 << 20, 'x') + "\"}";
  EXPECT_EQ(RoundTrip(json), json);
  EXPECT_EQ(RoundTrip(R"({"a":1})"), R"({"a":1})");
}

TEST(DocumentTest, WhatJsonMakesIsValidBson) {
  for (const std::string& json :
       {R"({"a":[1,2.5,"x",null,true,{"b":[]}],"":{"c":-5000000000}})"s, NestedJson(kNestingMax)}) {
    auto document = Document::FromJson(json).value();
    EXPECT_EQ(CodeOf(Document::FromBson(std::string(document.bson()))), Code::kOk) << json;
  }
}

TEST(DocumentTest, AnyJsonValueCanBeParsedAlone) {
  for (const char* text :
       {"1", "-2.5", "\"x\"", "null", "true", "[1,[2]]", "{\"a\":{}}", "5000000000"}) {
    Document keeper;
    std::string out;
    EXPECT_TRUE(AppendJson(Parsed(" "s + text + " ", keeper), out));
    EXPECT_EQ(out, text);
  }
  for (const char* text :
       {"", " ", "1,2", "1]", "[1", "1],[2", "]", "tru", "\"x", "\"x\\", "1 2", "01"}) {
    EXPECT_EQ(CodeOf(ParseJsonValue(text)), Code::kInvalidArgument) << text;
  }
}

TEST(DocumentTest, MembersAndElementsAreFoundAndOthersAreUndefined) {
  auto document = Document::FromJson(R"({"a":[10,"x"],"ab":{"c":true},"d":1})").value();
  EXPECT_EQ(Element(document.Get("a"), 0).integer(), 10);
  EXPECT_EQ(Element(document.Get("a"), 1).string(), "x");
  EXPECT_TRUE(Member(document.Get("ab"), "c").boolean());
  for (Value missing : {document.Get("b"), document.Get(""), Element(document.Get("a"), 2),
                        Element(document.Get("ab"), 0), Member(document.Get("a"), "0"),
                        Member(document.Get("d"), "x"), Member(Value(), "x")}) {
    EXPECT_FALSE(missing.defined());
  }
}

TEST(DocumentTest, AnIteratorGivesNamesAndValuesInOrder) {
  auto document = Document::FromJson(R"({"b":1,"a":"x"})").value();
  ValueIterator members(document.bson());
  ASSERT_TRUE(members.Next());
  EXPECT_EQ(members.name(), "b");
  EXPECT_EQ(members.value().number(), 1.0);
  ASSERT_TRUE(members.Next());
  EXPECT_EQ(members.name(), "a");
  EXPECT_EQ(members.value().string(), "x");
  EXPECT_FALSE(members.Next());
}

TEST(DocumentTest, ABuilderMakesWhatJsonWouldMake) {
  DocumentBuilder builder;
  builder.Append("id", "x");
  builder.Append("gone", Value());
  builder.BeginArray("list");
  builder.Append("", Value::Integer(1));
  builder.BeginObject("");
  builder.Append("b", Value::Bool(true));
  builder.End();
  builder.Append("", Value::Null());
  builder.End();
  builder.Append("l", Value::Integer(5000000000));
  builder.Append("d", Value::Double(0.5));
  Document built = builder.Finish();
  std::string json = R"({"id":"x","list":[1,{"b":true},null],"l":5000000000,"d":0.5})";
  EXPECT_EQ(built.ToJson(), json);
  EXPECT_EQ(built.bson(), Document::FromJson(json)->bson());
}

TEST(DocumentTest, ABuilderCopiesEveryValueUnchanged) {
  std::string bson = OneElement(BsonType::kInt64, "\x05\0\0\0\0\0\0\0"s);
  for (const std::string& source :
       {bson, OneElement(BsonType::kObjectId, "0123456789ab"), OneElement(BsonType::kMinKey, ""),
        std::string(Document::FromJson(R"({"a":{"b":[1,2.5]}})")->bson())}) {
    auto document = Document::FromBson(source);
    ASSERT_TRUE(document);
    DocumentBuilder builder;
    builder.Append("a", document->Get("a"));
    EXPECT_EQ(builder.Finish().bson(), source);
  }
}

TEST(DocumentTest, ANameInABuilderEndsAtItsNul) {
  DocumentBuilder builder;
  builder.Append("a\0b"s, Value::Integer(1));
  EXPECT_EQ(builder.Finish().ToJson(), R"({"a":1})");
}

TEST(DocumentTest, AMovedFromDocumentReadsAsEmpty) {
  auto document = Document::FromJson(R"({"a":"a string too long to be held inside"})").value();
  Document taken = std::move(document);
  EXPECT_FALSE(document.Get("a").defined());
  DocumentBuilder builder;
  builder.Append("o", document.root());
  EXPECT_EQ(builder.Finish().ToJson(), R"({"o":{}})");
}

TEST(DocumentTest, BrokenBsonIsCorruption) {
  std::string inner = OneElement(BsonType::kNull, "");
  for (const std::string& bson : {
           ""s,
           "\x05\0\0\0"s,
           "\x05\0\0\0\x01"s,
           "\x06\0\0\0\0"s,
           "\x04\0\0\0\0"s,
           "\x06\0\0\0\0\0"s,
           "\x08\0\0\0\x10"s + "ab\0"s,
           OneElement(static_cast<BsonType>(0x06), ""),
           OneElement(static_cast<BsonType>(0x0E), "\x01\0\0\0\0"s),
           OneElement(BsonType::kInt32, "\0\0\0"s),
           OneElement(BsonType::kInt64, "\0\0\0\0"s),
           OneElement(BsonType::kDouble, "\0\0\0\0"s),
           OneElement(BsonType::kBool, "\x02"),
           OneElement(BsonType::kString, "\0\0\0\0"s),
           OneElement(BsonType::kString, "\x02\0\0\0\0"s),
           OneElement(BsonType::kString, "\x02\0\0\0xy"s),
           OneElement(BsonType::kString, "\x02\0\0\0\xFF\0"s),
           OneElement(BsonType::kString, "\xFF\xFF\xFF\xFF\0"s),
           OneElement(BsonType::kObject, "\x06\0\0\0\0"s),
           OneElement(BsonType::kObject, inner.substr(0, inner.size() - 1) + "\x01"),
           OneElement(BsonType::kBinary, "\xFF\xFF\xFF\x7F\0"s),
           OneElement(BsonType::kBinary, "\x02\0\0\0\0x"s),
           OneElement(BsonType::kObjectId, "0123456789a"),
           OneElement(BsonType::kRegex, "a\0b"s),
           OneElement(BsonType::kRegex, "\xFF\0\0"s),
           "\x08\0\0\0\x0A\xFF\0\0"s,
       }) {
    EXPECT_EQ(CodeOf(Document::FromBson(bson)), Code::kCorruption) << testing::PrintToString(bson);
  }
}

TEST(DocumentTest, BsonNestedTooDeepIsCorruption) {
  DocumentBuilder builder;
  for (int i = 0; i <= kNestingMax; ++i) {
    builder.BeginObject("a");
  }
  for (int i = 0; i <= kNestingMax; ++i) {
    builder.End();
  }
  EXPECT_EQ(CodeOf(Document::FromBson(std::string(builder.Finish().bson()))), Code::kCorruption);
}

TEST(DocumentTest, BrokenBsonInATrustedDocumentEndsTheWalk) {
  Document document = Document::Trusted(
      "\x20\0\0\0\x02"
      "a\0\xFF\xFF\0\0x\0\0"s);
  EXPECT_FALSE(document.Get("a").defined());
  EXPECT_EQ(document.ToJson(), "{}");
}

struct ExtendedRow {
  BsonType type;
  std::string payload;
  std::string json;
};

TEST(DocumentTest, OtherBsonTypesAreKeptAndPrintedAsExtendedJson) {
  const ExtendedRow rows[] = {
      {BsonType::kBinary, "\x03\0\0\0\x80\x01\x02\x03"s,
       R"({"$binary":{"base64":"AQID","subType":"80"}})"},
      {BsonType::kBinary, "\0\0\0\0\xAB"s, R"({"$binary":{"base64":"","subType":"ab"}})"},
      {BsonType::kObjectId, "\x01\x23\x45\x67\x89\xAB\xCD\xEF\0\0\0\x01"s,
       R"({"$oid":"0123456789abcdef00000001"})"},
      {BsonType::kDate, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", R"({"$date":{"$numberLong":"-1"}})"},
      {BsonType::kRegex, "a\"b\0im\0"s,
       R"({"$regularExpression":{"pattern":"a\"b","options":"im"}})"},
      {BsonType::kTimestamp, "\x02\0\0\0\xFF\xFF\xFF\xFF"s,
       R"({"$timestamp":{"t":4294967295,"i":2}})"},
      {BsonType::kDecimal128, "\x0F\0\0\0\0\0\0\0\0\0\0\0\0\0\x3E\x30"s,
       R"({"$numberDecimal":"1.5"})"},
      {BsonType::kMinKey, "", R"({"$minKey":1})"},
      {BsonType::kMaxKey, "", R"({"$maxKey":1})"},
      {BsonType::kDouble, "\0\0\0\0\0\0\xF0\x7F"s, R"({"$numberDouble":"Infinity"})"},
      {BsonType::kDouble, "\0\0\0\0\0\0\xF0\xFF"s, R"({"$numberDouble":"-Infinity"})"},
      {BsonType::kDouble, "\0\0\0\0\0\0\xF8\x7F"s, R"({"$numberDouble":"NaN"})"},
  };
  for (const ExtendedRow& row : rows) {
    auto document = Document::FromBson(OneElement(row.type, row.payload));
    ASSERT_TRUE(document) << row.json;
    EXPECT_EQ(document->ToJson(), "{\"a\":" + row.json + "}");
  }
}

TEST(DocumentTest, AnExtendedValueHasNoMembersAndEqualsOnlyItself) {
  auto one = Document::FromBson(OneElement(BsonType::kObjectId, "0123456789ab")).value();
  auto other = Document::FromBson(OneElement(BsonType::kObjectId, "0123456789ac")).value();
  Value value = one.Get("a");
  EXPECT_EQ(value.kind(), Kind::kObject);
  EXPECT_TRUE(value.is_extended());
  EXPECT_FALSE(ValueIterator(value.bson()).Next());
  EXPECT_FALSE(Member(value, "").defined());
  EXPECT_TRUE(DeepEqual(value, value));
  EXPECT_FALSE(DeepEqual(value, other.Get("a")));
  EXPECT_FALSE(DeepEqual(value, Document().root()));
}

TEST(DocumentTest, EqualityIsThatOfJson) {
  EXPECT_TRUE(JsonEqual("1", "1.0"));
  EXPECT_TRUE(
      JsonEqual(R"({"a":1,"b":[1,{"c":null,"d":2}]})", R"({"b":[1.0,{"d":2,"c":null}],"a":1})"));
  EXPECT_TRUE(JsonEqual("-9223372036854775808", "-9223372036854775808.0"));
  EXPECT_FALSE(JsonEqual("9007199254740993", "9007199254740992.0"));
  EXPECT_FALSE(JsonEqual("9223372036854775807", "9223372036854775808"));
  EXPECT_FALSE(JsonEqual("1", "1.5"));
  EXPECT_FALSE(JsonEqual("1", "true"));
  EXPECT_FALSE(JsonEqual("[1,2]", "[2,1]"));
  EXPECT_FALSE(JsonEqual("[1]", "[1,2]"));
  EXPECT_FALSE(JsonEqual("[]", "{}"));
  EXPECT_FALSE(JsonEqual(R"({"a":1})", R"({"b":1})"));
  EXPECT_FALSE(JsonEqual(R"({"a":1})", R"({"a":1,"b":2})"));
  EXPECT_FALSE(JsonEqual(R"({"b":2,"a":1})", R"({"a":1,"b":3})"));
  EXPECT_TRUE(DeepEqual(Value(), Value()));
  EXPECT_FALSE(DeepEqual(Value(), Value::Null()));
}

TEST(DocumentTest, EqualityOfDeepObjectsInAnotherOrderIsQuick) {
  std::string left = "1";
  std::string right = "1";
  for (int i = 0; i < kNestingMax; ++i) {
    left = R"({"a":)" + left + R"(,"b":1,"c":2})";
    right = R"({"a":)" + right + R"(,"c":2,"b":1})";
  }
  EXPECT_TRUE(JsonEqual(left, right));
}

TEST(DocumentTest, AppendAddsToWhatIsThere) {
  auto document = Document::FromJson(R"({"a":1,"b":[true]})").value();
  std::string out = "x:";
  EXPECT_TRUE(AppendJson(document.root(), out));
  EXPECT_FALSE(AppendJson(Value(), out));
  out += ";";
  AppendJsonMembers(document.root(), out);
  AppendJsonMembers(Document().root(), out);
  out += ";";
  AppendJsonNumber(Value::Double(2.5), out);
  AppendJsonNumber(Value::Integer(-3), out);
  EXPECT_EQ(out, R"(x:{"a":1,"b":[true]};"a":1,"b":[true];2.5-3)");
}

TEST(DocumentTest, AStringThatIsNotUtf8IsRepairedOnTheWayOut) {
  std::string out;
  AppendJsonString("plain \xFF\xC3\xA9\xC3 \xED\xA0\x80\"\n", out);
  EXPECT_EQ(out, "\"plain \uFFFD\u00e9\uFFFD \uFFFD\uFFFD\uFFFD\\\"\\n\"");
}

TEST(DocumentTest, EveryControlCharacterIsEscaped) {
  for (char byte = 1; byte < 0x20; ++byte) {
    std::string out;
    AppendJsonString("0123456" + std::string(1, byte) + "89", out);
    EXPECT_EQ(ParseJsonValue(out)->Get("v").string(), "0123456" + std::string(1, byte) + "89");
  }
}

TEST(DocumentTest, DoublesReadBackTheSame) {
  uint64_t state = 1;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    double number = std::bit_cast<double>(state);
    if (!std::isfinite(number)) {
      continue;
    }
    std::string out;
    AppendJsonNumber(Value::Double(number), out);
    EXPECT_EQ(ParseJsonValue(out)->Get("v").number(), number) << out;
  }
}

}  // namespace
}  // namespace orrery::types
