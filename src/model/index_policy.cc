#include "model/index_policy.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace orrery::model {

using types::Kind;
using types::Member;
using types::Value;
using types::ValueIterator;

namespace {

constexpr size_t kPathsMax = 1500;
constexpr size_t kCompositeIndexesMax = 100;
constexpr size_t kCompositePathsMax = 8;
constexpr std::string_view kRootPath = "/*";
constexpr std::string_view kEtagPath = "/\"_etag\"/?";

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

bool IsGiven(Value value) { return value.defined() && value.kind() != Kind::kNull; }

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  });
  return lower;
}

bool IsContainer(Value value) {
  return value.kind() == Kind::kArray || (value.kind() == Kind::kObject && !value.is_extended());
}

}  // namespace

// --- Paths ---
//
//   path   = "/" | *( "/" level ) ( "/*" | "/?" )
//   level  = "[]" | plain | quoted
//   plain  = 1*( letter, digit, "_", "$" or not ASCII )
//   quoted = quote 1*( any; a backslash before a quote or backslash means that one ) quote
//
// A tuple, `/a/[]/{x, y}/?`, is taken for all below its prefix, `/a/[]/*`.

struct IndexPolicy::Path {
  struct Level {
    std::string name;
    bool elements = false;  // []
  };
  std::vector<Level> levels;
  bool exact = false;  // ends in ?

  bool is_root() const { return levels.empty() && !exact; }
  bool is_etag() const {
    return levels.size() == 1 && !levels[0].elements && levels[0].name == "_etag";
  }
};

namespace {

bool IsQuote(char c) { return c == '"' || c == '\''; }

bool IsPlain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '$' || static_cast<uint8_t>(c) >= 0x80;
}

// Reads a quoted or plain name and moves `at` behind it. False, and `at` is where it fails.
bool ReadName(std::string_view text, size_t& at, std::string& name) {
  if (at == text.size() || !IsQuote(text[at])) {
    for (; at < text.size() && IsPlain(text[at]); ++at) {
      name.push_back(text[at]);
    }
    return !name.empty();
  }
  char quote = text[at++];
  for (; at < text.size() && text[at] != quote; ++at) {
    if (text[at] == '\\' && at + 1 < text.size() &&
        (IsQuote(text[at + 1]) || text[at + 1] == '\\')) {
      ++at;
    }
    name.push_back(text[at]);
  }
  return at++ < text.size() && !name.empty();
}

// True if `text` is a tuple and the end of a path: {x, y}/?
bool IsTupleEnd(std::string_view text) {
  size_t close = text.find('}');
  return text.starts_with('{') && close > 1 && close != std::string_view::npos &&
         text.substr(close + 1) == "/?";
}

}  // namespace

Result<IndexPolicy::Path> IndexPolicy::ParsePath(std::string_view text) {
  Path path;
  if (text == "/") {
    return path;
  }
  size_t at = 0;
  while (at < text.size() && text[at] == '/') {
    std::string_view rest = text.substr(++at);
    if (rest == "*" || rest == "?") {
      path.exact = rest == "?";
      return path;
    }
    if (IsTupleEnd(rest)) {
      return path;
    }
    Path::Level& level = path.levels.emplace_back();
    if (rest.starts_with("[]")) {
      level.elements = true;
      at += 2;
    } else if (!ReadName(text, at, level.name)) {
      break;
    }
  }
  return Invalid("The indexing path '" + std::string(text) +
                 "' could not be accepted, failed near position '" + std::to_string(at) +
                 "'. Please ensure that the path is a valid path. Common errors include invalid "
                 "characters or absence of quotes around labels.");
}

// --- Normalize ---

struct IndexPolicy::Side {
  Value paths;
  size_t count = 0;
  bool has_root = false;
  bool has_etag = false;
};

