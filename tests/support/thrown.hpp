// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops::testing {

/// The message of the E that action() throws; empty if it throws none.
template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace gridlops::testing
