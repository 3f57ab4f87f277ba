// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/solve/damping_curve.hpp"

namespace gridlops::program {

/// What the rule compares: "curvature" or "gcv"; empty if it compares no such number.
const char* merit_name(DampingRule rule);

/// The curve as a table, a line for each damping, with the choice.
std::string curve_text(const DampingCurve& curve);

/// Writes the curve as CSV, unless the path is empty (collective). Throws OutputError on all ranks.
void write_curve(Communicator& world, const std::string& path, const DampingCurve& curve);

}  // namespace gridlops::program
