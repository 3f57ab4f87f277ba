// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/solve/solver.hpp"
#include "use_cases/own_arrays.hpp"

namespace gridlops::program {

// Weights of pairs of a receiver and a shot: row i of the table belongs to receiver i, column s to shot s, or
// its only column to all shots. Without elements all weights are 1. Data are arrays whose last dimension is
// receivers, and shots are their columns.

inline double weight_of(const Table& weights, Index receiver, Index shot) {
  return weights(receiver, weights.cols == 1 ? 0 : shot);
}

/// The weights of all data: arrays in this space, or what `into`, if it is not null, makes of them
/// (collective over the grid).
template <Scalar T>
DistMatrix<T> weights_of_data(const Space& data, const OperatorPtr<T>& into, const Table& weights,
                              Index shots) {
  DistMatrix<T> W = allocate_matrix<T>(data.grid, data.layout(shots));
  const Range own = data.local_box().back();
  const Index first_row = W.local_row_range().begin;
  W.fill([&](Index i, Index shot) {
    return static_cast<Real<T>>(weight_of(weights, own.begin + (i - first_row) % own.size, shot));
  });
  if (into == nullptr) return W;
  DistMatrix<T> moved = allocate_matrix<T>(data.grid, into->range().layout(shots));
  into->apply(T(1), W, T(0), moved);
  return moved;
}

/// Data of pairs with weight 0 ← 0, whatever stands there, such as NaN (not collective).
template <Scalar T>
void clear_missing(const Table& weights, const Space& space, DistMatrix<T>& data) {
  const Range own = space.local_box().back();
  const MatrixView<T> block = data.local();
  if (weights.values.empty() || block.empty()) return;
  for (Index shot = 0; shot < block.cols; ++shot) {
    for (Index k = 0; k < own.size; ++k) {
      if (weight_of(weights, own.begin + k, shot) != 0) continue;
      // The samples of a trace are as many elements apart as this block has traces.
      const MatrixView<T> trace(block.column(shot) + k, 1, block.rows / own.size, own.size);
      space.grid->backend()->template kernels<T>().fill(T(0), trace);
    }
  }
}

/// Returns the memory that solve_weighted() needs on this rank, as solve_bytes() does.
template <Scalar T>
SolveBytes solve_weighted_bytes(Solver solver, const OperatorPtr<T>& A, const Table& weights, Index shots,
                                const SolveOptions& options = {}) {
  SolveBytes bytes = solve_bytes(solver, *A, shots, options);
  // The weights, weighted data, and those of a product.
  if (!weights.values.empty())
    bytes.vectors += 3 * A->range().local_rows() * shots * static_cast<Index>(sizeof(T));
  return bytes;
}

/// Minimises ‖W∘(A x − b)‖² for every shot, where W has the weights of pairs (collective over the grid).
/// Norms in the report are those of the weighted problem. Data of A are arrays, or what `into`, if it is not
/// null, makes of them.
template <Scalar T>
SolveReport solve_weighted(Solver solver, const OperatorPtr<T>& A, const OperatorPtr<T>& into,
                           const Table& weights, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                           const SolveOptions& options) {
  if (weights.values.empty()) return solve(solver, *A, B, X, options);
  const Space& data = into == nullptr ? A->range() : into->domain();
  const DistMatrix<T> W = weights_of_data(data, into, weights, B.cols());
  return solve<T>(solver, *A, B, X, options, {.weights = &W});
}

}  // namespace gridlops::program
