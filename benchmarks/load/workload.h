// Workload: what the connections of one loop send. Each loop has its own, used by its thread only.
#pragma once

#include <cstdint>
#include <string>

namespace orrery::load {

class Workload {
 public:
  virtual ~Workload() = default;
  // Appends the next request and gives it a number for Done(). False: nothing to send now, nor
  // later unless a Done() brings something back.
  virtual bool Next(std::string& request, uint64_t& number) = 0;
  // The request was answered with this status; 0 if the connection was lost before.
  virtual void Done(uint64_t /*number*/, int /*status*/) {}
};

// The same request over and over.
class FixedWorkload final : public Workload {
 public:
  explicit FixedWorkload(std::string request) : request_(std::move(request)) {}
  bool Next(std::string& request, uint64_t& /*number*/) override {
    request += request_;
    return true;
  }

 private:
  const std::string request_;
};

}  // namespace orrery::load
