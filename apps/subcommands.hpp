// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/io/calibration.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/plan.hpp"

namespace gridlops::program {

// The arguments of the subcommands that several pages know. A file with an empty name is not wanted.

/// The arguments that multiply and solve share.
struct ProductArguments {
  std::string matrix;
  std::optional<GridShape> grid;
  Algorithm algorithm = Algorithm::automatic;
  Index panel = 0;
  std::string transport = "auto";
  std::string device = "cpu";
  std::string machine, report;
  bool hashes = false;
};

/// Many dampings in one solve.
struct SweepArguments {
  std::string damps;  ///< a file, or FIRST:LAST:COUNT; empty: there is one damping
  DampingRule rule = DampingRule::none;
  std::optional<double> noise;
  std::string save = "all";  ///< or "chosen"
  std::string curve;
};

struct SolveArguments {
  ProductArguments product;
  std::string rhs, output, initial, tolerances, variances, history;
  Solver solver = Solver::cgls;
  SolveOptions options;  ///< without what only the run knows
  std::optional<double> damp_relative;
  SweepArguments sweep;
  std::string precondition = "none";
  std::optional<bool> one_pass = false;  ///< none: chosen
  std::optional<Storage> storage;        ///< none: chosen
  std::optional<double> lambda_relative;
  bool verify_matrix = false;
  bool dry_run = false;
  bool quiet = false;
};

/// What --help says of --matrix, and of the names of all matrices.
inline constexpr const char* matrix_help =
    "The matrix A. Here and elsewhere, P.h5:/A is a dataset in an HDF5 file, and P.h5:/A@0:9,: its first 9 "
    "rows";

// Each declares the options of one subcommand and returns what it does (see Subcommand).

Action define_make_problem(Options& options);
Action define_multiply(Options& options);
Action define_solve(Options& options);
Action define_plan(Options& options);
Action define_calibrate(Options& options);
Action define_lsm(Options& options);
Action define_mdd(Options& options);
Action define_poststack(Options& options);
Action define_reflectivity(Options& options);
Action define_info(Options& options);
Action define_report(Options& options);

// What they have for each other.

/// Adds the options behind these arguments: how products run, and what is reported of them.
void define_products(Options& options, ProductArguments& product);
void define_product_report(Options& options, ProductArguments& product);

/// Solves (collective over world). Returns rank 0's exit status there, and throws on all ranks alike.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

/// Makes this run choose by the calibration of these machines (collective over world). If the calibration is
/// missing, and A is so large that a solve's time depends on it, measures it first, provided that this is
/// allowed; rank 0 says so if it talks.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world). Returns lines that say where its file is and, for every
/// element type, compare its choices with the built-in ones.
std::string calibration_text(Communicator& world);

}  // namespace gridlops::program
