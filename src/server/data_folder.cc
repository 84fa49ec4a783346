#include "server/data_folder.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/random.h"
#include "types/document.h"

namespace orrery::server {

namespace fs = std::filesystem;

namespace {

constexpr size_t kAccountKeyBytes = 64;
constexpr std::string_view kFormat = "orrery data format 1\n";
constexpr std::string_view kEmulatorKey =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

Result<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return Error(Code::kUnavailable, "cannot read " + path);
  }
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// Whole or not at all, and durable.
Status ReplaceFile(const std::string& path, std::string_view content, mode_t mode) {
  std::string draft = path + ".new";
  ::unlink(draft.c_str());
  int file = ::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  bool ok = file >= 0 &&
            ::write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
            ::fsync(file) == 0;
  if (file >= 0) {
    ::close(file);
  }
  if (!ok || ::rename(draft.c_str(), path.c_str()) != 0) {
    return Status(Code::kUnavailable, "cannot write " + path + ": " + std::strerror(errno));
  }
  // The name is durable when the folder is.
  int folder = ::open(fs::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return Status::Ok();
}

}  // namespace

Status MakeFolder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) {
    fs::permissions(folder, fs::perms::owner_all, error);
  }
  return error ? Status(Code::kUnavailable,
                        "cannot make the folder " + folder + ": " + error.message())
               : Status::Ok();
}

Status WriteFormat(const std::string& folder) {
  return ReplaceFile(folder + "/FORMAT", kFormat, 0600);
}

Status PrepareDataFolder(const std::string& folder) {
  std::error_code error;
  std::string path = folder + "/FORMAT";
  if (!fs::exists(path, error)) {
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      if (entry.path().filename() != "lost+found" && entry.path().filename() != "FORMAT.new") {
        return Status(Code::kInvalidArgument,
                      folder + " holds files but is not a data folder of Orrery");
      }
    }
    ORRERY_RETURN_IF_ERROR(MakeFolder(folder));
    return WriteFormat(folder);
  }
  auto format = ReadFile(path);
  if (!format || *format != kFormat) {
    return Status(Code::kInvalidArgument, path + " says '" + (format ? format->substr(0, 60) : "") +
                                              "'; this program reads data format 1");
  }
  return Status::Ok();
}

std::string_view KeyText(model::KeyName name) {
  switch (name) {
    case model::KeyName::kPrimary: return "primary";
    case model::KeyName::kSecondary: return "secondary";
    case model::KeyName::kPrimaryReadOnly: return "primaryReadOnly";
    case model::KeyName::kSecondaryReadOnly: return "secondaryReadOnly";
  }
  return "primary";
}

std::optional<model::KeyName> ParseKeyName(std::string_view text) {
  for (size_t i = 0; i < model::kKeyCount; ++i) {
    if (KeyText(static_cast<model::KeyName>(i)) == text) {
      return static_cast<model::KeyName>(i);
    }
  }
  return std::nullopt;
}

std::string KeysJson(const model::AccountKeys& keys) {
  std::string out = "{";
  for (size_t i = 0; i < model::kKeyCount; ++i) {
    out += (i == 0 ? "\n  \"" : ",\n  \"") + std::string(KeyText(static_cast<model::KeyName>(i))) +
           "\": \"" + ToBase64(keys.keys[i]) + "\"";
  }
  return out + "\n}\n";
}

Status WriteKeysFile(const std::string& folder, const model::AccountKeys& keys) {
  return ReplaceFile(folder + "/keys.json", KeysJson(keys), 0600);
}

Result<model::AccountKeys> ReadKeysFile(const std::string& folder) {
  ORRERY_TRY(std::string text, ReadFile(folder + "/keys.json"));
  ORRERY_TRY(types::Document parsed, types::Document::FromJson(text));
  model::AccountKeys keys;
  for (size_t i = 0; i < model::kKeyCount; ++i) {
    types::Value key = parsed.Get(KeyText(static_cast<model::KeyName>(i)));
    if (key.kind() != types::Kind::kString || !FromBase64(key.string(), &keys.keys[i])) {
      return Error(Code::kCorruption, folder + "/keys.json is malformed");
    }
  }
  return keys;
}

Status WriteServerFile(const std::string& folder, const std::string& endpoint,
                       const std::string& cluster, uint16_t cassandra) {
  std::string text = "{\"endpoint\":\"" + endpoint + "\"";
  if (!cluster.empty()) {
    text += ",\"cluster\":\"" + cluster + "\"";
  }
  if (cassandra != 0) {
    text += ",\"cassandra\":" + std::to_string(cassandra);
  }
  return ReplaceFile(folder + "/server.json", text + "}\n", 0600);
}

