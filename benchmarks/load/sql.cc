#include "load/sql.h"

#include <algorithm>
#include <charconv>
#include <ctime>

namespace orrery::load {
namespace {

constexpr size_t kFillerBytes = 64 << 10;
constexpr size_t kItemBytesMin = 512;

// Appends the number with leading zeros, so that all ids and items have the same length.
void AppendPadded(uint64_t number, size_t width, std::string& out) {
  char digits[20];
  char* end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  size_t length = static_cast<size_t>(end - digits);
  out.append(width - std::min(width, length), '0');
  out.append(digits, length);
}

void AppendItemId(uint64_t item, std::string& out) {
  out += "item-";
  AppendPadded(item, 10, out);
}

void AppendKey(uint64_t key, std::string& out) {
  out += "key-";
  AppendPadded(key, 10, out);
}

}  // namespace

std::string MakeFiller(size_t bytes) {
  SeededRandom random(1);
  std::string filler(bytes, '\0');
  for (char& c : filler) {
    c = "abcdefghijklmnopqrstuvwxyz012345"[random.Next() >> 59];
  }
  return filler;
}

SqlRequests::SqlRequests(SqlOptions options, Signer signer)
    : options_(std::move(options)), signer_(std::move(signer)) {
  std::string container_link = "dbs/" + options_.database + "/colls/" + options_.container;
  items_link_ = container_link + "/docs";
  common_headers_ =
      "host: " + options_.endpoint.HostHeader() +
      "\r\naccept: application/json\r\nx-ms-version: 2020-07-15\r\nx-ms-date: " + signer_.date() +
      "\r\n";
  write_digest_ = signer_.Sign("post", "docs", container_link);
  filler_ = MakeFiller(kFillerBytes + options_.item_bytes);
}

Result<SqlRequests> SqlRequests::Make(SqlOptions options, bool sign_reads) {
  if (options.items == 0 || options.item_bytes < kItemBytesMin) {
    return Error(Code::kInvalidArgument, "at least 1 item and 512 bytes an item are needed");
  }
  options.keys = options.keys == 0 ? options.items : options.keys;
  ORRERY_TRY(Signer signer, Signer::Make(options.key, HttpDate(std::time(nullptr))));
  SqlRequests requests(std::move(options), std::move(signer));
  if (sign_reads) {
    requests.read_digests_.reserve(requests.options_.items);
    std::string link;
    for (uint64_t item = 0; item < requests.options_.items; ++item) {
      link = requests.items_link_ + "/";
      AppendItemId(item, link);
      requests.read_digests_.push_back(requests.signer_.Sign("get", "docs", link));
    }
  }
  return requests;
}

std::string SqlRequests::Post(std::string_view type, const std::string& link,
                              std::string_view headers, std::string_view body) const {
  std::string out = "POST /" + link + (link.empty() ? "" : "/");
  out += type;
  out += " HTTP/1.1\r\n";
  AppendAuthorized(signer_.Sign("post", type, link), out);
  out += headers;
  out += "content-type: application/json\r\ncontent-length: " + std::to_string(body.size()) +
         "\r\n\r\n";
  out += body;
  return out;
}

std::string SqlRequests::CreateDatabase() const {
  return Post("dbs", "", "", R"({"id":")" + options_.database + R"("})");
}

std::string SqlRequests::CreateContainer() const {
  std::string body = R"({"id":")" + options_.container +
                     R"(","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2})";
  if (!options_.index) {
    body += R"(,"indexingPolicy":{"indexingMode":"none","automatic":false})";
  }
  std::string headers = "x-ms-offer-throughput: " + std::to_string(options_.throughput) + "\r\n";
  return Post("colls", "dbs/" + options_.database, headers, body + "}");
}

void SqlRequests::AppendAuthorized(const Digest& digest, std::string& out) const {
  out += "authorization: ";
  Signer::AppendAuthorization(digest, out);
  out += "\r\n";
  out += common_headers_;
}

void SqlRequests::AppendRead(uint64_t item, std::string& out) const {
  out += "GET /";
  out += items_link_;
  out += '/';
  AppendItemId(item, out);
  out += " HTTP/1.1\r\n";
  AppendAuthorized(read_digests_[item], out);
  out += "x-ms-documentdb-partitionkey: [\"";
  AppendKey(KeyOf(item), out);
  out += "\"]\r\n\r\n";
}

void SqlRequests::AppendWrite(std::string_view id, uint64_t key, bool upsert, uint64_t chance,
                              std::string& out) const {
  out += "POST /";
  out += items_link_;
  out += " HTTP/1.1\r\n";
  AppendAuthorized(write_digest_, out);
  out += "x-ms-documentdb-partitionkey: [\"";
  AppendKey(key, out);
  out += "\"]\r\n";
  if (upsert) {
    out += "x-ms-documentdb-is-upsert: true\r\n";
  }
  out += "content-type: application/json\r\ncontent-length: ";
  AppendPadded(options_.item_bytes, 1, out);
  out += "\r\n\r\n";
  AppendItem(id, key, chance, out);
}

void SqlRequests::AppendItem(std::string_view id, uint64_t key, uint64_t chance,
                             std::string& out) const {
  size_t start = out.size();
  out += R"({"id":")";
  out += id;
  out += R"(","pk":")";
  AppendKey(key, out);
  out += R"(","kind":"reading","sequence":)";
  AppendPadded(chance >> 40, 1, out);
  out += R"(,"temperature":21.5,"active":true,"tags":["north","outdoor"],)"
         R"("place":{"city":"Uppsala","floor":3},"text":")";
  size_t used = out.size() - start + 2;
  out.append(filler_, chance % kFillerBytes, options_.item_bytes - used);
  out += "\"}";
}

SqlWorkload::SqlWorkload(const SqlRequests& requests, double read_share, Write write,
                         std::string id_prefix, uint64_t seed)
    : requests_(requests),
      read_share_(read_share),
      write_(write),
      id_prefix_(std::move(id_prefix)),
      random_(seed) {}

bool SqlWorkload::Next(std::string& request, uint64_t& /*number*/) {
  uint64_t chance = random_.Next();
  uint64_t item = random_.Next() % requests_.options().items;
  if (static_cast<double>(chance >> 11) < read_share_ * 0x1p53) {
    requests_.AppendRead(item, request);
    return true;
  }
  std::string id;
  if (write_ == Write::kUpsert) {
    AppendItemId(item, id);
  } else {
    id += id_prefix_;
    AppendPadded(created_++, 10, id);
  }
  requests_.AppendWrite(id, requests_.KeyOf(item), write_ == Write::kUpsert, chance, request);
  return true;
}

SqlSetupWorkload::SqlSetupWorkload(const SqlRequests& requests, uint64_t first, uint64_t step)
    : requests_(requests), next_(first), step_(step) {}

bool SqlSetupWorkload::Next(std::string& request, uint64_t& number) {
  if (!again_.empty()) {
    number = again_.back();
    again_.pop_back();
  } else if (next_ < requests_.options().items) {
    number = next_;
    next_ += step_;
  } else {
    return false;
  }
  std::string id;
  AppendItemId(number, id);
  uint64_t chance = SeededRandom(number).Next();
  requests_.AppendWrite(id, requests_.KeyOf(number), true, chance, request);
  return true;
}

void SqlSetupWorkload::Done(uint64_t number, int status) {
  if (status == 429 || status == 449 || status == 0) {
    again_.push_back(number);
  }
}

}  // namespace orrery::load
