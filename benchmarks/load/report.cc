#include "load/report.h"

#include <fmt/format.h>

namespace orrery::load {
namespace {

double OpsPerSecond(const Report& report) {
  return static_cast<double>(report.result.Successes()) / report.seconds;
}

// "429": 12, for every status that is no success.
std::string FailedStatuses(const LoopResult& result) {
  std::string text;
  for (size_t status = 0; status < result.statuses.size(); ++status) {
    if (result.statuses[status] > 0 && (status < 200 || status >= 300)) {
      text +=
          fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", status, result.statuses[status]);
    }
  }
  return text;
}

}  // namespace

std::string ToText(const Options& options, const Report& report) {
  const Histogram& latency = report.result.latency;
  auto ms = [&](double percent) { return static_cast<double>(latency.Percentile(percent)) / 1e6; };
  std::string text = fmt::format(
      "{}, {} connections{}, {}\n"
      "  {:.0f} ops/s   p50 {:.3f} ms   p99 {:.3f} ms   p99.9 {:.3f} ms   max {:.3f} ms\n",
      options.command, options.connections,
      options.idle > 0 ? fmt::format(" and {} idle", options.idle) : "",
      options.rate > 0 ? fmt::format("open loop at {:.0f}/s", options.rate) : "closed loop",
      OpsPerSecond(report), ms(50), ms(99), ms(99.9), static_cast<double>(latency.max()) / 1e6);
  text += fmt::format("  CPU-us per operation: generator {:.1f}", report.generator_cpu_us_per_op);
  if (report.server_cpu_us_per_op) {
    text += fmt::format(", server {:.1f}", *report.server_cpu_us_per_op);
  }
  if (report.allocations_per_op) {
    text += fmt::format("; allocations per operation {:.1f}", *report.allocations_per_op);
  }
  if (report.server_rss_kb) {
    text +=
        fmt::format("; server RSS {:.1f} MB", static_cast<double>(*report.server_rss_kb) / 1024);
  }
  text += '\n';
  if (report.create_container_ms) {
    text += fmt::format("  container created in {:.0f} ms\n", *report.create_container_ms);
  }
  if (report.back_ms) {
    text += fmt::format("  back {:.1f} ms after the kill\n", *report.back_ms);
  }
  if (report.result.Failures() + report.result.unanswered > 0) {
    text += fmt::format("  failures {} {{{}}}, connections lost {}, unanswered {}\n",
                        report.result.Failures(), FailedStatuses(report.result), report.result.lost,
                        report.result.unanswered);
  }
  return text;
}

std::string ToJson(const Options& options, const Report& report) {
  const Histogram& latency = report.result.latency;
  auto us = [&](double percent) { return static_cast<double>(latency.Percentile(percent)) / 1e3; };
  std::string text = fmt::format(
      R"({{"command": "{}", "connections": {}, "idle": {}, "threads": {}, "rate": {:.0f}, )"
      R"("seconds": {:.3f}, "operations": {}, "ops_per_second": {:.1f}, "mean_us": {:.1f}, )"
      R"("p50_us": {:.1f}, "p99_us": {:.1f}, "p999_us": {:.1f}, "max_us": {:.1f}, )",
      options.command, options.connections, options.idle, options.threads, options.rate,
      report.seconds, report.result.Successes(), OpsPerSecond(report), latency.Mean() / 1e3, us(50),
      us(99), us(99.9), static_cast<double>(latency.max()) / 1e3);
  text += fmt::format(
      R"("bytes_per_second": {:.0f}, "failures": {}, "failed_statuses": {{{}}}, "lost": {}, )"
      R"("unanswered": {}, "generator_cpu_us_per_op": {:.2f})",
      static_cast<double>(report.result.bytes) / report.seconds, report.result.Failures(),
      FailedStatuses(report.result), report.result.lost, report.result.unanswered,
      report.generator_cpu_us_per_op);
  auto add = [&](std::string_view name, const auto& value) {
    if (value) {
      text += fmt::format(R"(, "{}": {:.2f})", name, static_cast<double>(*value));
    }
  };
  add("server_cpu_us_per_op", report.server_cpu_us_per_op);
  add("allocations_per_op", report.allocations_per_op);
  add("server_rss_kb", report.server_rss_kb);
  add("create_container_ms", report.create_container_ms);
  add("back_ms", report.back_ms);
  return text + "}\n";
}

}  // namespace orrery::load