Result<IndexPolicy::Side> IndexPolicy::ReadSide(Value policy, std::string_view name) {
  Side side;
  Value paths = Member(policy, name);
  if (!IsGiven(paths)) {
    return side;
  }
  if (paths.kind() != Kind::kArray) {
    return Invalid("The indexing policy's " + std::string(name) + " is not an array.");
  }
  side.paths = paths;
  for (ValueIterator entry(paths.bson()); entry.Next(); ++side.count) {
    Value text = Member(entry.value(), "path");
    if (text.kind() != Kind::kString) {
      return Invalid("An entry of " + std::string(name) + " has no path.");
    }
    ORRERY_TRY(Path path, ParsePath(text.string()));
    side.has_root |= path.is_root();
    side.has_etag |= path.is_etag();
  }
  if (side.count > kPathsMax) {
    return Invalid("The indexing policy has " + std::to_string(side.count) + " paths in " +
                   std::string(name) + ", more than " + std::to_string(kPathsMax) + ".");
  }
  return side;
}

namespace {

Result<std::string> ReadMode(Value mode) {
  if (!IsGiven(mode)) {
    return "consistent";
  }
  if (mode.kind() == Kind::kString) {
    std::string name = LowerCase(mode.string());
    if (name == "consistent" || name == "lazy" || name == "none") {
      return name;
    }
  }
  std::string found;
  AppendJson(mode, found);
  return Invalid("The indexing mode " + found + " is not consistent, lazy or none.");
}

// The entry of a composite, spatial, vector or full-text index.
Status CheckEntry(Value entry, std::string_view list) {
  Value path = Member(entry, "path");
  if (path.kind() != Kind::kString || !path.string().starts_with('/')) {
    return Status(Code::kInvalidArgument,
                  "An entry of " + std::string(list) + " has no path that starts with '/'.");
  }
  return Status::Ok();
}

Status CheckComposite(Value index, std::string_view list) {
  if (index.kind() != Kind::kArray) {
    return Status(Code::kInvalidArgument, "A composite index is not an array of paths.");
  }
  size_t count = 0;
  for (ValueIterator entry(index.bson()); entry.Next(); ++count) {
    ORRERY_RETURN_IF_ERROR(CheckEntry(entry.value(), list));
    Value order = Member(entry.value(), "order");
    std::string name = order.kind() == Kind::kString ? LowerCase(order.string()) : "";
    if (IsGiven(order) && name != "ascending" && name != "descending") {
      return Status(Code::kInvalidArgument,
                    "The order of a composite path is neither ascending nor descending.");
    }
  }
  if (count > kCompositePathsMax) {
    return Status(Code::kInvalidArgument, "A composite index has " + std::to_string(count) +
                                              " paths, more than " +
                                              std::to_string(kCompositePathsMax) + ".");
  }
  return Status::Ok();
}

// Copies one of the further lists, if the client gave it.
Status AppendList(Value policy, std::string_view name, types::DocumentBuilder& builder) {
  Value list = Member(policy, name);
  if (!IsGiven(list)) {
    return Status::Ok();
  }
  if (list.kind() != Kind::kArray) {
    return Status(Code::kInvalidArgument,
                  "The indexing policy's " + std::string(name) + " is not an array.");
  }
  bool composite = name == "compositeIndexes";
  size_t count = 0;
  for (ValueIterator entry(list.bson()); entry.Next(); ++count) {
    ORRERY_RETURN_IF_ERROR(composite ? CheckComposite(entry.value(), name)
                                     : CheckEntry(entry.value(), name));
  }
  if (composite && count > kCompositeIndexesMax) {
    return Status(Code::kInvalidArgument, "The indexing policy has " + std::to_string(count) +
                                              " composite indexes, more than " +
                                              std::to_string(kCompositeIndexesMax) + ".");
  }
  builder.Append(name, list);
  return Status::Ok();
}

// The entries that the client gave, and one more unless it is "".
void AppendPaths(std::string_view name, Value given, std::string_view more,
                 types::DocumentBuilder& builder) {
  builder.BeginArray(name);
  for (ValueIterator entry(given.bson()); entry.Next();) {
    builder.Append("", entry.value());
  }
  if (!more.empty()) {
    builder.BeginObject("");
    builder.Append("path", more);
    builder.End();
  }
  builder.End();
}

}  // namespace

