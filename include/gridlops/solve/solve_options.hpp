// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/solve/checkpoint.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops {

class SolveObserver;

/// One number for all columns of B, or one per column.
class PerColumn {
 public:
  PerColumn(double all) : values_{all} {}
  PerColumn(std::vector<double> each) : values_(std::move(each)) {}
  PerColumn(std::initializer_list<double> each) : values_(each) {}

  /// Whether one number applies to all columns.
  bool is_one() const { return values_.size() == 1; }
  /// The number for all columns, or `otherwise` if each column has its own.
  double one_or(double otherwise) const { return is_one() ? values_.front() : otherwise; }
  double operator[](Index column) const { return values_[is_one() ? 0 : static_cast<std::size_t>(column)]; }
  /// Whether any column's number is nonzero.
  bool any() const {
    return std::any_of(values_.begin(), values_.end(), [](double value) { return value != 0; });
  }
  const std::vector<double>& values() const { return values_; }
  bool operator==(const PerColumn&) const = default;

 private:
  std::vector<double> values_;
};

/// The momentum ω of steps from y = x + ω(x − x₋): none; ω = (k − 1)/(k + 2) in iteration k (Vandenberghe's
/// lectures); or FISTA's.
enum class Acceleration { none, fista, vandenberghe };
/// "none", "fista" or "vandenberghe".
GRIDLOPS_EXPORT const char* name_of(Acceleration acceleration);

/// The options of all solvers. for_each_option() says which solver takes which option. A solver refuses an
/// option that it does not take.
///
///   SolveOptions options{.max_iterations = 500, .damp = {1e-3, 1e-2, 1e-1}};  // one D for each column of B
///   options.batch = 16;                                                        // columns at a time
///   options.checkpoint = {.directory = "checkpoint", .every_seconds = 600};
///   const SolveReport report = cgls(*A, B, X, options);
///
/// Solvers throw UsageError, on all ranks before any communication, for an option that they do not take and
/// for a number that is NaN, infinite or negative.
struct SolveOptions {
  Index max_iterations = 100;
  /// Relative to the norm that SolverRow::test names. If unset, 1e-8 in double and 1e-4 in single precision.
  /// With 0 a column never converges.
  std::optional<PerColumn> tolerance{};
  /// D ≥ 0. To sweep over D, pass copies of one right-hand side as columns: they share every product with A.
  PerColumn damp = 0;
  // atol is relative to ‖A‖‖r‖ and btol to ‖b‖. If unset, they equal the tolerance. condition_limit bounds
  // cond(A); 0 means no limit.
  std::optional<double> atol{}, btol{};
  double condition_limit = 0;
  /// A column ends with user_stop once its ‖b − Ax‖ is at most this fraction of its initial value. 0: never.
  double residual_ratio = 0;
  /// A column has converged when its x is certainly no further than E‖x‖ from the solution: when the bound of
  /// error_bounds() with these σ and ‖A‖_F is that small. D or σ must not be 0. An unset tolerance is then 0.
  /// Where rounding hides that much, the column ends as stagnated. 0: errors are not tested.
  double error = 0;
  /// σ, for `error`, and for sharper bounds by error_bounds() where ColumnReport::quadrature has any.
  double sigma_min = 0;
  /// ‖A‖_F or more, which `error` needs. A σ that no A of this norm has is refused on all members.
  std::optional<double> frobenius_norm{};
  /// Start from the values in X; otherwise start from zero and overwrite X. A column that is so far off that
  /// rounding of its residual hides b, ε‖b − Ax‖ ≥ ‖b‖, starts from zero, too.
  bool initial_guess = false;
  /// Solves about this many columns at a time to limit memory; each part of the column partition supplies its
  /// share, at least one. 0: all columns at once.
  Index batch = 0;
  /// Sums over ranks in rank order. If the operator is column-stable too, no bit of a column depends on the
  /// other columns.
  bool column_stable = false;
  bool record_history = true;
  /// Computes q = A p, Aᴴr and Aᴴq with one A.normal_product(). The next gradient is Aᴴr − α Aᴴq − D²x, so an
  /// iteration reads A once if A.has_one_pass(). The iterates are as accurate as without this option: r
  /// itself is updated, and errors in the gradient do not accumulate. Where a step has shortened the gradient
  /// to half of its digits, the next one has length 0 and computes it anew. An iteration takes 50 % more
  /// operations, so this pays off only for a few columns; one_pass_is_faster() says when.
  bool one_pass = false;
  /// After every `guard` iterations, counted from the start of a batch, and once more when columns have
  /// ended, the solver recomputes b − Ax and compares it with the recurrence. If they differ by more than
  /// rounding explains, for example after a flipped bit, the column returns to the last iterate that passed a
  /// check, and restarts from there once the others have ended. If it fails again at once, it ends as
  /// corrupted. Each check takes one product, and estimating ‖A‖ takes ten products with one column. 0:
  /// never.
  Index guard = 0;

