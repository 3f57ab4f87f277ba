// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

namespace gridlops {

/// A real symmetric tridiagonal matrix; off_diagonal has one entry less.
struct Tridiagonal {
  std::vector<double> diagonal, off_diagonal;
};

struct Interval {
  double low = 0, high = 0;
};

/// Holds all eigenvalues (Gershgorin).
Interval eigenvalue_bounds(const Tridiagonal& matrix);

/// The k-th largest eigenvalue, k ≥ 1, if it lies within these bounds, to 2⁻⁶⁰ of their distance: bisection
/// by the sign changes of Sturm's sequence (Golub, Van Loan: Matrix Computations, §8.4).
double eigenvalue(const Tridiagonal& matrix, int k, Interval within);

}  // namespace gridlops
