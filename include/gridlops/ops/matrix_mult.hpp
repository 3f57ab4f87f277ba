// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/algorithm.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

struct MatrixMultOptions {
  Index panel = 0;    ///< width of the panels that travel in summa and stationary-b; 0: chosen from the shape
  int lookahead = 2;  ///< how many steps' panels travel while one step multiplies, ≥ 1
  bool column_stable = false;          ///< a column's bits do not depend on its neighbours or their number
  Storage storage = Storage::columns;  ///< packed: of block and stationary_a, on hosts
};

/// Returns the layout that the algorithm needs A (rows × cols) in. Throws UsageError for
/// Algorithm::automatic.
GRIDLOPS_EXPORT Layout matrix_layout(Algorithm algorithm, const ProcessGrid& grid, Index rows, Index cols);

/// Returns the grid in whose memory A, X and Y are best kept (not collective). If the ranks of summa read
/// each other's blocks in place, it is a grid of the same ranks with memory that they share, so that no block
/// need be copied to such memory. Otherwise it is the given grid, whose memory may have larger pages.
GRIDLOPS_EXPORT std::shared_ptr<const ProcessGrid> matrix_grid(Algorithm algorithm,
                                                               std::shared_ptr<const ProcessGrid> grid);

/// A dense matrix as an operator: op(A) X for op(A) = A and Aᴴ, on any P × Q and any shape, without forming
/// Aᴴ and without padding. Which of the matrices moves is the algorithm's:
///
///   block         A rows along grid columns, copied along grid rows; X uncut with columns along grid rows.
///                 Products are local; the adjoint sums over the grid row.
///   summa         Y never moves: panels of A are broadcast along grid rows, panels of X along grid columns
///                 (van de Geijn, Watts, Concurrency 9, 1997).
///   stationary_a  A never moves: X is gathered along grid columns, partial Y is reduce-scattered along grid
///                 rows.
///   stationary_b  X never moves: the columns of A that it meets come to it, partial Y is reduced along grid
///                 columns.
///
/// On grids whose transport is "shared" or "one-sided", summa and stationary_a read blocks of other ranks
/// instead of receiving them, and applications are collective over the whole grid. Where only a grid row or
/// column has such a transport, as on grids that are "mixed", stationary_a reads there, and summa A in rows.
/// With "shared", summa keeps a copy of A unless the grid is the algorithm's matrix_grid().
///
/// Scratch memory is taken at the first application and kept; it grows with the most columns seen.
/// A must lie as matrix_layout() says, at balanced or other places; otherwise ShapeError. An A that has its
/// block is the operator's from now on, and does not change. A view's block stays the caller's, who may
/// change it: see matrix_changed(). UsageError for Algorithm::automatic (see choose_algorithm()), and for
/// Storage::packed with an algorithm that moves A. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> matrix_mult(Algorithm algorithm, DistMatrix<T> A,
                                           const MatrixMultOptions& options = {});

/// Says that the caller has changed the block that matrix_mult() was given as a view (collective over the
/// grid). It is called after every change and before the next application of the operator, or of one that is
/// made of it, also where only other ranks have changed theirs: operators may have copies of A, packed or in
/// memory that ranks share. Without it products may take old elements for some of A and new ones for the
/// rest; with GRIDLOPS_CHECK=all they throw UsageError, on all ranks, at the cost of reading A once more.
/// Throws UsageError, on all ranks, if matrix_mult() has not made A, or if A was moved into it.
template <Scalar T>
GRIDLOPS_EXPORT void matrix_changed(const LinearOperator<T>& A);

/// Returns a hash (XXH3, 64 bits) of this rank's block of the matrix of an operator that matrix_mult() has
/// made; none for other operators and on idle ranks. It depends on the elements alone, not on how they are
/// stored, so two hashes that differ say that an element has changed in between. Of a copy that summa keeps
/// in shared memory it says nothing. Not collective; reads the block once.
template <Scalar T>
GRIDLOPS_EXPORT std::optional<std::uint64_t> block_hash(const LinearOperator<T>& A);

}  // namespace gridlops
