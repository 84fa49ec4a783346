// Poller: which sockets of a worker can be read from or written to.
//
// Asio tells the kernel anew of every wait for a socket: one more system call for each request of a
// client. Here a socket is told once, edge-triggered, to an epoll that stands as one descriptor in
// the worker's event loop. A turn of the loop takes all sockets that are ready, and each goes on at
// once where it waits.
//
// It owns who waits, as the loop owns its work: Drop() unwinds them at the end.
//
// Add, Wait and what it resumes: on the worker. Remove and GiveUp: anywhere, once nobody waits for
// the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "runtime/task.h"

namespace orrery::runtime {

enum class Readiness : uint8_t { kReadable, kWritable };

class Poller {
 public:
  // What stands for a socket; zero for none.
  using Place = uint64_t;

  Poller();
  ~Poller();
  Poller(const Poller&) = delete;

  // Zero: the kernel does not take it.
  Place Add(int socket);
  // Nothing is said of it any more. REQUIRES: the socket is closed next.
  void Remove(Place place);
  // The same of a socket that lives on, at another worker.
  void GiveUp(Place place, int socket);
  // Returns when the socket has become ready, or broken, since the last wait for it; sometimes it
  // is not, so try and wait again.
  Task<> Wait(Place place, Readiness what);

  // Resumes who waits for what is ready, for ever.
  Task<> Run(boost::asio::io_context& context);
  // Unwinds who waits.
  void Drop();

 private:
  using Resume = std::move_only_function<void()>;
  struct Side {
    bool ready = false;
    Resume resume;
  };
  struct Slot {
    uint32_t age = 0;  // how many had it before
    Side sides[2];
  };
  Slot* Find(Place place);
  bool Take(Place place, Readiness what);
  // A worker that hears of nothing any more is worse than none: noexcept.
  void Tell(Place place, Readiness what) noexcept;

  int epoll_;
  std::mutex mutex_;  // what follows
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace orrery::runtime
