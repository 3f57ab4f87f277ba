// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Whether the norm of r = b − Ax or of Aᴴr, as it was summed, lacks what is below the range of the numbers:
/// whether neither is zero when r is as long as can be. Of column j; X: null for zero; residual_norm: ‖r‖ as
/// it was summed. Collective over the grid.
template <Scalar T>
bool norm_is_lost(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>* X,
                  Index j, double residual_norm);

}  // namespace gridlops