types::Document IndexPolicy::DefaultJson() { return *Normalize(types::Document().root()); }

Result<types::Document> IndexPolicy::Normalize(Value policy) {
  if (policy.kind() != Kind::kObject) {
    return Invalid("The indexing policy is not an object.");
  }
  ORRERY_TRY(std::string mode, ReadMode(Member(policy, "indexingMode")));
  bool enabled = mode != "none";
  Value automatic = Member(policy, "automatic");
  if (IsGiven(automatic) && automatic.kind() != Kind::kBool) {
    return Invalid("The indexing policy's automatic is neither true nor false.");
  }
  ORRERY_TRY(Side included, ReadSide(policy, "includedPaths"));
  ORRERY_TRY(Side excluded, ReadSide(policy, "excludedPaths"));
  bool add_root = enabled && included.count == 0 && excluded.count == 0;
  bool add_etag = enabled && !included.has_etag && !excluded.has_etag;
  if (enabled && !add_root && !included.has_root && !excluded.has_root) {
    return Invalid(
        "The special mandatory indexing path \"/\" is not provided in any of the path type sets. "
        "Please provide this path in one of the sets.");
  }

  types::DocumentBuilder builder;
  builder.Append("indexingMode", mode);
  builder.Append("automatic", IsGiven(automatic) ? automatic : Value::Bool(enabled));
  AppendPaths("includedPaths", included.paths, add_root ? kRootPath : "", builder);
  AppendPaths("excludedPaths", excluded.paths, add_etag ? kEtagPath : "", builder);
  for (std::string_view name :
       {"compositeIndexes", "spatialIndexes", "vectorIndexes", "fullTextIndexes"}) {
    ORRERY_TRY_STATUS(AppendList(policy, name, builder));
  }
  return builder.Finish();
}

// --- Compile ---

IndexPolicy IndexPolicy::Compile(Value normalized) {
  IndexPolicy policy;
  Value mode = Member(normalized, "indexingMode");
  policy.enabled_ = mode.kind() == Kind::kString && mode.string() != "none";
  auto add = [&](std::string_view name, Choice choice) {
    for (ValueIterator entry(Member(normalized, name).bson()); entry.Next();) {
      if (auto path = ParsePath(Member(entry.value(), "path").string())) {
        policy.AddPath(*path, choice);
      }
    }
  };
  add("includedPaths", Choice::kInclude);
  add("excludedPaths", Choice::kExclude);
  // The time is counted apart: it stands in the header of a stored item.
  for (auto [name, choice] : {std::pair("id", Choice::kInclude), {"_ts", Choice::kExclude}}) {
    policy.AddPath({.levels = {{.name = name}}, .exact = false}, choice);
    policy.AddPath({.levels = {{.name = name}}, .exact = true}, choice);
  }
  return policy;
}

void IndexPolicy::AddPath(const Path& path, Choice choice) {
  uint32_t at = 0;
  for (const Path::Level& level : path.levels) {
    uint32_t& known = level.elements
                          ? nodes_[at].elements
                          : nodes_[at].members.try_emplace(level.name, kNowhere).first->second;
    uint32_t next = known;
    if (next == kNowhere) {
      next = known = static_cast<uint32_t>(nodes_.size());
      nodes_.emplace_back();  // `known` is gone
    }
    at = next;
  }
  (path.exact ? nodes_[at].exact : nodes_[at].below) = choice;
}

IndexPolicy::Place IndexPolicy::Enter(uint32_t node, Place from) const {
  bool inherits = node == kNowhere || nodes_[node].below == Choice::kInherit;
  return {.node = node,
          .included = inherits ? from.included : nodes_[node].below == Choice::kInclude};
}

