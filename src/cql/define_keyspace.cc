#include <algorithm>

#include "cql/define_parts.h"
#include "cql/number.h"
#include "cql/schema.h"
#include "cql/table_options.h"

namespace orrery::cql {
namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.locator.";
constexpr std::string_view kFactor = "replication_factor";

Defined<void> CheckFactor(const std::string& text) {
  // total/transient: we have no transient replicas.
  if (text.find('/') != std::string::npos) {
    return Misconfigured("Transient replication is not enabled on this node");
  }
  auto factor = IntegerFromText<int32_t>(text);
  if (!factor) {
    return Misconfigured("Replication factor must be numeric; found " + text);
  }
  if (*factor < 0) {
    return Misconfigured("Replication factor must be non-negative, found " + text);
  }
  return {};
}

std::unexpected<DefineError> Unrecognized(const std::string& option, std::string_view strategy,
                                          const std::string& keyspace) {
  return Misconfigured("Unrecognized strategy option {" + option + "} passed to " +
                       std::string(strategy) + " for keyspace " + keyspace);
}

Defined<StringMap> Simple(const StringMap& given, const std::string& keyspace) {
  const std::string* factor = FindIn(given, kFactor);
  if (factor == nullptr) {
    return Misconfigured("SimpleStrategy requires a replication_factor strategy option.");
  }
  ORRERY_TRY_DEFINED(CheckFactor(*factor));
  for (const auto& [name, value] : given) {
    if (name != "class" && name != kFactor) {
      return Unrecognized(name, "SimpleStrategy", keyspace);
    }
  }
  return StringMap{{std::string(kFactor), *factor}};
}

Defined<StringMap> NetworkTopology(const StringMap& given,
                                   std::span<const std::string> data_centers) {
  StringMap copies;
  for (const auto& [name, value] : given) {
    if (name == "class") {
      continue;
    }
    ORRERY_TRY_DEFINED(CheckFactor(value));
    if (name == kFactor && !data_centers.empty()) {
      continue;
    }
    copies.emplace_back(name, value);
  }
  if (const std::string* all = FindIn(given, kFactor)) {
    for (const std::string& name : data_centers) {
      if (FindIn(copies, name) == nullptr) {
        copies.emplace_back(name, *all);
      }
    }
  }
  std::erase_if(copies, [](const auto& copy) { return copy.second == "0"; });
  if (copies.empty()) {
    return Misconfigured("Configuration for at least one datacenter must be present");
  }
  std::ranges::sort(copies);
  return copies;
}

Defined<StringMap> Replication(const StringMap& given, const std::string& keyspace,
                               std::span<const std::string> data_centers) {
  const std::string* given_class = FindIn(given, "class");
  if (given_class == nullptr) {
    return Misconfigured("Missing replication strategy class");
  }
  std::string name = given_class->find('.') != std::string::npos
                         ? *given_class
                         : std::string(kPackage) + *given_class;
  std::string_view simple = name;
  if (simple.starts_with(kPackage)) {
    simple.remove_prefix(kPackage.size());
  }
  Defined<StringMap> options = StringMap();
  if (simple == "SimpleStrategy") {
    options = Simple(given, keyspace);
  } else if (simple == "NetworkTopologyStrategy") {
    options = NetworkTopology(given, data_centers);
  } else if (simple == "LocalStrategy") {
    return Invalid(
        "Unable to use given strategy class: LocalStrategy is reserved for internal use.");
  } else {
    return Misconfigured("Unable to find replication strategy class '" + name + "'");
  }
  if (options) {
    options->insert(options->begin(), {"class", name});
  }
  return options;
}

bool IsTrue(const std::string& text) {
  return EqualsIgnoringCase(text, "true") || text == "1" || EqualsIgnoringCase(text, "yes");
}

Defined<Keyspace> WithOptions(const Options& options, Keyspace keyspace,
                              std::span<const std::string> data_centers) {
  for (const Option& option : options) {
    const auto* text = std::get_if<std::string>(&option.value);
    const auto* map = std::get_if<StringMap>(&option.value);
    if (option.name == "replication") {
      if (map == nullptr) {
        return Misspelt("Invalid value for property 'replication'. It should be a map.");
      }
      ORRERY_TRY_DEFINED(CheckNoNul(*map));
      ORRERY_TRY(keyspace.replication, Replication(*map, keyspace.name, data_centers));
    } else if (option.name == "durable_writes") {
      if (text == nullptr) {
        return Misspelt("Invalid value for property 'durable_writes'. It should be a string");
      }
      keyspace.durable_writes = IsTrue(*text);
    } else if (option.name != kThroughputOption) {
      return Misspelt("Unknown property '" + option.name + "'");
    }
  }
  ORRERY_TRY(std::optional<int32_t> throughput, GivenThroughput(options));
  if (throughput) {
    keyspace.throughput = static_cast<uint64_t>(*throughput);
  }
  return keyspace;
}

}  // namespace

Defined<Keyspace> DefineKeyspace(const CreateKeyspace& create,
                                 std::span<const std::string> data_centers) {
  auto keyspace = WithOptions(create.options, Keyspace{.name = create.name}, data_centers);
  if (keyspace && keyspace->replication.empty()) {
    return Invalid("Missing mandatory option 'replication'");
  }
  if (keyspace && !IsGoodName(create.name)) {
    return Invalid(BadName("Keyspace", "'" + create.name + "'"));
  }
  return keyspace;
}

Defined<Keyspace> AlteredKeyspace(const AlterKeyspace& alter, Keyspace before,
                                  std::span<const std::string> data_centers) {
  return WithOptions(alter.options, std::move(before), data_centers);
}

}  // namespace orrery::cql
