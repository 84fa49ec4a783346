#include "model/index_policy.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::model {
namespace {

using types::Document;

constexpr std::string_view kDefault =
    R"({"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],)"
    R"("excludedPaths":[{"path":"/\"_etag\"/?"}]})";

Document Json(std::string_view text) {
  auto document = Document::FromJson(text);
  EXPECT_TRUE(document.has_value()) << text;
  return document ? *document : Document();
}

// The normalized policy as JSON, or the message of the error.
std::string Normalized(std::string_view policy) {
  auto normalized = IndexPolicy::Normalize(Json(policy).root());
  if (!normalized) {
    EXPECT_EQ(normalized.error().code(), Code::kInvalidArgument);
    return normalized.error().message();
  }
  return normalized->ToJson();
}

IndexPolicy Compiled(std::string_view policy) {
  auto normalized = IndexPolicy::Normalize(Json(policy).root());
  EXPECT_TRUE(normalized.has_value()) << policy;
  return IndexPolicy::Compile(normalized->root());
}

std::string Paths(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) {
    list += list.empty() ? R"({"path":)" : R"(,{"path":)";
    types::AppendJsonString(path, list);
    list += "}";
  }
  return "[" + list + "]";
}

std::string Policy(const std::vector<std::string>& included,
                   const std::vector<std::string>& excluded) {
  return R"({"includedPaths":)" + Paths(included) + R"(,"excludedPaths":)" + Paths(excluded) + "}";
}

// Terms beside id and the time.
size_t Terms(const IndexPolicy& policy, std::string_view item) {
  std::string with_id = R"({"id":"1",)" + std::string(item.substr(1));
  return policy.CountTerms(Json(with_id).root()) - 2;
}

TEST(IndexPolicyTest, TheDefaultIndexesEverything) {
  EXPECT_EQ(IndexPolicy::DefaultJson().ToJson(), kDefault);
}

