// Witness: hears what every replica does, and says when two things that it heard cannot both be.
//
//   one leader        of a group and a term
//   one log           an index of a group has one entry, whoever applies it, and every replica
//                     applies them in order and leaves none out
//   acknowledged      a write that was acknowledged has been applied somewhere before
//   sessions          a read at a session token shows a state at or after the token
//   bounded reads     show a state with all that was acknowledged before the bound
//
// Nodes report while they run; a group's listener is the place to do so. Reports are taken as they
// are: the entries of a log that was lost as a whole would look like new ones.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "sim/node.h"
#include "sim/world.h"

namespace orrery::sim {

// What an entry does to an item; no value: it is deleted.
struct ItemChange {
  std::string key;
  std::optional<std::string> value;
};

struct Totals {
  uint64_t entries = 0;  // different ones
  uint64_t elections = 0;
  uint64_t installs = 0;
  uint64_t changes = 0;  // of members
  uint64_t heirs = 0;    // of splits and merges
  uint64_t crashes = 0;
  uint64_t writes = 0;  // acknowledged
  uint64_t reads = 0;
  uint64_t unknown = 0;   // outcomes
  uint64_t too_hard = 0;  // histories that could not be checked
  void Add(const Totals& other);
};

class Witness {
 public:
  explicit Witness(World& world) : world_(world) {}

  // From nodes ------------------------------------------------------------------------------------
  void OnLeading(NodeId node, GroupId group, uint64_t term);
  // A replica begins, at what its disk has.
  void OnStarted(NodeId node, GroupId group, Lsn applied);
  // `hash` is of the entry's bytes. Term 0: not known. Of entries that no replica reports
  // (barriers, configurations) nothing is known and nothing is wrong.
  void OnApplied(NodeId node, GroupId group, Lsn index, uint64_t term, uint64_t hash,
                 std::vector<ItemChange> changes);
  // A snapshot took the place of everything.
  void OnInstalled(NodeId node, GroupId group, Lsn index);
  void OnMembersChanged(GroupId group) { ++totals_.changes; }
  // A group has taken the place of others, whose last entries are all below `base`.
  void OnHeir(GroupId heir, const std::vector<GroupId>& parents, Lsn base);

  // From clients ----------------------------------------------------------------------------------
  void OnAcknowledged(const ClientOp& op, const OpResult& result);
  void OnSessionRead(const ClientOp& op, const OpResult& result);
  // The newest index, in the group that has the key, of a write of it that was acknowledged by
  // then.
  Lsn AcknowledgedUntil(const std::string& key, Instant until) const;
  void OnBoundedRead(const ClientOp& op, Lsn floor, const OpResult& result);
  // A read, or a refusal: as binding. `seen` is what the client has seen before.
  void OnStrongAnswer(const std::map<GroupId, Lsn>& seen, const ClientOp& op,
                      const OpResult& result);

  // At the end: whatever was read was applied.
  void CheckNewer();

  // The newest index of a group that anybody has applied.
  Lsn Last(GroupId group) const;
  Totals& totals() { return totals_; }

 private:
  struct Entry {
    uint64_t term;
    uint64_t hash;
    NodeId first;  // who applied it first
    std::vector<ItemChange> changes;
  };
  struct Group {
    std::map<uint64_t, NodeId> leaders;  // by term
    std::map<Lsn, Entry> entries;
    std::map<NodeId, Lsn> applied;
    struct Gap {
      NodeId node;
      Lsn first;
      Lsn last;
    };
    std::vector<Gap> gaps;  // what a replica went on without
    // The values of a key from an index on.
    std::map<std::string, std::map<Lsn, std::optional<std::string>>> items;
    bool has_items = false;
    Lsn base;  // of an heir: all of its replicas have what its parents had
  };

  void TakeGap(GroupId id, Group& group, Group::Gap gap);
  // Of a read that must show the key as it was at this index, or later.
  void CheckRead(const ClientOp& op, Lsn token, const char* what, const OpResult& result);

  World& world_;
  std::map<GroupId, Group> groups_;
  struct Read {
    GroupId group;
    std::string key;
    std::string value;
  };
  std::vector<Read> newer_;  // than anything that was told to be applied
  // By key: when writes were acknowledged, and their indexes. Heirs go on where parents ended.
  std::map<std::string, std::vector<std::pair<Instant, Lsn>>> acknowledged_;
  Totals totals_;
};

}  // namespace orrery::sim
