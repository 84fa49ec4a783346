#include "net/tls.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "net/http_server.h"
#include "net/test_client.h"

namespace orrery::net {
namespace {

// A folder with a certificate that is gone at the end.
class CertificateFolder {
 public:
  CertificateFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "orrery-tls-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    Make();
  }
  ~CertificateFolder() { std::filesystem::remove_all(folder_); }

  void Make() {
    Status made = MakeSelfSignedCertificate(certificate(), key(), {"db.example.org", "10.1.2.3"});
    EXPECT_TRUE(made.ok()) << made.ToString();
  }
  std::string certificate() const { return folder_ / "certificate.pem"; }
  std::string key() const { return folder_ / "key.pem"; }
  size_t files() const {
    auto all = std::filesystem::directory_iterator(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  HttpOptions options() const {
    HttpOptions options;
    options.certificate_file = certificate();
    options.key_file = key();
    return options;
  }

 private:
  std::filesystem::path folder_;
};

TEST(TlsTest, AMadeCertificateServesEachOfItsNames) {
  CertificateFolder folder;
  RunningServer server(folder.options(), Echo);
  for (const char* name : {"localhost", "127.0.0.1", "::1", "db.example.org", "10.1.2.3"}) {
    TestClient client(server.port());
    ASSERT_TRUE(client.StartTls(folder.certificate(), name)) << name;
    EXPECT_EQ(client.Get("/tls").body, "GET /tls ");
  }
  EXPECT_FALSE(TestClient(server.port()).StartTls(folder.certificate(), "other.example.org"));
}

TEST(TlsTest, OnlyTheOwnerMayReadTheKey) {
  CertificateFolder folder;
  struct stat about{};
  ASSERT_EQ(::stat(folder.key().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(folder.files(), 2u) << "nothing is left beside the two files";
}

TEST(TlsTest, NamesThatAreNoneAreRefused) {
  CertificateFolder folder;
  for (const char* name : {"", "a b", "x,DNS:evil", "new\nline"}) {
    EXPECT_EQ(MakeSelfSignedCertificate(folder.certificate(), folder.key(), {name}).code(),
              Code::kInvalidArgument);
  }
}

TEST(TlsTest, PipelinedAndLargeMessagesPassThroughTls) {
  CertificateFolder folder;
  RunningServer server(folder.options(), Echo);
  TestClient client(server.port());
  ASSERT_TRUE(client.StartTls(folder.certificate(), "localhost"));
  client.Send("GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive().body, "GET /1 ");
  EXPECT_EQ(client.Receive().body, "GET /2 ");
  EXPECT_EQ(client.Receive().body, "GET /3 ");
  std::string body(2 << 20, 'y');
  client.Send("POST / HTTP/1.1\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
              body);
  EXPECT_EQ(client.Receive().body, "POST / " + body);
}

TEST(TlsTest, NewConnectionsUseAReloadedCertificate) {
  CertificateFolder folder;
  CertificateFolder old;
  std::filesystem::copy_file(folder.certificate(), old.certificate(),
                             std::filesystem::copy_options::overwrite_existing);
  RunningServer server(folder.options(), Echo);
  TestClient before(server.port());
  ASSERT_TRUE(before.StartTls(old.certificate(), "localhost"));
  folder.Make();
  ASSERT_TRUE(server->ReloadCertificate().ok());
  EXPECT_EQ(before.Get("/").status, 200) << "connections go on";
  EXPECT_FALSE(TestClient(server.port()).StartTls(old.certificate(), "localhost"));
  EXPECT_TRUE(TestClient(server.port()).StartTls(folder.certificate(), "localhost"));
}

TEST(TlsTest, ABrokenCertificateIsNotTaken) {
  CertificateFolder folder;
  CertificateFolder copy;
  std::filesystem::copy_file(folder.certificate(), copy.certificate(),
                             std::filesystem::copy_options::overwrite_existing);
  RunningServer server(folder.options(), Echo);
  std::ofstream(folder.certificate()) << "nonsense";
  EXPECT_EQ(server->ReloadCertificate().code(), Code::kUnavailable);
  EXPECT_TRUE(TestClient(server.port()).StartTls(copy.certificate(), "localhost"));
}

TEST(TlsTest, AStartWithoutTheFilesFails) {
  runtime::WorkerPool pool(1);
  HttpOptions options;
  options.certificate_file = "/nonexistent/certificate.pem";
  options.key_file = "/nonexistent/key.pem";
  HttpServer server(pool, options, Echo);
  EXPECT_EQ(server.Start().code(), Code::kUnavailable);
}

TEST(TlsTest, APlainClientOfATlsServerIsClosed) {
  CertificateFolder folder;
  RunningServer server(folder.options(), Echo);
  TestClient client(server.port());
  client.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.Receive().status, 0);
}

TEST(TlsTest, AHandshakeThatDoesNotEndIsDropped) {
  CertificateFolder folder;
  HttpOptions options = folder.options();
  options.request_timeout = std::chrono::milliseconds(40);
  RunningServer server(options, Echo);
  EXPECT_TRUE(TestClient(server.port()).IsClosed());
}

TEST(HmacTest, AgreesWithTheVectorsOfRfc4231) {
  EXPECT_EQ(ToHex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5BDCC146BF60754E6A042426089575C75A003F089D2739839DEC58B964EC3843");
  EXPECT_EQ(ToHex(HmacSha256(std::string(131, '\xaa'),
                             "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60E431591EE0B67F0D8A26AACBF5B77F8E0BC6213728C5140546040F0EE37F54");
}

TEST(HmacTest, Sha256AgreesWithTheVectorOfFips180) {
  EXPECT_EQ(ToHex(Sha256("abc")),
            "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD");
}

TEST(HmacTest, EqualityLooksAtEveryByte) {
  EXPECT_TRUE(EqualInConstantTime("abc", "abc"));
  EXPECT_TRUE(EqualInConstantTime("", ""));
  EXPECT_FALSE(EqualInConstantTime("abc", "abd"));
  EXPECT_FALSE(EqualInConstantTime("abc", "ab"));
}

}  // namespace
}  // namespace orrery::net
