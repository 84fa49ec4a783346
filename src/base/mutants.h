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
};

// All but kNone, by the name that the simulator takes.
inline constexpr std::pair<Mutant, std::string_view> kMutantNames[] = {
    {Mutant::kNone, ""},
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
