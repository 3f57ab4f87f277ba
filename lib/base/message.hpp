// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sstream>
#include <string>

namespace gridlops {

/// The parts, written one after the other: how error messages are put together.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  text.precision(17);
  (text << ... << parts);
  return text.str();
}

/// Throws E with the message made of the parts unless condition holds.
template <class E, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw E(message(parts...));
}

}  // namespace gridlops
