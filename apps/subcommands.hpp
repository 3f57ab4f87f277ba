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
#include "gridlops/solve/solver.hpp"
#include "solve/solver_choices.hpp"

namespace gridlops::program {

class CommandLine;

// The arguments of the subcommands, the same on all ranks; main() checks each one by itself. An empty file
// name means that the file is not wanted.

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
  AskedChoices asked;
  Index iterations = 100;
  Index memory_per_rank = std::numeric_limits<Index>::max();
  std::string transport = "mpi";
  std::string machine, json;
};

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
  std::string one_pass = "off";
  std::optional<Storage> storage;  ///< none: chosen
  std::optional<double> lambda_relative;
  bool verify_matrix = false;
  bool dry_run = false;
  bool quiet = false;
};

// The subcommands (collective over world). Rank 0's return value is the exit status. All ranks throw the same
// error; an error on one rank alone must end the job.

ExitStatus make_problem(Communicator& world, const MakeProblemArguments& arguments);
ExitStatus multiply(Communicator& world, const MultiplyArguments& arguments);
ExitStatus solve(Communicator& world, const SolveArguments& arguments);
ExitStatus plan(Communicator& world, const PlanArguments& arguments);
ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments);
ExitStatus info(Communicator& world);
/// Prints a table of reports, with one column per file.
ExitStatus compare_reports(Communicator& world, const std::vector<std::string>& paths);

// The functions of calibrate that other subcommands use.

/// Makes this run choose by the calibration of these machines (collective over world). If the calibration is
/// missing, and A is so large that a solve's time depends on it, measures it first, provided that this is
/// allowed; rank 0 says so if it talks.
Calibration calibration_for(Communicator& world, const ProductShape& shape, bool may_measure, bool talks);

/// Loads the calibration (collective over world). Returns lines that say where its file is and, for every
/// element type, compare its choices with the built-in ones.
std::string calibration_text(Communicator& world);

// Each adds a subcommand and its options. All but the first two add use cases (see use_case.hpp).

void add_multiply(CommandLine& command_line);
void add_solve(CommandLine& command_line);
void add_lsm(CommandLine& command_line);
void add_mdd(CommandLine& command_line);
void add_poststack(CommandLine& command_line);
void add_reflectivity(CommandLine& command_line);

}  // namespace gridlops::program
