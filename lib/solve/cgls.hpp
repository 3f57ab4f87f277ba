// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>

#include "solve/conjugate_directions.hpp"

namespace gridlops {

/// CGLS as a method of conjugate directions; see cgls().
template <Scalar T>
class Cgls : public ConjugateDirections<T> {
  using Vectors = typename ConjugateDirections<T>::Vectors;

 public:
  Cgls(const LinearOperator<T>& A, double damp) : ConjugateDirections<T>(A, damp) {}

  const char* name() const override { return "cgls"; }

 protected:
  void compute_product(Vectors& v) const override { this->A().apply(T(1), v.p, T(0), v.q); }

 private:
  bool tests_residual() const override { return false; }
  void compute_gradient(Vectors& v) const override { this->A().apply_adjoint(T(1), v.r, T(0), v.s); }
  void update_gradient(Vectors& v) const override {
    compute_gradient(v);
    this->add_damping(-1, v.x, v.s);
  }
  const DistMatrix<T>& compute_normal_residual(Vectors& v) const override {
    update_gradient(v);
    return v.s;
  }

  void add_denominator(const Vectors&, ColumnSums<T>&) const override {}
  double denominator(const ColumnSums<T>& sums, Index k) const override {
    return sums.of(0, k) + this->damp() * this->damp() * sums.of(1, k);
  }

  // Rounding keeps Aᴴr − D²x from falling below a few ε(‖A‖‖r‖ + D²‖x‖). Where r itself vanishes the
  // recurrence falls for ever, but x is a solution to within rounding of A once ‖r‖ ≤ ε‖A‖‖x‖ (Paige,
  // Saunders: LSQR, ACM TOMS 8, 1982, §6).
  bool at_rounding_level(const ColumnState& column) const override {
    const double unit = 10 * static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
    const double norm_A = column.operator_norm;
    const double floor = unit * (norm_A * column.residual_norm + this->damp() * this->damp() * column.x_norm);
    return column.tested_norm <= floor ||
           (this->damp() == 0 && column.residual_norm <= unit * norm_A * column.x_norm);
  }
};

}  // namespace gridlops