TEST(IndexPolicyTest, NormalizeFillsInWhatIsLeftOut) {
  EXPECT_EQ(Normalized("{}"), kDefault);
  EXPECT_EQ(Normalized(R"({"indexingMode":"Consistent"})"), kDefault);
  EXPECT_EQ(Normalized(R"({"includedPaths":null,"excludedPaths":[],"automatic":null})"), kDefault);
  EXPECT_EQ(Normalized(R"({"includedPaths":[{"path":"/*"}]})"), kDefault);
  EXPECT_EQ(Normalized(kDefault), kDefault);
}

TEST(IndexPolicyTest, TheEtagIsExcludedUnlessItIsNamed) {
  EXPECT_EQ(Normalized(R"({"excludedPaths":[{"path":"/a/*"}],"includedPaths":[{"path":"/*"}]})"),
            R"({"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],)"
            R"("excludedPaths":[{"path":"/a/*"},{"path":"/\"_etag\"/?"}]})");
  EXPECT_EQ(Normalized(R"({"includedPaths":[{"path":"/*"},{"path":"/_etag/?"}]})"),
            R"({"indexingMode":"consistent","automatic":true,)"
            R"("includedPaths":[{"path":"/*"},{"path":"/_etag/?"}],"excludedPaths":[]})");
  EXPECT_EQ(Normalized(R"({"excludedPaths":[{"path":"/*"}]})"),
            R"({"indexingMode":"consistent","automatic":true,"includedPaths":[],)"
            R"("excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]})");
}

TEST(IndexPolicyTest, ModeNoneKeepsThePathsAsGiven) {
  EXPECT_EQ(Normalized(R"({"indexingMode":"None"})"),
            R"({"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]})");
  EXPECT_EQ(
      Normalized(R"({"indexingMode":"none","automatic":true,"includedPaths":[{"path":"/a/?"}]})"),
      R"({"indexingMode":"none","automatic":true,"includedPaths":[{"path":"/a/?"}],)"
      R"("excludedPaths":[]})");
}

TEST(IndexPolicyTest, NormalizeKeepsTheOrderOfMembersAndTheirContent) {
  EXPECT_EQ(Normalized(
                R"({"fullTextIndexes":[{"path":"/t"}],"vectorIndexes":[{"path":"/v","type":"flat"}],
                     "spatialIndexes":[{"path":"/loc/?","types":["Point"]}],"other":1,
                     "compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b"}]],
                     "excludedPaths":[{"path":"/\"_etag\"/?"}],
                     "includedPaths":[{"path":"/*","indexes":[{"kind":"Range"}]}],
                     "automatic":false,"indexingMode":"LAZY"})"),
            R"({"indexingMode":"lazy","automatic":false,)"
            R"("includedPaths":[{"path":"/*","indexes":[{"kind":"Range"}]}],)"
            R"("excludedPaths":[{"path":"/\"_etag\"/?"}],)"
            R"("compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b"}]],)"
            R"("spatialIndexes":[{"path":"/loc/?","types":["Point"]}],)"
            R"("vectorIndexes":[{"path":"/v","type":"flat"}],"fullTextIndexes":[{"path":"/t"}]})");
}

TEST(IndexPolicyTest, GoodPathsAreAccepted) {
  for (std::string path : {"/*", "/", "/?", "/a/?", "/a/*", "/a/b/c/*", "/a/[]/?", "/a/[]/b/?",
                           "/a/[]/[]/*", "/\"a-b\"/*", "/\"a\\\"b/c\"/?", "/'a b'/?", "/_a$1/?",
                           "/ä/?", "/a/[]/{x, y}/?", "/\"*\"/?"}) {
    EXPECT_TRUE(Normalized(Policy({"/*"}, {path})).starts_with("{")) << path;
  }
}

TEST(IndexPolicyTest, BadPathsAreRefused) {
  for (std::string path : {"",           "a",
                           "*",          "/a",
                           "/a/",        "//*",
                           "/a-b/*",     "/a b/?",
                           "/a/*/b/?",   "/a/?/b",
                           "/a*",        "/a?",
                           "/a/[0]/?",   "/a/[]",
                           "/\"a/?",     "/\"\"/?",
                           "/\"a\"b/?",  "/a/[]/{x, y}",
                           "/a/[]/{}/?", "/a/[]/{x, y}/b/?",
                           "/a/[]b/?"}) {
    std::string said = Normalized(Policy({"/*"}, {path}));
    EXPECT_TRUE(said.contains("The indexing path '" + path + "' could not be accepted")) << said;
  }
}

