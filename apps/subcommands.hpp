// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/io/calibration.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/plan.hpp"

namespace gridlops::program {

class CommandLine;

// The arguments of the subcommands, the same on all ranks; main() checks each of them by itself. A file with
// an empty name is not wanted.

struct MakeProblemArguments {
  enum class Kind { random, spd, multiples };
  Index rows = 0, cols = 0, nrhs = 0;
  std::optional<ScalarType> type;
  Kind kind = Kind::random;
  std::optional<double> condition;
  double noise = 0;
  std::uint64_t seed = 1;
  std::string directory;
};

struct CalibrateArguments {
  std::optional<ScalarType> type;  ///< none: all
};

struct PlanArguments {
  ProductShape shape;
  std::vector<Index> ranks{1};
  std::vector<GridShape> grids;  ///< instead of numbers of ranks
  IterationRequest asked;
  Index iterations = 100;
  Index memory_per_rank = std::numeric_limits<Index>::max();
  std::string transport = "mpi";
  std::string machine, json;
};

/// What multiply and solve have in common.
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

struct MultiplyArguments {
  ProductArguments product;
  std::string input, output;
  bool adjoint = false;
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

// The subcommands (collective over world). They return rank 0's exit status there, and throw on all ranks
// alike; what one rank throws alone must end the job.

ExitStatus make_problem(Communicator& world, const MakeProblemArguments& arguments);
ExitStatus multiply(Communicator& world, const MultiplyArguments& arguments);
ExitStatus solve(Communicator& world, const SolveArguments& arguments);
ExitStatus plan(Communicator& world, const PlanArguments& arguments);
ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments);
ExitStatus info(Communicator& world);
/// Prints a table of reports, a column for each file.
ExitStatus compare_reports(Communicator& world, const std::vector<std::string>& paths);

// What calibrate has for the others.

/// Lets this run choose by the calibration of these machines (collective over world). It is measured first if
/// it is missing and may be, where A is so large that a solve's time depends on it; rank 0 then says so if it
/// talks.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world), and returns lines that show where it is kept and, for every
/// element type, what it chooses beside the built-in choices.
std::string calibration_text(Communicator& world);

// Each adds a subcommand and its options; those after the first two are use cases (see use_case.hpp).

void add_multiply(CommandLine& command_line);
void add_solve(CommandLine& command_line);
void add_lsm(CommandLine& command_line);
void add_mdd(CommandLine& command_line);
void add_poststack(CommandLine& command_line);
void add_reflectivity(CommandLine& command_line);

}  // namespace gridlops::program
