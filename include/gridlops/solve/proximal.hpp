// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// A function f of vectors, which may be +∞, that is known by its values and by its proximal map (Parikh,
/// Boyd: Proximal algorithms, Foundations and Trends in Optimization 1, 2014):
///
///   prox_τf(v) = argmin_x f(x) + ‖x − v‖²/(2τ)
///
/// It is applied to the columns of matrices, to each with its own τ. Immutable, but it may use scratch memory
/// of its own, so it is not for two threads at a time.
template <Scalar T>
class GRIDLOPS_EXPORT ProximalOperator {
 public:
  virtual ~ProximalOperator() = default;
  ProximalOperator(const ProximalOperator&) = delete;
  ProximalOperator& operator=(const ProximalOperator&) = delete;

  /// Says in words what f is: a checkpoint of a solver goes on with the same words only.
  virtual std::string describe() const = 0;

  // These are collective over the grid of X, whose idle ranks return at once. They take scratch memory the
  // first time that there are so many columns; if there is not enough on some rank, all throw OutOfMemory.

  /// xⱼ ← prox_τf(xⱼ) with τ = τⱼ ≥ 0. On a GPU ordered, not finished, on return.
  virtual void prox(ColumnOperand tau, DistMatrix<T>& X) const = 0;
  /// The sum over all rows from which values() has f(xⱼ). It refers to X, or to memory of this operator until
  /// that is used again.
  virtual ColumnSum<T> sum(const ConstDistMatrix<T>& X) const = 0;

  /// f of each column, from these sums. Not collective.
  ColumnScalars values(const ColumnScalars& sums) const;

  /// Throws UsageError, on all ranks, if f differs from column to column and there is more than one: solvers
  /// take columns out once they have ended.
  void require_any_columns(Index columns, const char* solver) const;

 protected:
  explicit ProximalOperator(bool same_for_all_columns = true) : same_for_all_columns_(same_for_all_columns) {}

 private:
  virtual double value_of(double sum) const = 0;
  bool same_for_all_columns_;
};

template <Scalar T>
using ProximalPtr = std::shared_ptr<const ProximalOperator<T>>;

/// f(xⱼ) for each column, on every rank (collective over the grid; one all_reduce).
template <Scalar T>
GRIDLOPS_EXPORT ColumnScalars value(const ProximalOperator<T>& f, const ConstDistMatrix<T>& X);

/// The same for the conjugate f*(y) = sup_x Re xᴴy − f(x) by Moreau's decomposition: xⱼ ← prox_τf*(xⱼ) = xⱼ −
/// τ prox_{f/τ}(xⱼ/τ), τ = τⱼ > 0. W: scratch with the layout of X.
template <Scalar T>
GRIDLOPS_EXPORT void prox_of_conjugate(const ProximalOperator<T>& f, ColumnOperand tau, DistMatrix<T>& X,
                                       DistMatrix<T>& W);

// Functions that make proximal operators are not collective. They throw UsageError, on all ranks, if a number
// is out of its range.

/// σ times the penalty of a threshold: for soft ‖x‖₁, for hard ‖x‖₀, the number of elements that are not 0.
/// Its map is threshold() with τσ. σ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> threshold_penalty(Threshold kind, double sigma = 1);

/// 0 where all elements are within [lower, upper], of complex numbers both parts, and else +∞; bounds may be
/// infinite. The map, the same for all τ, is the projection onto that box.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> box(double lower, double upper);

/// σ/2 ‖A x − b‖². The map solves least squares by cgls(), from v: x = v + z, where z minimises ‖A z −
/// (b − A v)‖² + ‖z‖²/(τσ). Columns with different τ are solved for one by one. B: in A.range(), with as many
/// columns as there are models; its memory must outlive this. Each map takes the workspace of cgls() anew.
/// `solve`: options of cgls(), without damping or guess. σ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> l2_misfit(OperatorPtr<T> A, const ConstDistMatrix<T>& B, double sigma = 1,
                                         SolveOptions solve = {});

/// Minimises ½‖A xⱼ − bⱼ‖² + λⱼ g(xⱼ) for every column j by the proximal gradient method (Parikh, Boyd 2014,
/// §4.2 and 4.3) with options.acceleration,
///
///   x₊ = prox_αλg(y + α Aᴴ(b − A y)),    y₊ = x₊ + ω(x₊ − x),
///
/// in everything else as ista() and fista(), whose threshold() it has for g = threshold_penalty(kind). For
/// σ/2 ‖A x − b‖² divide λ by σ, and multiply α.
template <Scalar T>
SolveReport proximal_gradient(const LinearOperator<T>& A, const ProximalPtr<T>& g,
                              const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                              const SolveOptions& options = {}) {
  return solve(Solver::proximal_gradient, A, B, X, options, {.penalty = g});
}

struct AdmmOptions {
  /// Those of the other solvers; iterations are those over x, z and u.
  SolveOptions common{};
  double tau = 1;               ///< > 0
  Index inner_iterations = 20;  ///< ≥ 1, of cgls() for x
  double inner_tolerance = 0;   ///< of cgls() for x
};

/// Minimises ½‖A xⱼ − bⱼ‖² + g(L xⱼ) for every column j by the alternating direction method of multipliers
/// (Boyd, Parikh, Chu, Peleato, Eckstein: Distributed optimization and statistical learning via the
/// alternating direction method of multipliers, Foundations and Trends in Machine Learning 3, 2011, §3 and
/// 6.4), from z = L x and u = 0:
///
///   x = argmin ½‖A x − b‖² + ‖L x − z + u‖²/(2τ)    z = prox_τg(L x + u)    u += L x − z
///
/// x by cgls() on [A; L/√τ], from the last x. With gradient() for L and g = threshold_penalty(soft, σ) this
/// is total variation. Each column has its own test, verdict and history (collective over the grid; idle
/// ranks return at once). Column j has converged when, after an iteration at least, T bounds both relative
/// residuals of the optimality conditions (§3.3.1 there), ‖L x − z‖/max(‖L x‖, ‖z‖) and ‖Aᴴ(b − A x) −
/// Lᴴy‖/‖Lᴴy‖ with y = u/τ, or they are at rounding level, as they must be where the optimum has L x = 0 or y
/// = 0: below 10ε‖Aᴴb‖, and 10ε of ‖L‖‖b‖²/‖Aᴴb‖. The larger is the tested norm, at most 1, and the residual
/// norm is ‖b − A x‖. An iteration takes those of cgls(), whose memory is kept, and one product with A, L and
/// their adjoints each. B: in A.range(); X: in A.domain(), same column partition; the ranges of
/// A and L can be stacked. Throws ShapeError or UsageError on all ranks before any communication.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport admm(OperatorPtr<T> A, OperatorPtr<T> L, ProximalPtr<T> g,
                                 const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const AdmmOptions& options = {});

}  // namespace gridlops
