#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "net/cluster_tls.h"
#include "net/peer.h"
#include "net/test_client.h"

namespace orrery::net {
namespace {

using runtime::Task;

constexpr const char* kSecret = "correct horse battery staple";

Task<std::string> Answer(NodeId, std::string message) { co_return "re: " + message; }

std::shared_ptr<ClusterTls> FromSecret(const std::string& secret) {
  auto made = ClusterTls::FromSecret(secret);
  EXPECT_TRUE(made) << made.error().ToString();
  return made ? *made : nullptr;
}

// A server, and clients of it, each with certificates of its own.
class PeerTlsTest : public testing::Test {
 protected:
  PeerTlsTest() { pool.Start(); }
  ~PeerTlsTest() override {
    if (server) {
      server->Stop();
    }
    pool.Stop();
  }
  void Serve(std::shared_ptr<ClusterTls> tls) {
    PeerOptions options;
    options.tls = std::move(tls);
    PeerHandlers handlers;
    handlers.on_call = Answer;
    handlers.on_frame = [this](NodeId, std::string frame) {
      std::lock_guard lock(mutex);
      frames.push_back(std::move(frame));
    };
    server.emplace(pool, std::move(handlers), options);
    ASSERT_TRUE(server->Start("127.0.0.1", 0).ok());
  }
  // One call, before it one frame, from a client with these certificates.
  Result<std::string> Call(std::shared_ptr<ClusterTls> tls, std::string message = "x") {
    PeerOptions options;
    options.tls = std::move(tls);
    options.connect_timeout = std::chrono::seconds(10);
    PeerClient client(pool, "127.0.0.1", server->port(), options);
    auto run = [](PeerClient& client, std::string message,
                  std::promise<Result<std::string>>& done) -> Task<> {
      client.Send("frame " + message);
      done.set_value(co_await client.Call(std::move(message)));
    };
    std::promise<Result<std::string>> done;
    pool.at(1).Spawn(run(client, std::move(message), done));
    auto answer = done.get_future().get();
    client.Stop();
    return answer;
  }
  void ExpectRefused(std::shared_ptr<ClusterTls> tls) {
    auto answer = Call(std::move(tls));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code(), Code::kUnavailable) << answer.error().ToString();
    std::lock_guard lock(mutex);
    EXPECT_TRUE(frames.empty());
  }

  runtime::WorkerPool pool{2};
  std::optional<PeerServer> server;
  std::mutex mutex;
  std::vector<std::string> frames;
};

TEST_F(PeerTlsTest, WhoHasTheSecretIsUnderstood) {
  Serve(FromSecret(kSecret));
  auto answer = Call(FromSecret(kSecret));
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(*answer, "re: x");
  std::lock_guard lock(mutex);
  EXPECT_EQ(frames, std::vector<std::string>{"frame x"});
}

TEST_F(PeerTlsTest, LargeFramesPassThroughTls) {
  Serve(FromSecret(kSecret));
  std::string large(15 << 20, 'x');
  auto answer = Call(FromSecret(kSecret), large);
  ASSERT_TRUE(answer) << answer.error().ToString();
  EXPECT_EQ(answer->size(), large.size() + 4);
}

TEST_F(PeerTlsTest, AnotherSecretIsRefused) {
  Serve(FromSecret(kSecret));
  ExpectRefused(FromSecret("correct horse battery stapler"));
}

TEST_F(PeerTlsTest, PlainConnectionsAreRefusedByTls) {
  Serve(FromSecret(kSecret));
  ExpectRefused(nullptr);
}

TEST_F(PeerTlsTest, TlsIsRefusedByPlainServers) {
  Serve(nullptr);
  ExpectRefused(FromSecret(kSecret));
}

TEST_F(PeerTlsTest, ARenewedCertificateIsAsGood) {
  auto tls = FromSecret(kSecret);
  Serve(tls);
  auto before = tls->server();
  ASSERT_TRUE(tls->Reload().ok());
  EXPECT_NE(tls->server(), before);
  EXPECT_TRUE(Call(FromSecret(kSecret)));
}

// A clock that is off by so many days.
class WrongClock final : public Clock {
 public:
  explicit WrongClock(int64_t hours) : micros_(hours * 3600 * 1'000'000) {}
  Instant Now() const override { return SystemClock().Now(); }
  WallTime Wall() const override { return {SystemClock().Wall().micros + micros_}; }

