// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/refined_solver.hpp"

namespace gridlops {

/// The measurements of the active columns of a refined solve: how far a step comes, and how fast conjugate
/// gradients converge. From these follow the tolerance of inner iterations, and whether the approximation
/// saves anything.
class RefinementGain {
 public:
  /// Describes what is kept between iterations to the state of a method.
  template <class State>
  void describe(State& state) {
    for (ColumnScalars* values : {&steps_, &reference_, &contraction_, &inner_, &early_.iterations,
                                  &early_.folds, &late_.iterations, &late_.folds})
      state.scalars(*values);
  }
  void begin(Index columns);

  /// Inner iterations are to reduce the gradient by these factors.
  ColumnScalars inner_tolerances() const;
  void begin_inner(Index columns) { now_ = ColumnScalars(columns); }
  /// Counts an inner iteration of the columns that have a step.
  void count_inner(const ColumnScalars& steps);
  /// Inner iterations have reduced the squared norm of the gradient from one to the other.
  void end_inner(const ColumnScalars& from, const ColumnScalars& to);
  /// A step has reduced ‖Ae‖² + D²‖e‖² of the error e by this. Steps of conjugate gradients do so by α sᴴz
  /// (Hestenes, Stiefel 1952, theorem 6:1), and what is left is the sum of what further ones will.
  void add_step(const ColumnScalars& reduction);

  RefinedColumn account(Index column, double tolerance) const;
  /// The contraction above which it costs more to reduce the gradient by the factor that is left than CGLS
  /// with A costs from the start; 0 if any does.
  double needed_contraction(Index column, const RefinedOptions& options, double tolerance, double left) const;

 private:
  /// Inner iterations, and by how many factors of e they have reduced gradients.
  struct Rate {
    ColumnScalars iterations, folds;
    double operator[](Index k) const { return folds[k] > 0 ? iterations[k] / folds[k] : 0; }
  };

  ColumnScalars steps_;
  ColumnScalars reference_;  // the reduction with which the last one is compared
  ColumnScalars contraction_;
  ColumnScalars inner_;  // iterations in all steps
  ColumnScalars now_;    // and in this one
  Rate early_;           // of the first two steps
  Rate late_;            // from the second one on
};

/// Why some of these columns were refused, and what they need; empty if none was.
std::string refusal(const std::vector<RefinedColumn>& columns);

}  // namespace gridlops
