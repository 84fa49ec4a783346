#include "partition/flights.h"

#include "runtime/worker.h"

namespace orrery::partition {

namespace {
constexpr size_t kFlightsMax = 16'384;  // of one instance, from the first that has not ended on
}  // namespace

Flights::Flights(Random& random) : random_(random) {
  for (auto& instance : instances_) {
    instance = std::make_shared<Instance>();
  }
}

Flights::Flight Flights::Begin() {
  const runtime::Worker* worker = runtime::Worker::Current();
  const size_t which = worker == nullptr ? 0 : worker->index() % kInstances;
  const std::shared_ptr<Instance>& instance = instances_[which];
  std::lock_guard lock(instance->mutex);
  if (instance->id == 0 || instance->flights.size() >= kFlightsMax) {
    instance->id = random_.Next();
    instance->first = 1;
    instance->flights.clear();
  }
  const uint64_t number = instance->first + instance->flights.size();
  instance->flights.push_back(false);
  return {instance, {.high = instance->id, .low = number}, instance->first};
}

Flights::Flight::~Flight() {
  if (instance_ == nullptr) {
    return;
  }
  std::lock_guard lock(instance_->mutex);
  if (instance_->id != id_.high) {
    return;  // another one goes on
  }
  instance_->flights[id_.low - instance_->first] = true;
  while (!instance_->flights.empty() && instance_->flights.front()) {
    instance_->flights.pop_front();
    ++instance_->first;
  }
}

}  // namespace orrery::partition
