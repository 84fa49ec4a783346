#include "forecast/chart.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace orrery::forecast {

namespace {

constexpr double kWidth = 860;
constexpr double kPanel = 150;  // height of one
constexpr double kGap = 62;     // between two
constexpr double kLeft = 78;
constexpr double kRight = 210;  // for the legend
constexpr double kTop = 64;

struct Line {
  std::string name;
  std::string colour;
  double Sample::* value;
};
struct Panel {
  std::string title;
  std::vector<Line> lines;
  bool bytes;
};

std::string Number(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

std::string Text(double x, double y, const std::string& text, const std::string& more = "") {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" " + more + ">" + text + "</text>\n";
}

// 1, 2 or 5 times a power of ten, not below the value.
double RoundUp(double value) {
  double step = 1;
  while (step * 10 < value) {
    step *= 10;
  }
  for (double factor : {1, 2, 5, 10}) {
    if (step * factor >= value) {
      return step * factor;
    }
  }
  return value;
}

std::string UnitsText(double value) {
  std::array<char, 32> text;
  const char* unit = value >= 1e6 ? "M" : value >= 1e3 ? "k" : "";
  double shown = value >= 1e6 ? value / 1e6 : value >= 1e3 ? value / 1e3 : value;
  std::snprintf(text.data(), text.size(), "%g%s", shown, unit);
  return text.data();
}

std::string Draw(const Panel& panel, const std::vector<Sample>& samples, double top) {
  double most = 1;
  for (const Line& line : panel.lines) {
    for (const Sample& sample : samples) {
      most = std::max(most, sample.*line.value);
    }
  }
  most = RoundUp(most);
  const double inner = kWidth - kLeft - kRight;
  const double bottom = top + kPanel;
  std::string out = Text(kLeft, top - 10, panel.title, "class=\"title\"");
  for (int i = 0; i <= 2; ++i) {
    double y = bottom - kPanel * i / 2;
    double value = most * i / 2;
    out += "<line class=\"grid\" x1=\"" + Number(kLeft) + "\" x2=\"" + Number(kLeft + inner) +
           "\" y1=\"" + Number(y) + "\" y2=\"" + Number(y) + "\"/>\n";
    out += Text(kLeft - 8, y + 4, panel.bytes ? BytesText(value) : UnitsText(value),
                "text-anchor=\"end\"");
  }
  double legend = top + 12;
  for (const Line& line : panel.lines) {
    out += "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + line.colour + "\" points=\"";
    for (size_t i = 0; i < samples.size(); ++i) {
      double part = samples.size() == 1
                        ? 0
                        : static_cast<double>(i) / static_cast<double>(samples.size() - 1);
      double y = bottom - samples[i].*line.value / most * kPanel;
      out += Number(kLeft + part * inner) + "," + Number(y) + " ";
    }
    out += "\"/>\n";
    out += "<rect x=\"" + Number(kLeft + inner + 16) + "\" y=\"" + Number(legend - 9) +
           "\" width=\"12\" height=\"4\" fill=\"" + line.colour + "\"/>\n";
    out += Text(kLeft + inner + 34, legend - 3, line.name);
    legend += 20;
  }
  out += Text(kLeft, bottom + 18, "day 1");
  out += Text(kLeft + inner, bottom + 18, "day " + std::to_string(samples.size()),
              "text-anchor=\"end\"");
  return out;
}

}  // namespace

std::string BytesText(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes,
                kUnits[unit]);
  return text.data();
}

std::string Chart(const Scenario& scenario, const std::vector<Sample>& samples) {
  const std::vector<Panel> panels = {
      {"Storage of a partition",
       {{"largest", "#c0392b", &Sample::bytes_largest},
        {"median", "#2e86c1", &Sample::bytes_median}},
       true},
      {"Request units of a partition, in a second",
       {{"its share", "#95a5a6", &Sample::share},
        {"used by the busiest", "#c0392b", &Sample::used_largest},
        {"used by the median", "#2e86c1", &Sample::used_median}},
       false},
      {"Request units of the container, in a second",
       {{"used", "#27ae60", &Sample::used}, {"throttled", "#c0392b", &Sample::throttled}},
       false},
      {"Storage of a node",
       {{"fullest", "#c0392b", &Sample::node_bytes_most},
        {"mean", "#2e86c1", &Sample::node_bytes_mean},
        {"emptiest", "#27ae60", &Sample::node_bytes_least}},
       true},
      {"Request units of a node, in a second",
       {{"busiest", "#c0392b", &Sample::node_used_most},
        {"mean", "#2e86c1", &Sample::node_used_mean}},
       false}};
  double height = kTop + static_cast<double>(panels.size()) * (kPanel + kGap);
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + Number(kWidth) +
                    " " + Number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<style>.grid{stroke:#ddd}.title{font-weight:bold}</style>\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  const Sample& last = samples.back();
  out += Text(kLeft, 24,
              "Partition key: " + std::string(KeyKindName(scenario.keys)) + " (" +
                  std::string(KeyKindText(scenario.keys)) + "); at the end " +
                  BytesText(last.bytes) + " in " + std::to_string(last.partitions) +
                  " partitions on " + std::to_string(last.nodes) + " nodes",
              "font-size=\"14\" font-weight=\"bold\"");
  double top = kTop + 12;
  for (const Panel& panel : panels) {
    out += Draw(panel, samples, top);
    top += kPanel + kGap;
  }
  return out + "</svg>\n";
}

}  // namespace orrery::forecast
