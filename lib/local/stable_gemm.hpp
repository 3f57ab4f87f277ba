// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_view.hpp"

namespace gridlops {

/// Y ← α op(A) X + β Y on host memory, of any shape. A column's bits depend on A and on that column alone,
/// which BLAS does not give: OpenBLAS' complex kernels for AVX2 round differently in a column's place among
/// its neighbours. With β = 0 the old Y is not read.
template <Scalar T>
void stable_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y);

}  // namespace gridlops
