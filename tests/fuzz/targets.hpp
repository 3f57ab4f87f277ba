// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <string>

namespace gridlops::fuzz {

/// A parser, and what must hold whatever it is given: it refuses the text by the one error that is meant for
/// that, or what it makes of the text is sound. Throws std::logic_error, or crashes, if that does not hold.
struct Target {
  const char* name;  ///< also the name of its folder in corpus/
  void (*check)(const std::string& text);
};

extern const std::array<Target, 8> targets;

}  // namespace gridlops::fuzz