IndexPolicy::Place IndexPolicy::EnterMember(Place from, std::string_view name) const {
  if (from.node == kNowhere) {
    return from;
  }
  const auto& members = nodes_[from.node].members;
  auto found = members.find(name);
  return Enter(found == members.end() ? kNowhere : found->second, from);
}

IndexPolicy::Place IndexPolicy::EnterElements(Place from) const {
  return from.node == kNowhere ? from : Enter(nodes_[from.node].elements, from);
}

bool IndexPolicy::Includes(Place place) const {
  bool inherits = place.node == kNowhere || nodes_[place.node].exact == Choice::kInherit;
  return inherits ? place.included : nodes_[place.node].exact == Choice::kInclude;
}

// --- Counting ---

namespace {

// Scalars and empty objects or arrays.
size_t CountLeaves(Value value) {
  if (!IsContainer(value)) {
    return 1;
  }
  size_t count = 0;
  for (ValueIterator child(value.bson()); child.Next();) {
    count += CountLeaves(child.value());
  }
  return std::max<size_t>(count, 1);
}

}  // namespace

size_t IndexPolicy::CountTerms(Value item) const {
  constexpr size_t kTime = 1;
  return enabled_ ? Count(item, Enter(0, {})) + kTime : 0;
}

size_t IndexPolicy::Count(Value value, Place place) const {
  if (place.node == kNowhere) {
    return place.included ? CountLeaves(value) : 0;
  }
  ValueIterator child(IsContainer(value) ? value.bson() : std::string_view());
  if (!child.Next()) {
    return Includes(place) ? 1 : 0;
  }
  bool array = value.kind() == Kind::kArray;
  size_t count = 0;
  do {
    count += Count(child.value(), array ? EnterElements(place) : EnterMember(place, child.name()));
  } while (child.Next());
  return count;
}

namespace {

// Terms are compared by 64-bit hashes of path and value: a collision would cost a client 0.4 RU
// less.
uint64_t Mix(uint64_t a, uint64_t b) {
  auto product = static_cast<unsigned __int128>(a ^ 0x9E3779B97F4A7C15) * (b ^ 0xD1B54A32D192ED03);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Hash(std::string_view text) { return std::hash<std::string_view>()(text); }

constexpr uint64_t kElementsHash = 0x5BD1E9955BD1E995;

// 1 and 1.0 are one number.
uint64_t HashNumber(Value value) {
  double real = value.number();
  if (value.is_integer()) {
    return Mix(1, static_cast<uint64_t>(value.integer()));
  }
  if (real >= -0x1p63 && real < 0x1p63 && static_cast<double>(static_cast<int64_t>(real)) == real) {
    return Mix(1, static_cast<uint64_t>(static_cast<int64_t>(real)));
  }
  return Mix(2, std::bit_cast<uint64_t>(real));
}

// REQUIRES: a scalar, or an empty object or array.
uint64_t HashLeaf(Value value) {
  uint64_t content = 0;
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNull:
    case Kind::kArray: break;
    case Kind::kBool: content = value.boolean() ? 1 : 0; break;
    case Kind::kNumber: content = HashNumber(value); break;
    case Kind::kString: content = Hash(value.string()); break;
    case Kind::kObject:
      content = value.is_extended() ? Mix(value.bson_type(), Hash(value.extended())) : 0;
      break;
  }
  return Mix(static_cast<uint64_t>(value.kind()), content);
}

// True only if the stored bytes are the same.
bool SameBytes(Value a, Value b) {
  if (a.bson_type() != b.bson_type()) {
    return false;
  }
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNull: return true;
    case Kind::kBool: return a.boolean() == b.boolean();
    case Kind::kNumber:
      return a.is_integer() ? a.integer() == b.integer() : a.number() == b.number();
    case Kind::kString: return a.string() == b.string();
    case Kind::kArray:
    case Kind::kObject:
      return a.is_extended() ? a.extended() == b.extended() : a.bson() == b.bson();
  }
  return false;
}

}  // namespace

