// load: the load generator of `./dev bench`.
#include <cstdio>
#include <iostream>

#include "load/options.h"
#include "load/report.h"
#include "load/run.h"

int main(int argc, char** argv) {
  namespace load = orrery::load;
  auto options = load::ParseOptions(argc, argv);
  if (!options) {
    std::cerr << options.error().message() << "\n\n" << load::Usage();
    return 2;
  }
  auto report = load::Run(*options);
  if (!report) {
    std::cerr << "load: " << report.error().message() << "\n";
    return 1;
  }
  std::cout << (options->json ? load::ToJson(*options, *report) : load::ToText(*options, *report));
  return report->result.Successes() > 0 ? 0 : 1;
}
