// Chart: a forecast as an SVG picture: storage and use of partitions, requests, nodes.
#pragma once

#include <string>
#include <vector>

#include "forecast/forecast.h"

namespace orrery::forecast {

std::string Chart(const Scenario& scenario, const std::vector<Sample>& samples);
// "1.5 TB", "12 GB".
std::string BytesText(double bytes);

}  // namespace orrery::forecast
