// Who a client is: the account itself, or one of its roles.
#include "api/cassandra/access.h"
#include "api/cassandra/failures.h"
#include "api/cassandra/passwords.h"
#include "api/cassandra/service.h"
#include "base/bytes.h"
#include "model/catalog_roles.h"
#include "net/http_server.h"

namespace orrery::cassandra {

using runtime::Task;

namespace {

// Those that may write.
bool IsAccountKey(const model::AccountKeys& keys, std::string_view password) {
  bool known = false;
  for (model::KeyName name : {model::KeyName::kPrimary, model::KeyName::kSecondary}) {
    const std::string& key = keys.keys[static_cast<size_t>(name)];
    known = known || (!key.empty() && net::EqualInConstantTime(password, ToBase64(key)));
  }
  return known;
}

}  // namespace

// SASL PLAIN: NUL, the user, NUL, the password. Whoever is unknown, and who is known by another
// password, hear the same after the same work.
Task<Response> Service::Authenticate(Client& client, const AuthResponseRequest& request,
                                     int version) {
  const std::string_view token = request.token.value_or("");
  const size_t first = token.find('\0');
  const size_t second = first == std::string_view::npos ? first : token.find('\0', first + 1);
  if (second == std::string_view::npos) {
    co_return MakeError(ErrorCode::kProtocolError, "The credentials are not those of SASL PLAIN.",
                        version);
  }
  const std::string user(token.substr(first + 1, second - first - 1));
  const std::string password(token.substr(second + 1));
  auto view = catalog_.view();
  if (user == options_.account && IsAccountKey(view->keys, password)) {
    client.user = user;
    co_return MakeAuthSuccess(std::nullopt);
  }
  for (bool again = false;; again = true) {
    auto roles = model::RolesOf(*view);
    const cql::Role* role = roles->Find(user);
    auto right = co_await passwords_.Check(role == nullptr ? "" : role->hash, password);
    if (!right) {
      co_return MakeError(ErrorCode::kOverloaded, right.error().message(), version);
    }
    if (*right && !role->login) {
      co_return MakeError(ErrorCode::kBadCredentials, user + " is not permitted to log in",
                          version);
    }
    if (*right) {
      client.user = user;
      client.access = access_.Of(user, roles);
      co_return MakeAuthSuccess(std::nullopt);
    }
    // The role may have been made through another node.
    if (!again && options_.catch_up) {
      co_await options_.catch_up();
      view = catalog_.view();
    }
    if (again || model::RolesOf(*view) == roles) {
      co_return MakeError(ErrorCode::kBadCredentials,
                          "Provided username " + user + " and/or password are incorrect", version);
    }
  }
}

const RoleAccess& Service::AccessOf(Client& client) {
  auto view = catalog_.view();
  const auto* now = view->roles == nullptr ? cql::DefaultRoles().get() : view->roles->roles.get();
  if (client.access->roles.get() != now) {
    client.access = access_.Of(client.user, model::RolesOf(*view));
  }
  return *client.access;
}

Task<Status> Service::CheckAgain(Client& client, std::function<Status(const RoleAccess&)> check) {
  if (options_.catch_up) {
    co_await options_.catch_up();
  }
  co_return check(AccessOf(client));
}

}  // namespace orrery::cassandra
