// How RocksDB is set up for a store, and what its statuses mean to us. Only rocks_*.cc include
// this.
#pragma once

#include <memory>

#include "storage/engine.h"

namespace rocksdb {
class Cache;
class EventListener;
class Status;
struct ColumnFamilyOptions;
struct DBOptions;
}  // namespace rocksdb

namespace orrery::storage {

Status ToStatus(const rocksdb::Status& status);

// With `recycle` the log files are reused. REQUIRES then: there are no log records to recover.
rocksdb::DBOptions MakeStoreOptions(const EngineOptions& options, bool recycle,
                                    std::shared_ptr<rocksdb::EventListener> listener);
rocksdb::ColumnFamilyOptions MakeSpaceOptions(const EngineOptions& options,
                                              std::shared_ptr<rocksdb::Cache> cache);

}  // namespace orrery::storage
