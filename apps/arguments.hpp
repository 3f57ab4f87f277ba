// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "gridlops/backend.hpp"
#include "gridlops/cost_model.hpp"
#include "gridlops/process_grid.hpp"
#include "gridlops/types.hpp"

namespace gridlops::program {

/// What each subcommand was asked to do: its command line, checked word by word, the same on all ranks.
/// An empty file name means that the file is not wanted.

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

/// What multiply and solve have in common.
struct ProductArguments {
  std::string matrix;
  std::optional<GridShape> grid;
  Algorithm algorithm = Algorithm::automatic;
  SummaForm summa_form = SummaForm::broadcast;
  Index panel = 0;
  std::string transport = "auto";
  std::string device = "cpu";
  std::string report;
};

struct MultiplyArguments {
  ProductArguments product;
  std::string input, output;
  bool adjoint = false;
};

struct CheckpointArguments {
  std::string directory, restart;
  Index every_iterations = 0;
  double every_seconds = 600;
};

struct SolveArguments {
  ProductArguments product;
  std::string rhs, output, initial, variances, history;
  std::string solver = "cgls";
  Index iterations = 100;
  std::optional<double> tolerance, atol, btol;
  double condition_limit = 0;
  double damp = 0;
  std::optional<double> damp_relative;
  std::string precondition = "none";
  std::string one_pass = "off";
  std::optional<Storage> storage;  ///< none: chosen
  std::optional<double> lambda, step;
  Threshold threshold = Threshold::soft;
  bool backtracking = false, monotone = false;
  Index batch = 0;
  CheckpointArguments checkpoint;
  bool column_stable = false;
  bool dry_run = false;
  bool quiet = false;
};

struct InfoArguments {};

using Command = std::variant<MakeProblemArguments, MultiplyArguments, SolveArguments, InfoArguments>;

}  // namespace gridlops::program
