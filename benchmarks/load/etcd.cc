#include "load/etcd.h"

#include <fmt/format.h>

#include "load/grpc_channel.h"
#include "load/sql.h"
#include "load/stream_loop.h"

namespace orrery::load {
namespace {

constexpr size_t kFillerBytes = 64 << 10;
constexpr size_t kFoundBytesMin = 512;  // a reply to a read that found nothing is a header only

void AppendVarint(uint64_t number, std::string& out) {
  for (; number >= 0x80; number >>= 7) {
    out += static_cast<char>(number | 0x80);
  }
  out += static_cast<char>(number);
}

// A field of protocol buffers that is a string or bytes.
void AppendField(uint64_t field, std::string_view bytes, std::string& out) {
  AppendVarint(field << 3 | 2, out);
  AppendVarint(bytes.size(), out);
  out += bytes;
}

void AppendPut(std::string_view key, const EtcdData& data, std::string_view filler, uint64_t chance,
               std::string& out) {
  AppendField(1, key, out);
  AppendField(2, filler.substr(chance % kFillerBytes, data.value_bytes), out);
}

std::string KeyOfItem(uint64_t item) { return fmt::format("item-{:010}", item); }

}  // namespace

std::unique_ptr<Loop> MakeEtcdLoop(EtcdOptions options, Workload& workload, LoopWatch& watch) {
  const bool reads = options.reads;
  auto make = [reads](int, const Endpoint& endpoint) -> Result<std::unique_ptr<Channel>> {
    return std::make_unique<GrpcChannel>(reads ? "/etcdserverpb.KV/Range" : "/etcdserverpb.KV/Put",
                                         endpoint.HostHeader());
  };
  return MakeStreamLoop({.loop = std::move(options.loop),
                         .streams = options.streams,
                         .found_bytes_min = reads ? kFoundBytesMin : 0,
                         .make_channel = std::move(make)},
                        workload, watch);
}

EtcdSetupWorkload::EtcdSetupWorkload(EtcdData data, uint64_t first, uint64_t step)
    : data_(data),
      filler_(MakeFiller(kFillerBytes + data.value_bytes)),
      next_(first),
      step_(step) {}

bool EtcdSetupWorkload::Next(std::string& request, uint64_t& number) {
  if (!again_.empty()) {
    number = again_.back();
    again_.pop_back();
  } else if (next_ < data_.items) {
    number = next_;
    next_ += step_;
  } else {
    return false;
  }
  AppendPut(KeyOfItem(number), data_, filler_, SeededRandom(number).Next(), request);
  return true;
}

void EtcdSetupWorkload::Done(uint64_t number, int status) {
  if (status != 200) {
    again_.push_back(number);
  }
}

EtcdWorkload::EtcdWorkload(EtcdData data, bool reads, std::string prefix, uint64_t seed)
    : data_(data),
      reads_(reads),
      prefix_(std::move(prefix)),
      filler_(MakeFiller(kFillerBytes + data.value_bytes)),
      random_(seed) {}

bool EtcdWorkload::Next(std::string& request, uint64_t& /*number*/) {
  uint64_t chance = random_.Next();
  if (reads_) {
    AppendField(1, KeyOfItem(chance % data_.items), request);
  } else {
    AppendPut(fmt::format("{}{:010}", prefix_, created_++), data_, filler_, chance, request);
  }
  return true;
}

}  // namespace orrery::load
