// Mutants: faults that can be planted into the code, to see whether the simulator finds them.
//
//   if (Active(Mutant::kVoteTwice)) { ... }
//
// Without ORRERY_MUTANTS, which only the build of `./dev sim --mutants` defines, Active is the
// constant false and nothing of a mutant is left in the program. At most one is active.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

namespace orrery {

enum class Mutant : uint8_t {
  kNone,
  kAcknowledgeEarly,  // a write is acknowledged when it is proposed
  kNoSync,            // the log is written, not synced
  kForgetVote,        // term and vote are not written
  kSendEarly,         // messages leave before term and vote are durable
  kNoTruncate,        // entries that another leader replaced stay in the log
  kReadHere,          // a Strong read asks nobody
  kFreshWhenHeard,    // a follower counts itself as new as the last append that it heard
  kReadUnapplied,     // a Strong read does not wait for what is committed
  kLeadUnsettled,     // a leader evaluates before its own barrier is applied
  kIgnoreSession,     // a replica that is behind answers a session
  kBareRefusal,       // a refusal is not confirmed by the others
  kForgetOutcomes,    // a repeated write is done again
  kRunEnded,          // a late try of a write that has ended is done again
  kRefuseLightly,     // a refusal does not end the earlier tries of a write
  kCutUnflushed,      // the log is cut above what the state has on disk
  kReturnUnderId,     // a replica that lost its log returns under its id
  kLeaveEarly,        // a replica is deleted when a placement lacks it, though it still votes
  kOldSnapshot,       // a snapshot that is older than promised is installed
};

// By the name that the simulator takes.
inline constexpr std::pair<Mutant, std::string_view> kMutantNames[] = {
    {Mutant::kNone, ""},
    {Mutant::kAcknowledgeEarly, "acknowledge_early"},
    {Mutant::kNoSync, "no_sync"},
    {Mutant::kForgetVote, "forget_vote"},
    {Mutant::kSendEarly, "send_early"},
    {Mutant::kNoTruncate, "no_truncate"},
    {Mutant::kReadHere, "read_here"},
    {Mutant::kFreshWhenHeard, "fresh_when_heard"},
    {Mutant::kReadUnapplied, "read_unapplied"},
    {Mutant::kLeadUnsettled, "lead_unsettled"},
    {Mutant::kIgnoreSession, "ignore_session"},
    {Mutant::kBareRefusal, "bare_refusal"},
    {Mutant::kForgetOutcomes, "forget_outcomes"},
    {Mutant::kRunEnded, "run_ended"},
    {Mutant::kRefuseLightly, "refuse_lightly"},
    {Mutant::kCutUnflushed, "cut_unflushed"},
    {Mutant::kReturnUnderId, "return_under_id"},
    {Mutant::kLeaveEarly, "leave_early"},
    {Mutant::kOldSnapshot, "old_snapshot"},
};

#ifdef ORRERY_MUTANTS
inline constexpr bool kMutantsBuilt = true;
inline Mutant active_mutant = Mutant::kNone;
inline bool Active(Mutant mutant) { return active_mutant == mutant; }
// REQUIRES: before other threads are started.
inline void Activate(Mutant mutant) { active_mutant = mutant; }
#else
inline constexpr bool kMutantsBuilt = false;
constexpr bool Active(Mutant) { return false; }
inline void Activate(Mutant) {}
#endif

}  // namespace orrery
