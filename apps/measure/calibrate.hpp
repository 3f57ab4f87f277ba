// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/io/calibration.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::program {

/// Lets this run choose by the calibration of these machines (collective over world). It is measured first if
/// it is missing and may be, where A is so large that a solve's time depends on it; rank 0 then says so if it
/// talks.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world), and returns lines that show where it is kept and, for every
/// element type, what it chooses beside the built-in choices.
std::string calibration_text(Communicator& world);

}  // namespace gridlops::program
