#include "model/patch.h"

#include <span>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::model {
namespace {

using types::Document;

const std::vector<std::vector<std::string>> kFixed = {{"pk"}, {"key", "part"}};

Result<Patch> Read(std::string_view json) {
  auto body = types::ParseJsonValue(json);
  EXPECT_TRUE(body.has_value()) << json;
  return Patch::FromJson(body->Get("v"));
}

// The changed document as JSON, or the message of the error.
std::string Apply(std::string_view document, std::string_view operations) {
  auto before = Document::FromJson(document);
  EXPECT_TRUE(before.has_value()) << document;
  auto patch = Read(operations);
  if (!patch) {
    EXPECT_EQ(patch.error().code(), Code::kInvalidArgument);
    return patch.error().message();
  }
  auto after = ApplyPatch(*patch, *before, kFixed);
  if (!after) {
    EXPECT_EQ(after.error().code(), Code::kInvalidArgument);
    return after.error().message();
  }
  EXPECT_TRUE(Document::FromBson(std::string(after->bson())).has_value()) << "not a sound document";
  return after->ToJson();
}

struct Case {
  std::string_view document;
  std::string_view operations;
  std::string_view after;  // or a part of the error
};

void ExpectAll(std::span<const Case> cases) {
  for (const Case& one : cases) {
    EXPECT_EQ(Apply(one.document, one.operations), one.after) << one.operations;
  }
}

void ExpectRefused(std::span<const Case> cases) {
  for (const Case& one : cases) {
    std::string said = Apply(one.document, one.operations);
    EXPECT_TRUE(said.contains(one.after)) << one.operations << "\n" << said;
  }
}

TEST(PatchTest, AddSetsPropertiesAndInsertsIntoArrays) {
  const Case cases[] = {
      {R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
      {R"({"a":1,"b":2})", R"([{"op":"add","path":"/a","value":null}])", R"({"a":null,"b":2})"},
      {R"({"a":{}})", R"([{"op":"add","path":"/a/b","value":{"c":[]}}])",
       R"({"a":{"b":{"c":[]}}})"},
      {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/0","value":0}])", R"({"a":[0,1,2]})"},
      {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/1","value":0}])", R"({"a":[1,0,2]})"},
      {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/2","value":3}])", R"({"a":[1,2,3]})"},
      {R"({"a":[1,2]})", R"([{"op":"add","path":"/a/-","value":3}])", R"({"a":[1,2,3]})"},
      {R"({"a":[{"b":[1]}]})", R"([{"op":"add","path":"/a/0/b/-","value":2}])",
       R"({"a":[{"b":[1,2]}]})"},
      {R"({"a":{}})", R"([{"op":"add","path":"/a/-","value":3}])", R"({"a":{"-":3}})"},
      {R"({"a":{}})", R"([{"op":"add","path":"/a/0","value":3}])", R"({"a":{"0":3}})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, SetReplacesTheElementOfAnArray) {
  const Case cases[] = {
      {R"({"a":1})", R"([{"op":"set","path":"/b","value":"x"}])", R"({"a":1,"b":"x"})"},
      {R"({"a":1,"b":2})", R"([{"op":"set","path":"/a","value":[1]}])", R"({"a":[1],"b":2})"},
      {R"({"a":[1,2]})", R"([{"op":"set","path":"/a/0","value":9}])", R"({"a":[9,2]})"},
      {R"({"a":[1,2]})", R"([{"op":"set","path":"/a/2","value":9}])", R"({"a":[1,2,9]})"},
      {R"({"a":[1,2]})", R"([{"op":"set","path":"/a/-","value":9}])", R"({"a":[1,2,9]})"},
      {R"({"a":[{"b":1},{"b":2}]})", R"([{"op":"set","path":"/a/1/b","value":3}])",
       R"({"a":[{"b":1},{"b":3}]})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, ReplaceAndRemoveChangeWhatIsThere) {
  const Case cases[] = {
      {R"({"a":1,"b":2})", R"([{"op":"replace","path":"/a","value":{"x":1}}])",
       R"({"a":{"x":1},"b":2})"},
      {R"({"a":[1,2]})", R"([{"op":"replace","path":"/a/1","value":9}])", R"({"a":[1,9]})"},
      {R"({"a":1,"b":2,"c":3})", R"([{"op":"remove","path":"/b"}])", R"({"a":1,"c":3})"},
      {R"({"a":[1,2,3]})", R"([{"op":"remove","path":"/a/0"}])", R"({"a":[2,3]})"},
      {R"({"a":{"b":1}})", R"([{"op":"remove","path":"/a/b"}])", R"({"a":{}})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, IncrementKeepsIntegersExact) {
  const Case cases[] = {
      {R"({"a":1})", R"([{"op":"incr","path":"/a","value":2}])", R"({"a":3})"},
      {R"({"a":1})", R"([{"op":"incr","path":"/a","value":-2}])", R"({"a":-1})"},
      {R"({"a":1})", R"([{"op":"incr","path":"/a","value":0.5}])", R"({"a":1.5})"},
      {R"({"a":1.5})", R"([{"op":"incr","path":"/a","value":1}])", R"({"a":2.5})"},
      {R"({"a":2147483647})", R"([{"op":"incr","path":"/a","value":1}])", R"({"a":2147483648})"},
      {R"({"a":9007199254740993})", R"([{"op":"incr","path":"/a","value":2}])",
       R"({"a":9007199254740995})"},
      {R"({"a":9223372036854775807})", R"([{"op":"incr","path":"/a","value":1}])",
       R"({"a":9.223372036854776e+18})"},
      {R"({})", R"([{"op":"incr","path":"/a","value":5}])", R"({"a":5})"},
      {R"({"a":[1,2]})", R"([{"op":"incr","path":"/a/1","value":5}])", R"({"a":[1,7]})"},
      {R"({"a":[1]})", R"([{"op":"incr","path":"/a/1","value":5}])", R"({"a":[1,5]})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, MoveTakesAValueToAnotherPlace) {
  const Case cases[] = {
      {R"({"a":{"x":1},"b":2})", R"([{"op":"move","from":"/a","path":"/c"}])",
       R"({"b":2,"c":{"x":1}})"},
      {R"({"a":1,"b":2})", R"([{"op":"move","from":"/a","path":"/b"}])", R"({"b":1})"},
      {R"({"a":1,"b":{}})", R"([{"op":"move","from":"/a","path":"/b/c"}])", R"({"b":{"c":1}})"},
      {R"({"a":{"b":{"c":1}}})", R"([{"op":"move","from":"/a/b","path":"/a"}])",
       R"({"a":{"c":1}})"},
      {R"({"a":[1,2,3]})", R"([{"op":"move","from":"/a/0","path":"/a/2"}])", R"({"a":[2,3,1]})"},
      {R"({"a":[1,2],"b":9})", R"([{"op":"move","from":"/b","path":"/a/0"}])", R"({"a":[9,1,2]})"},
      {R"({"a":1,"ab":{}})", R"([{"op":"move","from":"/a","path":"/ab/c"}])", R"({"ab":{"c":1}})"},
      {R"({"a":[1,2]})", R"([{"op":"move","from":"/a/0","path":"/a/0"}])", R"({"a":[1,2]})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, OperationsSeeWhatTheOnesBeforeThemDid) {
  EXPECT_EQ(
      Apply(
          R"({"name":"bike","price":455.95,"inventory":{"quantity":15},"used":false,"tags":["r"]})",
          R"([{"op":"add","path":"/color","value":"silver"},
                      {"op":"remove","path":"/used"},
                      {"op":"set","path":"/price","value":355.45},
                      {"op":"incr","path":"/inventory/quantity","value":10},
                      {"op":"add","path":"/tags/-","value":"new"},
                      {"op":"move","from":"/color","path":"/inventory/color"},
                      {"op":"add","path":"/more","value":{"list":[]}},
                      {"op":"add","path":"/more/list/0","value":1}])"),
      R"({"name":"bike","price":355.45,"inventory":{"quantity":25,"color":"silver"},)"
      R"("tags":["r","new"],"more":{"list":[1]}})");
}

TEST(PatchTest, PathsAreJsonPointers) {
  const Case cases[] = {
      {R"({"a/b":1})", R"([{"op":"incr","path":"/a~1b","value":1}])", R"({"a/b":2})"},
      {R"({"a~b":1})", R"([{"op":"incr","path":"/a~0b","value":1}])", R"({"a~b":2})"},
      {R"({"~1":1})", R"([{"op":"incr","path":"/~01","value":1}])", R"({"~1":2})"},
      {R"({"ä":{"":1}})", R"([{"op":"incr","path":"/ä/","value":1}])", R"({"ä":{"":2}})"},
  };
  ExpectAll(cases);
}

TEST(PatchTest, WhatDoesNotFitTheDocumentIsRefused) {
  const Case cases[] = {
      {R"({})", R"([{"op":"add","path":"/a/b","value":1}])",
       "For Operation(1): Add Operation can only create a child object of an existing node"},
      {R"({"a":1})", R"([{"op":"set","path":"/a/b","value":1}])", "no path found beyond: 'a'"},
      {R"({"a":{}})", R"([{"op":"incr","path":"/a/b/c","value":1}])", "no path found beyond: 'b'"},
      {R"({"a":[]})", R"([{"op":"add","path":"/a/0/b","value":1}])", "no path found beyond: '0'"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/2","value":1}])",
       "Index(2) to operate on is out of array bounds"},
      {R"({"a":[1]})", R"([{"op":"set","path":"/a/2","value":1}])",
       "Index(2) to operate on is out of array bounds"},
      {R"({"a":[1]})", R"([{"op":"incr","path":"/a/2","value":1}])",
       "Index(2) to operate on is out of array bounds"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/00","value":1}])", "Index(00)"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/+0","value":1}])", "Index(+0)"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/-1","value":1}])", "Index(-1)"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/","value":1}])", "Index()"},
      {R"({"a":[1]})", R"([{"op":"add","path":"/a/99999999999999999999","value":1}])",
       "out of array bounds"},
      {R"({"a":1})", R"([{"op":"replace","path":"/b","value":1}])",
       "Node(/b) to be replaced is absent"},
      {R"({"a":[1]})", R"([{"op":"replace","path":"/a/1","value":1}])",
       "Node(/a/1) to be replaced is absent"},
      {R"({"a":[1]})", R"([{"op":"replace","path":"/a/-","value":1}])", "to be replaced is absent"},
      {R"({"a":1})", R"([{"op":"remove","path":"/b"}])", "Node(/b) to be removed is absent"},
      {R"({"a":1})", R"([{"op":"remove","path":"/b/c"}])", "Node(/b/c) to be removed is absent"},
      {R"({"a":[1]})", R"([{"op":"remove","path":"/a/1"}])", "to be removed is absent"},
      {R"({"a":[1]})", R"([{"op":"remove","path":"/a/-"}])", "to be removed is absent"},
      {R"({"a":1})", R"([{"op":"remove","path":"/a"},{"op":"remove","path":"/a"}])",
       "For Operation(2): Node(/a)"},
      {R"({"a":"1"})", R"([{"op":"incr","path":"/a","value":1}])", "Node(/a) is not a number"},
      {R"({"a":null})", R"([{"op":"incr","path":"/a","value":1}])", "Node(/a) is not a number"},
      {R"({"a":1e308})", R"([{"op":"incr","path":"/a","value":1e308}])",
       "would not be a finite number"},
      {R"({"a":1})", R"([{"op":"move","from":"/b","path":"/c"}])",
       "Node(/b) to be removed is absent"},
      {R"({"a":{}})", R"([{"op":"move","from":"/a","path":"/a/b"}])", "lies inside '/a'"},
      {R"({"a":1})", R"([{"op":"move","from":"/a","path":"/b/c"}])",
       "Given Operation can only create a child"},
  };
  ExpectRefused(cases);
}

TEST(PatchTest, SystemPropertiesIdAndPartitionKeyAreNotTouched) {
  const std::string_view document = R"({"id":"1","pk":"p","key":{"part":1,"other":2},"a":1})";
  for (std::string name : {"id", "_rid", "_self", "_etag", "_ts", "_attachments"}) {
    std::string said = Apply(document, R"([{"op":"set","path":"/)" + name + R"(","value":"x"}])");
    EXPECT_TRUE(said.contains("Cannot patch system property '" + name + "'")) << said;
  }
  const Case cases[] = {
      {document, R"([{"op":"remove","path":"/id"}])", "system property 'id'"},
      {document, R"([{"op":"set","path":"/_ts/x","value":1}])", "system property '_ts'"},
      {document, R"([{"op":"set","path":"/pk","value":"p"}])", "Cannot patch '/pk'"},
      {document, R"([{"op":"set","path":"/pk/x","value":1}])", "the partition key '/pk'"},
      {document, R"([{"op":"replace","path":"/key","value":{}}])",
       "Cannot patch '/key': the partition key '/key/part'"},
      {document, R"([{"op":"incr","path":"/key/part","value":1}])",
       "the partition key '/key/part'"},
      {document, R"([{"op":"move","from":"/pk","path":"/b"}])", "the partition key '/pk'"},
      {document, R"([{"op":"move","from":"/a","path":"/key/part"}])",
       "the partition key '/key/part'"},
      {document, R"([{"op":"incr","path":"/a","value":1},{"op":"move","from":"/a","path":"/id"}])",
       "For Operation(2): Cannot patch system property 'id'"},
  };
  ExpectRefused(cases);
  EXPECT_EQ(Apply(document, R"([{"op":"incr","path":"/key/other","value":1},)"
                            R"({"op":"add","path":"/key/id","value":0}])"),
            R"({"id":"1","pk":"p","key":{"part":1,"other":3,"id":0},"a":1})");
}

TEST(PatchTest, MalformedRequestsAreRefused) {
  const Case cases[] = {
      {"{}", "[]", "no operations"},
      {"{}", R"({"operations":[]})", "no operations"},
      {"{}", "{}", "check syntax"},
      {"{}", "1", "check syntax"},
      {"{}", R"({"operations":{"op":"add"}})", "check syntax"},
      {"{}", R"({"condition":1,"operations":[{"op":"remove","path":"/a"}]})",
       "condition is not a string"},
      {"{}", R"([1])", "For Operation(1): 'op' is missing"},
      {"{}", R"([{"op":"test","path":"/a","value":1}])", "the op 'test' is not"},
      {"{}", R"([{"op":"Add","path":"/a","value":1}])", "the op 'Add' is not"},
      {"{}", R"([{"op":"add","value":1}])", "the path is missing"},
      {"{}", R"([{"op":"add","path":1,"value":1}])", "the path is missing or not a string"},
      {"{}", R"([{"op":"add","path":"","value":1}])", "does not start with '/'"},
      {"{}", R"([{"op":"add","path":"a","value":1}])", "'a' does not start with '/'"},
      {"{}", R"([{"op":"add","path":"/a~2","value":1}])", "'~' without 0 or 1"},
      {"{}", R"([{"op":"add","path":"/a~","value":1}])", "'~' without 0 or 1"},
      {"{}", R"([{"op":"add","path":"/a\u0000b","value":1}])", "without NUL"},
      {"{}", R"([{"op":"add","path":"/a"}])", "the value is missing"},
      {"{}", R"([{"op":"incr","path":"/a","value":"1"}])", "the value of incr is not a number"},
      {"{}", R"([{"op":"remove","path":"/a"},{"op":"move","path":"/a"}])",
       "For Operation(2): the path is missing"},
  };
  ExpectRefused(cases);
}

std::string Repeated(std::string_view part, size_t times) {
  std::string text;
  for (size_t i = 0; i < times; ++i) {
    text += part;
  }
  return text;
}

std::string Operations(size_t count) {
  std::string all = R"({"op":"incr","path":"/a","value":1})";
  return "[" + all + Repeated("," + all, count - 1) + "]";
}

TEST(PatchTest, TenOperationsAreTheMost) {
  EXPECT_EQ(Apply("{}", Operations(10)), R"({"a":10})");
  EXPECT_EQ(Apply("{}", Operations(11)), "The number of patch operations can't exceed 10.");
}

TEST(PatchTest, PathsHaveALimit) {
  auto set = [](std::string path) {
    return R"([{"op":"set","path":")" + path + R"(","value":1}])";
  };
  EXPECT_TRUE(Read(set(Repeated("/a", 128))).has_value());
  EXPECT_TRUE(Apply("{}", set(Repeated("/a", 129))).contains("more than 128 levels"));
  EXPECT_TRUE(Read(set("/" + Repeated("a", 1023))).has_value());
  EXPECT_TRUE(Apply("{}", set("/" + Repeated("a", 1024))).contains("longer than 1024 bytes"));
}

TEST(PatchTest, TheChangedDocumentIsNotNestedTooDeep) {
  std::string deep = R"({"a":)" + Repeated("[", 127) + Repeated("]", 127) + "}";
  std::string path = "/a" + Repeated("/0", 126) + "/-";
  auto add = [&](std::string value) {
    return R"([{"op":"add","path":")" + path + R"(","value":)" + value + "}]";
  };
  EXPECT_TRUE(Apply(deep, add("1")).starts_with("{"));
  EXPECT_TRUE(Apply(deep, add("[1]")).starts_with("{"));
  EXPECT_TRUE(Apply(deep, add("[[]]")).contains("nested deeper than 128 levels"));
  std::string tower = R"({"b":{"c":[]},"a":)" + Repeated("[", 127) + Repeated("]", 127) + "}";
  std::string move = R"([{"op":"add","path":"/b/d","value":1},{"op":"move","from":"/b","path":")" +
                     path + R"("}])";
  EXPECT_TRUE(Apply(tower, move).contains("nested deeper than 128 levels"));
}

TEST(PatchTest, UntouchedValuesKeepTheirBytes) {
  // An ObjectId and an int64 that would fit 32 bits.
  std::string bson("\x27\0\0\0\x07o\0abcdefghijkl\x12n\0\x07\0\0\0\0\0\0\0\x03s\0\x05\0\0\0\0\0",
                   39);
  auto document = Document::FromBson(bson);
  ASSERT_TRUE(document.has_value()) << document.error().message();
  auto patch = Read(R"([{"op":"add","path":"/s/x","value":1},{"op":"remove","path":"/s/x"}])");
  EXPECT_EQ(ApplyPatch(*patch, *document, {})->bson(), bson);
  auto into = ApplyPatch(*Read(R"([{"op":"add","path":"/o/x","value":1}])"), *document, {});
  EXPECT_EQ(into.error().code(), Code::kInvalidArgument);
}

TEST(PatchTest, ReadsTheCondition) {
  auto patch =
      Read(R"({"condition":"from c where c.a = 1","operations":[{"op":"remove","path":"/a"}]})");
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(patch->condition, "from c where c.a = 1");
  EXPECT_EQ(Read(R"([{"op":"remove","path":"/a"}])")->condition, "");
  EXPECT_EQ(Read(R"({"condition":null,"operations":[{"op":"remove","path":"/a"}]})")->condition,
            "");
}

std::string Encoded(const Patch& patch) {
  std::string bytes;
  Encoder encoder(bytes);
  patch.Encode(encoder);
  return bytes;
}

Patch Sample() {
  return *Read(R"({"condition":"from c","operations":[
      {"op":"add","path":"/a~1b/0","value":{"x":[1,null]}}, {"op":"set","path":"/b","value":null},
      {"op":"replace","path":"/c","value":"text"}, {"op":"remove","path":"/d"},
      {"op":"incr","path":"/e","value":1.5}, {"op":"move","from":"/f","path":"/g/-"}]})");
}

TEST(PatchTest, EncodingComesBackTheSame) {
  for (const Patch& patch : {Sample(), Patch()}) {
    std::string bytes = Encoded(patch);
    Decoder decoder(bytes);
    Patch back = Patch::Decode(decoder);
    EXPECT_TRUE(decoder.done());
    EXPECT_EQ(Encoded(back), bytes);
    EXPECT_EQ(back.condition, patch.condition);
    EXPECT_EQ(back.operations.size(), patch.operations.size());
  }
}

TEST(PatchTest, EveryPrefixOfAnEncodingIsRefused) {
  std::string bytes = Encoded(Sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    Decoder decoder(std::string_view(bytes).substr(0, size));
    Patch::Decode(decoder);
    EXPECT_FALSE(decoder.ok()) << size;
  }
}

TEST(PatchTest, WhatDecodesFromDamagedBytesCanBeApplied) {
  std::string bytes = Encoded(Sample());
  Document document = *Document::FromJson(R"({"a/b":[1],"b":1,"c":2,"d":3,"e":4,"f":5,"g":[6]})");
  SeededRandom random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    for (uint64_t hits = 1 + random.Next() % 3; hits > 0; --hits) {
      damaged[random.Next() % damaged.size()] = static_cast<char>(random.Next());
    }
    Decoder decoder(damaged);
    Patch patch = Patch::Decode(decoder);
    if (!decoder.ok()) {
      continue;
    }
    auto after = ApplyPatch(patch, document, kFixed);
    EXPECT_TRUE(!after || Document::FromBson(std::string(after->bson())).has_value());
  }
}

TEST(PatchTest, DecodeRefusesOperationsThatMakeNoSense) {
  auto decodes = [](PatchOperation operation) {
    Patch patch;
    patch.operations.push_back(std::move(operation));
    std::string bytes = Encoded(patch);
    Decoder decoder(bytes);
    Patch::Decode(decoder);
    return decoder.ok();
  };
  Document number = *Document::FromJson(R"({"v":1})");
  Document text = *Document::FromJson(R"({"v":"1"})");
  EXPECT_TRUE(decodes({PatchKind::kAdd, {"a"}, {}, number}));
  EXPECT_FALSE(decodes({static_cast<PatchKind>(0), {"a"}, {}, number}));
  EXPECT_FALSE(decodes({static_cast<PatchKind>(7), {"a"}, {}, number}));
  EXPECT_FALSE(decodes({PatchKind::kAdd, {}, {}, number}));
  EXPECT_FALSE(decodes({PatchKind::kAdd, {"a"}, {}, Document()}));
  EXPECT_FALSE(decodes({PatchKind::kAdd, {"\xFF"}, {}, number}));
  EXPECT_FALSE(decodes({PatchKind::kAdd, std::vector<std::string>(129, "a"), {}, number}));
  EXPECT_FALSE(decodes({PatchKind::kIncrement, {"a"}, {}, text}));
  EXPECT_FALSE(decodes({PatchKind::kMove, {"a"}, {}, Document()}));
}

TEST(PatchTest, APatchWithoutOperationsChangesNothing) {
  Document document = *Document::FromJson(R"({"a":{"b":[1]}})");
  EXPECT_EQ(ApplyPatch(Patch(), document, {})->bson(), document.bson());
}

}  // namespace
}  // namespace orrery::model
