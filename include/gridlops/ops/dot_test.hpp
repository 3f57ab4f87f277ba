// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

struct DotTestResult {
  double mismatch = 0;  ///< max over columns of |⟨Ax, y⟩ − ⟨x, Aᴴy⟩| / (‖Ax‖‖y‖ + ‖x‖‖Aᴴy‖)
  double tolerance = 0;  ///< what rounding allows
  bool passed = true;
};

/// Tests whether apply_adjoint() is the adjoint of apply() (collective over the grid). It compares ⟨Ax, y⟩
/// with ⟨x, Aᴴy⟩ for `columns` ≥ 1 pairs of random columns, which are drawn from the seed and are the same on
/// every grid. All members get the same result, and idle ranks a passed one. The tolerance is 4·√(m+n)·ε of
/// T's precision unless a positive one is given. Products of any size can be tested, as long as they are
/// finite: what overflows fails, and what underflow to denormal numbers can have lost is no mismatch. Throws
/// UsageError, on all ranks, without columns.
template <Scalar T>
GRIDLOPS_EXPORT DotTestResult dot_test(const LinearOperator<T>& A, Index columns = 3, double tolerance = 0,
                                       std::uint64_t seed = 1);

}  // namespace gridlops
