#include "api/cassandra/traces.h"

#include <algorithm>
#include <cstdio>

#include "cql/letters.h"
#include "cql/time_uuid.h"
#include "cql/value.h"

namespace orrery::cassandra {

using cql::SystemRow;

namespace {

std::string TextMap(const std::vector<std::pair<std::string, std::string>>& entries) {
  const cql::DataType type = cql::DataType::Map(cql::TypeId::kText, cql::TypeId::kText);
  std::string out;
  cql::PartWriter writer(type, out);
  for (const auto& [name, value] : entries) {
    writer.Add(name);
    writer.Add(value);
  }
  writer.Finish();
  return cql::CanonicalValue(type, out);
}

// What stands behind the word is nobody else's.
std::string WithoutPassword(std::string text) {
  constexpr std::string_view kWord = "password";
  auto same = [](char a, char b) { return cql::Lower(a) == b; };
  auto found = std::ranges::search(text, kWord, same);
  if (!found.empty()) {
    text.replace(found.end(), text.end(), " *******");
  }
  return text;
}

// In the order of the columns: the key, then by name.
SystemRow SessionRow(const std::string& id, const Trace& trace, const cql::NodeView& node) {
  return {id,
          trace.client.empty() ? std::nullopt : std::optional(trace.client),
          "QUERY",
          node.address,
          cql::IntBytes(node.storage_port),
          cql::IntBytes(static_cast<int32_t>(trace.took.count())),
          TextMap(trace.parameters),
          trace.request,
          cql::BigintBytes(trace.started.micros / 1000)};
}

void AddEvents(const std::string& id, const Trace& trace, const cql::NodeView& node,
               std::vector<SystemRow>& rows) {
  char charge[64];
  std::snprintf(charge, sizeof(charge), "%.2f request units were charged", trace.charge);
  const std::pair<std::string, Duration> events[] = {
      {trace.request, Duration::zero()},
      {charge, trace.took},
      {trace.failed ? "Request failed" : "Request complete", trace.took}};
  int64_t ticks = trace.started.micros * 10;
  const auto rest = static_cast<uint64_t>(cql::ReadBigint(std::string_view(id).substr(8)));
  for (const auto& [activity, elapsed] : events) {
    // Each later than the one before, so that they stay in their order.
    rows.push_back({id, cql::TimeUuid(ticks++ + elapsed.count() * 10, rest), activity, node.address,
                    cql::IntBytes(static_cast<int32_t>(elapsed.count())),
                    cql::IntBytes(node.storage_port), "orrery"});
  }
}

}  // namespace

std::array<char, 16> Traces::Keep(Trace trace, Random& random) {
  const uint64_t rest = (random.Next() & ~(3ull << 62)) | (2ull << 62);
  std::string id = cql::TimeUuid(trace.started.micros * 10, rest);
  std::array<char, 16> bytes;
  std::ranges::copy(id, bytes.begin());
  for (auto& [name, value] : trace.parameters) {
    value = WithoutPassword(std::move(value));
    value.resize(std::min(value.size(), kTextMax));
  }
  std::lock_guard lock(mutex_);
  kept_.push_back({std::move(id), std::move(trace)});
  if (kept_.size() > kCountMax) {
    kept_.pop_front();
  }
  return bytes;
}

std::vector<SystemRow> Traces::Rows(const cql::Table& table, const cql::NodeView& node) const {
  std::vector<SystemRow> rows;
  std::lock_guard lock(mutex_);
  for (const auto& [id, trace] : kept_) {
    if (table.name == "sessions") {
      rows.push_back(SessionRow(id, trace, node));
    } else if (table.name == "events") {
      AddEvents(id, trace, node, rows);
    }
  }
  return rows;
}

}  // namespace orrery::cassandra
