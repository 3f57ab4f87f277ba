// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "gridlops/solver.hpp"

namespace gridlops {

/// Numbers that the recurrence of a method rests on. A restart goes on with those of its run, and refuses
/// others.
struct FixedOption {
  const char* name;          ///< as in solver_options()
  std::span<double> values;  ///< one, or one for each column
  /// The library chose the value, or the caller computed it from A and B. It differs by rounding on another
  /// grid, and a restart takes the saved one.
  bool computed = false;
};

/// Throws UsageError if an option is given that the method of this name does not take.
void require_taken(const char* method, const SolveOptions& options);

}  // namespace gridlops
