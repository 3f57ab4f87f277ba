// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
/// Reasons: docs/decisions/0025-proximal-operators.md.
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
  /// The sums over all rows from which value_of() computes f(xⱼ), sum_count() of them. They refer to X, or to
  /// memory of this operator, and are valid until the operator is used again.
  virtual std::vector<ColumnSum<T>> sums(const ConstDistMatrix<T>& X) const = 0;

  Index sum_count() const { return sum_count_; }
  /// Computes f of one column from its sums. Not collective.
  virtual double value_of(std::span<const double> sums) const = 0;
  /// Computes f of all columns: sums[k] has sum k of each.
  ColumnScalars values(std::span<const ColumnScalars> sums) const;

  bool same_for_all_columns() const { return same_for_all_columns_; }
  /// Throws UsageError, on all ranks, if f differs from column to column and there is more than one. Solvers
  /// remove columns that have ended, so they cannot use such an f.
  void require_any_columns(Index columns, const char* solver) const;

 protected:
  explicit ProximalOperator(bool same_for_all_columns = true, Index sum_count = 1)
      : same_for_all_columns_(same_for_all_columns), sum_count_(sum_count) {}

 private:
  bool same_for_all_columns_;
  Index sum_count_;
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

/// σ Σ ‖x_g‖₂ over groups g of elements, the L2,1 norm. The proximal map shortens each group by τσ, to 0
/// where the group is no longer than that. σ ≥ 0.
///
/// Here x is a stack of vectors in these spaces, which are all the same, such as gradient() makes, and a
/// group has the elements at one place of these vectors. All lie on one rank. Throws ShapeError if spaces
/// differ.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> l21_norm(const std::vector<Space>& stack, double sigma = 1);
/// Here x is an array, and a group is a line along this dimension. If the dimension is cut, the array is
/// redistributed before, and by the map back again, which takes memory for a copy. Throws ShapeError if there
/// is no such dimension.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> l21_norm_along(const Space& space, int dim, double sigma = 1);

/// σ/2 ‖A x − b‖². The proximal map solves a least-squares problem by cgls(), starting from v: x = v + z,
/// where z minimises ‖A z − (b − A v)‖² + ‖z‖²/(τσ). Columns with different τ are solved one by one. B: in
/// A.range(), with as many columns as there are models; its memory must outlive the result. Each call of the
/// map allocates the workspace of cgls() anew. `solve`: options of cgls(), without damping or initial guess.
/// σ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> l2_misfit(OperatorPtr<T> A, const ConstDistMatrix<T>& B, double sigma = 1,
                                         SolveOptions solve = {});

/// ρ/2 ‖x‖² + Re aᴴx, with the same a for all columns: one uncut column, with rows cut as those of x, which
/// the result takes. Without a matrix a is 0. ρ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> quadratic(double rho, DistMatrix<T> a = {});

/// σ f(x) + ρ/2 ‖x‖² + Re aᴴx. σ > 0; ρ and a as in quadratic(). With w = 1 + τρ, the map is that of f with
/// τσ/w, applied to (v − τa)/w.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> postcompose(ProximalPtr<T> f, double sigma, double rho = 0,
                                           DistMatrix<T> a = {});

/// f(s x + t), s ≠ 0, with the same t for all columns, given as the a of quadratic(). The map is (u − t)/s,
/// where u is that of f with s²τ, applied to s v + t.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> precompose(ProximalPtr<T> f, double s, DistMatrix<T> t = {});

/// f(A x) for an A with A Aᴴ = c I, c > 0, such as an orthogonal transform or a part of one. The map is v +
/// Aᴴ(u − A v)/c, where u is that of f with cτ, applied to A v. Nothing checks A: if A Aᴴ ≠ c I, this map
/// belongs to no function.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> precompose(ProximalPtr<T> f, OperatorPtr<T> A, double c = 1);

/// f₁(x₁) + f₂(x₂) + …, where x is the stack of x₁, x₂, … in these spaces (see stack_spaces()). Throws
/// ShapeError unless there is one f for each space, and UsageError if two are one object, whose memory both
/// would use.
template <Scalar T>
GRIDLOPS_EXPORT ProximalPtr<T> separable_sum(std::vector<Space> spaces, std::vector<ProximalPtr<T>> parts);

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

