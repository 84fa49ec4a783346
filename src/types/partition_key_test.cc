#include "types/partition_key.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::types {
namespace {

using Components = std::vector<KeyComponent>;

KeyComponent Text(std::string text) { return KeyComponent::String(std::move(text)); }
KeyComponent Number(double number) { return KeyComponent::Number(number); }

std::string Ordered(const PartitionKey& key) {
  std::string out;
  key.AppendOrdered(out);
  return out;
}

Components Parse(std::string_view json) {
  Result<PartitionKey> key = PartitionKey::FromJson(json);
  EXPECT_TRUE(key.has_value()) << json << ": " << (key ? "" : key.error().message());
  return key ? key->components : Components{};
}

TEST(PartitionKeyJsonTest, ReadsEveryKindOfComponent) {
  EXPECT_EQ(Parse(R"(["a"])"), (Components{Text("a")}));
  EXPECT_EQ(Parse("[]"), Components());
  EXPECT_EQ(Parse("[{}]"), (Components{KeyComponent()}));
  EXPECT_EQ(Parse(R"(["a",{},null])"),
            (Components{Text("a"), KeyComponent(), KeyComponent::Null()}));
  EXPECT_EQ(Parse("[true,false]"),
            (Components{KeyComponent::Bool(true), KeyComponent::Bool(false)}));
  EXPECT_EQ(Parse("[0,-1.5,2e3]"), (Components{Number(0), Number(-1.5), Number(2000)}));
  EXPECT_EQ(Parse(" [ \"a\" ,\t{ } ] \r\n"), (Components{Text("a"), KeyComponent()}));
}

TEST(PartitionKeyJsonTest, ReadsEscapes) {
  EXPECT_EQ(Parse(R"(["\"\\\/\b\f\n\r\t"])"), (Components{Text("\"\\/\b\f\n\r\t")}));
  EXPECT_EQ(Parse(R"(["\u00e4\u20AC\ud83d\ude00"])"), (Components{Text("ä€😀")}));
  EXPECT_EQ(Parse(R"(["\u0000"])"), (Components{Text(std::string(1, '\0'))}));
  EXPECT_EQ(Parse(R"(["ä€😀"])"), (Components{Text("ä€😀")}));
}

TEST(PartitionKeyJsonTest, KeepsTheSignOfZeroAndRoundsWhatIsTooSmall) {
  EXPECT_TRUE(std::signbit(Parse("[-0]").at(0).number()));
  EXPECT_FALSE(std::signbit(Parse("[0]").at(0).number()));
  EXPECT_EQ(Parse("[1e-999]").at(0).number(), 0);
  EXPECT_EQ(Parse("[12345678901234567890]").at(0).number(), 12345678901234567890.0);
}

TEST(PartitionKeyJsonTest, RefusesWhatIsNotAKey) {
  const std::string_view bad[] = {
      "",
      "[",
      "]",
      "[\"a\"",
      "\"a\"",
      "null",
      "{}",
      "[1,]",
      "[,1]",
      "[1 2]",
      "[[]]",
      "[[\"a\"]]",
      "[{\"a\":1}]",
      "[{]",
      "[nul]",
      "[True]",
      "[nulll]",
      "[NaN]",
      "[01]",
      "[+1]",
      "[.5]",
      "[1.]",
      "[1e]",
      "[1e+]",
      "[-]",
      "[0x1]",
      "[1e999]",
      "[-1e999]",
      "[\"a]",
      "[\"\\x\"]",
      "[\"\\",
      "[\"\\u12\"]",
      "[\"\\u12",
      "[\"\\uZZZZ\"]",
      "[\"\\ud83d\"]",
      "[\"\\ude00\"]",
      "[\"\\ud83d\\u0041\"]",
      "[\"a\nb\"]",
      "[\"\xFF\"]",
      "[\"\xC0\x80\"]",
      "[\"\xED\xA0\x80\"]",
      "[\"\xF4\x90\x80\x80\"]",
      "[\"\xE2\x82\"]",
      "[1]]",
      "[1] x",
      "[1}",
  };
  for (std::string_view json : bad) {
    Result<PartitionKey> key = PartitionKey::FromJson(json);
    ASSERT_FALSE(key.has_value()) << json;
    EXPECT_EQ(key.error().code(), Code::kInvalidArgument) << json;
  }
}