TEST(IndexPolicyTest, MalformedPoliciesAreRefused) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {R"({"indexingMode":"eager"})", R"(The indexing mode "eager" is not)"},
      {R"({"indexingMode":1})", "The indexing mode 1 is not"},
      {R"({"automatic":"yes"})", "automatic is neither true nor false"},
      {R"({"includedPaths":{}})", "includedPaths is not an array"},
      {R"({"includedPaths":["/*"]})", "An entry of includedPaths has no path"},
      {R"({"excludedPaths":[{"path":1}]})", "An entry of excludedPaths has no path"},
      {R"({"excludedPaths":[{"path":"/a/*"}]})",
       R"(The special mandatory indexing path "/" is not provided)"},
      {R"({"includedPaths":[{"path":"/a/?"}]})", "mandatory indexing path"},
      {R"({"includedPaths":[{"path":"/?"}]})", "mandatory indexing path"},
      {R"({"compositeIndexes":{}})", "compositeIndexes is not an array"},
      {R"({"compositeIndexes":[{"path":"/a"}]})", "A composite index is not an array"},
      {R"({"compositeIndexes":[[{"path":"a"}]]})", "has no path that starts with '/'"},
      {R"({"compositeIndexes":[[{"path":"/a","order":"up"}]]})",
       "neither ascending nor descending"},
      {R"({"spatialIndexes":[{}]})", "An entry of spatialIndexes has no path"},
  };
  for (auto [policy, reason] : cases) {
    std::string said = Normalized(policy);
    EXPECT_TRUE(said.contains(reason)) << policy << "\n" << said;
  }
  EXPECT_EQ(IndexPolicy::Normalize(types::Value::Integer(1)).error().code(),
            Code::kInvalidArgument);
}

TEST(IndexPolicyTest, ListsHaveLimits) {
  auto composite = [](size_t indexes, size_t paths) {
    std::string one;
    for (size_t i = 0; i < paths; ++i) {
      one += (i == 0 ? "" : ",") + std::string(R"({"path":"/a"})");
    }
    std::string all;
    for (size_t i = 0; i < indexes; ++i) {
      all += (i == 0 ? "[" : ",[") + one + "]";
    }
    return Normalized(R"({"compositeIndexes":[)" + all + "]}");
  };
  EXPECT_TRUE(composite(100, 8).starts_with("{"));
  EXPECT_TRUE(composite(101, 2).contains("101 composite indexes, more than 100"));
  EXPECT_TRUE(composite(1, 9).contains("9 paths, more than 8"));

  std::vector<std::string> paths(1500, "/*");
  EXPECT_TRUE(Normalized(Policy(paths, {"/a/*"})).starts_with("{"));
  EXPECT_TRUE(Normalized(Policy({"/*"}, paths)).starts_with("{"));
  paths.push_back("/*");
  EXPECT_TRUE(
      Normalized(Policy(paths, {})).contains("1501 paths in includedPaths, more than 1500"));
  EXPECT_TRUE(Normalized(Policy({}, paths)).contains("1501 paths in excludedPaths"));
}

TEST(IndexPolicyTest, EveryLeafIsATermByDefault) {
  IndexPolicy policy = Compiled("{}");
  EXPECT_EQ(policy.CountTerms(Json(R"({"id":"1"})").root()), 2u);
  EXPECT_EQ(Terms(policy, R"({"a":1,"b":"x","c":null,"d":true})"), 4u);
  EXPECT_EQ(Terms(policy, R"({"a":{"b":{"c":1,"d":2}},"e":[1,[2,3],{"f":4}]})"), 6u);
  EXPECT_EQ(Terms(policy, R"({"a":[],"b":{},"c":[[],{}]})"), 4u);
}

TEST(IndexPolicyTest, SystemPropertiesInAnItemAreNotCountedTwice) {
  IndexPolicy policy = Compiled("{}");
  EXPECT_EQ(Terms(policy, R"({"a":1,"_ts":5,"_etag":"x"})"), 1u);
  EXPECT_EQ(Terms(policy, R"({"a":{"_ts":5,"_etag":"x","id":1}})"), 3u);
}

TEST(IndexPolicyTest, TheLongestPathDecides) {
  struct Case {
    std::vector<std::string> included;
    std::vector<std::string> excluded;
    std::string_view item;
    size_t terms;
  };
  const Case cases[] = {
      {{}, {"/*"}, R"({"a":1,"b":{"c":2}})", 0},
      {{"/*"}, {"/id/*", "/id/?"}, R"({"a":1})", 1},
      {{"/*"}, {"/a/*"}, R"({"a":{"b":1,"c":[1,2]},"d":1})", 1},
      {{"/*"}, {"/a/*"}, R"({"a":1,"d":1})", 1},
      {{"/*"}, {"/a/?"}, R"({"a":1,"d":1})", 1},
      {{"/*"}, {"/a/?"}, R"({"a":{"b":1},"d":1})", 2},
      {{"/*"}, {"/a/?"}, R"({"a":[],"d":1})", 1},
      {{"/*"}, {"/a/?"}, R"({"a":[1,2],"d":1})", 3},
      {{"/a/?"}, {"/*"}, R"({"a":1,"b":2})", 1},
      {{"/a/?"}, {"/*"}, R"({"a":{"a":1}})", 0},
      {{"/a/?"}, {"/*", "/a/*"}, R"({"a":1})", 1},
      {{"/a/*"}, {"/*", "/a/?"}, R"({"a":1})", 0},
      {{"/a/*"}, {"/*", "/a/?"}, R"({"a":{"b":1}})", 1},
      {{"/a/*"}, {"/*", "/a/b/*"}, R"({"a":{"b":{"c":1,"d":2},"e":3}})", 1},
      {{"/a/*", "/a/b/c/?"}, {"/*", "/a/b/*"}, R"({"a":{"b":{"c":1,"d":2},"e":3}})", 2},
      {{"/a/[]/b/?"}, {"/*"}, R"({"a":[{"b":1,"c":2},{"b":3},4],"b":5})", 2},
      {{"/a/[]/?"}, {"/*"}, R"({"a":[1,2,{"b":3},[4]]})", 2},
      {{"/a/[]/*"}, {"/*"}, R"({"a":[1,2,{"b":3},[4]]})", 4},
      {{"/a/[]/[]/?"}, {"/*"}, R"({"a":[1,[2,3]]})", 2},
      {{"/\"[]\"/?"}, {"/*"}, R"({"[]":1,"a":[1]})", 1},
      {{"/a/\"[]\"/?"}, {"/*"}, R"({"a":[1]})", 0},
      {{"/a/[]/?"}, {"/*"}, R"({"a":{"[]":1}})", 0},
      {{"/\"a-b\"/*"}, {"/*"}, R"({"a-b":{"c":1},"a":2})", 1},
      {{"/\"a\\\"b/c\"/?"}, {"/*"}, R"({"a\"b/c":1})", 1},
      {{"/a/[]/{x, y}/?"}, {"/*"}, R"({"a":[{"x":1,"y":2}],"b":3})", 2},
      {{"/"}, {"/a/*"}, R"({"a":1,"b":2})", 1},
  };
  for (const Case& one : cases) {
    std::string policy = Policy(one.included, one.excluded);
    EXPECT_EQ(Terms(Compiled(policy), one.item), one.terms) << policy << " " << one.item;
  }
}

TEST(IndexPolicyTest, ModeNoneHasNoTerms) {
  IndexPolicy policy = Compiled(R"({"indexingMode":"none"})");
  Document item = Json(R"({"id":"1","a":1})");
  EXPECT_EQ(policy.CountTerms(item.root()), 0u);
  IndexPolicy::Change change = policy.CountChanges(item.root(), Json(R"({"id":"1"})").root());
  EXPECT_EQ(change.removed + change.added, 0u);
}

TEST(IndexPolicyTest, AnItemAlwaysHasTheTermsOfItsIdAndTime) {
  IndexPolicy policy = Compiled(R"({"excludedPaths":[{"path":"/*"}]})");
  EXPECT_EQ(policy.CountTerms(Json(R"({"id":"1","a":1})").root()), 2u);
}

std::string Changes(const IndexPolicy& policy, std::string_view before, std::string_view after) {
  IndexPolicy::Change change = policy.CountChanges(Json(before).root(), Json(after).root());
  return std::to_string(change.removed) + "-" + std::to_string(change.added);
}

TEST(IndexPolicyTest, ChangesAreTheTermsThatDiffer) {
  const std::string_view cases[][3] = {
      {R"({"a":1})", R"({"a":1})", "0-0"},
      {R"({"a":1})", R"({"a":2})", "1-1"},
      {R"({"a":1})", R"({"a":1,"b":2})", "0-1"},
      {R"({"a":1,"b":2})", R"({"b":2})", "1-0"},
      {R"({"a":1,"b":2})", R"({"b":2,"a":1})", "0-0"},
      {R"({"a":1,"b":2})", R"({"b":1,"a":2})", "2-2"},
      {R"({"a":1})", R"({"a":1.0})", "0-0"},
      {R"({"a":1})", R"({"a":"1"})", "1-1"},
      {R"({"a":true})", R"({"a":1})", "1-1"},
      {R"({"a":null})", R"({"a":false})", "1-1"},
      {R"({"a":0.5})", R"({"a":0.25})", "1-1"},
      {R"({"a":{"b":1,"c":2}})", R"({"a":{"c":2,"b":1}})", "0-0"},
      {R"({"a":{"b":1,"c":2}})", R"({"a":{"b":1,"c":3}})", "1-1"},
      {R"({"a":{"b":1}})", R"({"a":[1]})", "1-1"},
      {R"({"a":{"b":1}})", R"({"a":{}})", "1-1"},
      {R"({"a":[]})", R"({"a":{}})", "1-1"},
      {R"({"a":[]})", R"({"a":[1,2]})", "1-2"},
      {R"({"a":[1,2,3]})", R"({"a":[3,1,2]})", "0-0"},
      {R"({"a":[1,2,3]})", R"({"a":[0,1,2,3]})", "0-1"},
      {R"({"a":[1,1]})", R"({"a":[1]})", "1-0"},
      {R"({"a":[{"x":1},{"x":2}]})", R"({"a":[{"x":2},{"x":1,"y":3}]})", "0-1"},
      {R"({"a":{"b":1}})", R"({"b":{"a":1}})", "1-1"},
      {R"({})", R"({"a":1})", "0-1"},
  };
  IndexPolicy policy = Compiled("{}");
  for (const auto& [before, after, expected] : cases) {
    std::string prefix = R"({"id":"1")";
    auto with_id = [&](std::string_view item) {
      return prefix + (item == "{}" ? "}" : "," + std::string(item.substr(1)));
    };
    EXPECT_EQ(Changes(policy, with_id(before), with_id(after)), expected) << before << after;
  }
}

TEST(IndexPolicyTest, ChangesOfExcludedPathsAreFree) {
  IndexPolicy policy = Compiled(Policy({"/a/b/?", "/l/[]/x/?"}, {"/*"}));
  EXPECT_EQ(Changes(policy, R"({"id":"1","c":1})", R"({"id":"1","c":2})"), "0-0");
  EXPECT_EQ(Changes(policy, R"({"a":{"b":1,"c":1}})", R"({"a":{"b":2,"c":2}})"), "1-1");
  EXPECT_EQ(Changes(policy, R"({"l":[{"x":1,"y":1}]})", R"({"l":[{"x":1,"y":2},{"x":2,"y":3}]})"),
            "0-1");
  EXPECT_EQ(Changes(policy, R"({"a":{"b":1}})", R"({"a":{"b":{"c":1}}})"), "1-0");
  EXPECT_EQ(Changes(policy, R"({"_ts":1})", R"({"_ts":2})"), "0-0");
}

std::string RandomItem(Random& random, int depth) {
  std::string item = "{";
  for (uint64_t i = 0, count = random.Next() % 4; i < count; ++i) {
    item += (i == 0 ? "\"" : ",\"") + std::string(1, static_cast<char>('a' + i)) + "\":";
    switch (random.Next() % (depth > 0 ? 4 : 2)) {
      case 0: item += std::to_string(random.Next() % 3); break;
      case 1: item += "\"x\""; break;
      case 2: item += RandomItem(random, depth - 1); break;
      default:
        item += "[" + RandomItem(random, depth - 1) + "," + RandomItem(random, depth - 1) + ",1]";
    }
  }
  return item + "}";
}

TEST(IndexPolicyTest, ChangesAgreeWithTheNumberOfTerms) {
  SeededRandom random(3);
  const IndexPolicy policies[] = {Compiled("{}"), Compiled(Policy({"/*"}, {"/a/*", "/b/?"})),
                                  Compiled(Policy({"/a/[]/a/?", "/b/*"}, {"/*", "/b/a/*"}))};
  for (int i = 0; i < 2000; ++i) {
    Document before = Json(RandomItem(random, 3));
    Document after = Json(RandomItem(random, 3));
    for (const IndexPolicy& policy : policies) {
      IndexPolicy::Change change = policy.CountChanges(before.root(), after.root());
      IndexPolicy::Change back = policy.CountChanges(after.root(), before.root());
      EXPECT_EQ(policy.CountTerms(before.root()) - change.removed + change.added,
                policy.CountTerms(after.root()))
          << before.ToJson() << after.ToJson();
      EXPECT_EQ(change.removed, back.added);
      EXPECT_EQ(change.added, back.removed);
    }
  }
}

}  // namespace
}  // namespace orrery::model
