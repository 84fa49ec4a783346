// Log: structured lines `event key=value ...`, to the error stream. Secrets never go in.
//
//   log::Info("container created", {{"db", name}, {"partitions", std::to_string(n)}});
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace orrery::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };
using Fields = std::initializer_list<std::pair<std::string_view, std::string>>;

void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view event, Fields fields);

inline void Debug(std::string_view event, Fields fields = {}) {
  if (Enabled(Level::kDebug)) {
    Write(Level::kDebug, event, fields);
  }
}
inline void Info(std::string_view event, Fields fields = {}) { Write(Level::kInfo, event, fields); }
inline void Warning(std::string_view event, Fields fields = {}) {
  Write(Level::kWarning, event, fields);
}
inline void Error(std::string_view event, Fields fields = {}) {
  Write(Level::kError, event, fields);
}

}  // namespace orrery::log
