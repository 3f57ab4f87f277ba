// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Whether squares below the range of double precision are missing from the summed norm of r = b − Ax, or
/// from that of Aᴴr, for column j (collective over the grid). It scales r to be as long as can be, and looks
/// whether the norms are still zero. X is null for x = 0; residual_norm is ‖r‖ as it was summed.
template <Scalar T>
bool norm_is_lost(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>* X,
                  Index j, double residual_norm);

}  // namespace gridlops