Result<std::string> ReadServerFile(const std::string& folder) {
  auto text = ReadFile(folder + "/server.json");
  auto parsed = text ? types::Document::FromJson(*text) : Error(text.error());
  if (!parsed || parsed->Get("endpoint").kind() != types::Kind::kString) {
    return Error(Code::kUnavailable, "no server was started on the data folder " + folder);
  }
  return std::string(parsed->Get("endpoint").string());
}

Status WriteIdentity(const std::string& folder, const cluster::NodeIdentity& identity) {
  std::string text = "{\"cluster\":\"" + std::to_string(identity.cluster) +
                     "\",\"node\":" + identity.node.ToString() +
                     ",\"metaReplica\":" + identity.meta_replica.ToString() +
                     ",\"nodesAsOf\":" + identity.nodes_as_of.ToString() + ",\"nodes\":{";
  for (const auto& [node, address] : identity.nodes) {
    text += (text.back() == '{' ? "\"" : ",\"") + node.ToString() + "\":";
    types::AppendJsonString(address, text);
  }
  return ReplaceFile(folder + "/node.json", text + "}}\n", 0600);
}

Result<storage::OperationId> JoinId(const std::string& folder, Random& random) {
  std::string path = folder + "/joining";
  std::error_code error;
  if (!fs::exists(path, error)) {
    std::string text = std::to_string(random.Next()) + " " + std::to_string(random.Next()) + "\n";
    if (Status status = ReplaceFile(path, text, 0600); !status.ok()) {
      return Error(status);
    }
  }
  ORRERY_TRY(std::string text, ReadFile(path));
  storage::OperationId id;
  std::istringstream in(text);
  if (!(in >> id.high >> id.low)) {
    return Error(Code::kCorruption, path + " is malformed");
  }
  return id;
}

bool HasStores(const std::string& folder) {
  std::error_code error;
  return fs::exists(folder + "/log", error) || fs::exists(folder + "/state", error);
}

void ForgetJoinId(const std::string& folder) {
  std::error_code ignored;
  fs::remove(folder + "/joining", ignored);
}

Result<std::optional<cluster::NodeIdentity>> ReadIdentity(const std::string& folder) {
  std::string path = folder + "/node.json";
  std::error_code error;
  if (!fs::exists(path, error)) {
    return std::nullopt;
  }
  ORRERY_TRY(std::string text, ReadFile(path));
  auto parsed = types::Document::FromJson(text);
  if (!parsed || parsed->Get("cluster").kind() != types::Kind::kString ||
      parsed->Get("node").kind() != types::Kind::kNumber ||
      parsed->Get("metaReplica").kind() != types::Kind::kNumber ||
      parsed->Get("nodes").kind() != types::Kind::kObject) {
    return Error(Code::kCorruption, path + " is malformed");
  }
  auto number = [](std::string_view digits) {
    return std::strtoull(std::string(digits).c_str(), nullptr, 10);
  };
  cluster::NodeIdentity identity{
      .cluster = number(parsed->Get("cluster").string()),
      .node = NodeId(static_cast<uint32_t>(parsed->Get("node").number())),
      .meta_replica = ReplicaId(static_cast<uint64_t>(parsed->Get("metaReplica").number()))};
  if (types::Value as_of = parsed->Get("nodesAsOf"); as_of.kind() == types::Kind::kNumber) {
    identity.nodes_as_of = Lsn(static_cast<uint64_t>(as_of.number()));
  }
  types::Value nodes = parsed->Get("nodes");
  for (types::ValueIterator at(nodes.bson()); at.Next();) {
    identity.nodes[NodeId(static_cast<uint32_t>(number(at.name())))] = at.value().string();
  }
  return identity;
}

Status RestoreBackup(const std::string& backup, const std::string& folder) {
  auto format = ReadFile(backup + "/FORMAT");
  if (!format || *format != kFormat) {
    return Status(Code::kInvalidArgument, backup + " is not a backup of Orrery of data format 1");
  }
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    return Status(Code::kAlreadyExists,
                  folder + " is not empty: a restore makes a new data folder");
  }
  std::string draft = folder + ".restoring";
  fs::remove_all(draft, error);
  fs::copy(backup, draft, fs::copy_options::recursive, error);
  if (!error) {
    fs::permissions(draft, fs::perms::owner_all, error);
  }
  if (!error) {
    fs::remove(folder, error);
    fs::rename(draft, folder, error);
  }
  return error
             ? Status(Code::kUnavailable, "cannot restore into " + folder + ": " + error.message())
             : Status::Ok();
}

std::string RandomKey() {
  std::string key(kAccountKeyBytes, '\0');
  SecretBytes({reinterpret_cast<uint8_t*>(key.data()), key.size()});
  return key;
}

std::string EmulatorKey() {
  std::string key;
  FromBase64(kEmulatorKey, &key);
  return key;
}

uint64_t FreeBytes(const std::string& folder) {
  std::error_code error;
  fs::space_info space = fs::space(folder, error);
  return error ? UINT64_MAX : space.available;
}

}  // namespace orrery::server
