#include "api/cassandra/schema_events.h"

#include <functional>

namespace orrery::cassandra {

namespace {

constexpr Duration kInterval = std::chrono::milliseconds(200);

// Calls `tell` for each name whose value is new ("CREATED"), another ("UPDATED") or gone
// ("DROPPED").
template <typename Map, typename Same, typename Tell>
void Compare(const Map& before, const Map& after, const Same& same, const Tell& tell) {
  for (const auto& [name, value] : before) {
    if (!after.contains(name)) {
      tell("DROPPED", name);
    }
  }
  for (const auto& [name, value] : after) {
    auto old = before.find(name);
    if (old == before.end()) {
      tell("CREATED", name);
    } else if (!same(old->second, value)) {
      tell("UPDATED", name);
    }
  }
}

}  // namespace

std::vector<SchemaChange> SchemaChanges(const cql::Schema& before, const cql::Schema& after) {
  std::vector<SchemaChange> changes;
  auto same_keyspace = [](const cql::Keyspace& a, const cql::Keyspace& b) {
    return a.replication == b.replication && a.durable_writes == b.durable_writes;
  };
  Compare(
      before.keyspaces, after.keyspaces, same_keyspace,
      [&](std::string_view change, const std::string& name) {
        changes.push_back({.change = std::string(change), .target = "KEYSPACE", .keyspace = name});
      });
  for (const auto& [name, keyspace] : after.keyspaces) {
    auto old = before.keyspaces.find(name);
    if (old == before.keyspaces.end()) {
      continue;
    }
    auto tell = [&](std::string target) {
      return [&changes, target = std::move(target), keyspace = name](std::string_view change,
                                                                     const std::string& what) {
        changes.push_back(
            {.change = std::string(change), .target = target, .keyspace = keyspace, .name = what});
      };
    };
    Compare(old->second.types, keyspace.types, std::equal_to<>(), tell("TYPE"));
    Compare(old->second.tables, keyspace.tables, std::equal_to<>(), tell("TABLE"));
  }
  return changes;
}

void SchemaEvents::Start(CassandraServer& server, runtime::WorkerPool& workers) {
  {
    std::lock_guard lock(mutex_);
    server_ = &server;
    shown_ = schemas_.Get()->schema;
  }
  workers.at(0).Spawn(Loop(gate_.Enter()));
}

void SchemaEvents::Stop() {
  stopping_ = true;
  gate_.Close();
}

runtime::Task<> SchemaEvents::Loop(runtime::Gate::Pass pass) {
  while (!stopping_) {
    Publish();
    co_await runtime::Sleep(kInterval);
  }
}

void SchemaEvents::Publish() {
  auto schema = schemas_.Get()->schema;
  std::lock_guard lock(mutex_);
  if (server_ == nullptr || schema == shown_) {
    return;
  }
  for (SchemaChange& change : SchemaChanges(*shown_, *schema)) {
    server_->Publish(EventKind::kSchema, [change = std::move(change)](int version) {
      return MakeSchemaEvent(change, version);
    });
  }
  shown_ = std::move(schema);
}

}  // namespace orrery::cassandra
