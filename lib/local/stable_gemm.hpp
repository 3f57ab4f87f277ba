// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_view.hpp"

namespace gridlops {

/// Y ← α op(A) X + β Y on host memory, for any shape. The bits of a column of Y depend on A and on the
/// columns of that number alone. BLAS does not guarantee that: in OpenBLAS' complex kernels for AVX2 a
/// column's rounding depends on its place among the others. With β = 0 the old Y is not read.
template <Scalar T>
void stable_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y);

}  // namespace gridlops
