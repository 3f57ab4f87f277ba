// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/matrix_view.hpp"
#include "local/products/instruction_set.hpp"

namespace gridlops {

/// Y ← α op(A) X + β Y for few columns in host memory, reading A from memory once. Any operand may be empty.
/// With β = 0 the old Y is not read. NaN and infinity propagate as in gemm. Column-stable, a column's bits
/// depend neither on the other columns nor on their number. The processor must have the instruction set.
template <Scalar T>
void few_columns_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                      InstructionSet set, bool column_stable);

/// Whether it is faster than BLAS with one thread, A being rows × cols.
template <Scalar T>
bool few_columns_gemm_is_faster(Op op, Index rows, Index cols, Index columns, InstructionSet set);

}  // namespace gridlops
