// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sstream>
#include <string>

namespace gridlops {

/// The text of an error: the parts, written one after the other.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  text.precision(17);
  (text << ... << parts);
  return text.str();
}

/// Unless condition holds, throws E with the parts as its text.
template <class E, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw E(message(parts...));
}

}  // namespace gridlops
