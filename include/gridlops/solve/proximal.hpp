// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// A function f of vectors, possibly +∞, defined by its values and by its proximal map (Parikh, Boyd:
/// Proximal algorithms, Foundations and Trends in Optimization 1, 2014):
///
///   prox_τf(v) = argmin_x f(x) + ‖x − v‖²/(2τ)
///
/// It acts on the columns of matrices, each with its own τ. Objects are immutable, but may use their own
/// scratch memory, so two threads must not use one at the same time.
template <Scalar T>
class GRIDLOPS_EXPORT ProximalOperator {
 public:
  virtual ~ProximalOperator() = default;
  ProximalOperator(const ProximalOperator&) = delete;
  ProximalOperator& operator=(const ProximalOperator&) = delete;

  /// Describes f in words. A checkpoint of a solver can be continued only if the words are the same.
  virtual std::string describe() const = 0;

  // These are collective over the grid of X; idle ranks return at once. They take scratch memory whenever X
  // has more columns than before. If any rank runs out of memory, all throw OutOfMemory.

  /// xⱼ ← prox_τf(xⱼ) with τ = τⱼ ≥ 0. On a GPU ordered, not finished, on return.
  virtual void prox(ColumnOperand tau, DistMatrix<T>& X) const = 0;
  /// The sum over all rows from which values() computes f(xⱼ). It refers to X, or to memory of this operator,
  /// and is valid until the operator is used again.
  virtual ColumnSum<T> sum(const ConstDistMatrix<T>& X) const = 0;

  /// Computes f of each column from these sums. Not collective.
  ColumnScalars values(const ColumnScalars& sums) const;

  /// Throws UsageError, on all ranks, if f differs from column to column and there is more than one. Solvers
  /// remove columns that have ended, so they cannot use such an f.
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

/// Applies the proximal map of the conjugate f*(y) = sup_x Re xᴴy − f(x) by Moreau's decomposition: xⱼ ←
/// prox_τf*(xⱼ) = xⱼ − τ prox_{f/τ}(xⱼ/τ), τ = τⱼ > 0. W: scratch with the layout of X. Otherwise like
/// prox().
template <Scalar T>
GRIDLOPS_EXPORT void prox_of_conjugate(const ProximalOperator<T>& f, ColumnOperand tau, DistMatrix<T>& X,
                                       DistMatrix<T>& W);

// The functions below make proximal operators and are not collective. They throw UsageError, on all ranks, if
// a number is out of range.

/// σ times the penalty of a threshold: ‖x‖₁ for soft, and ‖x‖₀, the number of nonzero elements, for hard. Its
/// proximal map is threshold() with τσ. σ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> threshold_penalty(Threshold kind, double sigma = 1);

/// 0 if all elements are within [lower, upper], otherwise +∞. Of complex elements, both parts must be within.
/// Bounds may be infinite. The proximal map, the same for all τ, projects onto that box.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> box(double lower, double upper);

/// σ/2 ‖A x − b‖². The proximal map solves a least-squares problem by cgls(), starting from v: x = v + z,
/// where z minimises ‖A z − (b − A v)‖² + ‖z‖²/(τσ). Columns with different τ are solved one by one. B: in
/// A.range(), with as many columns as there are models; its memory must outlive the result. Each call of the
/// map allocates the workspace of cgls() anew. `solve`: options of cgls(), without damping or initial guess.
/// σ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> l2_misfit(OperatorPtr<T> A, const ConstDistMatrix<T>& B, double sigma = 1,
                                         SolveOptions solve = {});

/// Minimises ½‖A xⱼ − bⱼ‖² + λⱼ g(xⱼ) for every column j by the proximal gradient method (Parikh, Boyd 2014,
/// §4.2 and 4.3) with options.acceleration,
///
///   x₊ = prox_αλg(y + α Aᴴ(b − A y)),    y₊ = x₊ + ω(x₊ − x).
///
/// In all other respects it behaves like ista() and fista(), and for g = threshold_penalty(kind) it uses the
/// same threshold(). For σ/2 ‖A x − b‖² divide λ by σ, and multiply α by σ.
template <Scalar T>
SolveReport proximal_gradient(const LinearOperator<T>& A, const ProximalPtr<T>& g,
                              const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                              const SolveOptions& options = {}) {
  return solve(Solver::proximal_gradient, A, B, X, options, {.penalty = g});
}

struct AdmmOptions {
  /// The options shared with other solvers; an iteration updates x, z and u.
  SolveOptions common{};
  double tau = 1;               ///< > 0
  Index inner_iterations = 20;  ///< ≥ 1, of cgls() for x
  double inner_tolerance = 0;   ///< of cgls() for x
};

/// Minimises ½‖A xⱼ − bⱼ‖² + g(L xⱼ) for every column j by the alternating direction method of multipliers
/// (Boyd, Parikh, Chu, Peleato, Eckstein: Distributed optimization and statistical learning via the
/// alternating direction method of multipliers, Foundations and Trends in Machine Learning 3, 2011, §3 and
/// 6.4), starting from z = L x and u = 0:
///
///   x = argmin ½‖A x − b‖² + ‖L x − z + u‖²/(2τ)    z = prox_τg(L x + u)    u += L x − z
///
/// cgls() solves for x with [A; L/√τ], starting from the last x. With gradient() for L and g =
/// threshold_penalty(soft, σ) this is total variation. Each column has its own convergence test, verdict and
/// history (collective over the grid; idle ranks return at once).
///
/// Column j has converged when, after at least one iteration, T bounds both relative residuals of the
/// optimality conditions (§3.3.1 there), ‖L x − z‖/max(‖L x‖, ‖z‖) and ‖Aᴴ(b − A x) − Lᴴy‖/‖Lᴴy‖ with y =
/// u/τ, or when the residuals are at rounding level, as they must be if the optimum has L x = 0 or y = 0:
/// below 10ε‖Aᴴb‖, and 10ε of ‖L‖‖b‖²/‖Aᴴb‖. The tested norm is the larger relative residual, at most 1, and
/// the residual norm is ‖b − A x‖.
///
/// An iteration takes the iterations of cgls(), whose memory is kept, and one product each with A, L and
/// their adjoints. B: in A.range(); X: in A.domain(), same column partition; the ranges of A and L must be
/// stackable. Throws ShapeError or UsageError on all ranks before any communication.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport admm(OperatorPtr<T> A, OperatorPtr<T> L, ProximalPtr<T> g,
                                 const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                 const AdmmOptions& options = {});

}  // namespace gridlops
