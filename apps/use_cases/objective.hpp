// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "command_line/grid.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/solve_observer.hpp"

namespace gridlops::program {

/// Records ½‖A x − b‖² + w g(L x) and ½‖A x − b‖² of one right-hand side, before each iteration and at the
/// end.
template <Scalar T>
class Objective final : public SolveObserver {
 public:
  /// L: null means I. Collective over the grid of the models.
  Objective(ProximalPtr<T> g, double weight, OperatorPtr<T> L, const Space& models)
      : g_(std::move(g)),
        weight_(weight),
        L_(std::move(L)),
        x_(allocate_matrix<T>(models.grid, models.layout(1))) {
    if (L_ != nullptr) Lx_ = allocate_matrix<T>(models.grid, L_->range().layout(1));
  }

  /// The bytes that it takes on this rank, for this L and these models.
  static Index bytes(const OperatorPtr<T>& L, const Space& models) {
    return (models.local_rows() + (L == nullptr ? 0 : L->range().local_rows())) * Index{sizeof(T)};
  }

  bool step(const IterationInfo& info) override {
    info.iterate.copy_to(x_);
    if (L_ != nullptr) L_->apply(T(1), x_, T(0), Lx_);
    const double misfit = 0.5 * info.residual_norms[0] * info.residual_norms[0];
    costs_.push_back({misfit + weight_ * value(*g_, L_ == nullptr ? x_ : Lx_)[0], misfit});
    return false;
  }
  const std::vector<std::vector<double>>& costs() const { return costs_; }

 private:
  ProximalPtr<T> g_;
  double weight_;
  OperatorPtr<T> L_;
  DistMatrix<T> x_, Lx_;
  std::vector<std::vector<double>> costs_;
};

}  // namespace gridlops::program
