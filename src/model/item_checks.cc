#include <limits>

#include "model/item_access.h"
#include "model/items.h"

namespace orrery::model {

using types::Kind;
using types::Value;

namespace {

bool IsSystemProperty(std::string_view name) {
  return name.starts_with('_') && (name == "_rid" || name == "_self" || name == "_etag" ||
                                   name == "_ts" || name == "_attachments" || name == "_lsn");
}

std::string MakeGuid(Random& random) {
  uint64_t high = (random.Next() & ~0xF000ull) | 0x4000;
  uint64_t low = (random.Next() & ~(3ull << 62)) | (2ull << 62);
  char text[40];
  std::snprintf(text, sizeof(text), "%08x-%04x-%04x-%04x-%012llx",
                static_cast<unsigned>(high >> 32), static_cast<unsigned>(high >> 16 & 0xFFFF),
                static_cast<unsigned>(high & 0xFFFF), static_cast<unsigned>(low >> 48),
                static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFull));
  return text;
}

}  // namespace

Status CheckTtl(Value ttl) {
  if (!ttl.defined() || ttl.kind() == Kind::kNull) {
    return Status::Ok();
  }
  bool fits = ttl.kind() == Kind::kNumber && ttl.is_integer() &&
              (ttl.integer() == -1 ||
               (ttl.integer() > 0 && ttl.integer() <= std::numeric_limits<int32_t>::max()));
  return fits ? Status::Ok()
              : Status(Code::kInvalidArgument,
                       "The input ttl is invalid. Ensure to provide a nonzero positive or -1 ttl "
                       "value.");
}

Status CheckItemId(std::string_view id) {
  if (id.empty() || id.size() > kIdBytesMax) {
    return Status(Code::kInvalidArgument, "The id of an item must have 1 to 1023 bytes.");
  }
  if (id.find_first_of("/\\") != std::string_view::npos) {
    return Status(Code::kInvalidArgument, "The id of an item must not contain '/' or '\\'.");
  }
  return Status::Ok();
}

Result<CheckedItem> CheckItem(const Container& container, types::Document body, Random* make_id) {
  CheckedItem item;
  Value id = body.Get("id");
  if (id.kind() == Kind::kString) {
    item.id = id.string();
    ORRERY_TRY_STATUS(CheckItemId(item.id));
  } else if (id.defined() || make_id == nullptr) {
    return Error(Code::kInvalidArgument, id.defined()
                                             ? "The input id must be a string."
                                             : "The input content is invalid because the required "
                                               "properties - 'id; ' - are missing");
  } else {
    item.id = MakeGuid(*make_id);
  }
  ORRERY_TRY_STATUS(CheckTtl(body.Get("ttl")));
  ORRERY_TRY(item.key, types::ExtractPartitionKey(container.key_paths, body.root()));

  bool rebuild = !id.defined();
  for (types::ValueIterator member(body.bson()); member.Next() && !rebuild;) {
    rebuild = IsSystemProperty(member.name());
  }
  if (!rebuild) {
    item.body = std::move(body);
  } else {
    types::DocumentBuilder builder;
    if (!id.defined()) {
      builder.Append("id", item.id);
    }
    for (types::ValueIterator member(body.bson()); member.Next();) {
      if (!IsSystemProperty(member.name())) {
        builder.Append(member.name(), member.value());
      }
    }
    item.body = builder.Finish();
  }
  if (item.body.bson().size() > kItemBytesMax) {
    return Error(Code::kTooLarge, "Request size is too large");
  }
  return item;
}

Result<ItemAddress> AddressOf(const Container& container, const types::PartitionKey& given) {
  types::PartitionKey key = given;
  if (key.components.empty()) {
    // The old form of "no partition key": every component undefined.
    key.components.resize(container.key.paths.size());
  }
  if (key.components.size() != container.key.paths.size()) {
    return Error(Code::kInvalidArgument, "Partition key provided has " +
                                             std::to_string(key.components.size()) +
                                             " components but the container is partitioned by " +
                                             std::to_string(container.key.paths.size()) + ".");
  }
  if (key.LargestComponent() > kKeyBytesMax) {
    return Error(Code::kInvalidArgument, "The partition key value is larger than 2048 bytes.");
  }
  ItemAddress address;
  address.epk = types::ComputeEpk(container.key, key);
  address.key = std::move(key);
  return address;
}

}  // namespace orrery::model
