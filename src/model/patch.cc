#include "model/patch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "types/utf8.h"

namespace orrery::model {

using types::Kind;
using types::Member;
using types::Value;

namespace {

constexpr size_t kPathLevelsMax = 128;
constexpr size_t kPathBytesMax = 1024;
constexpr std::string_view kSystemNames[] = {"_rid", "_self", "_etag", "_ts", "_attachments", "id"};

using Path = std::span<const std::string>;

Status Invalid(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

bool TakesValue(PatchKind kind) { return kind != PatchKind::kRemove && kind != PatchKind::kMove; }

bool StartsWith(Path path, Path prefix) {
  return path.size() >= prefix.size() && std::ranges::equal(path.first(prefix.size()), prefix);
}

// The path as a client writes it.
std::string PathText(Path path) {
  std::string text;
  for (const std::string& level : path) {
    text.push_back('/');
    for (char c : level) {
      c == '~' ? text.append("~0") : c == '/' ? text.append("~1") : text.append(1, c);
    }
  }
  return text;
}

bool IsName(std::string_view name) {
  if (name.contains('\0')) {
    return false;
  }
  while (!name.empty()) {
    if (types::TakeCodePoint(name) == types::kNotUtf8) {
      return false;
    }
  }
  return true;
}

// What is true of every operation, wherever it comes from.
Status CheckOperation(const PatchOperation& operation) {
  if (operation.path.empty() || (operation.kind == PatchKind::kMove && operation.from.empty())) {
    return Invalid("the path is missing");
  }
  for (const auto* path : {&operation.path, &operation.from}) {
    if (path->size() > kPathLevelsMax) {
      return Invalid("the path has more than " + std::to_string(kPathLevelsMax) + " levels");
    }
    if (!std::ranges::all_of(*path, IsName)) {
      return Invalid("the path is not UTF-8 without NUL");
    }
  }
  Value value = operation.value.Get("v");
  if (TakesValue(operation.kind) && !value.defined()) {
    return Invalid("the value is missing");
  }
  if (operation.kind == PatchKind::kIncrement && value.kind() != Kind::kNumber) {
    return Invalid("the value of incr is not a number");
  }
  if (operation.kind == PatchKind::kMove && operation.path.size() > operation.from.size() &&
      StartsWith(operation.path, operation.from)) {
    return Invalid("the path '" + PathText(operation.path) + "' lies inside '" +
                   PathText(operation.from) + "', which is to be moved");
  }
  return Status::Ok();
}

// --- From JSON ---

std::optional<PatchKind> ReadKind(std::string_view name) {
  constexpr std::pair<std::string_view, PatchKind> kNames[] = {
      {"add", PatchKind::kAdd},         {"set", PatchKind::kSet},
      {"replace", PatchKind::kReplace}, {"remove", PatchKind::kRemove},
      {"incr", PatchKind::kIncrement},  {"move", PatchKind::kMove},
  };
  for (const auto& [known, kind] : kNames) {
    if (name == known) {
      return kind;
    }
  }
  return std::nullopt;
}

// Splits a JSON pointer (RFC 6901).
Result<std::vector<std::string>> ReadPath(Value value) {
  if (value.kind() != Kind::kString) {
    return Error(Invalid("the path is missing or not a string"));
  }
  std::string_view text = value.string();
  if (text.size() > kPathBytesMax) {
    return Error(Invalid("the path is longer than " + std::to_string(kPathBytesMax) + " bytes"));
  }
  if (!text.starts_with('/')) {
    return Error(Invalid("the path '" + std::string(text) + "' does not start with '/'"));
  }
  std::vector<std::string> levels;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '/') {
      levels.emplace_back();
    } else if (text[at] != '~') {
      levels.back().push_back(text[at]);
    } else if (++at < text.size() && (text[at] == '0' || text[at] == '1')) {
      levels.back().push_back(text[at] == '0' ? '~' : '/');
    } else {
      return Error(Invalid("the path '" + std::string(text) + "' has a '~' without 0 or 1"));
    }
  }
  return levels;
}

Result<PatchOperation> ReadOperation(Value body) {
  Value op = Member(body, "op");
  if (op.kind() != Kind::kString) {
    return Error(Invalid("'op' is missing or not a string"));
  }
  std::optional<PatchKind> kind = ReadKind(op.string());
  if (!kind) {
    return Error(Invalid("the op '" + std::string(op.string()) +
                         "' is not add, set, replace, remove, incr or move"));
  }
  PatchOperation operation{.kind = *kind};
  ORRERY_TRY(operation.path, ReadPath(Member(body, "path")));
  if (*kind == PatchKind::kMove) {
    ORRERY_TRY(operation.from, ReadPath(Member(body, "from")));
  }
  if (TakesValue(*kind)) {
    types::DocumentBuilder builder;
    builder.Append("v", Member(body, "value"));
    operation.value = builder.Finish();
  }
  ORRERY_TRY_STATUS(CheckOperation(operation));
  return operation;
}

// --- The document as a tree ---

bool IsContainer(Value value) {
  return value.kind() == Kind::kArray || (value.kind() == Kind::kObject && !value.is_extended());
}

// One value of the document. Objects and arrays stay as they are stored until an operation goes
// into them. Names and values are views of the document and of the patch.
struct Node {
  std::string_view name;  // of a member of an object
  Value value;
  bool open = false;  // an object or array whose content is in `children`
  std::vector<Node> children;