TEST(PartitionKeyJsonTest, RefusesMoreThan16Kilobytes) {
  std::string json = "[\"" + std::string((16 << 10) - 4, 'a') + "\"]";
  EXPECT_TRUE(PartitionKey::FromJson(json).has_value());
  EXPECT_EQ(PartitionKey::FromJson(json + " ").error().code(), Code::kInvalidArgument);
}

TEST(PartitionKeyJsonTest, WritesAsciiThatReadsBackTheSame) {
  PartitionKey key{{Text("ä€😀\"\\\n"), KeyComponent(), KeyComponent::Null()}};
  EXPECT_EQ(key.ToJson(), R"(["\u00e4\u20ac\ud83d\ude00\"\\\u000a",{},null])");
  EXPECT_EQ(Parse(key.ToJson()), key.components);
  EXPECT_EQ(PartitionKey().ToJson(), "[]");
}

TEST(PartitionKeyJsonTest, WritesNumbersAsTheShortestText) {
  auto json = [](double number) { return PartitionKey{{Number(number)}}.ToJson(); };
  EXPECT_EQ(json(5), "[5]");
  EXPECT_EQ(json(-0.0), "[-0]");
  EXPECT_EQ(json(0.1), "[0.1]");
  EXPECT_EQ(json(100000), "[100000]");
  EXPECT_EQ(json(1e300), "[1e+300]");
  for (double number :
       {5e-324, 5e-7, 1e-6, 1.0 / 3, 9007199254740993.0, 1e21, 1.7976931348623157e308}) {
    EXPECT_EQ(Parse(json(number)), (Components{Number(number)}));
    EXPECT_EQ(Parse(json(-number)), (Components{Number(-number)}));
  }
}

TEST(PartitionKeyTest, WhatIsEncodedDecodesToTheSame) {
  PartitionKey key{{KeyComponent(), KeyComponent::Null(), KeyComponent::Bool(false),
                    KeyComponent::Bool(true), Number(-2.5), Text(std::string("a\0b", 3))}};
  std::string bytes;
  Encoder encoder(bytes);
  key.Encode(encoder);
  PartitionKey().Encode(encoder);
  Decoder decoder(bytes);
  EXPECT_EQ(PartitionKey::Decode(decoder), key);
  EXPECT_EQ(PartitionKey::Decode(decoder), PartitionKey());
  EXPECT_TRUE(decoder.done());
}

TEST(PartitionKeyTest, BytesThatAreNoKeyFailTheDecoder) {
  PartitionKey key{{Text("abc"), Number(1)}};
  std::string bytes;
  Encoder encoder(bytes);
  key.Encode(encoder);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Decoder decoder(std::string_view(bytes).substr(0, size));
    EXPECT_EQ(PartitionKey::Decode(decoder), PartitionKey());
    EXPECT_FALSE(decoder.ok());
  }
  Decoder unknown_kind("\x01\x06");
  PartitionKey::Decode(unknown_kind);
  EXPECT_FALSE(unknown_kind.ok());
}

TEST(PartitionKeyTest, TheLargestComponentIsMeasuredInBytes) {
  EXPECT_EQ(PartitionKey().LargestComponent(), 0u);
  EXPECT_EQ((PartitionKey{{Text("€"), Number(1), KeyComponent::Null()}}.LargestComponent()), 8u);
  EXPECT_EQ((PartitionKey{{Text("a"), Text(std::string(2049, 'b'))}}.LargestComponent()), 2049u);
}

// In their order.
Components OrderedComponents() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {KeyComponent(),
          KeyComponent::Null(),
          KeyComponent::Bool(false),
          KeyComponent::Bool(true),
          Number(-kInfinity),
          Number(-1e300),
          Number(-2),
          Number(-1),
          Number(-5e-324),
          Number(-0.0),
          Number(0),
          Number(5e-324),
          Number(0.5),
          Number(1),
          Number(2),
          Number(1e300),
          Number(kInfinity),
          Text(""),
          Text(std::string(1, '\0')),
          Text(std::string(2, '\0')),
          Text(std::string("\0\1", 2)),
          Text(std::string("\0a", 2)),
          Text("\x01"),
          Text("a"),
          Text(std::string("a\0", 2)),
          Text(std::string("a\0b", 3)),
          Text("a\x01"),
          Text("aa"),
          Text("b"),
          Text("ä"),
          Text("€"),
          Text("😀"),
          Text("\xFF"),
          Text("\xFF\xFF")};
}

