// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "command_line/option_rules.hpp"
#include "gridlops/solve/damping_curve.hpp"
#include "gridlops/solve/plan.hpp"
#include "gridlops/solve/robust.hpp"
#include "gridlops/solve/solve_options.hpp"
#include "matrix/product_arguments.hpp"

namespace gridlops::program {

/// Many dampings in one solve.
struct SweepArguments {
  std::string damps;  ///< a file, or FIRST:LAST:COUNT; empty: there is one damping
  /// Or "space": all right-hand sides and dampings have one; "auto"; or "direct": they have one factor.
  std::string way = "columns";
  DampingRule rule = DampingRule::none;
  std::optional<double> noise;
  std::string save = "all";  ///< or "chosen"
  std::string curve;
  Index space_dimension = 0;  ///< as SpaceOptions::max_dimension

  bool in_space() const { return way == "space" || way == "auto"; }
  bool by_factor() const { return way == "direct"; }
  /// Whether each right-hand side is solved with every damping, and gets one of its own.
  bool chooses_each() const { return in_space() || by_factor(); }
  /// Whether the space may leave pairs of right-hand side and damping to the solver.
  bool leaves_rest() const { return way == "auto"; }
};

/// The arguments of `gridlops solve`. A file with an empty name is not wanted.
struct SolveArguments {
  std::set<std::string> given;  ///< the names of the options that the user gave, such as "--damp"
  ProductArguments product;
  std::string space;    ///< the directory of the space to start in
  std::string certify;  ///< the matrix that a compressed one was made of, for which answers are to be
  std::string rhs, output, initial, tolerances, variances, history;
  std::string weights;         ///< of the numbers of B
  std::string holes = "none";  ///< or "nan": these numbers of B have the weight 0
  Misfit misfit = Misfit::l2;
  std::optional<double> misfit_scale;  ///< none: by the median absolute deviation
  Solver solver = Solver::cgls;
  bool chooses_solver = false;  ///< the task has the solver then
  SolveOptions options;         ///< without the values that only the run knows
  std::optional<double> damp_relative;
  std::string lower, upper;  ///< a number or a file each
  SweepArguments sweep;
  std::string precondition = "none";
  std::optional<bool> one_pass = false;  ///< none: chosen
  StoredAs stored_as;
  Index memory = 0;            ///< of a rank, in bytes; 0: what is available
  std::string scratch, tiles;  ///< for a matrix on disks
  std::optional<double> lambda_relative;
  std::optional<double> sigma_min;  ///< no singular value of A is smaller
  std::string sigma_min_way;  ///< "probable", by a sketch of A, or "proven"; empty: it is given, or unknown
  bool verify_matrix = false;
  bool dry_run = false;
  bool quiet = false;

