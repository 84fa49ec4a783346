// ToyNode: the smallest cluster worth simulating, to try the simulator itself.
//
// Node 1 leads for ever. A write is in force once node 1 has synced it to its log; the others
// follow, and ask node 1 for everything but session reads. With a bug planted, one of the checkers
// must find it.
#pragma once

#include "sim/node.h"

namespace orrery::sim {

enum class ToyBug : uint8_t {
  kNone,
  kAcknowledgeEarly,  // before the log is synced
  kReadFollowers,     // strong reads are answered where they arrive
  kIgnoreSession,     // followers do not wait for a session token
  kIgnoreBound,       // followers answer bounded reads, however far behind they are
  kIgnoreEtag,
  kForgetWrite,  // nobody keeps what some entries write
  kApplyOther,   // a follower applies something else, now and then
  kSkipEntry,    // a follower leaves an entry out, now and then
  kAllLead,      // everybody thinks that it leads
  kNeverResend,  // what is lost on the way to a follower stays lost
};

MakeNode ToyCluster(ToyBug bug);

}  // namespace orrery::sim
