// What it takes to reuse RocksDB's log files safely. Only rocks_*.cc include this.
//
// A reused file has its blocks and its length already, so a sync writes data and no file system
// journal: 1.6 times as many synced writes a second. RocksDB 7.8.3 has the feature, and five traps
// around it:
//
// 1. It is on only with the recovery mode kSkipAnyCorruptedRecords (SanitizeOptions sets
// recycle_log_file_num to
//    0 with any other), and that mode must never meet a reused file: its reader loops forever at
//    the first record of the file's former life, and it would jump over damage in silence. So a
//    store is opened twice. First, if a log file holds anything, with kPointInTimeRecovery: it
//    replays up to the first record that is torn or old, goes on in the next file if the numbers
//    continue there (SequenceGuard makes sure), writes all of it into new synced table files and
//    drops the logs. Then for work, on empty logs, with reuse on.
// 2. A flush of several column families closes the log file and then looks into it: a null pointer.
// So only a
//    store with one space reuses its log files; the others go without.
// 3. Closing a log file cuts it to its length, which may happen when the same file is already in
// use again under
//    its next name. LogFileSystem leaves out the preallocation, and with it the cut.
// 4. A checkpoint links log files that are written over later: UnlinkLogs gives it copies.
// 5. The new name of a reused file is made durable with its first sync. A power cut just before
// leaves the new record under the old name, in front of old ones, which looks like damage:
// LogFileSystem makes the name durable before anything is written.
//
// No synced record is lost: a sync covers its whole file and first the files before it, so in front
// of a synced record nothing can be torn. The numbers have no gap, because every write of a store
// with log files goes to the log (kNoLog too) and Ingest, which takes numbers of its own, is
// refused.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace rocksdb {
class Env;
class FileSystem;
class WalFilter;
}  // namespace rocksdb

namespace orrery::storage {

// Whether recovery has something to read. A reused file that nothing was written to still has its
// old records.
bool HasLogRecords(const std::string& folder);

// Looks for damage in the middle of log files: a record that cannot be read, with a whole one
// behind it that begins a later batch. A crash leaves no such thing where every batch was synced
// before the next one was written, and recovery would take the damage for the end. kCorruption
// names the file. What it cannot see: damage in the very last batch, which looks like a torn one.
Status CheckLogFiles(const std::string& folder);

// Stops a replay where a record's number is not the one after the last: what follows was never
// synced.
std::unique_ptr<rocksdb::WalFilter> MakeSequenceGuard();

// An environment with a LogFileSystem over these files, by default the machine's. Outlives the
// stores opened with it.
std::unique_ptr<rocksdb::Env> MakeLogEnvironment(std::shared_ptr<rocksdb::FileSystem> files = {});

// REQUIRES: deletion of files, and with it their reuse, is switched off in the store that was
// copied.
Status UnlinkLogs(const std::string& checkpoint_folder);

}  // namespace orrery::storage
