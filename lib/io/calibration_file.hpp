// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "local/products/product_times.hpp"

namespace gridlops {

/// The contents of a calibration file for a machine.
struct CalibrationFile {
  bool is_calibration = false;  ///< of any version, for any machine
  bool is_of_machine = false;   ///< its figures can be used here
  std::string problem;          ///< why they cannot
  nlohmann::json types =
      nlohmann::json::object();  ///< by the names of element types: when and what was measured
  nlohmann::json rates;          ///< what `gridlops calibrate` keeps for plans; or null
};

/// Parses the text of a file. Never throws for its contents: `problem` says what is wrong.
CalibrationFile parse_calibration(const std::string& text, const nlohmann::json& machine);

/// The text of a file for a machine; without rates that are null.
std::string calibration_file_text(const nlohmann::json& machine, const nlohmann::json& types,
                                  const nlohmann::json& rates);

nlohmann::json json_of(const ProductTimes& times);
/// Throws InputError, or a parser error, unless json_of() could have made it.
ProductTimes times_in(const nlohmann::json& json);

}  // namespace gridlops
