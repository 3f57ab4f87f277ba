// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gridlops::program {

/// JSON as text, on lines indented by so many spaces, or on one line. Bytes that are not UTF-8, which names
/// of files may have, become U+FFFD: a report must not fail because of a name.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gridlops::program
