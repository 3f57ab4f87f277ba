// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

struct DotTestResult {
  double mismatch = 0;  ///< max over columns of |⟨Ax, y⟩ − ⟨x, Aᴴy⟩| / (‖Ax‖‖y‖ + ‖x‖‖Aᴴy‖)
  double tolerance = 0;  ///< what rounding explains
  bool passed = true;
};

/// Tests whether apply_adjoint() is the adjoint of apply() (collective over the grid). Compares ⟨Ax, y⟩ with
/// ⟨x, Aᴴy⟩ for `columns` ≥ 1 pairs of random columns. They are drawn from the seed and are the same on every
/// grid. All members get the same result; idle ranks get a passed one. The tolerance is 4·√(m+n)·ε of T's
/// precision unless a positive one is given. Products of any finite magnitude can be tested: an overflow
/// fails the test, and whatever underflow to denormal numbers can have lost does not count as a mismatch.
/// Throws UsageError, on all ranks, without columns.
template <Scalar T>
GRIDLOPS_EXPORT DotTestResult dot_test(const LinearOperator<T>& A, Index columns = 3, double tolerance = 0,
                                       std::uint64_t seed = 1);

}  // namespace gridlops
