// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "support/catch.hpp"
#include "support/solution_checks.hpp"

// LAPACK's least squares; the last argument is the hidden length of the first.
extern "C" {
void dgels_(const char*, const int*, const int*, const int*, double*, const int*, double*, const int*,
            double*, const int*, int*, std::size_t);
void zgels_(const char*, const int*, const int*, const int*, std::complex<double>*, const int*,
            std::complex<double>*, const int*, std::complex<double>*, const int*, int*, std::size_t);
}

namespace gridlops::testing {

using GridPtr = std::shared_ptr<const ProcessGrid>;

/// Between 1 and 2, but for some from 10 to 1000.
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
using Wide = std::conditional_t<is_complex<T>, std::complex<double>, double>;

/// argmin ‖Ax − b‖² + D²‖x‖² for one column, by QR of [A; D·I] in double precision.
template <Scalar T>
std::vector<T> lapack_solution(Index rows, Index cols, const Element<T>& A, const Element<T>& b, Index column,
                               double damp) {
  const Index stacked = rows + cols;
  std::vector<Wide<T>> matrix, x, work(static_cast<std::size_t>(64 * stacked));
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < stacked; ++i)
      matrix.push_back(i < rows ? Wide<T>(A(i, j)) : Wide<T>(i - rows == j ? damp : 0.0));
  for (Index i = 0; i < stacked; ++i) x.push_back(i < rows ? Wide<T>(b(i, column)) : Wide<T>(0));
  const int height = static_cast<int>(stacked), width = static_cast<int>(cols), one = 1,
            room = static_cast<int>(work.size());
  int info = -1;
  const auto gels = [] {
    if constexpr (is_complex<T>) {
      return zgels_;
    } else {
      return dgels_;
    }
  }();
  gels("N", &height, &width, &one, matrix.data(), &height, x.data(), &height, work.data(), &room, &info, 1);
  CHECK(info == 0);
  std::vector<T> solution;
  for (Index i = 0; i < cols; ++i) solution.push_back(static_cast<T>(x[static_cast<std::size_t>(i)]));
  return solution;
}

template <Scalar T>
void check_all(const GridPtr& grid, Index rows, Index cols, const Element<T>& A, const Element<T>& b,
               const SolveOptions& options, const Solution<T>& solution, const Element<T>& guess = {}) {
  check_report(WholeSystem<T>(block_cgls<T>, rows, cols, A, b, options, guess), solution, grid->comm());
}

}  // namespace gridlops::testing
