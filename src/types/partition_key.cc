#include "types/partition_key.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace orrery::types {

KeyComponent KeyComponent::Null() {
  KeyComponent component;
  component.kind_ = Kind::kNull;
  return component;
}

KeyComponent KeyComponent::Bool(bool value) {
  KeyComponent component;
  component.kind_ = value ? Kind::kTrue : Kind::kFalse;
  return component;
}

KeyComponent KeyComponent::Number(double value) {
  KeyComponent component;
  component.kind_ = Kind::kNumber;
  component.number_ = value;
  return component;
}

KeyComponent KeyComponent::String(std::string value) {
  KeyComponent component;
  component.kind_ = Kind::kString;
  component.string_ = std::move(value);
  return component;
}

// key       = count (varint), component * count
// component = kind (u8), then for a number its double, for a string its bytes
void PartitionKey::Encode(Encoder& encoder) const {
  encoder.Varint(components.size());
  for (const KeyComponent& component : components) {
    encoder.U8(static_cast<uint8_t>(component.kind()));
    if (component.kind() == KeyComponent::Kind::kNumber) {
      encoder.Double(component.number());
    } else if (component.kind() == KeyComponent::Kind::kString) {
      encoder.Bytes(component.string());
    }
  }
}

namespace {

KeyComponent DecodeComponent(Decoder& decoder) {
  switch (static_cast<KeyComponent::Kind>(decoder.U8())) {
    case KeyComponent::Kind::kUndefined: return {};
    case KeyComponent::Kind::kNull: return KeyComponent::Null();
    case KeyComponent::Kind::kFalse: return KeyComponent::Bool(false);
    case KeyComponent::Kind::kTrue: return KeyComponent::Bool(true);
    case KeyComponent::Kind::kNumber: return KeyComponent::Number(decoder.Double());
    case KeyComponent::Kind::kString: return KeyComponent::String(std::string(decoder.Bytes()));
  }
  decoder.Fail();
  return {};
}

}  // namespace

PartitionKey PartitionKey::Decode(Decoder& decoder) {
  PartitionKey key;
  uint64_t count = decoder.Varint();
  for (uint64_t i = 0; i < count && decoder.ok(); ++i) {
    key.components.push_back(DecodeComponent(decoder));
  }
  return decoder.ok() ? key : PartitionKey();
}

// ordered   = component * count, 00
// component = 01 undefined | 02 null | 03 false | 04 true | 05 number (8 bytes) | 06 ordered bytes
//
// The end is below every component, so a key comes before those that continue it. A number has its
// sign bit flipped, or all of its bits if it is negative: -0 comes right before +0.
void PartitionKey::AppendOrdered(std::string& out) const {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  Encoder encoder(out);
  for (const KeyComponent& component : components) {
    encoder.U8(static_cast<uint8_t>(std::to_underlying(component.kind()) + 1));
    if (component.kind() == KeyComponent::Kind::kNumber) {
      uint64_t bits = std::bit_cast<uint64_t>(component.number());
      encoder.U64((bits & kSign) == 0 ? bits ^ kSign : ~bits);
    } else if (component.kind() == KeyComponent::Kind::kString) {
      AppendOrderedBytes(component.string(), out);
    }
  }
  encoder.U8(0);
}

namespace {

// One component behind its tag.
bool ReadOrderedComponent(uint8_t tag, std::string_view& in, KeyComponent* component) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  switch (static_cast<KeyComponent::Kind>(tag - 1)) {
    case KeyComponent::Kind::kUndefined: *component = {}; return true;
    case KeyComponent::Kind::kNull: *component = KeyComponent::Null(); return true;
    case KeyComponent::Kind::kFalse: *component = KeyComponent::Bool(false); return true;
    case KeyComponent::Kind::kTrue: *component = KeyComponent::Bool(true); return true;
    case KeyComponent::Kind::kNumber: {
      Decoder decoder(in);
      uint64_t bits = decoder.U64();
      if (!decoder.ok()) {
        return false;
      }
      in.remove_prefix(sizeof(bits));
      bits = (bits & kSign) != 0 ? bits ^ kSign : ~bits;
      *component = KeyComponent::Number(std::bit_cast<double>(bits));
      return true;
    }
    case KeyComponent::Kind::kString: {
      std::string text;
      if (!ReadOrderedBytes(in, &text)) {
        return false;
      }
      *component = KeyComponent::String(std::move(text));
      return true;
    }
  }
  return false;
}

}  // namespace

bool PartitionKey::ReadOrdered(std::string_view& in, PartitionKey* key) {
  key->components.clear();
  std::string_view rest = in;
  while (!rest.empty()) {
    auto tag = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    if (tag == 0) {
      in = rest;
      return true;
    }
    if (!ReadOrderedComponent(tag, rest, &key->components.emplace_back())) {
      return false;
    }
  }
  return false;
}

size_t PartitionKey::LargestComponent() const {
  size_t largest = 0;
  for (const KeyComponent& component : components) {
    bool number = component.kind() == KeyComponent::Kind::kNumber;
    largest = std::max(largest, number ? sizeof(double) : component.string().size());
  }
  return largest;
}

