// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

/// JSON as text, on lines indented by this many spaces, or on one line. Bytes that are not UTF-8, which the
/// caller's texts may have, become U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// Parses a text that this library has written. Throws InputError if it is not JSON, or if values are nested
/// too deeply, because comparing and writing them recurses once per level. The error does not quote the text,
/// whose bytes may not be characters.
inline nlohmann::json parse_json(const std::string& text) {
  constexpr int most_levels = 16;
  try {
    return nlohmann::json::parse(text, [](int level, nlohmann::json::parse_event_t, nlohmann::json&) {
      if (level > most_levels) throw InputError("its values are nested too deeply");
      return true;
    });
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError(message("it is no JSON from byte ", error.byte, " on"));
  }
}

}  // namespace gridlops
