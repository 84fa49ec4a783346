// Gate: counts the background work of its owner, so that Stop() can wait for it.
//
// Thread-safe. Enter() gives a Pass while the gate is open; Close() shuts it and waits until every
// Pass has gone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

namespace orrery::runtime {

class Gate {
 public:
  class Pass {
   public:
    Pass() = default;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
    Pass& operator=(Pass&& other) noexcept {
      std::swap(gate_, other.gate_);
      return *this;
    }
    ~Pass() {
      if (gate_ != nullptr) {
        gate_->Leave();
      }
    }
    explicit operator bool() const { return gate_ != nullptr; }

   private:
    Gate* gate_ = nullptr;
  };

  // An empty Pass if the gate is closed.
  Pass Enter() {
    std::lock_guard lock(mutex_);
    if (closed_) {
      return Pass();
    }
    ++inside_;
    return Pass(this);
  }

  // Blocks; REQUIRES: not on a thread that the work inside needs.
  void Close() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    empty_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  friend class Pass;
  void Leave() {
    std::lock_guard lock(mutex_);
    if (--inside_ == 0) {
      empty_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable empty_;
  bool closed_ = false;
  size_t inside_ = 0;
};

}  // namespace orrery::runtime