namespace {

// path  = 1*( "/" level )
// level = 1*( any but "/", '"', "'" )
//       | quote 1*( any; a backslash before a quote or a backslash means that one ) the same quote
bool IsQuote(char c) { return c == '"' || c == '\''; }

Status PathError(std::string_view path, std::string_view what) {
  return Status(Code::kInvalidArgument,
                "partition key path '" + std::string(path) + "' " + std::string(what));
}

// Reads one quoted level and moves `at` behind it. False if it does not end.
bool ReadQuoted(std::string_view path, size_t* at, std::string* level) {
  char quote = path[(*at)++];
  for (; *at < path.size() && path[*at] != quote; ++*at) {
    bool escape = path[*at] == '\\' && *at + 1 < path.size() &&
                  (IsQuote(path[*at + 1]) || path[*at + 1] == '\\');
    if (escape) {
      ++*at;
    }
    level->push_back(path[*at]);
  }
  return (*at)++ < path.size();
}

Status SplitPath(std::string_view path, std::vector<std::string>* levels) {
  if (!path.starts_with('/')) {
    return PathError(path, "does not start with '/'");
  }
  for (size_t at = 0; at < path.size();) {
    if (path[at++] != '/') {
      return PathError(path, "goes on after a closing quote");
    }
    std::string& level = levels->emplace_back();
    if (at < path.size() && IsQuote(path[at])) {
      if (!ReadQuoted(path, &at, &level)) {
        return PathError(path, "has a quote that is not closed");
      }
    } else {
      level = path.substr(at, path.find('/', at) - at);
      at += level.size();
      if (std::ranges::any_of(level, IsQuote)) {
        return PathError(path, "has a quote inside a level");
      }
    }
    if (level.empty()) {
      return PathError(path, "has an empty level");
    }
  }
  return Status::Ok();
}

}  // namespace

Result<std::vector<std::string>> SplitPropertyPath(std::string_view path) {
  std::vector<std::string> levels;
  ORRERY_TRY_STATUS(SplitPath(std::string(path), &levels));
  return levels;
}

std::vector<std::vector<std::string>> PartitionKeyDefinition::SplitPaths() const {
  std::vector<std::vector<std::string>> split;
  for (const std::string& path : paths) {
    Status status = SplitPath(path, &split.emplace_back());
    ORRERY_CHECK(status.ok());
  }
  return split;
}

Status PartitionKeyDefinition::Validate() const {
  constexpr size_t kPathsMax = 3;
  if (version != 1 && version != 2) {
    return Status(Code::kInvalidArgument,
                  "a partition key has version 1 or 2, found " + std::to_string(version));
  }
  if (kind == KeyKind::kToken) {
    // As many columns as there are, with any name: nobody looks for them in a document.
    return paths.empty() ? Status(Code::kInvalidArgument, "a partition key has at least one path")
                         : Status::Ok();
  }
  if (paths.empty() || paths.size() > kPathsMax) {
    return Status(Code::kInvalidArgument,
                  "a partition key has 1 to 3 paths, found " + std::to_string(paths.size()));
  }
  if (kind != KeyKind::kMultiHash && paths.size() != 1) {
    return Status(Code::kInvalidArgument,
                  "only a partition key of kind MultiHash has several paths, found " +
                      std::to_string(paths.size()));
  }
  if (kind == KeyKind::kMultiHash && version != 2) {
    return Status(Code::kInvalidArgument,
                  "a partition key of kind MultiHash has version 2, found 1");
  }
  for (const std::string& path : paths) {
    std::vector<std::string> levels;
    ORRERY_RETURN_IF_ERROR(SplitPath(path, &levels));
  }
  return Status::Ok();
}

namespace {

Value Find(const std::vector<std::string>& path, Value value) {
  for (const std::string& name : path) {
    if (value.kind() != Kind::kObject) {
      return {};
    }
    value = Member(value, name);
  }
  return value;
}

std::string PathText(const std::vector<std::string>& path) {
  std::string text;
  for (const std::string& name : path) {
    text += "/" + name;
  }
  return text;
}

}  // namespace

Result<PartitionKey> ExtractPartitionKey(const std::vector<std::vector<std::string>>& paths,
                                         Value item) {
  PartitionKey key;
  key.components.reserve(paths.size());
  for (const std::vector<std::string>& path : paths) {
    Value value = Find(path, item);
    switch (value.kind()) {
      case Kind::kUndefined: key.components.emplace_back(); break;
      case Kind::kNull: key.components.push_back(KeyComponent::Null()); break;
      case Kind::kBool: key.components.push_back(KeyComponent::Bool(value.boolean())); break;
      case Kind::kNumber: key.components.push_back(KeyComponent::Number(value.number())); break;
      case Kind::kString:
        key.components.push_back(KeyComponent::String(std::string(value.string())));
        break;
      case Kind::kArray:
      case Kind::kObject:
        return Error(Code::kInvalidArgument,
                     "the partition key " + PathText(path) + " is an " +
                         (value.kind() == Kind::kArray ? "array" : "object") +
                         ", wanted a string, number, boolean or null");
    }
  }
  return key;
}

void AppendOrderedPrefix(std::string_view bytes, std::string& out) {
  for (size_t zero; (zero = bytes.find('\0')) != std::string_view::npos;) {
    out.append(bytes.substr(0, zero + 1));
    out.push_back('\xFF');
    bytes.remove_prefix(zero + 1);
  }
  out.append(bytes);
}

void AppendOrderedBytes(std::string_view bytes, std::string& out) {
  AppendOrderedPrefix(bytes, out);
  out.push_back('\0');
  out.push_back('\x01');
}

bool ReadOrderedBytes(std::string_view& in, std::string* bytes) {
  bytes->clear();
  std::string_view rest = in;
  while (true) {
    size_t zero = rest.find('\0');
    if (zero == std::string_view::npos || zero + 1 == rest.size()) {
      return false;
    }
    bytes->append(rest.substr(0, zero));
    char mark = rest[zero + 1];
    rest.remove_prefix(zero + 2);
    if (mark == '\x01') {
      in = rest;
      return true;
    }
    if (mark != '\xFF') {
      return false;
    }
    bytes->push_back('\0');
  }
}

}  // namespace orrery::types
