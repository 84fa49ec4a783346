#include "cluster/report.h"

#include <gtest/gtest.h>

namespace orrery::cluster {
namespace {

ReplicaReport Leader() {
  ReplicaReport replica{.group = GroupId(7)};
  replica.raft = {.replica = ReplicaId(11),
                  .leads = true,
                  .term = 3,
                  .changing = true,
                  .match = {{ReplicaId(11), Lsn(40)}, {ReplicaId(12), Lsn(38)}},
                  .commit = Lsn(39),
                  .applied = Lsn(37)};
  replica.raft.configuration.members = {{.id = ReplicaId(11), .node = NodeId(1)},
                                        {.id = ReplicaId(12), .node = NodeId(2)}};
  replica.figures =
      PartitionFigures{.totals = {.bytes = 1234, .items = -1},
                       .share = partition::RequestUnits(400),
                       .used_last_second = partition::RequestUnits(4.95),
                       .stats = {.requests = 5, .throttled = 6, .charge_hundredths = 7},
                       .sustained = partition::RequestUnits(40)};
  return replica;
}

NodeReport Report() {
  NodeReport report{.free_bytes = 99, .log_healthy = false, .disk_full = true};
  report.replicas.push_back(Leader());
  // One that waits for its first snapshot knows no configuration.
  report.replicas.push_back({.group = GroupId(0), .raft = {.replica = ReplicaId(3)}});
  return report;
}

TEST(ReportTest, AReportComesBackAsItWas) {
  auto back = DecodeReport(EncodeReport(Report()));
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->free_bytes, 99u);
  EXPECT_FALSE(back->log_healthy);
  EXPECT_TRUE(back->disk_full);
  ASSERT_EQ(back->replicas.size(), 2u);
  const ReplicaReport expected = Leader();
  const ReplicaReport& leader = back->replicas[0];
  EXPECT_EQ(leader.group, expected.group);
  EXPECT_EQ(leader.raft.replica, expected.raft.replica);
  EXPECT_TRUE(leader.raft.leads);
  EXPECT_TRUE(leader.raft.changing);
  EXPECT_EQ(leader.raft.term, 3u);
  EXPECT_EQ(leader.raft.commit, Lsn(39));
  EXPECT_EQ(leader.raft.applied, Lsn(37));
  EXPECT_EQ(leader.raft.match, expected.raft.match);
  EXPECT_EQ(leader.raft.configuration, expected.raft.configuration);
  ASSERT_TRUE(leader.figures.has_value());
  EXPECT_EQ(leader.figures->totals, expected.figures->totals);
  EXPECT_EQ(leader.figures->share, expected.figures->share);
  EXPECT_EQ(leader.figures->used_last_second, expected.figures->used_last_second);
  EXPECT_EQ(leader.figures->stats.throttled, 6u);
  EXPECT_EQ(leader.figures->sustained, expected.figures->sustained);
  EXPECT_TRUE(back->replicas[1].raft.configuration.members.empty());
  EXPECT_FALSE(back->replicas[1].figures.has_value());
}

TEST(ReportTest, WhatIsCutShortIsNoReport) {
  std::string bytes = EncodeReport(Report());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeReport(std::string_view(bytes).substr(0, size)).has_value()) << size;
  }
}

}  // namespace
}  // namespace orrery::cluster
