// Table files that can be read without waiting for the disk.
//
// What the block cache does not have, the kernel often has: all that was just compacted, and of a
// store that is larger than the cache most of what is in use. A thread that must not wait asks
// for that (RWF_NOWAIT) before it gives the read to another one, which costs more than the read.
#pragma once

#include <memory>

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace orrery::storage {

// While one lives, reads of its thread that would wait for the disk, and those that would open a
// file, end with rocksdb::Status::Incomplete. With false it changes nothing.
class WithoutWaiting {
 public:
  explicit WithoutWaiting(bool indeed = true);
  ~WithoutWaiting();
  WithoutWaiting(const WithoutWaiting&) = delete;

 private:
  const bool before_;
};

// The default environment with such files. Outlives the stores opened with it.
std::unique_ptr<rocksdb::Env> MakeTableEnvironment();

}  // namespace orrery::storage
