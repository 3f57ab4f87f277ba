// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops::bench {

// The arguments of the subcommands, the same on all ranks; main() checks each of them by itself.

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

struct CommArguments {
  std::vector<std::string> operations{"broadcast"};
  std::vector<std::string> transports{"mpi"};
  /// The size of the whole operand: where ranks have parts of one, of all parts together.
  std::vector<Index> bytes;
  std::vector<std::string> types{"f64"};
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
  bool in_place = true, out_of_place = true;  ///< at least one
  std::vector<std::string> over{"world"};     ///< "world", "row" or "column" of the grid
  std::optional<GridShape> grid;              ///< none: near-square
  std::string device = "cpu";
  int warm_up = 5;
  int repetitions = 5;
  std::string json;
};

struct MessageArguments {
  std::vector<Index> bytes{8, 64, 512, 4096, Index{32} << 10, Index{256} << 10, Index{2} << 20};
  std::vector<Index> messages{1, 4, 16, 64};  ///< between two synchronisations
  Index up_to = Index{16} << 20;              ///< the largest operand for which ways are compared
  std::string device = "cpu";
  int repetitions = 5;
  std::string json;
};

/// The kernels that solvers apply to their vectors.
inline const std::vector<std::string>& kernel_names() {
  static const std::vector<std::string> names{"copy", "dots", "norms", "axpy", "xpby", "scale"};
  return names;
}

struct KernelArguments {
  std::vector<std::string> kernels = kernel_names();
  std::vector<Index> rows, cols{1};
  std::vector<ScalarType> types{ScalarType::f64};
  std::string device = "cpu";
  int repetitions = 5;
  Index limit_mib = 0;  ///< as in Method
  std::string json;
};

/// The operators on arrays, with the sizes of the use cases that need them.
inline const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> names{"derivative", "laplacian", "gradient", "convolution",
                                              "fourier",    "fredholm",  "kirchhoff"};
  return names;
}

struct OperatorArguments {
  std::vector<std::string> operators = operator_names();
  std::vector<Index> nrhs{1};
  Method method;
};

struct CalibrateArguments {
  std::vector<std::string> transports;  ///< empty: those that carry data in their own way
  std::string device = "cpu";
  int repetitions = 5;
  Index limit_order = 1024;  ///< as in Method
  Index limit_mib = 0;       ///< as in Method
  std::string machine;       ///< the file
};

// The subcommands (collective over world). They print a table on rank 0 and write the JSON file, and throw
// errors on all ranks. Results that are wrong are in the table, and make the status check_failed.

/// Products, checked against sums over the elements of A and X.
ExitStatus matmul(Communicator& world, const MatmulArguments& arguments);

/// Iterations of a solver, from zero, on a random matrix and random data.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

/// Operations of communicators, one at a time, on data that every rank verifies.
ExitStatus comm(Communicator& world, const CommArguments& arguments);

/// Messages from rank 0 to rank 1, by size and number between synchronisations, with a fitted model; then, on
/// all ranks, from which sizes on one way of an operation is faster than another.
ExitStatus messages(Communicator& world, const MessageArguments& arguments);

/// The kernels of solvers on columns of each rank's own, on all ranks of world at once.
ExitStatus kernels(Communicator& world, const KernelArguments& arguments);

/// Operators on arrays, cut over all ranks of world.
ExitStatus operators(Communicator& world, const OperatorArguments& arguments);

/// What all ranks do at once on this machine, for plans: a file that `gridlops` reads.
ExitStatus calibrate(Communicator& world, const CalibrateArguments& arguments);

}  // namespace gridlops::bench
