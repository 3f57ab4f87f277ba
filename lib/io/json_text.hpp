// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "gridlops/error.hpp"

namespace gridlops {

/// The JSON in a text. Throws InputError if values are nested too deeply, because what compares and writes
/// them calls itself for each level; and what the parser throws.
inline nlohmann::json parse_json(const std::string& text) {
  constexpr int most_levels = 16;
  return nlohmann::json::parse(text, [](int level, nlohmann::json::parse_event_t, nlohmann::json&) {
    if (level > most_levels) throw InputError("its values are nested too deeply");
    return true;
  });
}

}  // namespace gridlops
