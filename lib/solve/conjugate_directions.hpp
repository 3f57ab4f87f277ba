// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/solver.hpp"
#include "solve/column_state.hpp"
#include "solve/column_sums.hpp"

namespace gridlops {

/// The vectors of all active columns: x, p, s in the domain, r, q in the range.
template <Scalar T>
struct Directions {
  DistMatrix<T> x, r, p, q, s;
};

/// What CGLS and CG share, for many right-hand sides at once, with α, γ, δ of its own for each column:
///
///   q = A p (CG: + D² p)    δ = ‖q‖² + D²‖p‖² (CG: pᴴq)    α = γ/δ    x += α p,  r −= α q
///   s = Aᴴ r − D² x (CG: s is r)    γ' = ‖s‖²    p = s + (γ'/γ) p
///
/// This interface is what differs; run_conjugate_directions() is what does not.
template <Scalar T>
class ConjugateDirections {
 public:
  virtual ~ConjugateDirections() = default;

  const char* name() const { return name_; }
  const LinearOperator<T>& A() const { return A_; }
  double damp() const { return damp_; }

  /// Whether s is r; then v.s shares the memory of v.r.
  virtual bool tests_residual() const = 0;
  /// s from r, without damping.
  virtual void compute_gradient(Directions<T>& v) const = 0;
  /// s after x and r have moved.
  virtual void update_gradient(Directions<T>& v) const = 0;
  /// q from p.
  virtual void compute_product(Directions<T>& v) const = 0;
  /// Aᴴ r − D² x for r = b − A x, in s or q, whichever is returned; r stays.
  virtual const DistMatrix<T>& compute_normal_residual(Directions<T>& v) const = 0;

  /// Adds what δ needs to the sums; kinds 0 and 1 are ‖q‖² and ‖p‖² already.
  virtual void add_denominator(const Directions<T>& v, ColumnSums<T>& sums) const = 0;
  virtual double denominator(const ColumnSums<T>& sums, Index k) const = 0;

  /// Whether the column is as accurate as rounding lets this method get.
  virtual bool at_rounding_level(const ColumnState& column) const = 0;

  /// y ← y + factor · D² x.
  void add_damping(int factor, const DistMatrix<T>& x, DistMatrix<T>& y) const {
    if (damp_ == 0) return;
    const T coefficient = static_cast<T>(static_cast<Real<T>>(factor * damp_ * damp_));
    y.grid()->backend()->template kernels<T>().add(coefficient, x.local(), T(1), y.local());
  }

 protected:
  ConjugateDirections(const char* name, const LinearOperator<T>& A, double damp)
      : name_(name), A_(A), damp_(damp) {}

 private:
  const char* name_;
  const LinearOperator<T>& A_;
  double damp_;
};

/// Two reductions an iteration: of what makes δ, and of ‖s‖², ‖r‖², ‖x‖². A column that ends is frozen at
/// once and leaves the products. When all have ended, the norms are recomputed from their definitions;
/// columns that claimed to have converged and have not are restarted from there as long as that helps.
template <Scalar T>
SolveReport run_conjugate_directions(const ConjugateDirections<T>& method, const DistMatrix<T>& B,
                                     DistMatrix<T>& X, const SolveOptions& options);

}  // namespace gridlops
