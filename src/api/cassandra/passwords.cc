#include "api/cassandra/passwords.h"

#include <memory>
#include <span>
#include <utility>

#include <crypt.h>

#include "base/bytes.h"
#include "base/random.h"
#include "net/http_server.h"

namespace orrery::cassandra {

using runtime::Task;

namespace {

constexpr size_t kSecretBytes = 32;
constexpr unsigned long kCost = 10;  // 2^10 rounds, as Cassandra has them

// Empty if `setting` is none. It ends at a NUL.
std::string Crypt(const std::string& password, const std::string& setting) {
  auto room = std::make_unique<crypt_data>();
  const char* hash = crypt_r(password.c_str(), setting.c_str(), room.get());
  return hash == nullptr || hash[0] == '*' ? std::string() : std::string(hash);
}

bool IsPasswordOf(const std::string& hash, const std::string& password) {
  const std::string made = Crypt(password, hash);
  return !made.empty() && net::EqualInConstantTime(made, hash) &&
         password.find('\0') == std::string::npos;
}

}  // namespace

// The right to compute, given back at its end.
class Passwords::Turn {
 public:
  explicit Turn(Passwords& of) : of_(of) {}
  Turn(const Turn&) = delete;
  ~Turn() { of_.Leave(); }

 private:
  Passwords& of_;
};

Passwords::Passwords(runtime::WorkerPool& workers)
    : workers_(workers), secret_(kSecretBytes, '\0') {
  SecretBytes(std::span(reinterpret_cast<uint8_t*>(secret_.data()), secret_.size()));
}

Task<bool> Passwords::Enter() {
  auto start = [this](std::function<void(bool)> resume) {
    std::unique_lock lock(mutex_);
    if (running_ >= kAtOnce && waiting_.size() < kWaitingMax) {
      waiting_.push_back(std::move(resume));
      return;
    }
    const bool may = running_ < kAtOnce;
    running_ += may ? 1 : 0;
    lock.unlock();
    resume(may);
  };
  co_return co_await runtime::Suspend<bool>(std::move(start));
}

void Passwords::Leave() {
  std::unique_lock lock(mutex_);
  ++computed_;
  if (waiting_.empty()) {
    --running_;
    return;
  }
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  lock.unlock();
  next(true);
}

size_t Passwords::computed() const {
  std::lock_guard lock(mutex_);
  return computed_;
}

std::string Passwords::KeyOf(std::string_view hash, std::string_view password) const {
  std::string both;
  Encoder encoder(both);
  encoder.Bytes(hash);
  encoder.Bytes(password);
  return net::HmacSha256(secret_, both);
}

bool Passwords::Remembers(const std::string& key) const {
  std::lock_guard lock(mutex_);
  return remembered_.contains(key);
}

void Passwords::Remember(std::string key) {
  std::lock_guard lock(mutex_);
  if (!remembered_.insert(key).second) {
    return;
  }
  remembered_order_.push_back(std::move(key));
  if (remembered_order_.size() > kRememberedMax) {
    remembered_.erase(remembered_order_.front());
    remembered_order_.pop_front();
  }
}

Task<Result<std::string>> Passwords::Hash(std::string password) {
  if (!co_await Enter()) {
    co_return Error(Code::kUnavailable, "Too many passwords are being hashed");
  }
  Turn turn(*this);
  auto work = [&password] {
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];
    // Without bytes of ours the library takes the salt from the operating system.
    const char* made = crypt_gensalt_rn("$2b$", kCost, nullptr, 0, setting, sizeof(setting));
    return made == nullptr ? std::string() : Crypt(password, made);
  };
  std::string hash = co_await runtime::OnBlocking(workers_, work);
  if (hash.empty()) {
    co_return Error(Code::kInternal, "The password cannot be hashed");
  }
  co_return hash;
}

Task<Result<bool>> Passwords::Check(std::string hash, std::string password) {
  const std::string key = KeyOf(hash, password);
  if (!hash.empty() && Remembers(key)) {
    co_return true;
  }
  if (!co_await Enter()) {
    co_return Error(Code::kUnavailable, "Too many clients are logging in");
  }
  Turn turn(*this);
  auto work = [&hash, &password] {
    return IsPasswordOf(hash.empty() ? std::string(cql::kDefaultHash) : hash, password);
  };
  const bool right = co_await runtime::OnBlocking(workers_, work) && !hash.empty();
  if (right) {
    Remember(key);
  }
  co_return right;
}

bool HasDefaultPassword(const cql::Roles& roles) {
  const cql::Role* role = roles.Find(cql::kDefaultRole);
  return role != nullptr && role->login &&
         (role->hash == cql::kDefaultHash ||
          (!role->hash.empty() && IsPasswordOf(role->hash, std::string(cql::kDefaultPassword))));
}

}  // namespace orrery::cassandra
