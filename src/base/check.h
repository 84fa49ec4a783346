// ORRERY_CHECK: an invariant of ours. It stays on in release and never judges input.
#pragma once

namespace orrery {

[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace orrery

#define ORRERY_CHECK(condition) \
  ((condition) ? (void)0 : ::orrery::CheckFailed(#condition, __FILE__, __LINE__))
