#include "replication/raft_types.h"

#include <algorithm>
#include <memory>

namespace orrery::replication {

namespace {

// configuration: u8 version, varint members, then each: varint id, varint node, u8 role
constexpr uint8_t kConfigurationVersion = 1;

// message: u8 version, u8 kind, varint from, to, term, index, index_term, then by kind
//   append         varint commit, entries, then each: varint term, u8 kind, bytes payload
//   append result  varint rejected
//   vote           u8 flags (1 pre-vote, 2 disrupt)
//   vote result    u8 flags (1 pre-vote, 4 granted)
//   install        bytes configuration, varint configuration_index, bytes manifest
constexpr uint8_t kMessageVersion = 1;
constexpr size_t kEntryBytesMin = 3;
enum Flags : uint8_t { kPreVote = 1, kDisrupt = 2, kGranted = 4 };

bool AnyEqual(const std::vector<Member>& members) {
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (members[i].id == members[j].id) {
        return true;
      }
    }
  }
  return false;
}

void EncodeEntry(Encoder& encoder, const LogEntry& entry) {
  encoder.Varint(entry.term);
  encoder.U8(static_cast<uint8_t>(entry.kind));
  encoder.Bytes(entry.payload == nullptr ? std::string_view() : *entry.payload);
}

void DecodeEntry(Decoder& decoder, LogEntry* entry) {
  entry->term = decoder.Varint();
  entry->kind = static_cast<EntryKind>(decoder.U8());
  std::string_view payload = decoder.Bytes();
  if (entry->kind != EntryKind::kBarrier) {
    entry->payload = std::make_shared<const std::string>(payload);
  }
}

void DecodeEntries(Decoder& decoder, Message* message) {
  uint64_t count = decoder.Varint();
  if (count > decoder.left() / kEntryBytesMin) {
    return decoder.Fail();
  }
  message->entry_count = static_cast<uint32_t>(count);
  message->entries.resize(count);
  for (LogEntry& entry : message->entries) {
    DecodeEntry(decoder, &entry);
    if (!decoder.ok()) {
      return;
    }
  }
}

bool ValidEntries(const Message& message) {
  uint64_t term = message.index_term;
  for (const LogEntry& entry : message.entries) {
    if (entry.term == 0 || entry.term < term || entry.term > message.term) {
      return false;
    }
    term = entry.term;
    switch (entry.kind) {
      case EntryKind::kCommand:
        if (entry.payload == nullptr) {
          return false;
        }
        continue;
      case EntryKind::kBarrier: continue;
      case EntryKind::kChange:
        if (entry.payload == nullptr || !Configuration::Decode(*entry.payload)) {
          return false;
        }
        continue;
    }
    return false;
  }
  return message.entries.size() == message.entry_count;
}

}  // namespace

const Member* Configuration::Find(ReplicaId id) const {
  for (const Member& member : members) {
    if (member.id == id) {
      return &member;
    }
  }
  return nullptr;
}

std::string Configuration::ToString() const {
  std::string text;
  for (const Member& member : members) {
    text += (text.empty() ? "" : " ") + member.id.ToString() + "@" + member.node.ToString() +
            (member.role == Role::kStandby ? "+" : "");
  }
  return text;
}

bool Configuration::SameMembers(const Configuration& other) const {
  return members.size() == other.members.size() &&
         std::ranges::all_of(members, [&](const Member& member) {
           const Member* same = other.Find(member.id);
           return same != nullptr && *same == member;
         });
}

size_t Configuration::voters() const {
  size_t count = 0;
  for (const Member& member : members) {
    count += member.role == Role::kVoter ? 1 : 0;
  }
  return count;
}

bool Configuration::operator==(const Configuration& other) const {
  return members.size() == other.members.size() &&
         std::ranges::is_permutation(members, other.members);
}

bool Configuration::Valid() const {
  for (const Member& member : members) {
    if (member.id == ReplicaId() || member.node == NodeId()) {
      return false;
    }
    if (member.role != Role::kVoter && member.role != Role::kStandby) {
      return false;
    }
  }
  return members.size() <= kMembersMax && voters() > 0 && !AnyEqual(members);
}

