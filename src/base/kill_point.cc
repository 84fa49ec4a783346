#include "base/kill_point.h"

#include <csignal>

namespace orrery {

namespace {

std::string& Wanted() {
  static std::string wanted;
  return wanted;
}

}  // namespace

void SetKillPoint(std::string name) { Wanted() = std::move(name); }

void KillPoint(std::string_view name) {
  if (!Wanted().empty() && Wanted() == name) [[unlikely]] {
    std::raise(SIGKILL);
  }
}

}  // namespace orrery
