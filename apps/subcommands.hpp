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
  /// Or "space": all right-hand sides and dampings have one; "auto"; or "direct": they have one factor.
  std::string way = "columns";
  DampingRule rule = DampingRule::none;
  std::optional<double> noise;
  std::string save = "all";  ///< or "chosen"
  std::string curve;
  Index space_dimension = 0;  ///< as SpaceOptions::max_dimension

  bool in_space() const { return way == "space" || way == "auto"; }
  bool by_factor() const { return way == "direct"; }
  /// Whether each right-hand side is solved with every damping, and gets one of its own.
  bool chooses_each() const { return in_space() || by_factor(); }
  /// Whether the space may leave pairs of right-hand side and damping to the solver.
  bool leaves_rest() const { return way == "auto"; }
};

struct SolveArguments {
  ProductArguments product;
  std::string space;    ///< the directory of the space to start in
  std::string certify;  ///< the matrix that a compressed one was made of, for which answers are to be
  std::string rhs, output, initial, tolerances, variances, history;
  Solver solver = Solver::cgls;
  bool chooses_solver = false;  ///< the task has the solver then
  SolveOptions options;         ///< without the values that only the run knows
  std::optional<double> damp_relative;
  SweepArguments sweep;
  std::string precondition = "none";
  std::optional<bool> one_pass = false;  ///< none: chosen
  bool one_pass_is_given = false;        ///< otherwise a matrix on disks has one pass
  StoredAs stored_as;
  Index memory = 0;            ///< of a rank, in bytes; 0: what is available
  std::string scratch, tiles;  ///< for a matrix on disks
  std::optional<double> lambda_relative;
  std::optional<double> sigma_min;  ///< no singular value of A is smaller
  bool probable_sigma_min = false;  ///< a sketch of A says what none is below
  bool verify_matrix = false;
  bool dry_run = false;
  bool quiet = false;

  bool is_damped() const {
    return options.damp.any() || damp_relative.value_or(0) > 0 || !sweep.damps.empty();
  }
  bool needs_space() const { return sweep.in_space() || !space.empty(); }
  bool bounds_errors() const { return sigma_min || probable_sigma_min || options.error > 0; }
};

/// What --help says of --matrix, and of the names of all matrices.
inline constexpr const char* matrix_help =
    "The matrix A. Here and elsewhere, P.h5:/A is a dataset in an HDF5 file, and P.h5:/A@0:9,: its first 9 "
    "rows";

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
Action define_info(Options& options);
Action define_report(Options& options);

// Functions that several subcommands call.

/// Add the options that set these arguments: for products, and for reports of them.
void define_products(Options& options, ProductArguments& product);
void define_product_report(Options& options, ProductArguments& product);

/// Solves (collective over world). Returns rank 0's exit status there, and throws the same error on all
/// ranks.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

/// Makes this run choose by the calibration of these machines (collective over world). If it is missing and a
/// product of this shape is large enough to depend on it, measures it first, provided that `may_measure`.
/// With `talks`, rank 0 announces that.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world). Returns lines that say where its file is and, for every
/// element type, compare its choices with the built-in ones.
std::string calibration_text(Communicator& world);

}  // namespace gridlops::program
