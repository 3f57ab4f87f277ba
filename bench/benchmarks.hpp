// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "arguments.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops::bench {

// Collective over world; print a table on rank 0 and write the JSON file. Errors are thrown on all ranks.

/// Products, checked against sums over the elements of A and X.
void matmul(Communicator& world, const MatmulArguments& arguments);

/// Iterations of a solver, from zero, on a random matrix and random data.
void solve(Communicator& world, const SolveArguments& arguments);

/// Operations of a communicator, one at a time, on all ranks of world.
void comm(Communicator& world, const CommArguments& arguments);

/// The kernels of solvers on columns of each rank's own, on all ranks of world at once.
void kernels(Communicator& world, const KernelArguments& arguments);

}  // namespace gridlops::bench
