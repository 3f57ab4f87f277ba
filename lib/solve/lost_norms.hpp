// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Whether the norm of r = b − Ax or of Aᴴr was lost in its sum, because squares are below the range of the
/// numbers. It is if neither norm is zero once r is scaled to be as long as can be. Of column j (collective
/// over the grid). X is null for x = 0; residual_norm is ‖r‖ as it was summed.
template <Scalar T>
bool norm_is_lost(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>* X,
                  Index j, double residual_norm);

}  // namespace gridlops