  bool is_array() const { return value.kind() == Kind::kArray; }
  void Open();
};

void Node::Open() {
  if (open) {
    return;
  }
  open = true;
  for (types::ValueIterator child(value.bson()); child.Next();) {
    children.push_back({.name = child.name(), .value = child.value()});
  }
}

// How many objects and arrays lie inside each other, counting the value itself.
int Height(Value value) {
  if (!IsContainer(value)) {
    return 0;
  }
  int inside = 0;
  for (types::ValueIterator child(value.bson()); child.Next();) {
    inside = std::max(inside, Height(child.value()));
  }
  return inside + 1;
}

int Height(const Node& node) {
  if (!node.open) {
    return Height(node.value);
  }
  int inside = 0;
  for (const Node& child : node.children) {
    inside = std::max(inside, Height(child));
  }
  return inside + 1;
}

// The index as a JSON pointer writes it; nullopt for all other texts, also "-".
std::optional<size_t> ReadIndex(std::string_view text) {
  size_t index = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  bool whole = error == std::errc() && end == text.data() + text.size();
  bool canonical = text.size() == 1 || !text.starts_with('0');
  return whole && canonical ? std::optional(index) : std::nullopt;
}

// Where a level stands, or would stand, among the children of a container.
struct Place {
  size_t index = 0;
  bool exists = false;
  bool valid = true;  // of an array: an index of an element, or the end
};

Place FindPlace(const Node& parent, std::string_view level) {
  size_t size = parent.children.size();
  if (!parent.is_array()) {
    auto found = std::ranges::find(parent.children, level, &Node::name);
    size_t index = found - parent.children.begin();
    return {.index = index, .exists = index < size};
  }
  if (level == "-") {
    return {.index = size};
  }
  std::optional<size_t> index = ReadIndex(level);
  if (!index || *index > size) {
    return {.valid = false};
  }
  return {.index = *index, .exists = *index < size};
}

// Applies operations to one tree. After an error the tree is of no use.
class Patcher {
 public:
  explicit Patcher(Value root) {
    root_.value = root;
    root_.Open();
  }
  Status Apply(const PatchOperation& operation);
  types::Document Build() const;

 private:
  // The opened parent of the last level. If it is missing, `missing` is the first level not found.
  struct Parent {
    Node* node = nullptr;
    std::string_view missing;
  };
  Parent FindParent(Path path);
  Status Put(const PatchOperation& operation, Node node);
  Result<Node> Take(Path path);
  Status Increment(const PatchOperation& operation);
  Status Move(const PatchOperation& operation);

