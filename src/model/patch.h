// Patch: partial changes of one document, a pure function.
//
//   add      sets a property (replacing one that is there), inserts into an array before an index,
//   or
//            appends with "-"; the parent must exist
//   set      as add, but an array index that exists is replaced
//   replace  as set; the target must exist
//   remove   the target must exist
//   incr     adds a number; a missing target is made
//   move     removes `from` and adds its value at `path`
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "types/document.h"

namespace orrery::model {

inline constexpr size_t kPatchOperationsMax = 10;
inline constexpr size_t kConditionBytesMax = 16 << 10;

enum class PatchKind : uint8_t { kAdd = 1, kSet, kReplace, kRemove, kIncrement, kMove };

struct PatchOperation {
  PatchKind kind;
  std::vector<std::string> path;  // split at '/', ~0 and ~1 unescaped
  std::vector<std::string> from;  // of kMove
  types::Document value;          // the value is its member "v"; unused by kRemove and kMove
};

struct Patch {
  std::vector<PatchOperation> operations;
  std::string condition;  // "" = none

  // Reads the body of a patch request: an array of operations, or {condition?, operations}.
  // kInvalidArgument says which operation is wrong, and why.
  static Result<Patch> FromJson(types::Value body);
  void Encode(Encoder& encoder) const;
  static Patch Decode(Decoder& decoder);  // on malformed input the decoder is not ok()
};

// The changed document. kInvalidArgument if an operation does not fit the document or would touch a
// system property (`_rid`, `_self`, `_etag`, `_ts`, `_attachments`), `id`, or one of the `fixed`
// paths.
Result<types::Document> ApplyPatch(const Patch& patch, const types::Document& document,
                                   const std::vector<std::vector<std::string>>& fixed);

}  // namespace orrery::model
