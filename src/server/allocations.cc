#include "server/allocations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace orrery::server {

namespace {

// A counter for each thread, on a cache line of its own. The last one is for all threads that come
// when the others are taken.
struct alignas(64) Slot {
  std::atomic<uint64_t> count = 0;
};
constinit std::array<Slot, 64> slots;
constinit std::atomic<size_t> next_slot = 0;
constinit thread_local Slot* mine = nullptr;

void Count() {
  Slot& shared = slots.back();
  if (mine == nullptr) [[unlikely]] {
    const size_t slot = next_slot.fetch_add(1, std::memory_order_relaxed);
    mine = &slots[std::min(slot, slots.size() - 1)];
  }
  if (mine == &shared) [[unlikely]] {
    shared.count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  // Nobody else writes it: a locked instruction would be a third of what an allocation costs.
  mine->count.store(mine->count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace

uint64_t AllocationCount() {
  uint64_t total = 0;
  for (const Slot& slot : slots) {
    total += slot.count.load(std::memory_order_relaxed);
  }
  return total;
}

void* CountedAllocation(size_t size) {
  Count();
  return std::malloc(size == 0 ? 1 : size);
}

}  // namespace orrery::server

void* operator new(size_t size) {
  if (void* memory = orrery::server::CountedAllocation(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new[](size_t size) { return ::operator new(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return orrery::server::CountedAllocation(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return orrery::server::CountedAllocation(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