  PerColumn lambda = 0;  ///< λ ≥ 0, the weight of the penalty
  Threshold threshold = Threshold::soft;
  Acceleration acceleration = Acceleration::fista;
  /// Iteration k of a column uses the threshold decay[k]·λ; the last entry applies to all later iterations.
  /// Empty: λ.
  std::vector<double> decay{};
  /// α > 0. If unset, 1/(1.02‖A‖)², where ‖A‖ is estimated by estimate_norm() in 20 steps. The estimate is a
  /// lower bound, and less than 2 per cent too small unless the spectrum is very dense. Even then α is far
  /// below 2/‖A‖².
  std::optional<double> step{};
  /// Each column starts with α, or with 1/‖A‖² as estimated, without the 2 per cent margin. If α proves too
  /// large, α‖A(x₊ − y)‖² > ‖x₊ − y‖², the iteration leaves x unchanged and reduces α, at least by half.
  bool backtracking = false;
  /// If a step would increase the objective, the solver rejects it and restarts the momentum, so that the
  /// objective decreases monotonically (O'Donoghue, Candès: Adaptive restart for accelerated gradient
  /// schemes, Found. Comput. Math. 15, 2015).
  bool monotone = false;
  bool nonnegative = false;  ///< x ≥ 0. For other bounds see SolverOperands::lower.
  double absolute_tolerance = 0;

  std::vector<std::shared_ptr<SolveObserver>> observers{};  ///< see solve_observer.hpp
  CheckpointOptions checkpoint{};
};

/// How a restart treats an option whose value differs from that in the run that wrote the checkpoint.
enum class AtRestart {
  honoured,  ///< the new value applies from there on
  fixed      ///< the recurrence depends on the old value, so the restart refuses another one
};
/// "honoured" or "fixed".
GRIDLOPS_EXPORT const char* name_of(AtRestart state);

/// A row of the options table.
struct SolverOption {
  const char* name;   ///< in `gridlops solve` and its reports, without the dashes; null: not there
  const char* field;  ///< of SolveOptions; null: it is an option of the program alone
  Feature feature;    ///< a solver takes the option only if it has this feature
  AtRestart at_restart;
  const char* group = "";        ///< the heading in the help text
  const char* placeholder = "";  ///< stands for the value in the help text
  const char* help = "";

  constexpr bool is_taken_by(Solver solver) const { return row_of(solver).has(feature); }
  /// The option's name, or its field's if it has none.
  constexpr const char* title() const { return name != nullptr ? name : field; }
};

