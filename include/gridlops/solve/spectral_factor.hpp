// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <memory>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/factor.hpp"

namespace gridlops {

/// The singular values of A, and the singular vectors of its shorter side: V of A = U Σ Vᴴ if A has at least
/// as many rows as columns, else U. It is a factor for every damping at once: (AᴴA + D²I)⁻¹ = V (Σ² + D²)⁻¹
/// Vᴴ, or the same of AAᴴ with U, so that each right-hand side can have a damping of its own.
///
/// As an operator it has the damping of its facts(), which is the smallest that it serves. Every rank holds
/// all min(m, n)² elements of V, or U. It does not refer to A.
///
///   const auto V = spectral_factor(*A, 1e-3);
///   solve(Solver::direct, *A, B, X, {.damp = {1e-3, 0.5, 2}}, {.factor = V.get()});
template <Scalar T>
class GRIDLOPS_EXPORT SpectralFactor : public Factor<T> {
 public:
  /// Returns min(m, n) singular values in descending order, the same on all members of the grid; none on idle
  /// ranks.
  const std::vector<double>& singular_values() const { return values_; }
  /// Returns what singular values must exceed to be more than rounding: nε‖A‖, of the elements of A, if V
  /// comes from QR, or min(10nε, (ε²/100)^⅓)‖A‖, of y in x = Aᴴy, if U does, else √(nε)‖A‖, of AᴴA or AAᴴ.
  double resolution() const { return resolution_; }
  /// Whether this singular value and damping are more than rounding together. If not, the direction is no
  /// part of any solution.
  bool counts(double value, double damp) const { return std::hypot(value, damp) > resolution_; }
  /// Returns trace(I − A(AᴴA + D²I)⁻¹Aᴴ), for the m × m matrix that takes data to their residual. Not
  /// collective; 0 on idle ranks.
  double free_dimensions(double damp) const;
  /// Returns how much rounding of AᴴA, or AAᴴ, can change σ² + D² of the smallest singular value, relatively:
  /// nε‖A‖²/(σ² + D²); 0 if V comes from QR.
  double relative_rounding(double damp) const;

  // Members only. They throw ShapeError if sizes do not fit.

  /// Y ← α (2^(2·power) AᴴA + D²I)⁻¹ X, or AAᴴ in the place of AᴴA, with its own D for each column of X
  /// (collective over the grid). squared_damps: D², one for each column, the same on all ranks.
  virtual void apply_damped(T alpha, const ConstDistMatrix<T>& X, const std::vector<double>& squared_damps,
                            int power, DistMatrix<T>& Y) const = 0;
  /// Returns (Σₖ w(k, d) |vₖᴴx|²)^½ for each column x of X, the same on all members (collective over the
  /// grid): element d + j·w.cols for column j. w: non-negative weights, with a row for each singular value.
  virtual std::vector<double> weighted_norms(const ConstDistMatrix<T>& X,
                                             MatrixView<const double> w) const = 0;
  /// Returns the same for c of the solutions x with this damping, for A with at least as many rows as
  /// columns. c is vₖᴴx or vₖᴴ(Aᴴb)/(σ² + D²), whichever rounding to T has changed less: by ε‖x‖, or by
  /// ε‖A‖‖b‖/(σ² + D²). data_norms: ‖b‖ of each column; adjoint_of_unit_data: Aᴴb/2^ilogb(‖b‖).
  virtual std::vector<double> weighted_norms_of_solutions(const ConstDistMatrix<T>& X,
                                                          const ConstDistMatrix<T>& adjoint_of_unit_data,
                                                          double damp, const std::vector<double>& data_norms,
                                                          MatrixView<const double> w) const = 0;

  /// Y ← the diagonal of (AᴴA + D²I)⁻¹, with a D for each column, on the rows of A's domain; without the
  /// directions that do not count. A has at least as many rows as columns. Not collective.
  virtual void diagonal(const PerColumn& damp, DistMatrix<T>& Y) const = 0;

 protected:
  SpectralFactor(const Space& space, const FactorFacts& facts, Index rows, std::vector<double> values,
                 double resolution)
      : Factor<T>(space, facts), rows_(rows), values_(std::move(values)), resolution_(resolution) {}

 private:
  const Index rows_;  // of A
  const std::vector<double> values_;
  const double resolution_;
};

/// Computes singular values and vectors of A, to serve dampings from this one on (collective over the grid;
/// without elements on idle ranks).
///
/// They are those of AᴴA, which is summed as factor() does it, if rounding changes D² by less than 10⁻⁶ of
/// it: nε‖A‖² ≤ 10⁻⁶ D². Otherwise QR of A gives R, if A has rows to read, and R its singular values and
/// vectors (LAPACK's xHEEVD and xGESDD). The same goes for AAᴴ and QR of Aᴴ, if A has fewer rows than
/// columns, and columns to read. Otherwise they are those of AᴴA or AAᴴ, whatever the damping.
///
/// Throws what factor() throws, and UsageError, on all ranks, if there are more than 30000 singular values,
/// or 20000 of R, since LAPACK counts its memory in 32 bits; InputError if LAPACK does not find them.
template <Scalar T>
GRIDLOPS_EXPORT std::shared_ptr<const SpectralFactor<T>> spectral_factor(const LinearOperator<T>& A,
                                                                         double least_damp = 0);

/// Returns the bytes of a spectral factor of a rows × cols matrix on this number of ranks, for nrhs
/// right-hand sides. Not collective.
GRIDLOPS_EXPORT FactorBytes spectral_factor_bytes(Index rows, Index cols, ScalarType type, Index nrhs,
                                                  int ranks);

/// Returns the curve of each column of B over these dampings, with the choice of the rule (collective over
/// the grid; the same on all members, and empty on idle ranks).
///
/// Solver::direct solves for the smallest damping D₀ and judges the solutions, with the options but their
/// damping; its verdicts are those of all points of a column. With c = Vᴴx = (Σ² + D₀²)⁻¹VᴴAᴴb and h = D²/(σ²
/// + D²), norms of x and r = b − Ax at another D follow from theirs, as sums of positive terms:
///
///   ‖x(D)‖² = Σ t²|c|²    ‖r(D)‖² = ‖r(D₀)‖² + (D² − D₀²) Σ t (h + h₀)|c|²    t = (σ² + D₀²)/(σ² + D²)
///
/// If A has fewer rows than columns, e = Uᴴb gives ‖x(D)‖² = Σ σ²|e|²/(σ² + D²)² and ‖r(D)‖² = Σ h²|e|².
/// For DampingRule::gcv the trace is exact. noise: of each column, for DampingRule::discrepancy.
///
/// Throws UsageError, on all members, if a damping is smaller than the factor serves, rounding hides the
/// singular values that decide (relative_rounding() above 1/100, or norms of x that differ as much from those
/// at D₀), or the options have a damping or a guess; ShapeError if B or noise do not fit.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<DampingCurve> damping_curves(const LinearOperator<T>& A,
                                                         const ConstDistMatrix<T>& B,
                                                         const SpectralFactor<T>& factor,
                                                         const std::vector<double>& damps, DampingRule rule,
                                                         const PerColumn& noise = 0,
                                                         const SolveOptions& options = {});

}  // namespace gridlops
