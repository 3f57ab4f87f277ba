// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// What one rank does with its blocks: out ← B in, where B is this rank's own matrix (or its adjoint), and
/// the blocks have one column for each right-hand side of the rank. `out` holds anything before; columns may
/// be further apart than they are long. Blocks are in the memory of the grid's backend. On a GPU, work is
/// ordered by giving it to Backend::native_queue(), and nothing need be waited for.
template <Scalar T>
using LocalProduct = std::function<void(MatrixView<const T> in, MatrixView<T> out)>;

/// The operator that is made of one matrix B for each part, given by its products with B and Bᴴ (not
/// collective). Which one depends on how the rows of the two spaces lie:
///
///   range cut, domain cut along the same axis     [B₀ 0; 0 B₁ …]    nothing moves
///   range cut, domain uncut                       [B₀; B₁; …]       the adjoint sums models over the parts
///   range uncut, domain cut                       [B₀ B₁ …]         the forward product sums data
///   both uncut                                    B                 every rank does the same
///   range cut along grid rows, domain along       [B₀₀ B₀₁ …;       both sum, over the ranks of a row of the
///   grid columns, or the other way round           B₁₀ B₁₁ …]       grid, or of a column
///
/// The functions are called for blocks without rows, too, but not without columns. What one throws on one
/// rank all ranks throw, as LinearOperator::apply() says. Throws ShapeError, on all ranks, if both are cut
/// along axes that share a dimension of the grid.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> local_operator(Space range, Space domain, LocalProduct<T> forward,
                                              LocalProduct<T> adjoint);

}  // namespace gridlops
