// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// The most columns of a product with unit vectors, where gram_matrix() takes those.
inline constexpr Index most_unit_vectors = 64;

/// G ← 2^(2·power) op(A)ᴴ op(A), which is AᴴA or AAᴴ: its upper triangle, whole on every rank and the same on
/// all of them (collective over the grid). G has no gaps. Returns the ε of the sums in it.
template <Scalar T>
double gram_matrix(const LinearOperator<T>& A, Op op, int power, MatrixView<Accumulator<T>> G);

/// Returns the most bytes that gram_matrix() takes on a rank, besides G and the scratch memory of products.
/// ranks: their number.
Index gram_matrix_bytes(Index rows, Index cols, ScalarType type, int ranks);

}  // namespace gridlops
