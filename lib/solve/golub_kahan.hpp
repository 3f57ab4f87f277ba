// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "base/message.hpp"
#include "solve/column_method.hpp"
#include "solve/stacked_guess.hpp"

namespace gridlops {

/// A plane rotation that takes (a, b) to (r, 0): c a + s b = r (Paige, Saunders 1982; hypot avoids overflow).
struct Rotation {
  double c = 1, s = 0, r = 0;
  static Rotation of(double a, double b);
};

/// What LSQR and LSMR share: the lower bidiagonalisation of Golub and Kahan, for many right-hand sides at
/// once,
///
///   β₁ u₁ = b − A x₀,  α₁ v₁ = Aᴴ u₁,    β u ← A v − α u,  α v ← Aᴴ u − β v,
///
/// with scalars of its own for each column, and the stopping tests of Paige and Saunders on ‖r‖, ‖Aᴴr‖ and
/// cond(A) as the recurrences estimate them, r being that of the damped system. Two reductions an iteration:
/// of ‖u‖² and ‖v‖². Together they bring ‖x‖ as it is after the step.
template <Scalar T>
class GolubKahan : public ColumnMethod<T> {
 public:
  const LinearOperator<T>& A() const final { return A_; }

  /// data_parts: what the range of A is a stack of, if it is one.
  GolubKahan(const LinearOperator<T>& A, const SolveOptions& options, std::vector<Space> data_parts)
      : A_(A), options_(options), data_parts_(std::move(data_parts)) {}

  void start(ColumnRun<T>& run, bool from_zero) final;
  bool iterate(ColumnRun<T>& run) final;
  std::vector<NamedMatrix<T>> lasting(const Partition& columns) override;
  void visit(StateArchive& archive) final;
  std::string parameters() const final { return message("damping ", options_.damp); }
  void add_final_norms(ColumnRun<T>& run) final;
  bool can_restart() const final { return false; }
  void restart(ColumnRun<T>&) final {}

  bool meets_tolerance(const ColumnState& column, double tolerance) const final;
  /// The reference is α₁β₁, and only α₁ and β₁ are squared.
  bool starts_too_small(const ColumnState& column) const final {
    return column.residual_norm < smallest_safe_norm ||
           column.reference < smallest_safe_norm * column.residual_norm;
  }
  bool at_rounding_level(const ColumnState& column) const final;
  bool beyond_condition_limit(const ColumnState& column) const final;

 protected:
  double damp() const { return options_.damp; }

  /// α and β of one column, after a step of the bidiagonalisation.
  struct Bidiagonal {
    double alpha = 0, beta = 0;
    void visit(StateArchive& archive) { archive.visit(alpha, beta); }
  };

  /// A vector in the domain that lasts.
  struct OwnVector {
    const char* name;
    Scratch<T>* memory;
  };

  /// From the norms of the damped system as the method's scalars have them.
  void set_norms(ColumnState& state, double damped_residual, double gradient) const;

 private:
  /// The method's own vectors.
  virtual std::vector<OwnVector> own_vectors() = 0;
  virtual void visit_own(StateArchive& archive) = 0;
  /// They begin with v₁, its scalars with α₁ and β₁.
  virtual void begin(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& first) = 0;
  /// Adds one kind of sum, of a vector of its own, to the reduction of ‖u‖².
  virtual void add_norms(ColumnRun<T>& run) = 0;
  /// What can be done before α is known; what it adds to the sums goes into the reduction of ‖v‖², after kind
  /// 0.
  virtual void begin_step(ColumnRun<T>& run, const std::vector<double>& beta) = 0;
  /// The rest: moves x, if begin_step() has not, and the method's vectors, and sets the norms in the states;
  /// `own_norms_squared` is what add_norms() asked for.
  virtual void advance(ColumnRun<T>& run, const DistMatrix<T>& v, const std::vector<Bidiagonal>& now,
                       const std::vector<double>& own_norms_squared) = 0;

  /// Divides each column by its norm, the square of which is kind 0 of the sums; returns the norms, per
  /// active column.
  std::vector<double> normalise(ColumnRun<T>& run, DistMatrix<T>& X);

  const LinearOperator<T>& A_;
  const SolveOptions& options_;
  const std::vector<Space> data_parts_;
  Scratch<T> u_, v_;
  std::vector<Bidiagonal> bidiagonal_;  // per column of the batch
};

/// Solves with the method, on A itself; or, where an initial guess X₀ meets damping, for the correction of X₀
/// on the stacked system [A; D·I] with [B − A·X₀; −D·X₀], so that ‖X‖ is damped and not ‖X − X₀‖. `more` goes
/// to the method's constructor.
template <Scalar T, class Method, class... More>
SolveReport solve_by_bidiagonalisation(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                       DistMatrix<T>& X, const SolveOptions& options, More... more) {
  Method method(A, options, {A.range()}, more...);
  if (options.damp == 0 || !options.initial_guess) return solve_columns(method, B, X, options);
  check_solve_arguments(method, B, X, options);
  FailureScope failures;
  const StackedGuess<T> stacked(A, B, X, options.damp);
  SolveOptions plain = options;
  plain.damp = 0;
  plain.initial_guess = false;
  Method stacked_method(stacked.A(), plain, damped_range(A.range(), A.domain()), more...);
  DistMatrix<T> correction = make_together<T>(X.grid(), X.layout());
  SolveReport report = solve_columns(stacked_method, stacked.B(), correction, plain);
  X.grid()->backend()->template kernels<T>().add(T(1), std::as_const(correction).local(), T(1), X.local());
  recompute_norms(A, B, X, options.damp, report);
  return report;
}

}  // namespace gridlops
