// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/solve/solve_observer.hpp"
#include "support/lapack.hpp"
#include "support/solution_checks.hpp"

namespace gridlops::testing {

/// Values between 1 and 2, but for some from 10 to 1000.
inline std::vector<double> with_outliers(Index count, Index outliers) {
  std::vector<double> values;
  for (Index k = 0; k < count; ++k)
    values.push_back(k < outliers
                         ? std::pow(10.0, 1 + 2 * static_cast<double>(k) / static_cast<double>(outliers - 1))
                         : 1.5 + 0.5 * counter_uniform(3, k, 0));
  return values;
}

template <Scalar T>
OperatorPtr<T> uncut_operator(const GridPtr& grid, Index rows, Index cols, const Element<T>& A) {
  return dense_operator<T>(grid, Algorithm::stationary_a, rows, cols, A);
}

template <Scalar T>
void check_all(const GridPtr& grid, Index rows, Index cols, const Element<T>& A, const Element<T>& b,
               const SolveOptions& options, const Solution<T>& solution, const Element<T>& guess = {}) {
  check_report(WholeSystem<T>(block_cgls<T>, rows, cols, A, b, options, guess), solution, grid->comm());
}

}  // namespace gridlops::testing
