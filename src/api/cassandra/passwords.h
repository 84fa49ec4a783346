// Passwords: makes and checks the hashes of passwords, by bcrypt (decision 0019).
//
// That takes tens of milliseconds of a core on purpose. So it runs on a blocking thread, kAtOnce at
// a time; kWaitingMax more wait for their turn, and what comes beyond is refused. A driver opens
// many connections with one password: one that was right is remembered, by a keyed hash of it and
// of the hash that it was compared with, so that the others cost nothing.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cql/roles.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

class Passwords {
 public:
  static constexpr size_t kAtOnce = 2;
  static constexpr size_t kWaitingMax = 256;
  static constexpr size_t kRememberedMax = 1'024;

  explicit Passwords(runtime::WorkerPool& workers);

  // kUnavailable: too many wait already. REQUIRES: no NUL in it.
  runtime::Task<Result<std::string>> Hash(std::string password);
  // Whether it is the password of this hash. An empty hash is nobody's: that takes as long.
  runtime::Task<Result<bool>> Check(std::string hash, std::string password);
  // How many hashes were computed; for tests.
  size_t computed() const;

 private:
  class Turn;
  runtime::Task<bool> Enter();
  void Leave();
  std::string KeyOf(std::string_view hash, std::string_view password) const;
  bool Remembers(const std::string& key) const;
  void Remember(std::string key);

  runtime::WorkerPool& workers_;
  std::string secret_;  // of this process
  mutable std::mutex mutex_;
  size_t running_ = 0;
  size_t computed_ = 0;
  std::deque<std::function<void(bool)>> waiting_;
  std::set<std::string, std::less<>> remembered_;
  std::deque<std::string> remembered_order_;
};

// Whether the role that there is at first can still log in with its first password. Takes tens of
// milliseconds.
bool HasDefaultPassword(const cql::Roles& roles);

}  // namespace orrery::cassandra