/// Returns the memory that admm() needs on this rank, as solve_bytes() does, but without that of g.
template <Scalar T>
GRIDLOPS_EXPORT SolveBytes admm_bytes(OperatorPtr<T> A, OperatorPtr<T> L, ProximalPtr<T> g, Index nrhs,
                                      const AdmmOptions& options = {});

struct PrimalDualOptions {
  SolveOptions common{};  ///< the options shared with other solvers
  /// The steps for x and for y, with τσ‖K‖² ≤ 1. A step that is not given follows from the other, and both
  /// are 1/‖K‖ if none is given, where ‖K‖ is 1.02 times what estimate_norm() finds. The fastest ratio τ/σ is
  /// about that of ‖x‖² to ‖y‖².
  std::optional<double> tau{}, sigma{};
  /// 0 ≤ θ ≤ 1. The method is proved to converge for θ = 1 (Chambolle, Pock 2011, theorem 1), and for θ > 1/2
  /// (Banert, Upadhyaya, Giselsson 2023). With θ = 0, the method of Arrow and Hurwicz, it may go round for
  /// ever (He, You, Yuan, SIAM J. Imaging Sci. 7, 2014). The convergence test does not depend on θ.
  double theta = 1;
  /// Start from the y in Y, which must not be null; otherwise start from y = 0 and overwrite Y. With the x
  /// and the y of an earlier call the method begins there, with x̄ = x; only a checkpoint also has x̄. A
  /// restart takes the y of its checkpoint.
  bool dual_guess = false;
};

/// Minimises f(K xⱼ − bⱼ) + g(xⱼ) for every column j, with convex f and g, by the primal-dual method of
/// Chambolle and Pock (A first-order primal-dual algorithm for convex problems with applications to imaging,
/// J. Math. Imaging Vision 40, 2011, algorithm 1), starting from x̄ = x:
///
///   y₊ = prox_σf*(y + σ(K x̄ − b))    x₊ = prox_τg(x − τ Kᴴy₊)    x̄₊ = x₊ + θ(x₊ − x)
///
/// With K = [A; L], b = [d; 0] and a separable_sum() for f this is least squares with any penalty of L x, and
/// needs no inner solver. Each column has its own convergence test, verdict and history (collective over the
/// grid; idle ranks return at once).
///
/// The maps yield a u and an s for which y is a subgradient of f at u, and s one of g at x, so x is optimal
/// if K x − b = u and Kᴴy = −s. Column j has converged when
///
///   ‖K x − b − u‖ ≤ T(‖K‖‖x‖ + ‖b‖)    and    ‖Kᴴy + s‖ ≤ T‖K‖‖y‖,
///
/// or, where one of these right-hand sides is 0, when the residual is at rounding level. Whatever f and g,
/// also where their conjugates are infinite, this bounds the primal-dual gap: for every x′ and y′, the
/// Lagrangian of (x, y′) exceeds that of (x′, y) by at most Re (y′ − y)ᴴ(K x − b − u) + Re (x − x′)ᴴ(Kᴴy +
/// s), so f(u) + g(x) exceeds the minimum by at most ‖y‖‖K x − b − u‖ + ‖x − x*‖‖Kᴴy + s‖.
///
/// To verify this, the solver computes a step from the final x and y but does not take it; s belongs to the x
/// of that step, which is τ‖Kᴴy + s‖ away. The tested norm is the larger of the two residuals, relative to
/// those bounds, and at most 1. The residual norm is ‖K x − b‖, and the normal residual norm ‖Kᴴy + s‖.
///
/// An iteration takes one reduction, and one product each with K and Kᴴ; a start from a guess takes one more
/// with Kᴴ. B: in K.range(); X: in K.domain(), same column partition. Y: receives y, with the layout of B;
/// null: y stays inside. Throws ShapeError or UsageError on all ranks; if both steps are given and τσ‖K‖² >
/// 1, after the products that estimate ‖K‖.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport primal_dual(OperatorPtr<T> K, ProximalPtr<T> f, ProximalPtr<T> g,
                                        const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                        const PrimalDualOptions& options = {}, DistMatrix<T>* Y = nullptr);

}  // namespace gridlops