  bool is_given(const char* option) const { return given.count(option) > 0; }
  bool is_damped() const {
    return options.damp.any() || damp_relative.value_or(0) > 0 || !sweep.damps.empty();
  }
  bool has_bounds() const { return options.nonnegative || !lower.empty() || !upper.empty(); }
  /// Whether weights follow X.
  bool reweighs() const { return misfit != Misfit::l2; }
  bool weighs() const { return !weights.empty() || holes != "none" || reweighs(); }
  const char* option_of_weights() const {
    return reweighs() ? "--misfit" : weights.empty() ? "--holes nan" : "--weights";
  }
  bool needs_space() const { return sweep.in_space() || !space.empty(); }
  bool sketches() const { return sigma_min_way == "probable"; }
  bool proves_sigma_min() const { return sigma_min_way == "proven"; }
  bool bounds_errors() const { return sigma_min || !sigma_min_way.empty() || options.error > 0; }
};

/// The only table of options that some solvers do not take, or that reports or restarts know, besides the
/// library's, for_each_option(): calls visit(option, value_of) for each, where
/// std::invoke(value_of, arguments) is a reference to its value. Rows without help have a syntax of their own
/// in solve_command.cpp.
template <class Visit>
void for_each_program_option(Visit&& visit) {
  using enum Feature;
  using enum AtRestart;
  using A = SolveArguments;
  const auto of = [](auto part, auto field) {
    return [=](auto& arguments) -> auto& { return arguments.*part.*field; };
  };
  const auto option = [&visit](const SolverOption& row, auto value_of) { visit(row, value_of); };
  option({"tolerances", nullptr, none, honoured}, &A::tolerances);
  option(
      {"damp-relative", nullptr, damping, fixed, "Problem", "F", "damping D = F |A|, where |A| is estimated"},
      &A::damp_relative);
  option({"damps", nullptr, damping_per_column, fixed}, of(&A::sweep, &SweepArguments::damps));
  option({"choose", nullptr, damping_per_column, honoured}, of(&A::sweep, &SweepArguments::rule));
  option({"noise", nullptr, damping_per_column, honoured, "Sweep of the damping", "S",
          "the norm of the noise in B, for --choose discrepancy"},
         of(&A::sweep, &SweepArguments::noise));
  option({"save", nullptr, damping_per_column, honoured}, of(&A::sweep, &SweepArguments::save));
  option({"lower", nullptr, bounds, fixed, "Problem", "L|L.npy",
          "l <= x: a number, a vector for all columns, or a matrix as X; infinite where nothing bounds x; "
          "--solver is "
          "then bounded, unless it is given"},
         &A::lower);
  option({"upper", nullptr, bounds, fixed, "Problem", "U|U.npy", "x <= u, likewise"}, &A::upper);
  option({"lambda-relative", nullptr, penalty, fixed, "Problem", "F",
          "of each column: lambda = F |A^H b|_inf; of the hard and half thresholds F times the least with "
          "which the first step from 0 ends there; with 1, and the soft threshold, x is 0; 0.1 to 0.01 are "
          "a start"},
         &A::lambda_relative);
  option({"precondition", nullptr, column_scaling, fixed}, &A::precondition);
  option({"weights", nullptr, Feature::weights, fixed, "Problem", "W.npy",
          "a weight >= 0 for each number of B, or for each row: minimises |W o (A X - B)|; 0 leaves a number "
          "out, whatever B has there"},
         &A::weights);
  option({"holes", nullptr, Feature::weights, fixed}, &A::holes);
  option({"misfit", nullptr, Feature::misfit, fixed}, &A::misfit);
  option({"misfit-scale", nullptr, Feature::misfit, fixed}, &A::misfit_scale);
  option(
      {"variances", nullptr, Feature::variances, fixed, "Results", "V.npy",
       "writes the diagonals of (A^H A + D^2 I)^-1, with weights w those of diag(w) A: lsqr estimates them, "
       "direct is exact"},
      &A::variances);
  option({"sigma-min", nullptr, error_bound, honoured}, &A::sigma_min);
  option({"algorithm", nullptr, none, honoured}, of(&A::product, &ProductArguments::algorithm));
  option({"panel", nullptr, none, honoured}, of(&A::product, &ProductArguments::panel));
  option({"storage", nullptr, none, honoured}, of(&A::stored_as, &StoredAs::storage));
  option({"verify-matrix", nullptr, none, honoured, "Checkpoints and checks", "",
          "Fails with status 1, without X, if A has changed in memory during the solve"},
         &A::verify_matrix);
}

/// Returns the rows of both tables, the library's first.
const std::vector<SolverOption>& options_of_solve();

/// Returns the rules that arguments break by themselves, whatever files and machines have, in the order in
/// which the user is told of them.
std::vector<Rule> rules_of(const SolveArguments& arguments);
/// Those that say why some solvers do not take weights.
std::vector<Rule> rules_of_weights(const SolveArguments& arguments);
/// Tells the command line which options need or exclude each other without a reason.
void relate_options(Options& options);
/// Returns the option, if any, that needs the elements of a matrix; otherwise null.
const char* option_for_elements(const SolveArguments& arguments);

/// Returns what these arguments ask for, whatever the matrix is.
IterationRequest requested_by(const SolveArguments& arguments);

/// Solves (collective over world). Returns rank 0's exit status there, and throws the same error on all
/// ranks.
ExitStatus solve(Communicator& world, const SolveArguments& arguments);

}  // namespace gridlops::program
