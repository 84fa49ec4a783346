// Options: the command line of `load`.
#pragma once

#include <string>

#include "base/status.h"
#include "load/sql.h"

namespace orrery::load {

struct Options {
  std::string command;  // http, sql-setup, sql-read, sql-write, sql-upsert, sql-mixed
  SqlOptions sql;       // and the endpoint, which http uses too
  std::string path = "/";
  int connections = 32;
  int idle = 0;
  int threads = 1;
  double seconds = 10;
  double warmup = 2;
  double rate = 0;
  double read_share = 0.5;
  int pid = 0;
  bool json = false;
};

std::string Usage();
Result<Options> ParseOptions(int argc, char** argv);

}  // namespace orrery::load
