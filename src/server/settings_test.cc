#include "server/settings.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

namespace orrery::server {
namespace {

std::string WriteToml(const std::string& text) {
  std::string path = testing::TempDir() + "settings_test.toml";
  std::ofstream(path) << text;
  return path;
}

TEST(SettingsTest, AFileSetsWhatItNames) {
  Settings settings;
  Status status =
      LoadFile(settings, WriteToml("[storage]\ndurability = \"periodic\"\ncache_mb = 7\n"
                                   "[throughput]\nstrict = true\n"));
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(settings.durability, storage::Durability::kPeriodic);
  EXPECT_EQ(settings.cache_mb, 7u);
  EXPECT_TRUE(settings.strict);
}

TEST(SettingsTest, AnUnknownOrWrongSettingIsAnErrorThatNamesIt) {
  Settings settings;
  for (std::string text :
       {"[storage]\ndurabilty = \"sync\"\n", "[storage]\ndurability = \"often\"\n",
        "[server]\nport = 70000\n", "[server]\nport = \"x\"\n", "storage = 1\n",
        "[throughput]\nstrict = 1\n", "[limits]\nrules = \"old\"\n",
        "[limits]\nlogical_partition_mb = 0\n", "[account]\nstaleness_versions = 9\n",
        "[account]\nstaleness_s = 4\n", "[account]\nstaleness_s = 86401\n"}) {
    Status status = LoadFile(settings, WriteToml(text));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << text;
    EXPECT_FALSE(status.message().empty());
  }
  EXPECT_FALSE(LoadFile(settings, WriteToml("[storage\n")).ok());
}

TEST(SettingsTest, TheEnvironmentOverridesAFile) {
  Settings settings;
  ASSERT_TRUE(LoadFile(settings, WriteToml("[server]\nport = 1\n")).ok());
  setenv("ORRERY_SERVER_PORT", "2", 1);
  ASSERT_TRUE(LoadEnvironment(settings).ok());
  unsetenv("ORRERY_SERVER_PORT");
  EXPECT_EQ(settings.port, 2);
}

TEST(SettingsTest, DevListensOnLoopbackOnly) {
  Settings settings;
  settings.dev = true;
  EXPECT_TRUE(CheckSettings(settings).ok());
  settings.listen = "0.0.0.0";
  EXPECT_FALSE(CheckSettings(settings).ok());
}

}  // namespace
}  // namespace orrery::server
