// DataFolder: the files of a node beside its two stores.
//
//   FORMAT            the version of everything below; a newer one is refused
//   log/ state/       the stores
//   keys.json         the account keys, for `orrery keys`; readable only by the owner
//   server.json       where the running server answers, for the other commands
//   node.json         who this node is in its cluster
//   joining           under which id it asks to join one, until it is a member
//   certificate.pem, key.pem   made at first start, unless others are given
#pragma once

#include <optional>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "cluster/instance.h"
#include "model/catalog_types.h"
#include "storage/write_set.h"

namespace orrery::server {

// Makes the folder (mode 0700) and FORMAT if they are missing. kInvalidArgument: not ours, or
// newer.
Status PrepareDataFolder(const std::string& folder);
// The parts of it, for a backup: the folder first, FORMAT when all else is there.
Status MakeFolder(const std::string& folder);
Status WriteFormat(const std::string& folder);

Status WriteKeysFile(const std::string& folder, const model::AccountKeys& keys);
Result<model::AccountKeys> ReadKeysFile(const std::string& folder);
std::string KeysJson(const model::AccountKeys& keys);

// `cluster` is the address for other nodes; empty: it is alone.
Status WriteServerFile(const std::string& folder, const std::string& endpoint,
                       const std::string& cluster, uint16_t cassandra);
// kUnavailable if no server was started on the folder.
Result<std::string> ReadServerFile(const std::string& folder);

Status WriteIdentity(const std::string& folder, const cluster::NodeIdentity& identity);
// Under which a node asks to join, the same over restarts: one that dies before it has written its
// identity becomes the same node again.
Result<storage::OperationId> JoinId(const std::string& folder, Random& random);
bool HasStores(const std::string& folder);
void ForgetJoinId(const std::string& folder);
// Nothing: it has none.
Result<std::optional<cluster::NodeIdentity>> ReadIdentity(const std::string& folder);

// Copies a backup into a data folder that does not exist yet (or is empty).
Status RestoreBackup(const std::string& backup, const std::string& folder);

// "primary", "secondary", "primaryReadOnly", "secondaryReadOnly".
std::string_view KeyText(model::KeyName name);
std::optional<model::KeyName> ParseKeyName(std::string_view text);

// A new account key, raw.
std::string RandomKey();
// The key that every Cosmos DB emulator has, raw.
std::string EmulatorKey();

uint64_t FreeBytes(const std::string& folder);

}  // namespace orrery::server
