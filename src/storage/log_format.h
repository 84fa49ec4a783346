// The bytes of the log store, and of the records of replicas. Only store_*.cc include this.
//
//   entry    group u64, index u64           -> version u8, term u64, [kind u8,] payload
//   about    group u64, 0 u64, kind u8      -> what is kept of a replicated group: before its
//   entries
//
// All in one space: a log store with two would not reuse its files (rocks_log_files.h). See
// docs/formats/log.md.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strong_id.h"
#include "storage/log_entry.h"
#include "storage/store.h"

namespace orrery::storage {

inline constexpr SpaceIndex kLogSpace = 0;

class EntryKey {
 public:
  EntryKey(GroupId group, Lsn index);
  operator std::string_view() const { return {bytes_, sizeof(bytes_)}; }

 private:
  char bytes_[16];
};
// Below every entry of the group but above what is kept about it; behind everything of the group.
inline EntryKey FirstEntryKey(GroupId group) { return EntryKey(group, Lsn(1)); }
inline EntryKey GroupEnd(GroupId group) { return EntryKey(GroupId(group.value() + 1), Lsn(0)); }

// kEnded: the last replica that ended here after it had taken part. kOutcomes: of operations whose
// entries were cut, as the owner wrote them.
enum class About : uint8_t {
  kIdentity = 1,
  kHardState = 2,
  kBase = 3,
  kMark = 4,
  kEnded = 5,
  kOutcomes = 6
};
std::string AboutKey(GroupId group, About kind);

// A key of the log store, taken apart.
struct LogKey {
  GroupId group;
  Lsn index;                   // of an entry
  std::optional<About> about;  // it is none
};
Result<LogKey> ParseLogKey(std::string_view key);

// Replaces `out`.
void EncodeEntry(const LogEntry& entry, std::string& out);
struct EntryView {
  uint64_t term = 1;
  EntryKind kind = EntryKind::kCommand;
  std::string_view payload;
};
// kCorruption names the place.
Result<EntryView> DecodeEntry(const LogKey& key, std::string_view value);

// A base, and whether the group was born with it: then a state without a record of the group is one
// at this index.
struct StoredBase {
  LogBase base;
  bool born = false;
};

std::string EncodeIdentity(const ReplicaIdentity& identity);
std::string EncodeHardState(const HardState& hard);
std::string EncodeBase(const StoredBase& base);
std::string EncodeMark(const GroupMark& mark);
std::string EncodeEnded(ReplicaId replica);
std::string EncodeRecord(const ReplicaRecord& record);
// kCorruption if malformed or newer than this program.
Result<ReplicaIdentity> DecodeIdentity(std::string_view bytes);
Result<HardState> DecodeHardState(std::string_view bytes);
Result<StoredBase> DecodeBase(std::string_view bytes);
Result<GroupMark> DecodeMark(std::string_view bytes);
Result<ReplicaId> DecodeEnded(std::string_view bytes);
Result<ReplicaRecord> DecodeRecord(std::string_view bytes);

}  // namespace orrery::storage
