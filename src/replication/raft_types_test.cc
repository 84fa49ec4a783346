#include "replication/raft_types.h"

#include <gtest/gtest.h>

#include "replication/raft_test_replica.h"

namespace orrery::replication {
namespace {

std::string Encoded(const Message& message) {
  std::string bytes;
  Encoder encoder(bytes);
  message.Encode(encoder);
  return bytes;
}

bool Decodes(std::string_view bytes, Message* message) {
  Decoder decoder(bytes);
  return Message::Decode(decoder, message) && decoder.done();
}

Message Of(MessageKind kind) {
  Message message;
  message.kind = kind;
  message.from = ReplicaId(1);
  message.to = ReplicaId(300);
  message.term = 7;
  message.index = Lsn(1000);
  message.index_term = 6;
  switch (kind) {
    case MessageKind::kAppend:
      message.commit = Lsn(999);
      message.entries = {Command(6, std::string(1000, 'x')),
                         ChangeEntry(7, Group(3, 2)),
                         {.term = 7, .kind = EntryKind::kBarrier},
                         Command(7, "")};
      message.entry_count = 4;
      break;
    case MessageKind::kAppendResult: message.rejected = Lsn(1001); break;
    case MessageKind::kVote: message.pre_vote = message.disrupt = true; break;
    case MessageKind::kVoteResult: message.granted = true; break;
    case MessageKind::kInstall:
      message.configuration = Group(4);
      message.configuration_index = Lsn(12);
      message.manifest = "manifest";
      break;
    case MessageKind::kTimeoutNow: break;
  }
  return message;
}

constexpr MessageKind kKinds[] = {MessageKind::kAppend,  MessageKind::kAppendResult,
                                  MessageKind::kVote,    MessageKind::kVoteResult,
                                  MessageKind::kInstall, MessageKind::kTimeoutNow};

TEST(RaftTypesTest, MessagesComeBack) {
  for (MessageKind kind : kKinds) {
    Message message = Of(kind), back;
    std::string bytes = Encoded(message);
    ASSERT_TRUE(Decodes(bytes, &back)) << static_cast<int>(kind);
    EXPECT_EQ(Encoded(back), bytes);
    EXPECT_EQ(back.rejected, message.rejected);
    EXPECT_EQ(back.pre_vote, message.pre_vote);
    EXPECT_EQ(back.disrupt, message.disrupt);
    EXPECT_EQ(back.granted, message.granted);
    EXPECT_EQ(back.configuration, message.configuration);
    EXPECT_EQ(back.manifest, message.manifest);
    EXPECT_EQ(back.entry_count, message.entries.size());
    for (size_t i = 0; i < back.entries.size(); ++i) {
      EXPECT_EQ(back.entries[i].term, message.entries[i].term);
      EXPECT_EQ(back.entries[i].kind, message.entries[i].kind);
      EXPECT_EQ(back.entries[i].bytes(), message.entries[i].bytes());
    }
  }
}

TEST(RaftTypesTest, NoPartOfAMessageIsAMessage) {
  for (MessageKind kind : kKinds) {
    std::string bytes = Encoded(Of(kind));
    for (size_t size = 0; size < bytes.size(); ++size) {
      Message message;
      EXPECT_FALSE(Decodes(bytes.substr(0, size), &message));
    }
  }
}

TEST(RaftTypesTest, DamageIsFoundOrHarmless) {
  for (MessageKind kind : kKinds) {
    std::string bytes = Encoded(Of(kind));
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int flip : {0x01, 0x80, 0xff}) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        Message message;
        if (Decodes(damaged, &message)) {
          EXPECT_TRUE(message.Valid());
        }
      }
    }
  }
}

TEST(RaftTypesTest, ACountOfEntriesIsNotBelieved) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(1);
  encoder.U8(static_cast<uint8_t>(MessageKind::kAppend));
  for (uint64_t value : {1, 2, 7, 10, 6, 9}) {
    encoder.Varint(value);
  }
  encoder.Varint(uint64_t{1} << 40);
  bytes += "abc";
  Message message;
  EXPECT_FALSE(Decodes(bytes, &message));
}

TEST(RaftTypesTest, WhatTheCoreCouldNotBearIsNotValid) {
  auto invalid = [](MessageKind kind, auto&& change) {
    Message message = Of(kind);
    EXPECT_TRUE(message.Valid());
    change(message);
    Message back;
    return !message.Valid() && !Decodes(Encoded(message), &back);
  };
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) { m.index_term = 0; }));
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) { m.index = Lsn(); }));
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) { m.entries[1].term = 5; }));
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) { m.entries[3].term = 8; }));
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) { m.entries[0].kind = EntryKind(9); }));
  EXPECT_TRUE(invalid(MessageKind::kAppend, [](Message& m) {
    m.entries[1].payload = m.entries[0].payload;  // no configuration
  }));
  EXPECT_TRUE(invalid(MessageKind::kAppendResult, [](Message& m) { m.rejected = Lsn(5); }));
  EXPECT_TRUE(invalid(MessageKind::kVote, [](Message& m) { m.from = m.to; }));
  EXPECT_TRUE(invalid(MessageKind::kVote, [](Message& m) { m.from = ReplicaId(); }));
  EXPECT_TRUE(invalid(MessageKind::kVoteResult, [](Message& m) { m.term = 0; }));
  EXPECT_TRUE(
      invalid(MessageKind::kInstall, [](Message& m) { m.configuration_index = Lsn(1001); }));
  EXPECT_TRUE(invalid(MessageKind::kInstall, [](Message& m) { m.configuration = Group(0, 2); }));
}

TEST(RaftTypesTest, ConfigurationsComeBack) {
  for (const Configuration& configuration : {Group(1), Group(5), Group(1, 200)}) {
    Result<Configuration> back = Configuration::Decode(configuration.Encode());
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(*back, configuration);
  }
}

TEST(RaftTypesTest, BadConfigurationsAreRefused) {
  auto refused = [](const Configuration& configuration) {
    Result<Configuration> back = Configuration::Decode(configuration.Encode());
    return !back && back.error().code() == Code::kCorruption;
  };
  EXPECT_TRUE(refused(Group(0)));
  EXPECT_TRUE(refused(Group(0, 3)));
  EXPECT_TRUE(refused(Group(1, Configuration::kMembersMax)));
  Configuration twice = Group(3);
  twice.members[2].id = ReplicaId(1);
  EXPECT_TRUE(refused(twice));
  twice = Group(3);
  twice.members[2].node = NodeId(1);  // while one replaces the other
  EXPECT_FALSE(refused(twice));
  Configuration odd = Group(3);
  odd.members[1].role = Role(3);
  EXPECT_TRUE(refused(odd));
  EXPECT_FALSE(Configuration::Decode("").has_value());
  std::string bytes = Group(3).Encode();
  EXPECT_FALSE(Configuration::Decode(bytes + "x").has_value());
  EXPECT_FALSE(Configuration::Decode(bytes.substr(0, bytes.size() - 1)).has_value());
}

TEST(RaftTypesTest, TheOrderOfMembersDoesNotMatter) {
  Configuration turned = Group(3);
  std::swap(turned.members[0], turned.members[2]);
  EXPECT_EQ(turned, Group(3));
  EXPECT_NE(turned, Group(2, 1));
  EXPECT_NE(turned, Group(4));
}

}  // namespace
}  // namespace orrery::replication
