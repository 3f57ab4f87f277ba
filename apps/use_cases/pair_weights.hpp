// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "use_cases/own_arrays.hpp"

namespace gridlops::program {

// Weights of pairs of a receiver and a shot: row i of the table belongs to receiver i, column s to shot s, or
// its only column to all shots. Without elements all weights are 1. Data are arrays whose last dimension is
// receivers, and shots are their columns.

inline double weight_of(const Table& weights, Index receiver, Index shot) {
  return weights(receiver, weights.cols == 1 ? 0 : shot);
}

/// How many shots from `first` on, of this many, have the same weights.
inline Index equally_weighted(const Table& weights, Index first, Index shots) {
  const auto column = [&](Index shot) { return weights.values.begin() + shot * weights.rows; };
  Index end = first + 1;
  while (end < shots && (weights.cols == 1 || std::equal(column(first), column(first + 1), column(end))))
    ++end;
  return end - first;
}

/// The diagonal operator of this shot's weights on data: arrays in this space, or what `into`, if it is not
/// null, makes of them.
template <Scalar T>
OperatorPtr<T> weighting(const Space& data, const OperatorPtr<T>& into, const Table& weights, Index shot) {
  DistMatrix<T> d = allocate_matrix<T>(data.grid, data.layout(1));
  const Range own = data.local_box().back();
  const Index first_row = d.local_row_range().begin;
  d.fill([&](Index i, Index) {
    return static_cast<Real<T>>(weight_of(weights, own.begin + (i - first_row) % own.size, shot));
  });
  if (into == nullptr) return diagonal<T>(data, std::move(d));
  DistMatrix<T> moved = allocate_matrix<T>(data.grid, into->range().layout(1));
  into->apply(T(1), d, T(0), moved);
  return diagonal<T>(into->range(), std::move(moved));
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

/// Puts the report of the shots from `first` on behind those before, iteration by iteration.
inline void append(SolveReport& all, const SolveReport& part, Index first) {
  all.solver = part.solver;
  all.iterations = std::max(all.iterations, part.iterations);
  all.columns.insert(all.columns.end(), part.columns.begin(), part.columns.end());
  for (const IterationRecord& record : part.history) {
    const auto k = static_cast<std::size_t>(record.iteration);
    while (all.history.size() <= k)
      all.history.push_back({static_cast<Index>(all.history.size()), {}, {}, {}});
    IterationRecord& joined = all.history[k];
    for (const Index column : record.columns) joined.columns.push_back(first + column);
    joined.residual_norms.insert(joined.residual_norms.end(), record.residual_norms.begin(),
                                 record.residual_norms.end());
    joined.tested_norms.insert(joined.tested_norms.end(), record.tested_norms.begin(),
                               record.tested_norms.end());
  }
}

/// The most shots that are solved together: all, or those with equal weights that follow each other.
inline Index shots_together(const Table& weights, Index shots) {
  if (weights.values.empty()) return shots;
  Index most = 0;
  for (Index first = 0, equal = 0; first < shots; first += equal)
    most = std::max(most, equal = equally_weighted(weights, first, shots));
  return most;
}

/// Returns the memory that solve_weighted() needs on this rank, as solve_bytes() does.
template <Scalar T>
SolveBytes solve_weighted_bytes(Solver solver, const OperatorPtr<T>& A, const Table& weights, Index shots,
                                const SolveOptions& options = {}) {
  if (weights.values.empty()) return solve_bytes(solver, *A, shots, options);
  const Index most = shots_together(weights, shots);
  const OperatorPtr<T> W = diagonal<T>(A->range(), planned_matrix<T>(A->range().grid, A->range().layout(1)));
  SolveBytes bytes = solve_bytes(solver, *product(W, A), most, options);
  bytes.vectors += A->range().local_rows() * most * static_cast<Index>(sizeof(T));  // their data
  return bytes;
}

/// Minimises ‖W(A x − b)‖² for every shot, where W multiplies the data of a pair by its weight (collective
/// over the grid). All columns of a solver share one operator, so shots with other weights than the one
/// before begin a run of their own. Norms in the report are those of the weighted problem. Data of A are
/// arrays, or what `into`, if it is not null, makes of them.
template <Scalar T>
SolveReport solve_weighted(Solver solver, const OperatorPtr<T>& A, const OperatorPtr<T>& into,
                           const Table& weights, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                           const SolveOptions& options) {
  if (weights.values.empty()) return solve(solver, *A, B, X, options);
  const Space& data = into == nullptr ? A->range() : into->domain();
  SolveReport report;
  for (Index first = 0; first < B.cols();) {
    const Partition shots = Partition::with_sizes({equally_weighted(weights, first, B.cols())});
    const OperatorPtr<T> W = weighting<T>(data, into, weights, first);
    DistMatrix<T> b = allocate_matrix<T>(B.grid(), A->range().layout(shots));
    W->apply(T(1), B.column_slice({first}, shots), T(0), b);
    DistMatrix<T> x = X.column_slice({first}, shots);
    append(report, solve(solver, *product(W, A), b, x, options), first);
    first += shots.total();
  }
  return report;
}

}  // namespace gridlops::program
