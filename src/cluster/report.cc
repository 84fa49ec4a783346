#include "cluster/report.h"

namespace orrery::cluster {

namespace {

constexpr uint8_t kReportVersion = 1;

}  // namespace

std::string EncodeReport(const NodeReport& report) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(kReportVersion);
  encoder.U64(report.free_bytes);
  for (const ReplicaReport& replica : report.replicas) {
    const replication::RaftView& raft = replica.raft;
    encoder.U64(replica.group.value());
    encoder.U64(raft.replica.value());
    encoder.Bool(raft.leads);
    encoder.Bool(raft.changing);
    encoder.U64(raft.term);
    encoder.U64(raft.commit.value());
    encoder.U64(raft.applied.value());
    encoder.Bytes(raft.configuration.Encode());
    encoder.Varint(raft.match.size());
    for (const auto& [id, match] : raft.match) {
      encoder.U64(id.value());
      encoder.U64(match.value());
    }
  }
  return bytes;
}

std::optional<NodeReport> DecodeReport(std::string_view bytes) {
  Decoder decoder(bytes);
  NodeReport report;
  if (decoder.U8() != kReportVersion) {
    return std::nullopt;
  }
  report.free_bytes = decoder.U64();
  while (decoder.ok() && decoder.left() > 0) {
    ReplicaReport replica{.group = GroupId(decoder.U64())};
    replication::RaftView& raft = replica.raft;
    raft.replica = ReplicaId(decoder.U64());
    raft.leads = decoder.Bool();
    raft.changing = decoder.Bool();
    raft.term = decoder.U64();
    raft.commit = Lsn(decoder.U64());
    raft.applied = Lsn(decoder.U64());
    auto configuration = replication::Configuration::Decode(decoder.Bytes());
    if (!configuration) {
      return std::nullopt;
    }
    raft.configuration = std::move(*configuration);
    uint64_t followers = decoder.Varint();
    for (uint64_t i = 0; i < followers && decoder.ok(); ++i) {
      ReplicaId id(decoder.U64());
      raft.match.emplace_back(id, Lsn(decoder.U64()));
    }
    report.replicas.push_back(std::move(replica));
  }
  return decoder.ok() ? std::optional(std::move(report)) : std::nullopt;
}

}  // namespace orrery::cluster
