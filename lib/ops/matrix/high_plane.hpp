// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Whether an operator is high_plane(A), which keeps no memory but A's.
template <Scalar T>
bool is_high_plane(const LinearOperator<T>& op, const LinearOperator<T>& A);

}  // namespace gridlops