  Node root_;
};

Patcher::Parent Patcher::FindParent(Path path) {
  Node* node = &root_;
  for (const std::string& level : path.first(path.size() - 1)) {
    Place place = FindPlace(*node, level);
    if (!place.exists || !IsContainer(node->children[place.index].value)) {
      return {.missing = level};
    }
    node = &node->children[place.index];
    node->Open();
  }
  return {.node = node};
}

Status NoParent(PatchKind kind, std::string_view missing) {
  return Invalid(std::string(kind == PatchKind::kAdd ? "Add" : "Given") +
                 " Operation can only create a child object of an existing node(array or object) "
                 "and cannot create path recursively, no path found beyond: '" +
                 std::string(missing) + "'.");
}

Status Patcher::Put(const PatchOperation& operation, Node node) {
  auto [parent, missing] = FindParent(operation.path);
  if (parent == nullptr) {
    return NoParent(operation.kind, missing);
  }
  const std::string& level = operation.path.back();
  Place place = FindPlace(*parent, level);
  if (operation.kind == PatchKind::kReplace && !place.exists) {
    return Invalid("Node(" + PathText(operation.path) + ") to be replaced is absent.");
  }
  if (!place.valid) {
    return Invalid("Index(" + level + ") to operate on is out of array bounds.");
  }
  if (static_cast<int>(operation.path.size()) - 1 + Height(node) > types::kNestingMax) {
    return Invalid("Node(" + PathText(operation.path) + ") would be nested deeper than " +
                   std::to_string(types::kNestingMax) + " levels.");
  }
  bool inserts = operation.kind == PatchKind::kAdd || operation.kind == PatchKind::kMove;
  node.name = level;
  if (place.exists && !(inserts && parent->is_array())) {
    parent->children[place.index] = std::move(node);
  } else {
    parent->children.insert(parent->children.begin() + place.index, std::move(node));
  }
  return Status::Ok();
}

Result<Node> Patcher::Take(Path path) {
  Parent parent = FindParent(path);
  Place place = parent.node ? FindPlace(*parent.node, path.back()) : Place();
  if (!place.exists) {
    return Error(Invalid("Node(" + PathText(path) +
                         ") to be removed is absent. Note: it may also have been removed earlier "
                         "in the transaction."));
  }
  std::vector<Node>& children = parent.node->children;
  Node node = std::move(children[place.index]);
  children.erase(children.begin() + place.index);
  return node;
}

Status Patcher::Increment(const PatchOperation& operation) {
  Value by = operation.value.Get("v");
  Parent parent = FindParent(operation.path);
  Place place = parent.node ? FindPlace(*parent.node, operation.path.back()) : Place();
  if (!place.exists) {
    return Put(operation, {.value = by});
  }
  Node& node = parent.node->children[place.index];
  if (node.value.kind() != Kind::kNumber) {
    return Invalid("Node(" + PathText(operation.path) + ") is not a number.");
  }
  int64_t sum = 0;
  if (node.value.is_integer() && by.is_integer() &&
      !__builtin_add_overflow(node.value.integer(), by.integer(), &sum)) {
    node.value = Value::Integer(sum);
    return Status::Ok();
  }
  double real_sum = node.value.number() + by.number();
  if (!std::isfinite(real_sum)) {
    return Invalid("Node(" + PathText(operation.path) + ") would not be a finite number.");
  }
  node.value = Value::Double(real_sum);
  return Status::Ok();
}

Status Patcher::Move(const PatchOperation& operation) {
  auto taken = Take(operation.from);
  if (!taken) {
    return taken.error();
  }
  return Put(operation, std::move(*taken));
}

Status Patcher::Apply(const PatchOperation& operation) {
  switch (operation.kind) {
    case PatchKind::kAdd:
    case PatchKind::kSet:
    case PatchKind::kReplace: return Put(operation, {.value = operation.value.Get("v")});
    case PatchKind::kRemove: {
      auto taken = Take(operation.path);
      return taken ? Status::Ok() : taken.error();
    }
    case PatchKind::kIncrement: return Increment(operation);
    case PatchKind::kMove: return Move(operation);
  }
  return Invalid("the operation is of an unknown kind");
}

void AppendNode(const Node& node, types::DocumentBuilder& builder) {
  if (!node.open) {
    builder.Append(node.name, node.value);
    return;
  }
  node.is_array() ? builder.BeginArray(node.name) : builder.BeginObject(node.name);
  for (const Node& child : node.children) {
    AppendNode(child, builder);
  }
  builder.End();
}

types::Document Patcher::Build() const {
  types::DocumentBuilder builder;
  for (const Node& child : root_.children) {
    AppendNode(child, builder);
  }
  return builder.Finish();
}

// Refuses a path that an operation must not change.
Status CheckAllowed(Path path, const std::vector<std::vector<std::string>>& fixed) {
  if (std::ranges::find(kSystemNames, path.front()) != std::end(kSystemNames)) {
    return Invalid("Cannot patch system property '" + path.front() + "'.");
  }
  for (const std::vector<std::string>& key : fixed) {
    if (StartsWith(path, key) || StartsWith(key, path)) {
      return Invalid("Cannot patch '" + PathText(path) + "': the partition key '" + PathText(key) +
                     "' of an item does not change.");
    }
  }
  return Status::Ok();
}

Status ApplyOperation(const PatchOperation& operation,
                      const std::vector<std::vector<std::string>>& fixed, Patcher& patcher) {
  ORRERY_RETURN_IF_ERROR(CheckOperation(operation));
  ORRERY_RETURN_IF_ERROR(CheckAllowed(operation.path, fixed));
  if (operation.kind == PatchKind::kMove) {
    ORRERY_RETURN_IF_ERROR(CheckAllowed(operation.from, fixed));
  }
  return patcher.Apply(operation);
}

// Says which operation is wrong, counted from 1.
Status InOperation(size_t index, const Status& status) {
  return Status(status.code(),
                "For Operation(" + std::to_string(index + 1) + "): " + status.message());
}

// --- Between nodes ---
//
//   patch      varint count, operation*, bytes condition
//   operation  u8 kind, path, path from, bytes value (BSON)
//   path       varint levels, (bytes level)*

void EncodePath(Encoder& encoder, Path path) {
  encoder.Varint(path.size());
  for (const std::string& level : path) {
    encoder.Bytes(level);
  }
}

std::vector<std::string> DecodePath(Decoder& decoder) {
  std::vector<std::string> path;
  uint64_t levels = decoder.Varint();
  if (levels > kPathLevelsMax) {
    decoder.Fail();
  }
  for (uint64_t i = 0; i < levels && decoder.ok(); ++i) {
    path.emplace_back(decoder.Bytes());
  }
  return path;
}

PatchOperation DecodeOperation(Decoder& decoder) {
  uint8_t kind = decoder.U8();
  PatchOperation operation{.kind = static_cast<PatchKind>(kind)};
  operation.path = DecodePath(decoder);
  operation.from = DecodePath(decoder);
  auto value = types::Document::FromBson(std::string(decoder.Bytes()));
  bool known = kind >= static_cast<uint8_t>(PatchKind::kAdd) &&
               kind <= static_cast<uint8_t>(PatchKind::kMove);
  if (!known || !value) {
    decoder.Fail();
    return operation;
  }
  operation.value = std::move(*value);
  if (!CheckOperation(operation).ok()) {
    decoder.Fail();
  }
  return operation;
}

}  // namespace