/// The only table of options: calls visit(option, &SolveOptions::field) for each. Ranks agree on these
/// fields, and numbers among them must be finite and not negative. Solvers refuse options that they do not
/// take, checkpoints store the fixed ones, and the program, its reports and Python have all of them.
template <class Visit>
void for_each_option(Visit&& visit) {
  using O = SolveOptions;
  using enum Feature;
  using enum AtRestart;
  constexpr const char *problem = "Problem", *end = "When a column ends", *method = "Method",
                       *checks = "Checkpoints and checks";
  const auto option = [&visit](const SolverOption& row, auto field) { visit(row, field); };
  option(
      {"iterations", "max_iterations", none, honoured, end, "K", "The most iterations of any column [100]"},
      &O::max_iterations);
  option({"tolerance", "tolerance", none, honoured, end, "T"}, &O::tolerance);
  option({"damp", "damp", damping, fixed, problem, "D", "damping [0]"}, &O::damp);
  option({"atol", "atol", backward_error, honoured, end, "T", "on |A^H r| / (|A| |r|) [the tolerance]"},
         &O::atol);
  option({"btol", "btol", backward_error, honoured, end, "T", "on |r| / |b| [the tolerance]"}, &O::btol);
  option({"conlim", "condition_limit", backward_error, honoured, end, "C",
          "stops where cond(A) seems larger [0: never]"},
         &O::condition_limit);
  option({nullptr, "residual_ratio", none, honoured}, &O::residual_ratio);
  option({"error", "error", error_bound, honoured, end, "E",
          "A column has converged when |x - x*| <= E |x| for certain, given --damp or --sigma-min"},
         &O::error);
  option({nullptr, "sigma_min", error_bound, honoured}, &O::sigma_min);
  option({nullptr, "frobenius_norm", error_bound, honoured}, &O::frobenius_norm);
  option({"initial", "initial_guess", none, fixed}, &O::initial_guess);
  option({"batch", "batch", none, fixed, method, "COLUMNS",
          "Solves about this many columns at a time, to save memory [0: all]"},
         &O::batch);
  option({"column-stable", "column_stable", none, honoured, method, "",
          "A column's bits do not depend on the other columns"},
         &O::column_stable);
  option({"one-pass", "one_pass", Feature::one_pass, fixed}, &O::one_pass);
  option({"guard", "guard", none, honoured, checks, "N",
          "Every N iterations compares the recurrence with B - A X: finds flipped bits [0: never]"},
         &O::guard);
  option({"nonnegative", "nonnegative", bounds, fixed, problem, "", "the same as --lower 0"},
         &O::nonnegative);
  option({"lambda", "lambda", penalty, fixed, problem, "L", "the weight of the penalty; PyLops' eps is 2 L"},
         &O::lambda);
  option({"threshold", "threshold", Feature::threshold, fixed, problem, "",
          "the penalty is |x|_1, the number of x != 0, or the sum of sqrt|x| / 2 [soft]"},
         &O::threshold);
  option({nullptr, "acceleration", Feature::acceleration, fixed}, &O::acceleration);
  option({nullptr, "decay", penalty, fixed}, &O::decay);
  option({"step", "step", penalty, fixed, method, "S",
          "length of the steps [1/|A|^2, estimated; with weights w 1/(max w |A|)^2 of each column]"},
         &O::step);
  option({"backtracking", "backtracking", penalty, fixed, method, "",
          "shortens a column's steps where they are too long"},
         &O::backtracking);
  option({"monotone", "monotone", momentum, fixed, method, "",
          "starts the momentum anew where the objective would rise"},
         &O::monotone);
  option({nullptr, "absolute_tolerance", penalty, honoured}, &O::absolute_tolerance);
}

/// Returns the table without the fields.
GRIDLOPS_EXPORT const std::vector<SolverOption>& solver_options();
/// Returns the option of this name. Throws UsageError if there is none.
GRIDLOPS_EXPORT const SolverOption& solver_option(std::string_view name);

/// Returns the tolerance used if SolveOptions::tolerance and `error` are unset.
GRIDLOPS_EXPORT double default_tolerance(ScalarType type);
/// Returns the tolerance that a solver with these options tests.
inline PerColumn tolerance_of(const SolveOptions& options, ScalarType type) {
  return options.tolerance.value_or(options.error > 0 ? 0 : default_tolerance(type));
}

}  // namespace gridlops
