#include "cluster/report.h"

namespace orrery::cluster {

namespace {

constexpr uint8_t kReportVersion = 1;

std::string EncodeReplica(const ReplicaReport& replica) {
  const replication::RaftView& raft = replica.raft;
  std::string bytes;
  Encoder encoder(bytes);
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
  encoder.Bool(replica.figures.has_value());
  if (const auto& figures = replica.figures) {
    encoder.U64(static_cast<uint64_t>(figures->totals.bytes));
    encoder.U64(static_cast<uint64_t>(figures->totals.items));
    encoder.U64(static_cast<uint64_t>(figures->share.hundredths()));
    encoder.U64(static_cast<uint64_t>(figures->used_last_second.hundredths()));
    encoder.U64(figures->stats.requests);
    encoder.U64(figures->stats.throttled);
    encoder.U64(figures->stats.charge_hundredths);
    encoder.U64(static_cast<uint64_t>(figures->sustained.hundredths()));
  }
  return bytes;
}

PartitionFigures DecodeFigures(Decoder& decoder) {
  PartitionFigures figures;
  figures.totals.bytes = static_cast<int64_t>(decoder.U64());
  figures.totals.items = static_cast<int64_t>(decoder.U64());
  figures.share = partition::RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  figures.used_last_second =
      partition::RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  figures.stats.requests = decoder.U64();
  figures.stats.throttled = decoder.U64();
  figures.stats.charge_hundredths = decoder.U64();
  if (decoder.left() > 0) {  // nodes of format 1 do not send it
    figures.sustained = partition::RequestUnits::Hundredths(static_cast<int64_t>(decoder.U64()));
  }
  return figures;
}

std::optional<ReplicaReport> DecodeReplica(Decoder decoder) {
  ReplicaReport replica{.group = GroupId(decoder.U64())};
  replication::RaftView& raft = replica.raft;
  raft.replica = ReplicaId(decoder.U64());
  raft.leads = decoder.Bool();
  raft.changing = decoder.Bool();
  raft.term = decoder.U64();
  raft.commit = Lsn(decoder.U64());
  raft.applied = Lsn(decoder.U64());
  std::string_view members = decoder.Bytes();
  if (auto configuration = replication::Configuration::Decode(members)) {
    raft.configuration = std::move(*configuration);
  }
  uint64_t followers = decoder.Varint();
  for (uint64_t i = 0; i < followers && decoder.ok(); ++i) {
    ReplicaId id(decoder.U64());
    raft.match.emplace_back(id, Lsn(decoder.U64()));
  }
  if (decoder.Bool()) {
    replica.figures = DecodeFigures(decoder);
  }
  return decoder.ok() ? std::optional(std::move(replica)) : std::nullopt;
}

}  // namespace

std::string EncodeReport(const NodeReport& report) {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(kReportVersion);
  encoder.U64(report.free_bytes);
  encoder.Bool(report.log_healthy);
  encoder.Bool(report.disk_full);
  encoder.Varint(report.replicas.size());
  for (const ReplicaReport& replica : report.replicas) {
    encoder.Bytes(EncodeReplica(replica));
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
  report.log_healthy = decoder.Bool();
  report.disk_full = decoder.Bool();
  uint64_t replicas = decoder.Varint();
  for (uint64_t i = 0; i < replicas && decoder.ok(); ++i) {
    std::optional<ReplicaReport> replica = DecodeReplica(Decoder(decoder.Bytes()));
    if (!replica) {
      return std::nullopt;
    }
    report.replicas.push_back(std::move(*replica));
  }
  return decoder.ok() ? std::optional(std::move(report)) : std::nullopt;
}

}  // namespace orrery::cluster
