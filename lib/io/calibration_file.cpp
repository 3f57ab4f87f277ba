// SPDX-License-Identifier: BSD-3-Clause
#include "io/calibration_file.hpp"

#include <cmath>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "io/formats/json_text.hpp"

namespace gridlops {

namespace {

using Json = nlohmann::json;

constexpr const char* calibration_schema = "gridlops.calibration/1";

bool is_calibration(const Json& json) {
  return json.value("schema", "").rfind("gridlops.calibration/", 0) == 0;
}

/// Throws InputError, or a parser error, unless all figures are there and belong to this machine.
Json types_in(const Json& json, const Json& machine) {
  require<InputError>(json.at("schema") == calibration_schema && json.at("columns") == ProductTimes::columns,
                      "it is no calibration of this version");
  require<InputError>(json.at("machine") == machine, "it is of another machine, library or number of ranks");
  require<InputError>(json.at("types").is_object(), "its types are no object");
  for (const auto& entry : json.at("types").items()) {
    static_cast<void>(entry.value().at("measured").get<std::string>());
    times_in(entry.value().at("seconds"));
  }
  return json.at("types");
}

}  // namespace

CalibrationFile parse_calibration(const std::string& text, const Json& machine) {
  CalibrationFile file;
  try {
    const Json json = parse_json(text);
    file.is_calibration = is_calibration(json);
    file.types = types_in(json, machine);
    file.is_of_machine = true;
    file.rates = json.value("rates", Json());
  } catch (const std::exception& error) {
    file.problem = error.what();
  }
  return file;
}

std::string calibration_file_text(const Json& machine, const Json& types, const Json& rates) {
  Json json{{"schema", calibration_schema},
            {"machine", machine},
            {"columns", ProductTimes::columns},
            {"types", types}};
  if (!rates.is_null()) json["rates"] = rates;
  return json_text(json) + "\n";
}

Json json_of(const ProductTimes& times) {
  Json json;
  for (std::size_t work = 0; work < kinds_of_work; ++work)
    for (const Timing& timing : times.times[work])
      json[name_of(static_cast<Work>(work))].push_back({timing.least, timing.second});
  return json;
}

ProductTimes times_in(const Json& json) {
  ProductTimes times;
  for (std::size_t work = 0; work < kinds_of_work; ++work) {
    const Json& row = json.at(name_of(static_cast<Work>(work)));
    require<InputError>(row.size() == ProductTimes::columns.size(), "it has other numbers of columns");
    for (std::size_t k = 0; k < row.size(); ++k) {
      const Timing timing{row.at(k).at(0).get<double>(), row.at(k).at(1).get<double>()};
      require<InputError>(0 < timing.least && timing.least <= timing.second && std::isfinite(timing.second),
                          "it has times that cannot be");
      times.times[work][k] = timing;
    }
  }
  return times;
}

}  // namespace gridlops