 private:
  const int64_t micros_;
};

TEST_F(PeerTlsTest, AClockMayBeOffByADayAndNotByAMonth) {
  Serve(FromSecret(kSecret));
  for (int64_t hours : {-23, 23}) {
    WrongClock clock(hours);
    EXPECT_TRUE(Call(*ClusterTls::FromSecret(kSecret, clock))) << hours;
  }
  std::unique_lock lock(mutex);
  frames.clear();
  lock.unlock();
  for (int64_t hours : {-30 * 24, 30 * 24}) {
    WrongClock clock(hours);
    ExpectRefused(*ClusterTls::FromSecret(kSecret, clock));
  }
}

TEST(ClusterTlsTest, AShortSecretIsRefused) {
  EXPECT_EQ(ClusterTls::FromSecret("fifteen letters").error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(ClusterTls::FromSecret("sixteen letters."));
}

// A folder with the files of a certificate authority and of one node, gone at the end.
class AuthorityFolder {
 public:
  AuthorityFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "orrery-peer-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    EVP_PKEY* authority_key = EVP_EC_gen("P-256");
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* authority = Make(authority_key, "ca", authority_key, "ca", "critical,CA:TRUE");
    X509* certificate = Make(key, "node", authority_key, "ca", "critical,CA:FALSE");
    WriteCertificate("ca.pem", authority);
    WriteCertificate("node.pem", certificate);
    FILE* file = fopen(Path("node.key").c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    fclose(file);
    X509_free(authority);
    X509_free(certificate);
    EVP_PKEY_free(authority_key);
    EVP_PKEY_free(key);
  }
  ~AuthorityFolder() { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  Result<std::shared_ptr<ClusterTls>> Load() const {
    return ClusterTls::FromFiles(Path("ca.pem"), Path("node.pem"), Path("node.key"));
  }

 private:
  static X509* Make(EVP_PKEY* key, const char* name, EVP_PKEY* issuer_key, const char* issuer,
                    const char* constraints) {
    X509* made = X509_new();
    X509_set_version(made, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, key);
    auto set = [](X509_NAME* to, const char* text) {
      X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(text), -1, -1, 0);
    };
    set(X509_get_subject_name(made), name);
    set(X509_get_issuer_name(made), issuer);
    X509_EXTENSION* extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, constraints);
    X509_add_ext(made, extension, -1);
    X509_EXTENSION_free(extension);
    EXPECT_GT(X509_sign(made, issuer_key, EVP_sha256()), 0);
    return made;
  }
  void WriteCertificate(const std::string& name, X509* certificate) const {
    FILE* file = fopen(Path(name).c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    fclose(file);
  }
  std::filesystem::path folder_;
};

TEST_F(PeerTlsTest, CertificatesOfOneAuthorityAreUnderstood) {
  AuthorityFolder folder;
  auto tls = folder.Load();
  ASSERT_TRUE(tls) << tls.error().ToString();
  Serve(*tls);
  auto answer = Call(*folder.Load());
  ASSERT_TRUE(answer) << answer.error().ToString();
}

TEST_F(PeerTlsTest, CertificatesOfAnotherAuthorityAreRefused) {
  AuthorityFolder folder;
  AuthorityFolder other;
  Serve(*folder.Load());
  ExpectRefused(*other.Load());
  ExpectRefused(FromSecret(kSecret));
  // The client would accept us, we do not accept it; and the other way round.
  auto half =
      ClusterTls::FromFiles(folder.Path("ca.pem"), other.Path("node.pem"), other.Path("node.key"));
  ExpectRefused(*half);
  half =
      ClusterTls::FromFiles(other.Path("ca.pem"), folder.Path("node.pem"), folder.Path("node.key"));
  ExpectRefused(*half);
}

TEST(ClusterTlsTest, FilesThatAreNotThereOrDoNotMatchAreNamed) {
  AuthorityFolder folder;
  AuthorityFolder other;
  auto missing = ClusterTls::FromFiles(folder.Path("no.pem"), folder.Path("node.pem"),
                                       folder.Path("node.key"));
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message().find("no.pem"), std::string::npos);
  auto mixed =
      ClusterTls::FromFiles(folder.Path("ca.pem"), folder.Path("node.pem"), other.Path("node.key"));
  ASSERT_FALSE(mixed);
  EXPECT_NE(mixed.error().message().find("node.key"), std::string::npos);
}

TEST_F(PeerTlsTest, ASecretOfAFileIsTheSameWithoutItsLineEnd) {
  AuthorityFolder folder;
  std::ofstream(folder.Path("secret")) << kSecret << "\n";
  auto tls = ClusterTls::FromSecretFile(folder.Path("secret"));
  ASSERT_TRUE(tls) << tls.error().ToString();
  Serve(*tls);
  EXPECT_TRUE(Call(FromSecret(kSecret)));
  EXPECT_EQ(ClusterTls::FromSecretFile(folder.Path("none")).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace orrery::net