TEST(OrderedKeyTest, TheOrderOfBytesIsTheOrderOfValues) {
  Components components = OrderedComponents();
  for (size_t a = 0; a < components.size(); ++a) {
    for (size_t b = 0; b < components.size(); ++b) {
      EXPECT_EQ(Ordered({{components[a]}}) <=> Ordered({{components[b]}}), a <=> b)
          << a << " " << b;
    }
  }
}

TEST(OrderedKeyTest, AKeyIsReadBackAndABeginningOfItIsNone) {
  Components components = OrderedComponents();
  SeededRandom random(4);
  for (int i = 0; i < 2'000; ++i) {
    PartitionKey key;
    for (uint64_t left = random.Next() % 4; left > 0; --left) {
      key.components.push_back(components[random.Next() % components.size()]);
    }
    std::string bytes = Ordered(key);
    std::string longer = bytes + "row";
    std::string_view rest = longer;
    PartitionKey read;
    ASSERT_TRUE(PartitionKey::ReadOrdered(rest, &read));
    EXPECT_EQ(rest, "row");
    EXPECT_EQ(Ordered(read), bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
      std::string_view part = std::string_view(bytes).substr(0, size);
      EXPECT_FALSE(PartitionKey::ReadOrdered(part, &read));
    }
  }
  std::string_view unknown("\x07\0", 2);
  PartitionKey read;
  EXPECT_FALSE(PartitionKey::ReadOrdered(unknown, &read));
}

TEST(OrderedKeyTest, KeysCompareByComponentAndNoneIsAPrefixOfAnother) {
  Components components = OrderedComponents();
  SeededRandom random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<size_t> a(random.Next() % 4);
    std::vector<size_t> b(random.Next() % 4);
    PartitionKey key_a;
    PartitionKey key_b;
    for (size_t& which : a) {
      which = random.Next() % components.size();
      key_a.components.push_back(components[which]);
    }
    for (size_t& which : b) {
      which = random.Next() % 4 != 0 && &which - b.data() < std::ssize(a)
                  ? a[&which - b.data()]
                  : random.Next() % components.size();
      key_b.components.push_back(components[which]);
    }
    std::string bytes_a = Ordered(key_a);
    std::string bytes_b = Ordered(key_b);
    EXPECT_EQ(bytes_a <=> bytes_b, a <=> b);
    EXPECT_EQ(bytes_a.starts_with(bytes_b), a == b);
  }
}

TEST(OrderedBytesTest, AreReadBackOneByOne) {
  const std::string parts[] = {"", "a", std::string("\0", 1), std::string("a\0\0b\xFF\x01", 6),
                               "z"};
  std::string bytes;
  for (const std::string& part : parts) {
    AppendOrderedBytes(part, bytes);
  }
  std::string_view in = bytes;
  for (const std::string& part : parts) {
    std::string read;
    ASSERT_TRUE(ReadOrderedBytes(in, &read));
    EXPECT_EQ(read, part);
  }
  EXPECT_TRUE(in.empty());
}

TEST(OrderedBytesTest, WhatDoesNotEndOrIsNotEscapedIsRefused) {
  for (std::string bytes : {std::string(""), std::string("a"), std::string("a\0", 2),
                            std::string("a\0\x02", 3), std::string("a\0\xFF", 3)}) {
    std::string_view in = bytes;
    std::string read;
    EXPECT_FALSE(ReadOrderedBytes(in, &read));
    EXPECT_EQ(in, bytes);
  }
}

TEST(OrderedBytesTest, APrefixIsBelowEverythingThatStartsWithIt) {
  std::string prefix;
  AppendOrderedPrefix(std::string("a\0b", 3), prefix);
  for (std::string_view rest :
       {std::string_view(""), std::string_view("\0", 1), std::string_view("c")}) {
    std::string bytes;
    AppendOrderedBytes(std::string("a\0b", 3) + std::string(rest), bytes);
    EXPECT_TRUE(bytes.starts_with(prefix));
  }
}

PartitionKeyDefinition Define(std::vector<std::string> paths, KeyKind kind = KeyKind::kMultiHash,
                              int version = 2) {
  return {.paths = std::move(paths), .kind = kind, .version = version};
}

