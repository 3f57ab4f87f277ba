// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "command_line/option_parser.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/io/calibration.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::program {

// Each declares the options of one subcommand and returns its action (see Subcommand).

Action define_make_problem(Options& options);
Action define_compress(Options& options);
Action define_multiply(Options& options);
Action define_solve(Options& options);
Action define_plan(Options& options);
Action define_calibrate(Options& options);
Action define_lsm(Options& options);
Action define_mdd(Options& options);
Action define_poststack(Options& options);
Action define_reflectivity(Options& options);
Action define_ridge(Options& options);
Action define_info(Options& options);
Action define_report(Options& options);

// Functions that several subcommands call.

/// Makes this run choose by the calibration of these machines (collective over world). If it is missing and a
/// product of this shape is large enough to depend on it, measures it first, provided that `may_measure`.
/// With `talks`, rank 0 announces that.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world). Returns lines that say where its file is and, for every
/// element type, compare its choices with the built-in ones.
std::string calibration_text(Communicator& world);

}  // namespace gridlops::program