// Walks two items side by side and collects the terms of what is not the same in both. A term may
// still be collected from both, at another place of an array or object; such pairs go out at the
// end.
class IndexPolicy::Comparison {
 public:
  explicit Comparison(const IndexPolicy& policy) : policy_(policy) {}
  void Compare(Value before, Value after, Place place, uint64_t path);
  Change Finish();

 private:
  using Terms = std::vector<uint64_t>;
  // One step from an object or array to the value that the iterator is at.
  struct Step {
    Place place;
    uint64_t path;
  };
  Step Enter(bool array, const ValueIterator& child, Place place, uint64_t path) const;
  void Collect(Value value, Place place, uint64_t path, Terms& terms);

  const IndexPolicy& policy_;
  Terms removed_;
  Terms added_;
};

IndexPolicy::Comparison::Step IndexPolicy::Comparison::Enter(bool array, const ValueIterator& child,
                                                             Place place, uint64_t path) const {
  return array ? Step{policy_.EnterElements(place), Mix(path, kElementsHash)}
               : Step{policy_.EnterMember(place, child.name()), Mix(path, Hash(child.name()))};
}

void IndexPolicy::Comparison::Collect(Value value, Place place, uint64_t path, Terms& terms) {
  if (place.node == kNowhere && !place.included) {
    return;
  }
  ValueIterator child(IsContainer(value) ? value.bson() : std::string_view());
  if (!child.Next()) {
    if (value.defined() && policy_.Includes(place)) {
      terms.push_back(Mix(path, HashLeaf(value)));
    }
    return;
  }
  bool array = value.kind() == Kind::kArray;
  do {
    Step step = Enter(array, child, place, path);
    Collect(child.value(), step.place, step.path, terms);
  } while (child.Next());
}

void IndexPolicy::Comparison::Compare(Value before, Value after, Place place, uint64_t path) {
  if (SameBytes(before, after) || (place.node == kNowhere && !place.included)) {
    return;
  }
  bool alike = before.kind() == after.kind() && IsContainer(before) && IsContainer(after);
  ValueIterator old_child(alike ? before.bson() : std::string_view());
  ValueIterator new_child(alike ? after.bson() : std::string_view());
  bool more_old = old_child.Next();
  bool more_new = new_child.Next();
  if (!more_old || !more_new) {  // an empty one is a term itself
    Collect(before, place, path, removed_);
    Collect(after, place, path, added_);
    return;
  }
  bool array = before.kind() == Kind::kArray;
  while (more_old && more_new && (array || old_child.name() == new_child.name())) {
    Value old_value = old_child.value();
    Value new_value = new_child.value();
    if (!SameBytes(old_value, new_value)) {
      Step step = Enter(array, old_child, place, path);
      Compare(old_value, new_value, step.place, step.path);
    }
    more_old = old_child.Next();
    more_new = new_child.Next();
  }
  for (; more_old; more_old = old_child.Next()) {
    Step step = Enter(array, old_child, place, path);
    Collect(old_child.value(), step.place, step.path, removed_);
  }
  for (; more_new; more_new = new_child.Next()) {
    Step step = Enter(array, new_child, place, path);
    Collect(new_child.value(), step.place, step.path, added_);
  }
}

IndexPolicy::Change IndexPolicy::Comparison::Finish() {
  std::ranges::sort(removed_);
  std::ranges::sort(added_);
  size_t common = 0;
  for (auto old_term = removed_.begin(), new_term = added_.begin();
       old_term != removed_.end() && new_term != added_.end();) {
    if (*old_term == *new_term) {
      ++common;
      ++old_term;
      ++new_term;
    } else {
      *old_term < *new_term ? ++old_term : ++new_term;
    }
  }
  return {.removed = removed_.size() - common, .added = added_.size() - common};
}

IndexPolicy::Change IndexPolicy::CountChanges(Value before, Value after) const {
  if (!enabled_) {
    return {};
  }
  Comparison comparison(*this);
  comparison.Compare(before, after, Enter(0, {}), 0);
  return comparison.Finish();
}

}  // namespace orrery::model
