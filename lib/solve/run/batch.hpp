// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include "solve/checkpoint/checkpoints.hpp"
#include "solve/run/active_block.hpp"
#include "solve/run/column_method.hpp"
#include "solve/run/guard.hpp"
#include "solve/run/verdicts.hpp"
#include "solve/solve_log.hpp"

namespace gridlops {

/// The values that a solve shares between all its batches.
template <Scalar T>
struct Solve {
  ColumnMethod<T>& method;
  const SolveOptions& options;
  MethodState<T>& state;
  SolveLog<T>& log;
  Checkpoints<T>& checkpoints;
  const Guard& guard;
  const SolvedBefore<T>& before;
  const RowWeights<T>* weights;  ///< null: all are 1
  const ConstDistMatrix<T>& B;
  DistMatrix<T>& X;
};

/// A batch of right-hand sides while it is being solved: the data that ColumnRun shares with the classes that
/// scale, guard and save it.
template <Scalar T>
struct Batch {
  Batch(const Solve<T>& of, const ColumnBatch& columns);

  const ProcessGrid& grid() const { return *B.grid(); }
  /// The number of active column k within the batch, its number in the whole of B, and its state.
  Index number(Index k) const { return block.column(k); }
  Index right_hand_side(Index k) const { return solve.log.numbers()[at(number(k))]; }
  ColumnState& column(Index k) { return verdicts[number(k)]; }
  const ColumnState& column(Index k) const { return verdicts[number(k)]; }
  /// The power of two by which A is multiplied.
  int operator_power() const { return verdicts.all().empty() ? 0 : verdicts.all().front().scale.A; }
  const Kernels<T>& kernels() const { return grid().backend()->template kernels<T>(); }

  const Solve<T> solve;
  const ColumnBatch& columns;
  const ConstDistMatrix<T> B;
  std::optional<ConstDistMatrix<T>> residuals, weights;
  bool begins_from_x;
  ActiveBlock<T> block;
  Verdicts verdicts;
  Index iteration = 0;

 private:
  static VerdictRules rules_of(const Solve<T>& solve);
};

template <Scalar T>
VerdictRules Batch<T>::rules_of(const Solve<T>& solve) {
  const MethodTraits& traits = solve.method.traits();
  return {.test = traits.test,
          .type = scalar_type_of<T>,
          .absolute_tolerance = traits.absolute_tolerance,
          .judges_start = traits.judges_start,
          .x_is_correction = solve.before.residuals != nullptr,
          .residual_never_rises = traits.residual_never_rises,
          .largest_norm = solve.before.largest_norm,
          .epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon()),
          .longest_sum = std::max<Index>({solve.method.op().rows(), solve.method.op().cols(), 1})};
}

template <Scalar T>
Batch<T>::Batch(const Solve<T>& of, const ColumnBatch& of_columns)
    : solve(of),
      columns(of_columns),
      B(of.B.column_slice(columns.first, columns.sizes)),
      begins_from_x(of.options.initial_guess),
      block(of.state, columns.sizes, grid().my_part(B.layout().cols.axis)),
      verdicts(rules_of(of), of.options, of.log.numbers()) {
  if (of.before.residuals != nullptr)
    residuals.emplace(of.before.residuals->column_slice(columns.first, columns.sizes));
  if (of.weights == nullptr) return;
  weights.emplace(of.weights->W.column_slice(columns.first, columns.sizes));
  for (std::size_t j = 0; j < verdicts.all().size(); ++j)
    verdicts.all()[j].weights = of.weights->ranges[at(of.log.numbers()[j])];
}

}  // namespace gridlops
