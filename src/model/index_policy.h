// IndexPolicy: which paths of an item are indexed. For now it decides the price of a write (terms),
// and is kept and shown as the client gave it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "types/document.h"

namespace orrery::model {

class IndexPolicy {
 public:
  // The policy of a container that names none: every path.
  static types::Document DefaultJson();
  // Checks an indexingPolicy object and fills in what it leaves out (mode, automatic, `/"_etag"/?`
  // excluded). kInvalidArgument: unknown mode, bad path syntax, `/*` on neither side, over 1500
  // paths a side, a composite index of over 8 paths or over 100 of them.
  static Result<types::Document> Normalize(types::Value policy);
  // REQUIRES: an object that Normalize gave.
  static IndexPolicy Compile(types::Value normalized);

  // How many terms the item puts into the index: one for each scalar (and empty array or object)
  // whose path is included; the longest matching path decides, `?` beats `*`. Also id and the time,
  // always.
  size_t CountTerms(types::Value item) const;
  // How many terms of `before` and `after` differ: {removed, added}. The time is not among them.
  struct Change {
    size_t removed = 0;
    size_t added = 0;
  };
  Change CountChanges(types::Value before, types::Value after) const;

 private:
  struct Path;       // one path of the policy, split
  struct Side;       // what Normalize found in includedPaths or excludedPaths
  class Comparison;  // one CountChanges

  enum class Choice : uint8_t { kInherit, kExclude, kInclude };
  // The paths of the policy make a tree, which a walk through an item follows. Node 0 is the item.
  struct Node {
    std::map<std::string, uint32_t, std::less<>> members;
    uint32_t elements = kNowhere;     // those of an array, all alike
    Choice exact = Choice::kInherit;  // `/?`: of a value that ends here
    Choice below = Choice::kInherit;  // `/*`: of it and of all below
  };
  static constexpr uint32_t kNowhere = UINT32_MAX;
  struct Place {
    uint32_t node = kNowhere;  // no path of the policy goes here
    bool included = false;     // by the longest `/*` so far
  };

  static Result<Path> ParsePath(std::string_view text);
  static Result<Side> ReadSide(types::Value policy, std::string_view name);
  void AddPath(const Path& path, Choice choice);
  Place Enter(uint32_t node, Place from) const;
  Place EnterMember(Place from, std::string_view name) const;
  Place EnterElements(Place from) const;
  bool Includes(Place place) const;  // a value that ends there
  size_t Count(types::Value value, Place place) const;

  bool enabled_ = false;
  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace orrery::model
