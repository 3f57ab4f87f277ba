// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ops/stationary/local_block.hpp"

namespace gridlops {

/// R ← the upper triangle of the QR factorisation of 2^power · [op(A); D·I], for an op(A) with at least as
/// many rows as columns, whole on every rank and the same on all of them (collective over the grid). op: none
/// or adjoint. R has no gaps. Each rank reflects the rows that it gets, and the triangles are joined along a
/// tree of ranks (TSQR: Demmel, Grigori, Hoemmen, Langou: Communication-optimal parallel and sequential QR
/// and LU factorizations, SIAM J. Sci. Comput. 34, 2012).
template <Scalar T>
void qr_of_rows(const MatrixInBlocks<T>& A, Op op, const ProcessGrid& grid, int power, double damp,
                MatrixView<Accumulator<T>> R);

/// Returns the most bytes that qr_of_rows() takes on a rank, besides R, for a rows × cols matrix A, or for
/// its adjoint if it has fewer rows than columns. ranks: their number.
Index qr_of_rows_bytes(Index rows, Index cols, ScalarType type, int ranks);

}  // namespace gridlops
