#include "runtime/poller.h"

#include <utility>

#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/check.h"

namespace orrery::runtime {

namespace {

// So many sockets go on in one turn of the loop; then others get theirs.
constexpr int kEventsMax = 64;

constexpr uint32_t kBroken = EPOLLERR | EPOLLHUP | EPOLLRDHUP;

}  // namespace

Poller::Poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) { ORRERY_CHECK(epoll_ >= 0); }

Poller::~Poller() { ::close(epoll_); }

Poller::Place Poller::Add(int socket) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t index = free_.back();
  const Place place = Place{++slots_[index].age} << 32 | index;
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = place}};
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) {
    return 0;
  }
  free_.pop_back();
  return place;
}

void Poller::Remove(Place place) {
  std::lock_guard lock(mutex_);
  if (Slot* slot = Find(place)) {
    const uint32_t age = slot->age + 1;  // what is still told of it is told of nobody
    *slot = Slot{.age = age, .sides = {}};
    free_.push_back(static_cast<uint32_t>(place));
  }
}

void Poller::GiveUp(Place place, int socket) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
  Remove(place);
}

// REQUIRES: mutex_.
Poller::Slot* Poller::Find(Place place) {
  const auto index = static_cast<uint32_t>(place);
  return index < slots_.size() && slots_[index].age == place >> 32 ? &slots_[index] : nullptr;
}

// Whether it became ready while nobody waited.
bool Poller::Take(Place place, Readiness what) {
  std::lock_guard lock(mutex_);
  Slot* slot = Find(place);
  return slot == nullptr || std::exchange(slot->sides[std::to_underlying(what)].ready, false);
}

Task<> Poller::Wait(Place place, Readiness what) {
  if (Take(place, what)) {
    co_return;
  }
  co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
      [this, place, what](auto handler) {
        std::lock_guard lock(mutex_);
        Resume& resume = Find(place)->sides[std::to_underlying(what)].resume;
        if (resume == nullptr) {
          resume = std::move(handler);
        } else {  // a writer of TLS can wait to read as well
          resume = [first = std::move(resume), second = std::move(handler)]() mutable {
            first();
            second();
          };
        }
      },
      boost::asio::use_awaitable);
}

void Poller::Tell(Place place, Readiness what) noexcept {
  Resume resume;
  {
    std::lock_guard lock(mutex_);
    Slot* slot = Find(place);
    if (slot == nullptr) {
      return;
    }
    Side& side = slot->sides[std::to_underlying(what)];
    resume = std::exchange(side.resume, nullptr);
    side.ready = resume == nullptr;
  }
  if (resume != nullptr) {
    resume();  // may remove any socket, this one too
  }
}

Task<> Poller::Run(boost::asio::io_context& context) {
  const int copy = ::fcntl(epoll_, F_DUPFD_CLOEXEC, 0);
  ORRERY_CHECK(copy >= 0);
  boost::asio::posix::stream_descriptor ready(context, copy);
  boost::system::error_code error;
  while (!error) {
    co_await ready.async_wait(boost::asio::posix::descriptor_base::wait_read,
                              boost::asio::redirect_error(boost::asio::use_awaitable, error));
    epoll_event events[kEventsMax];
    const int count = ::epoll_wait(epoll_, events, kEventsMax, 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event event = events[i];
      if ((event.events & (EPOLLIN | kBroken)) != 0) {
        Tell(event.data.u64, Readiness::kReadable);
      }
      if ((event.events & (EPOLLOUT | kBroken)) != 0) {
        Tell(event.data.u64, Readiness::kWritable);
      }
    }
  }
  // A worker that hears of no socket any more would be worse than none.
  ORRERY_CHECK(error == boost::asio::error::operation_aborted);
}

void Poller::Drop() {
  std::vector<Resume> waiting;
  {
    std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      for (Side& side : slot.sides) {
        waiting.push_back(std::exchange(side.resume, nullptr));
      }
    }
  }
}

}  // namespace orrery::runtime
