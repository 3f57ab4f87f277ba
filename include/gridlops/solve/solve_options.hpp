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

/// One number for all columns of B, or one for each.
class PerColumn {
 public:
  PerColumn(double all) : values_{all} {}
  PerColumn(std::vector<double> each) : values_(std::move(each)) {}
  PerColumn(std::initializer_list<double> each) : values_(each) {}

  /// Whether there is one number for all columns.
  bool is_one() const { return values_.size() == 1; }
  /// The number for all columns; `otherwise` if each has its own.
  double one_or(double otherwise) const { return is_one() ? values_.front() : otherwise; }
  double operator[](Index column) const { return values_[is_one() ? 0 : static_cast<std::size_t>(column)]; }
  /// Whether some column's number is not 0.
  bool any() const {
    return std::any_of(values_.begin(), values_.end(), [](double value) { return value != 0; });
  }
  const std::vector<double>& values() const { return values_; }
  bool operator==(const PerColumn&) const = default;

 private:
  std::vector<double> values_;
};

/// The momentum of steps from y = x + ω(x − x₋): none; ω = (k − 1)/(k + 2) in iteration k (Vandenberghe's
/// lectures); or FISTA's.
enum class Acceleration { none, fista, vandenberghe };
/// "none", "fista" or "vandenberghe".
GRIDLOPS_EXPORT const char* name_of(Acceleration acceleration);

/// The options of all solvers. for_each_option() says which solver takes which; a solver refuses an option
/// that it does not take.
struct SolveOptions {
  Index max_iterations = 100;
  /// Relative; SolverRow::test says what it is for. Unset: 1e-8 in double, 1e-4 in single precision. 0 never
  /// converges.
  std::optional<PerColumn> tolerance{};
  /// D ≥ 0. The columns of a sweep of D over one right-hand side are copies of it, and share every product
  /// with A.
  PerColumn damp = 0;
  // atol is relative to ‖A‖‖r‖ and btol to ‖b‖; unset, they are the tolerance. The limit is one of cond(A);
  // 0: none.
  std::optional<double> atol{}, btol{};
  double condition_limit = 0;
  /// A column ends with user_stop once its ‖b − Ax‖ is at most this part of that at the start. 0: never.
  double residual_ratio = 0;
  bool initial_guess = false;  ///< X holds one; otherwise X is overwritten and starts from zero
  /// Solves about this many columns at a time to limit memory; each part of the column partition supplies its
  /// share, at least one. 0: all.
  Index batch = 0;
  /// Sums over ranks are in rank order. If the operator is column-stable, too, no bit of a column depends on
  /// the other columns.
  bool column_stable = false;
  bool record_history = true;
  /// One A.normal_product() gives q = A p, Aᴴr and Aᴴq, and the next gradient is Aᴴr − α Aᴴq − D²x. So an
  /// iteration reads A once if A.has_one_pass(). The iterates are as accurate as without, since r itself is
  /// updated and no error of a gradient is carried on. An iteration takes half as many operations again, so
  /// this is for a few columns only; one_pass_is_faster() says when.
  bool one_pass = false;
  /// After every `guard` iterations, counted from the start of a batch, the solver computes b − Ax anew and
  /// compares it with the recurrence; once more when columns have ended. Where they differ by more than
  /// rounding explains, as after a flipped bit, the column goes back to the last iterate that was checked,
  /// and begins anew from there once the others have ended. If it fails again at once, it ends as corrupted.
  /// Takes a product for each check, and ten products of one column to estimate ‖A‖. 0: never.
  Index guard = 0;

  PerColumn lambda = 0;  ///< λ ≥ 0, the weight of the penalty
  Threshold threshold = Threshold::soft;
  Acceleration acceleration = Acceleration::fista;
  /// Iteration k of a column thresholds with decay[k]·λ, with the last entry from there on; empty: with λ.
  std::vector<double> decay{};
  /// α > 0; unset: 1/(1.02‖A‖)² with ‖A‖ as estimate_norm() has it in 20 steps. The estimate is from below,
  /// by less than the 2 per cent unless the spectrum is very dense. Also then α is far below 2/‖A‖².
  std::optional<double> step{};
  /// Each column begins with α, or with 1/‖A‖² as estimated without the 2 per cent. If it proves too large,
  /// α‖A(x₊ − y)‖² > ‖x₊ − y‖², the iteration leaves x as it is and makes α smaller, at least by half.
  bool backtracking = false;
  /// Where the objective rises the step is not taken and the momentum starts anew, so that the objective
  /// falls monotonically (O'Donoghue, Candès: Adaptive restart for accelerated gradient schemes, Found.
  /// Comput. Math. 15, 2015).
  bool monotone = false;
  double absolute_tolerance = 0;

  std::vector<std::shared_ptr<SolveObserver>> observers{};  ///< see solve_observer.hpp
  CheckpointOptions checkpoint{};
};

/// What a restart does with an option that has another value than in the run that wrote the checkpoint.
enum class AtRestart {
  honoured,  ///< the new value counts from there on
  fixed      ///< the recurrence rests on the old value, so another one is refused
};
/// "honoured" or "fixed".
GRIDLOPS_EXPORT const char* name_of(AtRestart state);

/// A row of the table of options.
struct SolverOption {
  const char* name;   ///< as `gridlops solve` and its reports have it, without the dashes; null: not there
  const char* field;  ///< of SolveOptions; null: `gridlops solve` makes it from files and estimates
  Feature feature;    ///< that a solver needs to take it
  AtRestart at_restart;
  const char* group = "";        ///< the heading in the help
  const char* placeholder = "";  ///< for the value in the help
  const char* help = "";

  constexpr bool is_taken_by(Solver solver) const { return row_of(solver).has(feature); }
  /// The option's name, or else its field's.
  constexpr const char* title() const { return name != nullptr ? name : field; }
};

/// The one table of options: calls visit(option, &SolveOptions::field) for each. Ranks agree on these fields,
/// and numbers among them are checked to be finite and not negative. Solvers refuse those that they do not
/// take, checkpoints keep those that are fixed, and the program, its reports and Python have them all.
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
  option({"lambda", "lambda", penalty, fixed, problem, "L", "the weight of the penalty; PyLops' eps is 2 L"},
         &O::lambda);
  option({"threshold", "threshold", Feature::threshold, fixed, problem, "",
          "the penalty is |x|_1, the number of x != 0, or the sum of sqrt|x| / 2 [soft]"},
         &O::threshold);
  option({nullptr, "acceleration", Feature::acceleration, fixed}, &O::acceleration);
  option({nullptr, "decay", penalty, fixed}, &O::decay);
  option({"step", "step", penalty, fixed, method, "S", "length of the steps [1/|A|^2, estimated]"}, &O::step);
  option({"backtracking", "backtracking", penalty, fixed, method, "",
          "shortens a column's steps where they are too long"},
         &O::backtracking);
  option({"monotone", "monotone", momentum, fixed, method, "",
          "starts the momentum anew where the objective would rise"},
         &O::monotone);
  option({nullptr, "absolute_tolerance", penalty, honoured}, &O::absolute_tolerance);
}

/// Returns the table without the fields, and with the options that `gridlops solve` has besides.
GRIDLOPS_EXPORT const std::vector<SolverOption>& solver_options();
/// Returns the option of this name. Throws UsageError if there is none.
GRIDLOPS_EXPORT const SolverOption& solver_option(std::string_view name);

/// Returns SolveOptions::tolerance where it is unset.
GRIDLOPS_EXPORT double default_tolerance(ScalarType type);

}  // namespace gridlops
