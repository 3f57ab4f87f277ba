// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// The product that one rank computes with its blocks: out ← B in, where B is this rank's own matrix (or its
/// adjoint). The blocks have one column for each right-hand side of the rank. The previous contents of `out`
/// are undefined, and strides may exceed the number of rows. Blocks are in the memory of the grid's backend.
/// On a GPU, submit work to Backend::native_queue(); this orders it, and the function need not wait for
/// anything.
template <Scalar T>
using LocalProduct = std::function<void(MatrixView<const T> in, MatrixView<T> out)>;

/// The operator made of one matrix B per part, given by the products with B and Bᴴ (not collective). Its form
/// depends on how the rows of the two spaces lie:
///
///   range cut, domain cut along the same axis     [B₀ 0; 0 B₁ …]    no data move
///   range cut, domain uncut                       [B₀; B₁; …]       the adjoint sums models over the parts
///   range uncut, domain cut                       [B₀ B₁ …]         the forward product sums data
///   both uncut                                    B                 every rank computes the same
///   range cut along grid rows, domain along       [B₀₀ B₀₁ …;       both sum, over the ranks of a row of the
///   grid columns, or the other way round           B₁₀ B₁₁ …]       grid, or of a column
///
/// In the last form a space may also be nested: cut along `all` instead of grid rows, or along
/// `all_transposed` instead of grid columns. Then a rank stores one of P·Q parts, but its functions have
/// those of all ranks of its grid row, or grid column, one below another: consecutive rows of the space, for
/// arrays block by block (see Dims). A product from the space first gathers these parts. A product to it
/// leaves each rank its part of the sum, which sends half as much as a sum that all ranks have.
///
/// The functions are also called for blocks without rows, but never without columns. If one throws on one
/// rank, all ranks throw that error, as described at LinearOperator::apply(). Throws ShapeError, on all
/// ranks, if both spaces are cut, and neither along the same axis nor in the last form.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> local_operator(Space range, Space domain, LocalProduct<T> forward,
                                              LocalProduct<T> adjoint);

}  // namespace gridlops
