// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <locale>
#include <sstream>
#include <string>

namespace gridlops {

/// A text: the parts, one after the other. The library makes all texts with numbers here, because numbers
/// must look the same in every locale: file names and headers are read again.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
  text.precision(17);
  (text << ... << parts);
  return text.str();
}

/// Throws E with the parts as its text unless condition holds.
template <class E, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw E(message(parts...));
}

}  // namespace gridlops
