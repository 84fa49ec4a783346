#include "sim/witness.h"

#include <algorithm>

namespace orrery::sim {

void Totals::Add(const Totals& other) {
  entries += other.entries;
  elections += other.elections;
  installs += other.installs;
  changes += other.changes;
  heirs += other.heirs;
  crashes += other.crashes;
  writes += other.writes;
  reads += other.reads;
  unknown += other.unknown;
  too_hard += other.too_hard;
}

namespace {

std::string Place(GroupId group, Lsn index) {
  return "group " + group.ToString() + " index " + index.ToString();
}

std::string Shown(const std::optional<std::string>& value) { return value ? *value : "nothing"; }

}  // namespace

void Witness::OnLeading(NodeId node, GroupId group, uint64_t term) {
  auto [leader, first] = groups_[group].leaders.try_emplace(term, node);
  if (first) {
    world_.Note("leads", {node.value(), group.value(), term});
    ++totals_.elections;
  }
  if (leader->second != node) {
    world_.Fail("two leaders of group " + group.ToString() + " in term " + std::to_string(term) +
                ": nodes " + leader->second.ToString() + " and " + node.ToString());
  }
}

void Witness::OnStarted(NodeId node, GroupId group, Lsn applied) {
  world_.Note("replica starts", {node.value(), group.value(), applied.value()});
  groups_[group].applied[node] = applied;
}

void Witness::OnApplied(NodeId node, GroupId group_id, Lsn index, uint64_t term, uint64_t hash,
                        std::vector<ItemChange> changes) {
  world_.Note("applied", {node.value(), group_id.value(), index.value(), term, hash});
  Group& group = groups_[group_id];
  Lsn& applied = group.applied[node];
  if (index <= applied) {
    world_.Fail("node " + node.ToString() + " applied " + Place(group_id, index) + " after " +
                applied.ToString());
  } else if (index.value() > applied.value() + 1) {
    TakeGap(group_id, group, {node, Lsn(applied.value() + 1), Lsn(index.value() - 1)});
  }
  applied = index;
  auto [found, first] = group.entries.try_emplace(index, Entry{term, hash, node, changes});
  const Entry& entry = found->second;
  if (first) {
    ++totals_.entries;
    for (const Group::Gap& gap : group.gaps) {
      if (gap.first <= index && index <= gap.last) {
        world_.Fail("node " + gap.node.ToString() + " left out " + Place(group_id, index));
      }
    }
    for (ItemChange& change : changes) {
      group.has_items = true;
      group.items[change.key][index] = std::move(change.value);
    }
  } else if (entry.hash != hash || (entry.term != 0 && term != 0 && entry.term != term)) {
    world_.Fail("committed entries differ at " + Place(group_id, index) + ": node " +
                entry.first.ToString() + " applied term " + std::to_string(entry.term) + " hash " +
                std::to_string(entry.hash) + ", node " + node.ToString() + " term " +
                std::to_string(term) + " hash " + std::to_string(hash));
  }
}

void Witness::TakeGap(GroupId id, Group& group, Group::Gap gap) {
  auto left_out = group.entries.lower_bound(gap.first);
  if (left_out != group.entries.end() && left_out->first <= gap.last) {
    world_.Fail("node " + gap.node.ToString() + " left out " + Place(id, left_out->first));
  }
  group.gaps.push_back(gap);
}

void Witness::OnInstalled(NodeId node, GroupId group, Lsn index) {
  world_.Note("installed", {node.value(), group.value(), index.value()});
  ++totals_.installs;
  if (index > Last(group)) {
    world_.Fail("node " + node.ToString() + " installed a snapshot at " + Place(group, index) +
                ", which nobody has applied");
  }
  groups_[group].applied[node] = index;
}

void Witness::OnHeir(GroupId heir, const std::vector<GroupId>& parents, Lsn base) {
  Group& group = groups_[heir];
  if (group.base != Lsn()) {
    return;
  }
  world_.Note("heir", {heir.value(), base.value()});
  ++totals_.heirs;
  group.base = base;
  for (GroupId parent : parents) {
    const Group& before = groups_[parent];
    group.has_items |= before.has_items;
    for (const auto& [key, values] : before.items) {
      group.items[key].insert(values.begin(), values.end());
    }
  }
}

Lsn Witness::Last(GroupId group) const {
  auto found = groups_.find(group);
  if (found == groups_.end()) {
    return Lsn();
  }
  Lsn last = found->second.entries.empty() ? Lsn() : found->second.entries.rbegin()->first;
  for (const auto& [node, applied] : found->second.applied) {
    last = std::max(last, applied);
  }
  return last;
}

void Witness::OnAcknowledged(const ClientOp& op, const OpResult& result) {
  ++totals_.writes;
  const Group& group = groups_[result.group];
  if (!group.has_items) {
    return;
  }
  std::optional<std::string> written;
  if (op.kind != OpKind::kDelete) {
    written = op.value;
  }
  // The answer's index is at least that of the write.
  auto key = group.items.find(op.key);
  if (key != group.items.end()) {
    for (const auto& [index, value] : key->second) {
      if (index <= result.lsn && value == written) {
        // Of several deletes it may be a later one; then less is asked of bounded reads.
        acknowledged_[op.key].emplace_back(world_.now(), index);
        return;
      }
    }
  }
  world_.Fail("a write of " + Shown(written) + " to " + op.key + " was acknowledged at " +
              Place(result.group, result.lsn) + ", but nobody has applied it");
}

void Witness::OnStrongAnswer(const std::map<GroupId, Lsn>& seen, const ClientOp& op,
                             const OpResult& result) {
  auto token = seen.find(result.group);
  if (token == seen.end() || result.lsn >= token->second) {
    return;
  }
  // A refusal is about one item: what happened to others meanwhile does not matter.
  bool stale = op.kind == OpKind::kRead;
  const auto& items = groups_[result.group].items;
  if (auto key = items.find(op.key); key != items.end()) {
    for (const auto& [index, value] : key->second) {
      stale = stale || (index > result.lsn && index <= token->second);
    }
  }
  if (stale) {
    world_.Fail("a Strong read or refusal of " + op.key + " by one who has seen " +
                token->second.ToString() + " was answered at " + Place(result.group, result.lsn));
  }
}

void Witness::OnSessionRead(const ClientOp& op, const OpResult& result) {
  auto seen = op.session.find(result.group);
  CheckRead(op, seen == op.session.end() ? Lsn() : seen->second, "session token ", result);
}

Lsn Witness::AcknowledgedUntil(const std::string& key, Instant until) const {
  Lsn newest;
  if (auto found = acknowledged_.find(key); found != acknowledged_.end()) {
    for (const auto& [when, index] : found->second) {
      newest = when <= until ? std::max(newest, index) : newest;
    }
  }
  return newest;
}

void Witness::OnBoundedRead(const ClientOp& op, Lsn floor, const OpResult& result) {
  CheckRead(op, floor, "the bound of staleness ", result);
}

void Witness::CheckRead(const ClientOp& op, Lsn token, const char* what, const OpResult& result) {
  const Group& group = groups_[result.group];
  token = std::max(token, group.base);
  if (result.lsn < token) {
    world_.Fail("a read of " + op.key + " at " + what + token.ToString() + " was answered at " +
                Place(result.group, result.lsn));
    return;
  }
  if (!group.has_items) {
    return;
  }
  std::optional<std::string> value;
  if (result.code == Code::kOk) {
    value = result.value;
  }
  // What the key was at the token, or became after it. Also after the index of the answer, which is
  // taken first.
  std::string possible;
  auto key = group.items.find(op.key);
  std::optional<std::string> at_token;
  if (key != group.items.end()) {
    for (const auto& [index, then] : key->second) {
      if (index > token) {
        possible += ", " + Shown(then);
        if (then == value) {
          return;
        }
      } else if (index <= token) {
        at_token = then;
      }
    }
  }
  // The state of a replica may be ahead of what it has told: then the value comes soon.
  if (value && (key == group.items.end() || std::ranges::none_of(key->second, [&](const auto& one) {
                  return one.second == value;
                }))) {
    newer_.push_back({result.group, op.key, *value});
    return;
  }
  if (at_token != value) {
    world_.Fail("a read of " + op.key + " at " + what + token.ToString() + " gave " + Shown(value) +
                " at " + Place(result.group, result.lsn) + "; possible: " + Shown(at_token) +
                possible);
  }
}

void Witness::CheckNewer() {
  for (const auto& [group, key, value] : newer_) {
    const auto& items = groups_[group].items;
    auto known = items.find(key);
    if (known == items.end() ||
        std::ranges::none_of(known->second, [&](const auto& one) { return one.second == value; })) {
      world_.Fail("a read of " + key + " gave " + Shown(value) + ", which nobody ever applied");
    }
  }
}

}  // namespace orrery::sim
