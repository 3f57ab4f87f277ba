// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/algorithm.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

struct MatrixMultOptions {
  Index panel = 0;    ///< width of the panels that summa and stationary-b send; 0: chosen from the shape
  int lookahead = 2;  ///< the number of steps, ≥ 0, whose panels travel while one step multiplies
  bool column_stable = false;  ///< the bits of a column do not depend on its neighbours or their number
  Storage storage = Storage::columns;  ///< packed, planes: for block and stationary_a, on hosts
};

/// Returns the layout that the algorithm requires for A (rows × cols). Throws UsageError for
/// Algorithm::automatic.
GRIDLOPS_EXPORT Layout matrix_layout(Algorithm algorithm, const ProcessGrid& grid, Index rows, Index cols);

/// Returns the bytes that a rank keeps of its block of rows × cols in this storage, in host memory. In tiles
/// zeros fill up rows and columns. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT Index block_bytes(Storage storage, Index rows, Index cols);

/// Returns the best grid for storing A, X and Y (not collective). If the ranks of summa read each other's
/// blocks in place, this is a grid of the same ranks whose memory they share, so that blocks need not be
/// copied to shared memory. Otherwise it is the given grid, whose memory may have larger pages.
GRIDLOPS_EXPORT std::shared_ptr<const ProcessGrid> matrix_grid(Algorithm algorithm,
                                                               std::shared_ptr<const ProcessGrid> grid);

/// A dense matrix as an operator: op(A) X for op(A) = A and Aᴴ, on any P × Q grid and for any shape, without
/// forming Aᴴ and without padding. The algorithm decides which matrices move:
///
///   block         A rows along grid columns, copied along grid rows; X uncut with columns along grid rows.
///                 Products are local; the adjoint sums over the grid row.
///   summa         Y never moves: panels of A are broadcast along grid rows, panels of X along grid columns
///                 (van de Geijn, Watts, Concurrency 9, 1997).
///   stationary_a  A never moves: X is gathered along grid columns, partial Y is reduce-scattered along grid
///                 rows.
///   stationary_b  X never moves: it receives the columns of A that it multiplies, partial Y is reduced along
///                 grid columns.
///
///   auto matrix = allocate_matrix<double>(grid, matrix_layout(Algorithm::stationary_a, *grid, 600, 400));
///   matrix.fill([](Index i, Index j) { return 1 / (1.0 + static_cast<double>(i + j)); });
///   const OperatorPtr<double> A = matrix_mult(Algorithm::stationary_a, std::move(matrix));
///   auto X = allocate_matrix<double>(grid, A->domain().layout(8));  // eight columns
///   auto Y = allocate_matrix<double>(grid, A->range().layout(8));
///   X.fill([](Index i, Index j) { return static_cast<double>(i - j); });
///   A->apply(1, X, 0, Y);          // Y ← A X
///   A->apply_adjoint(1, Y, 0, X);  // X ← Aᴴ Y
///
/// On grids whose transport is "shared" or "one-sided", summa and stationary_a read blocks of other ranks
/// instead of receiving them, and applications are collective over the whole grid. If only grid rows or only
/// grid columns have such a transport, as on "mixed" grids, stationary_a reads along those, and summa reads A
/// along rows. With "shared", summa keeps a copy of A unless the grid is the algorithm's matrix_grid().
///
/// The operator takes scratch memory at its first application and keeps it. The memory grows with the largest
/// number of columns seen. A must have the layout that matrix_layout() returns, balanced or cut at other
/// places; otherwise throws ShapeError. If A owns its block, the operator takes ownership, and the block
/// never changes. If A is a view, the caller keeps the block and may change it: see matrix_changed(). Throws
/// UsageError for Algorithm::automatic (see choose_algorithm()), for Storage::packed and Storage::planes with
/// an algorithm that moves A, and for Storage::planes on GPUs or in single precision. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> matrix_mult(Algorithm algorithm, DistMatrix<T> A,
                                           const MatrixMultOptions& options = {});

/// Returns an operator whose products read only the high plane of the matrix of A, which matrix_mult() made
/// with Storage::planes (not collective). They are those of a matrix Ã with every real number of A rounded to
/// 21 binary digits: |ã − a| ≤ 2⁻²¹|a| in the range of normal numbers. A number so near to the largest of its
/// type that it rounds to infinity does so. Ã shares A's memory, scratch memory too, and A and Ã may be
/// applied in turns. Where products wait for memory, those of Ã take half the time. Throws UsageError, on all
/// ranks, for any other operator.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> high_plane(const OperatorPtr<T>& A);

/// Announces that the caller has changed a block that matrix_mult() was given as a view (collective over the
/// grid). Call it after every change, even if only other ranks have changed theirs, and before the next
/// application of the operator, or of any operator built from it: operators may hold copies of A, packed or
/// in shared memory. Without this call, products may use old elements for part of A and new ones for the
/// rest. With GRIDLOPS_CHECK=all such products throw UsageError on all ranks, at the cost of reading A once
/// more. Throws UsageError, on all ranks, if A was not made by matrix_mult(), or if its matrix was moved into
/// it.
/// Reasons: docs/decisions/0042-whose-matrix.md.
template <Scalar T>
GRIDLOPS_EXPORT void matrix_changed(const LinearOperator<T>& A);

/// Returns a hash (XXH3, 64 bits) of this rank's block of the matrix of an operator made by matrix_mult();
/// none for other operators and on idle ranks. It depends only on the elements, not on their storage, so two
/// different hashes mean that an element has changed in between. It does not cover the copy that summa keeps
/// in shared memory. Not collective; reads the block once.
template <Scalar T>
GRIDLOPS_EXPORT std::optional<std::uint64_t> block_hash(const LinearOperator<T>& A);

/// Returns ‖A eⱼ‖ for every column of a matrix that never moves, on every rank (collective over the grid): of
/// one made by matrix_mult() with block or stationary_a, or of its high_plane(), or of one made by
/// stream_matrix() or compress(), in host memory or on disks. Reads each block once, a few rows at a time; a
/// compressed one for every 64 of its rows, or fewer if they are long, in an adjoint product. On idle ranks
/// all are 0. Throws UsageError, on all ranks, for any other operator, and what reading a block throws.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<double> column_norms(const LinearOperator<T>& A);

/// Returns the bytes of memory that column_norms() takes on a rank, for a dense matrix of `cols` columns of
/// which the rank's block is rows_of_block × cols_of_block. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT Index column_norms_bytes(Index cols, Index rows_of_block, Index cols_of_block);

}  // namespace gridlops
