// Arena: where the values live that a query computes, strings and arrays and objects. Values that
// are views into it stay good until it goes away.
//
// It counts what is made. A condition that multiplies its input (REPLACE, nested CONCAT) ends at
// the limit, and the value that would pass it is undefined.
#pragma once

#include <forward_list>
#include <string>
#include <utility>

#include "types/document.h"

namespace orrery::query {

class Arena {
 public:
  static constexpr size_t kBytesMax = 16 << 20;
  static constexpr size_t kWorkMax = 50'000'000;

  // To be asked before a value of `bytes` is made; false if it must not be.
  bool Reserve(size_t bytes) {
    if (bytes > left_) {
      return false;
    }
    left_ -= bytes;
    return true;
  }

  // Work done for one item, in steps of about a nanosecond. False, for good, when it is too much:
  // then the answer is not to be trusted.
  bool Spend(size_t steps) {
    work_left_ = steps > work_left_ ? 0 : work_left_ - steps;
    return work_left_ > 0;
  }
  bool exhausted() const { return work_left_ == 0; }

  types::Value Keep(std::string text) {
    return types::Value::String(strings_.emplace_front(std::move(text)));
  }
  const types::Document& Keep(types::Document document) {
    return documents_.emplace_front(std::move(document));
  }

 private:
  size_t left_ = kBytesMax;
  size_t work_left_ = kWorkMax;
  std::forward_list<std::string> strings_;
  std::forward_list<types::Document> documents_;
};

}  // namespace orrery::query
