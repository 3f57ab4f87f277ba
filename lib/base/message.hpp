// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <locale>
#include <sstream>
#include <string>

namespace gridlops {

/// A text: the parts, written one after the other. All text of the library that has numbers in it is made
/// here, because numbers must look the same in every locale: file names and headers are read again.
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream text;
  text.imbue(std::locale::classic());
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
