// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_view.hpp"
#include "local/skinny_kernels.hpp"

namespace gridlops {

/// The product of skinny_gemm(), with these kernels. A may have any number of rows.
template <Scalar T>
void strip_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                const StripKernels<Real<T>>& kernels);

}  // namespace gridlops
