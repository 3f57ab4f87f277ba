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

// The subcommands. Each function declares the options and returns the action. The action prints a table on
// rank 0, writes the JSON file, and throws errors on all ranks. The table shows wrong results; any of them
// makes the status check_failed.

Action define_matmul(Options& options);
Action define_solve(Options& options);
Action define_comm(Options& options);
Action define_messages(Options& options);
Action define_kernels(Options& options);
Action define_operators(Options& options);
Action define_compressed(Options& options);

// Arguments that several files use.

/// The cases to measure: every combination of the lists. Zipped lists advance together.
struct Cases {
  std::vector<Index> rows, cols, nrhs{1};
  std::vector<ScalarType> types{ScalarType::f64};
  std::vector<GridShape> grids;  ///< empty: near-square
  std::vector<Algorithm> algorithms{Algorithm::automatic};
  std::string device = "cpu";
  std::vector<std::string> transports{"auto"};
  Index panel = 0;
  std::vector<std::optional<Storage>> storages{std::nullopt};  ///< none: chosen
  std::vector<std::string> zipped;                             ///< names of lists that advance together
};

/// The lists that --zip can name, as their options are called.
inline const std::vector<std::string>& list_names() {
  static const std::vector<std::string> names{"grid", "transport", "dtype",     "rows",
                                              "cols", "rhs",       "algorithm", "storage"};
  return names;
}

/// How to measure, and where to write the figures.
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
  bool both = false;        ///< forward, then adjoint
  bool high_plane = false;  ///< of a matrix in planes, products with the high plane follow those with both
};

/// The products to run, in this order: false is A X, true is A^H Y.
inline std::vector<bool> directions(const MatmulArguments& arguments) {
  if (arguments.both) return {false, true};
  return {arguments.adjoint};
}

struct SolveArguments {
  Cases cases;
  Method method;
  std::vector<Solver> solvers{Solver::cgls};
  bool one_pass = false;  ///< cgls reads A once per iteration
  Index iterations = 10;
};

/// Adds the options that set a Method.
void define_method(Options& options, Method& method);
inline constexpr const char* about_limit_mib =
    "Size of the block whose reading, on a GPU copying, measures the memory limit [0: chosen]";

// Each library implements these (collective over world).

/// Products, checked against sums over the elements of A and X.
ExitStatus matmul(Communicator& world, const MatmulArguments& arguments);

/// Iterations of a solver on random A and B, from X = 0.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

}  // namespace gridlops::bench