TEST(PartitionKeyDefinitionTest, PathsAreSplitIntoNames) {
  PartitionKeyDefinition definition = Define({"/a/b_1", R"(/"a-b"/c)", R"(/"x/y"/'it"s'/"q\"\\")"});
  ASSERT_TRUE(definition.Validate().ok()) << definition.Validate().message();
  std::vector<std::vector<std::string>> expected = {
      {"a", "b_1"}, {"a-b", "c"}, {"x/y", "it\"s", "q\"\\"}};
  EXPECT_EQ(definition.SplitPaths(), expected);
}

TEST(PartitionKeyDefinitionTest, GoodDefinitionsAreAccepted) {
  EXPECT_TRUE(Define({"/id"}, KeyKind::kHash, 1).Validate().ok());
  EXPECT_TRUE(Define({"/id"}, KeyKind::kHash, 2).Validate().ok());
  EXPECT_TRUE(Define({"/id"}, KeyKind::kRange, 1).Validate().ok());
  EXPECT_TRUE(Define({"/a"}).Validate().ok());
  EXPECT_TRUE(Define({"/a", "/b", "/c"}).Validate().ok());
}

TEST(PartitionKeyDefinitionTest, BadDefinitionsAreRefusedWithTheReason) {
  struct Case {
    PartitionKeyDefinition definition;
    std::string reason;
  };
  const Case cases[] = {
      {Define({}), "1 to 3 paths, found 0"},
      {Define({"/a", "/b", "/c", "/d"}), "1 to 3 paths, found 4"},
      {Define({"/a", "/b"}, KeyKind::kHash), "several paths, found 2"},
      {Define({"/a"}, KeyKind::kHash, 0), "version 1 or 2, found 0"},
      {Define({"/a"}, KeyKind::kHash, 3), "version 1 or 2, found 3"},
      {Define({"/a", "/b"}, KeyKind::kMultiHash, 1), "MultiHash has version 2"},
      {Define({""}), "does not start with '/'"},
      {Define({"a"}), "does not start with '/'"},
      {Define({"/a", "b/c"}), "'b/c' does not start with '/'"},
      {Define({"/"}), "empty level"},
      {Define({"/a/"}), "empty level"},
      {Define({"/a//b"}), "empty level"},
      {Define({"/\"\""}), "empty level"},
      {Define({"/\"a"}), "not closed"},
      {Define({"/\""}), "not closed"},
      {Define({"/\"a\\\""}), "not closed"},
      {Define({"/\"a'"}), "not closed"},
      {Define({"/a\""}), "quote inside a level"},
      {Define({"/\"a\"b"}), "after a closing quote"},
  };
  for (const Case& bad : cases) {
    Status status = bad.definition.Validate();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << bad.reason;
    EXPECT_NE(status.message().find(bad.reason), std::string::npos) << status.message();
  }
}

const std::vector<std::vector<std::string>> kPaths = {{"a"}, {"b", "c"}};

Result<PartitionKey> Extract(std::string_view json) {
  Document item = Document::FromJson(json).value();
  return ExtractPartitionKey(kPaths, item.root());
}

TEST(ExtractPartitionKeyTest, TakesTheValuesOfThePaths) {
  EXPECT_EQ(Extract(R"({"a":"x","b":{"c":7}})")->components, (Components{Text("x"), Number(7)}));
  EXPECT_EQ(Extract(R"({"b":{"c":null},"a":true})")->components,
            (Components{KeyComponent::Bool(true), KeyComponent::Null()}));
}

TEST(ExtractPartitionKeyTest, WhatIsMissingIsUndefined) {
  Components expected = {Number(1.5), KeyComponent()};
  for (std::string_view json : {R"({"a":1.5})", R"({"a":1.5,"b":{}})", R"({"a":1.5,"b":3})",
                                R"({"a":1.5,"b":[{"c":1}]})"}) {
    EXPECT_EQ(Extract(json)->components, expected) << json;
  }
}

TEST(ExtractPartitionKeyTest, AnObjectOrArrayIsRefused) {
  for (std::string_view json : {R"({"a":{},"b":{"c":1}})", R"({"a":1,"b":{"c":[1]}})"}) {
    EXPECT_EQ(Extract(json).error().code(), Code::kInvalidArgument) << json;
  }
  EXPECT_NE(Extract(R"({"b":{"c":[]}})").error().message().find("/b/c is an array"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::types