Result<Patch> Patch::FromJson(Value body) {
  Patch patch;
  Value operations = body;
  if (body.kind() == Kind::kObject) {
    operations = Member(body, "operations");
    Value condition = Member(body, "condition");
    if (condition.kind() == Kind::kString) {
      patch.condition = condition.string();
    } else if (condition.defined() && condition.kind() != Kind::kNull) {
      return Error(Invalid("Invalid patch request: the condition is not a string."));
    }
  }
  if (operations.kind() != Kind::kArray) {
    return Error(Invalid("Invalid patch request: check syntax of patch specification."));
  }
  for (types::ValueIterator operation(operations.bson()); operation.Next();) {
    if (patch.operations.size() == kPatchOperationsMax) {
      return Error(Invalid("The number of patch operations can't exceed " +
                           std::to_string(kPatchOperationsMax) + "."));
    }
    auto read = ReadOperation(operation.value());
    if (!read) {
      return Error(InOperation(patch.operations.size(), read.error()));
    }
    patch.operations.push_back(std::move(*read));
  }
  if (patch.operations.empty()) {
    return Error(Invalid("Invalid patch request: it has no operations."));
  }
  return patch;
}

void Patch::Encode(Encoder& encoder) const {
  encoder.Varint(operations.size());
  for (const PatchOperation& operation : operations) {
    encoder.U8(static_cast<uint8_t>(operation.kind));
    EncodePath(encoder, operation.path);
    EncodePath(encoder, operation.from);
    encoder.Bytes(operation.value.bson());
  }
  encoder.Bytes(condition);
}

Patch Patch::Decode(Decoder& decoder) {
  Patch patch;
  uint64_t count = decoder.Varint();
  if (count > kPatchOperationsMax) {
    decoder.Fail();
  }
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    patch.operations.push_back(DecodeOperation(decoder));
  }
  patch.condition = decoder.Bytes();
  return patch;
}

Result<types::Document> ApplyPatch(const Patch& patch, const types::Document& document,
                                   const std::vector<std::vector<std::string>>& fixed) {
  Patcher patcher(document.root());
  for (size_t i = 0; i < patch.operations.size(); ++i) {
    Status status = ApplyOperation(patch.operations[i], fixed, patcher);
    if (!status.ok()) {
      return Error(InOperation(i, status));
    }
  }
  return patcher.Build();
}

}  // namespace orrery::model
