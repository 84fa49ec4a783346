#include "load/server_process.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include <sys/resource.h>
#include <unistd.h>

namespace orrery::load {
namespace {

constexpr std::string_view kAllocations = "orrery_allocations_total";
constexpr int kMetricsTimeoutSeconds = 10;

std::string ReadProcFile(int pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

std::optional<double> CpuSeconds(int pid) {
  std::string text = ReadProcFile(pid, "stat");
  // The second field is the program's name in parentheses and may hold anything; utime is field 14.
  size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int field = 3; field < 14; ++field) {
    fields >> skipped;
  }
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

std::optional<uint64_t> ResidentKilobytes(int pid) {
  std::string text = ReadProcFile(pid, "status");
  size_t at = text.find("VmRSS:");
  if (at == std::string::npos) {
    return std::nullopt;
  }
  return std::strtoull(text.c_str() + at + 6, nullptr, 10);
}

std::optional<double> Allocations(const Endpoint& endpoint) {
  std::string request = "GET /metrics HTTP/1.1\r\nhost: " + endpoint.HostHeader() + "\r\n\r\n";
  Result<Reply> reply = Fetch(endpoint, request, kMetricsTimeoutSeconds);
  if (!reply || reply->status != 200) {
    return std::nullopt;
  }
  std::optional<double> sum;
  std::istringstream lines(reply->body);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kAllocations) || line.size() <= kAllocations.size() ||
        (line[kAllocations.size()] != ' ' && line[kAllocations.size()] != '{')) {
      continue;
    }
    sum = sum.value_or(0) + std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

}  // namespace orrery::load
