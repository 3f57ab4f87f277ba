// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "support/catch.hpp"
#include "support/problems.hpp"

// LAPACK's least-squares drivers. The last argument is the hidden length of the first.
extern "C" {
void dgels_(const char*, const int*, const int*, const int*, double*, const int*, double*, const int*,
            double*, const int*, int*, std::size_t);
void zgels_(const char*, const int*, const int*, const int*, std::complex<double>*, const int*,
            std::complex<double>*, const int*, std::complex<double>*, const int*, int*, std::size_t);
}

namespace gridlops::testing {

/// argmin ‖Ax − b‖² + D²‖x‖² for one column, by QR of [A; D·I] in double precision; the shortest solution if
/// A has fewer rows than columns and D is 0.
template <Scalar T>
std::vector<T> lapack_solution(Index rows, Index cols, const Element<T>& A, const Element<T>& b, Index column,
                               double damp) {
  const Index stacked = damp == 0 && rows < cols ? rows : rows + cols, longest = std::max(stacked, cols);
  std::vector<Accumulator<T>> matrix, x, work(static_cast<std::size_t>(64 * longest));
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < stacked; ++i)
      matrix.push_back(i < rows ? Accumulator<T>(A(i, j)) : Accumulator<T>(i - rows == j ? damp : 0.0));
  for (Index i = 0; i < longest; ++i)
    x.push_back(i < rows ? Accumulator<T>(b(i, column)) : Accumulator<T>(0));
  const int height = static_cast<int>(stacked), width = static_cast<int>(cols), one = 1,
            length = static_cast<int>(longest), room = static_cast<int>(work.size());
  int info = -1;
  const auto gels = [] {
    if constexpr (is_complex<T>) {
      return zgels_;
    } else {
      return dgels_;
    }
  }();
  gels("N", &height, &width, &one, matrix.data(), &height, x.data(), &length, work.data(), &room, &info, 1);
  CHECK(info == 0);
  std::vector<T> solution;
  for (Index i = 0; i < cols; ++i) solution.push_back(static_cast<T>(x[static_cast<std::size_t>(i)]));
  return solution;
}

}  // namespace gridlops::testing
