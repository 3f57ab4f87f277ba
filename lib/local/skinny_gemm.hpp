// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_view.hpp"
#include "local/instruction_set.hpp"

namespace gridlops {

/// How many rows A must have where it is not transposed, a complex row counting twice: those of a tile of the
/// widest kernel.
inline constexpr Index skinny_least_rows = 64;

/// Y ← α op(A) X + β Y for few columns on host memory, reading A from memory once. No operand is empty, and
/// with Op::none A has at least skinny_least_rows. With β = 0 the old Y is not read. NaN and infinity
/// propagate as in gemm. A column's bits depend neither on the other columns nor on their number. The
/// processor must have the instruction set.
template <Scalar T>
void skinny_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                 InstructionSet set);

/// Whether skinny_gemm() can multiply an A of this shape by so many columns.
template <Scalar T>
bool skinny_gemm_takes(Op op, Index rows, Index cols, Index columns) {
  const Index least = op == Op::none ? skinny_least_rows : 1;
  return (is_complex<T> ? 2 : 1) * rows >= least && rows > 0 && cols > 0 && columns > 0;
}

/// Whether it can, and is faster than BLAS with one thread.
template <Scalar T>
bool skinny_gemm_is_faster(Op op, Index rows, Index cols, Index columns, InstructionSet set);

}  // namespace gridlops