std::string Configuration::Encode() const {
  std::string out;
  Encoder encoder(out);
  encoder.U8(kConfigurationVersion);
  encoder.Varint(members.size());
  for (const Member& member : members) {
    encoder.Varint(member.id.value());
    encoder.Varint(member.node.value());
    encoder.U8(static_cast<uint8_t>(member.role));
  }
  return out;
}

Result<Configuration> Configuration::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  Configuration configuration;
  if (decoder.U8() != kConfigurationVersion) {
    decoder.Fail();
  }
  uint64_t count = decoder.Varint();
  if (count > kMembersMax) {
    decoder.Fail();
  }
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    Member member;
    member.id = ReplicaId(decoder.Varint());
    uint64_t node = decoder.Varint();
    if (node > UINT32_MAX) {
      decoder.Fail();
    }
    member.node = NodeId(static_cast<uint32_t>(node));
    member.role = static_cast<Role>(decoder.U8());
    configuration.members.push_back(member);
  }
  if (!decoder.done() || !configuration.Valid()) {
    return Error(Code::kCorruption, "configuration of a group is malformed");
  }
  return configuration;
}

void Message::Encode(Encoder& encoder) const {
  encoder.U8(kMessageVersion);
  encoder.U8(static_cast<uint8_t>(kind));
  for (uint64_t value : {from.value(), to.value(), term, index.value(), index_term}) {
    encoder.Varint(value);
  }
  switch (kind) {
    case MessageKind::kAppend:
      encoder.Varint(commit.value());
      encoder.Varint(entries.size());
      for (const LogEntry& entry : entries) {
        EncodeEntry(encoder, entry);
      }
      return;
    case MessageKind::kAppendResult: encoder.Varint(rejected.value()); return;
    case MessageKind::kVote:
    case MessageKind::kVoteResult:
      encoder.U8((pre_vote ? kPreVote : 0) | (disrupt ? kDisrupt : 0) | (granted ? kGranted : 0));
      return;
    case MessageKind::kInstall:
      encoder.Bytes(configuration.Encode());
      encoder.Varint(configuration_index.value());
      encoder.Bytes(manifest);
      return;
    case MessageKind::kTimeoutNow: return;
  }
}

bool Message::Decode(Decoder& decoder, Message* message) {
  *message = Message();
  if (decoder.U8() != kMessageVersion) {
    decoder.Fail();
  }
  message->kind = static_cast<MessageKind>(decoder.U8());
  message->from = ReplicaId(decoder.Varint());
  message->to = ReplicaId(decoder.Varint());
  message->term = decoder.Varint();
  message->index = Lsn(decoder.Varint());
  message->index_term = decoder.Varint();
  switch (message->kind) {
    case MessageKind::kAppend:
      message->commit = Lsn(decoder.Varint());
      DecodeEntries(decoder, message);
      break;
    case MessageKind::kAppendResult: message->rejected = Lsn(decoder.Varint()); break;
    case MessageKind::kVote:
    case MessageKind::kVoteResult: {
      uint8_t flags = decoder.U8();
      message->pre_vote = (flags & kPreVote) != 0;
      message->disrupt = (flags & kDisrupt) != 0;
      message->granted = (flags & kGranted) != 0;
      break;
    }
    case MessageKind::kInstall: {
      Result<Configuration> configuration = Configuration::Decode(decoder.Bytes());
      if (!configuration) {
        return false;
      }
      message->configuration = std::move(*configuration);
      message->configuration_index = Lsn(decoder.Varint());
      message->manifest = decoder.Bytes();
      break;
    }
    case MessageKind::kTimeoutNow: break;
    default: return false;
  }
  return decoder.ok() && message->Valid();
}

bool Message::Valid() const {
  if (from == ReplicaId() || to == ReplicaId() || from == to || term == 0) {
    return false;
  }
  bool anchored = (index == Lsn()) == (index_term == 0) && index_term <= term;
  switch (kind) {
    case MessageKind::kAppend: return anchored && ValidEntries(*this);
    case MessageKind::kAppendResult: return rejected == Lsn() || index < rejected;
    case MessageKind::kVote: return anchored;
    case MessageKind::kVoteResult: return true;
    case MessageKind::kTimeoutNow: return anchored;
    case MessageKind::kInstall:
      return anchored && index != Lsn() && configuration_index != Lsn() &&
             configuration_index <= index && configuration.Valid();
  }
  return false;
}

}  // namespace orrery::replication
