// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops::bench {

using program::Action;
using program::Options;
using program::words;

// The subcommands. Each declares its options and returns what it does, which prints a table on rank 0, writes
// the JSON file, and throws errors on all ranks. Results that are wrong are in the table, and make the status
// check_failed.

Action define_matmul(Options& options);
Action define_solve(Options& options);
Action define_comm(Options& options);
Action define_messages(Options& options);
Action define_kernels(Options& options);
Action define_operators(Options& options);

// The arguments that several pages know.

/// The cases to measure: every combination of the lists, in which those that run side by side are one list.
struct Cases {
  std::vector<Index> rows, cols, nrhs{1};
  std::vector<ScalarType> types{ScalarType::f64};
  std::vector<GridShape> grids;  ///< empty: near-square
  std::vector<Algorithm> algorithms{Algorithm::automatic};
  std::string device = "cpu";
  std::vector<std::string> transports{"auto"};
  Index panel = 0;
  std::vector<std::optional<Storage>> storages{std::nullopt};  ///< none: chosen
  std::vector<std::string> zipped;                             ///< of list_names(): they run side by side
};

/// The lists that can run side by side, as the options are called.
inline const std::vector<std::string>& list_names() {
  static const std::vector<std::string> names{"grid", "transport", "dtype",     "rows",
                                              "cols", "rhs",       "algorithm", "storage"};
  return names;
}

/// How it is measured, and where the figures go.
struct Method {
  int repetitions = 5;
  Index limit_order = 2048;  ///< of the GEMM that measures the compute limit
  Index limit_mib = 0;       ///< of the block that measures the memory limit; 0: chosen
  std::string json;          ///< empty: no file
};

struct MatmulArguments {
  Cases cases;
  Method method;
  bool adjoint = false;
  bool both = false;  ///< forward, then adjoint
};

/// Whether the products are adjoint, in the order in which they run.
inline std::vector<bool> directions(const MatmulArguments& arguments) {
  if (arguments.both) return {false, true};
  return {arguments.adjoint};
}

struct SolveArguments {
  Cases cases;
  Method method;
  std::vector<Solver> solvers{Solver::cgls};
  bool one_pass = false;  ///< cgls reads A once in an iteration
  Index iterations = 10;
};

/// Adds the options behind a method.
void define_method(Options& options, Method& method);
inline constexpr const char* about_limit_mib =
    "Size of the block whose reading, on a GPU copying, measures the memory limit [0: chosen]";

// What each library has of its own (collective over world).

/// Products, checked against sums over the elements of A and X.
ExitStatus matmul(Communicator& world, const MatmulArguments& arguments);

/// Iterations of a solver, from zero, on a random matrix and random data.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

}  // namespace gridlops::bench
