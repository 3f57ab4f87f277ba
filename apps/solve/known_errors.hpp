// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

/// What no singular value of A is below, as --sigma-min says, or what a sketch of A says (collective over the
/// grid). Throws UsageError on all ranks if --error needs a number and the sketch has none.
template <Scalar T>
double sigma_min_of(const SolveArguments& arguments, const LinearOperator<T>& A);

/// The largest bound of an error, relative to the norm of its x; infinite if nothing bounds one.
double largest_relative(const std::vector<double>& bounds, const std::vector<double>& norms);

/// The largest error that any column can have, relative to the norm of its x, in words.
std::string error_text(const SolveTask& task, double sigma_min, const std::vector<double>& bounds,
                       const std::vector<double>& norms);

}  // namespace gridlops::program
