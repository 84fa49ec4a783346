#include "sim/linearizable.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "base/check.h"

namespace orrery::sim {

namespace {

// What a call answers, and what the item is after it.
struct Effect {
  Code code;
  ItemValue after;
};

Effect EffectOf(const Call& call, ItemValue now) {
  switch (call.kind) {
    case OpKind::kCreate:
      return now == 0 ? Effect{Code::kOk, call.value} : Effect{Code::kAlreadyExists, now};
    case OpKind::kUpsert: return {Code::kOk, call.value};
    case OpKind::kReplace:
    case OpKind::kDelete:
      if (now == 0) {
        return {Code::kNotFound, now};
      }
      if (call.if_match != 0 && call.if_match != now) {
        return {Code::kPreconditionFailed, now};
      }
      return {Code::kOk, call.kind == OpKind::kReplace ? call.value : 0};
    case OpKind::kRead:
    case OpKind::kSessionRead:
    case OpKind::kBoundedRead: break;
  }
  return {now == 0 ? Code::kNotFound : Code::kOk, now};
}

class Search {
 public:
  Search(const std::vector<Call>& calls, size_t states_max)
      : calls_(calls), states_max_(states_max) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls[i].end != kNever) {
        must_ |= uint64_t{1} << i;
      }
    }
  }

  bool From(uint64_t done, ItemValue now) {
    done = TakeAllWithoutEffect(done, now);
    if ((done & must_) == must_) {
      return true;
    }
    if (!seen_.insert({done, now}).second || gave_up()) {
      return false;
    }
    const uint64_t first_end = FirstEnd(done);
    for (size_t i = 0; i < calls_.size(); ++i) {
      if (IsNext(i, done, first_end)) {
        const std::optional<ItemValue> after = After(calls_[i], now);
        if (after && *after != now && From(done | uint64_t{1} << i, *after)) {
          return true;
        }
      }
    }
    return false;
  }
  bool gave_up() const { return seen_.size() > states_max_; }

 private:
  // Nothing if the call cannot have happened now with its answer.
  static std::optional<ItemValue> After(const Call& call, ItemValue now) {
    const Effect effect = EffectOf(call, now);
    const bool known = call.end != kNever;
    if (known && effect.code != call.code) {
      return std::nullopt;
    }
    if (known && call.kind == OpKind::kRead && call.read != now) {
      return std::nullopt;
    }
    return effect.after;
  }
  uint64_t FirstEnd(uint64_t done) const {
    uint64_t first = kNever;
    for (size_t i = 0; i < calls_.size(); ++i) {
      if ((done >> i & 1) == 0) {
        first = std::min(first, calls_[i].end);
      }
    }
    return first;
  }
  bool IsNext(size_t i, uint64_t done, uint64_t first_end) const {
    return (done >> i & 1) == 0 && calls_[i].begin < first_end;
  }
  // What changes nothing and fits now may as well happen now.
  uint64_t TakeAllWithoutEffect(uint64_t done, ItemValue now) const {
    for (bool again = true; again;) {
      again = false;
      const uint64_t first_end = FirstEnd(done);
      for (size_t i = 0; i < calls_.size(); ++i) {
        if (calls_[i].end != kNever && IsNext(i, done, first_end) && After(calls_[i], now) == now) {
          done |= uint64_t{1} << i;
          again = true;
        }
      }
    }
    return done;
  }

  const std::vector<Call>& calls_;
  const size_t states_max_;
  uint64_t must_ = 0;  // calls of known outcome
  struct Hash {
    size_t operator()(const std::pair<uint64_t, ItemValue>& state) const {
      return (state.first ^ uint64_t{state.second} << 32) * 0x9E3779B97F4A7C15u >> 8;
    }
  };
  std::unordered_set<std::pair<uint64_t, ItemValue>, Hash> seen_;  // done, value
};

const char* Name(OpKind kind) {
  switch (kind) {
    case OpKind::kCreate: return "create";
    case OpKind::kUpsert: return "upsert";
    case OpKind::kReplace: return "replace";
    case OpKind::kDelete: return "delete";
    case OpKind::kRead: return "read";
    case OpKind::kSessionRead: return "session read";
    case OpKind::kBoundedRead: return "bounded read";
  }
  return "?";
}

}  // namespace

std::string Call::ToString() const {
  std::string text = "[" + std::to_string(begin) + ", ";
  text += (end == kNever ? "?" : std::to_string(end)) + "] " + Name(kind);
  text += value != 0 ? " v" + std::to_string(value) : "";
  text += if_match != 0 ? " if v" + std::to_string(if_match) : "";
  if (end == kNever) {
    return text + " -> unknown";
  }
  if (kind == OpKind::kRead) {
    return text + " -> " + (read == 0 ? "nothing" : "v" + std::to_string(read));
  }
  return text + " -> " + std::string(CodeName(code));
}

Verdict Linearizable(const std::vector<Call>& history, size_t states_max) {
  ORRERY_CHECK(history.size() <= kHistoryMax);
  Search search(history, states_max);
  if (search.From(0, 0)) {
    return Verdict::kYes;
  }
  return search.gave_up() ? Verdict::kTooHard : Verdict::kNo;
}

}  // namespace orrery::sim
