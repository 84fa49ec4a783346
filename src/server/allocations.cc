#include "server/allocations.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>

namespace orrery::server {

namespace {

// One counter per thread slot, each on its own cache line, so that counting costs no contention.
struct alignas(64) Slot {
  std::atomic<uint64_t> count = 0;
};
constinit std::array<Slot, 64> slots;
constinit std::atomic<size_t> next_slot = 0;

Slot& MySlot() {
  thread_local Slot& mine = slots[next_slot.fetch_add(1, std::memory_order_relaxed) % slots.size()];
  return mine;
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
  MySlot().count.fetch_add(1, std::memory_order_relaxed);
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
