// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <utility>

#include "solve/task/solve_arguments.hpp"

// Which options of `gridlops solve` exclude each other. Rules that know the file or the memory are asked
// of the matrix (MatrixFile), and of what finds room for it (find_room()).

namespace gridlops::program {

namespace {

/// Rules of variances, and of sweeps of the damping.
std::vector<Rule> rules_of_problem(const SolveArguments& a) {
  const SolverRow& solver = row_of(a.solver);
  const SweepArguments& sweep = a.sweep;
  const bool sweeps = !sweep.damps.empty();
  const Asked precondition{"--precondition", a.is_given("--precondition")},
      weights{a.option_of_weights(), a.weighs()};
  return {
      exclude({"--variances", a.is_given("--variances")}, precondition,
              "with scaled columns the estimates are those of the scaled X"),
      exclude({"--damps", sweeps}, {"--precondition", a.precondition != "none"},
              "with scaled columns the damping is part of the operator, which all columns share"),
      {sweeps && solver.problem != ProblemKind::least_squares &&
           (sweep.rule == DampingRule::lcurve || sweep.rule == DampingRule::gcv),
       fmt::format("--choose {} is for least squares, and means nothing to {}", name_of(sweep.rule),
                   solver.name)},
      {solver.has(Feature::bounds) && sweep.rule == DampingRule::gcv,
       "--choose gcv needs an X that is linear in B, and with bounds none is; take lcurve or discrepancy"},
      {sweeps && sweep.noise.has_value() != (sweep.rule == DampingRule::discrepancy),
       "--choose discrepancy and --noise, the norm of the noise in B, need each other"},
      exclude({"--one-pass on", a.one_pass == true}, weights,
              "one pass gives A^H A P, without the weights between"),
      exclude(weights, precondition, "the columns of diag(w) A have other norms for each column w of W"),
      exclude({"--misfit", a.reweighs()}, {"--damps", sweeps},
              "every damping would have weights of its own, so that residuals do not compare"),
      exclude({"--misfit", a.reweighs()},
              {a.options.checkpoint.restart.empty() ? "--checkpoint" : "--restart",
               !a.options.checkpoint.restart.empty() || !a.options.checkpoint.directory.empty()},
              "a checkpoint belongs to one solve, and a misfit takes several"),
      exclude({"--misfit", a.reweighs()},
              {a.options.error > 0 ? "--error" : "--sigma-min", a.bounds_errors()},
              "weights follow X, and sigma_min of diag(w) A is not known; with --damp the report has a "
              "misfit_distance"),
      {a.is_given("--misfit-scale") && !a.reweighs(), "--misfit-scale needs --misfit"},
      {a.misfit_scale && !(*a.misfit_scale > 0),
       fmt::format("--misfit-scale is {}; residuals are divided by it: it must be > 0",
                   a.misfit_scale.value_or(0))},
      {a.weighs() && sweep.rule == DampingRule::gcv,
       "--choose gcv counts all rows of A, and excludes --weights and --holes, which leave some out"},
      {sweeps && !sweep.in_space() && sweep.space_dimension > 0,
       "--space-dimension needs --sweep space or auto, which make a space"},
      {sweeps && sweep.chooses_each() && sweep.rule == DampingRule::none,
       fmt::format("--sweep {} needs --choose: X has one solution for each right-hand side", sweep.way)},
  };
}

/// Rules of a sweep with one space, or one factor, for all right-hand sides and dampings, and of --space.
std::vector<Rule> rules_of_sharing(const SolveArguments& a) {
  const bool chooses_each = a.sweep.chooses_each(), saves_no_space = !a.sweep.in_space();
  const std::string name = chooses_each ? "--sweep " + a.sweep.way : "--space";
  const Asked shared{name, chooses_each || a.needs_space()};
  const Solver solver = a.sweep.by_factor() ? Solver::direct : Solver::cgls;
  const Algorithm algorithm = a.product.algorithm;
  return {
      {shared.is_so && a.solver != solver,
       fmt::format("{} is for {}, not for {}", name, name_of(solver), name_of(a.solver))},
      {a.needs_space() && !may_be(algorithm, Algorithm::stationary_a),
       fmt::format("{} needs --algorithm stationary-a, and not {}: right-hand sides that share a space lie "
                   "together",
                   name, name_of(algorithm))},
      exclude(shared, {a.option_of_weights(), a.weighs()},
              "columns with weights of their own have operators of their own, which share nothing"),
      exclude(shared, {"--dry-run", !chooses_each && a.dry_run}),
      exclude(shared, {"--initial", !a.initial.empty()}),
      exclude(shared, {"--tolerances", chooses_each && !a.tolerances.empty()}),
      exclude(shared, {"--precondition", a.precondition != "none"}),
      exclude(shared, {"--batch", a.options.batch > 0}),
      exclude(shared, {"--checkpoint", saves_no_space && !a.options.checkpoint.directory.empty()}),
      exclude(shared, {"--restart", saves_no_space && !a.options.checkpoint.restart.empty()}),
  };
}

/// Rules of original matrices, of bounds of errors, and of penalties.
std::vector<Rule> rules_of_accuracy(const SolveArguments& a) {
  const bool certifies = !a.certify.empty();
  return {
      {certifies && a.solver != Solver::cgls,
       fmt::format("--certify takes conjugate gradients with both matrices, not --solver {}",
                   name_of(a.solver))},
      exclude({"--certify", certifies}, {"a space, of --sweep or --space,", a.needs_space()}),
      exclude({"--certify", certifies}, {a.option_of_weights(), a.weighs()}),
      exclude({"--error", a.options.error > 0}, {"--precondition", a.is_given("--precondition")},
              "the solver finds z of x = P z, and the error is that of x"),
      {a.proves_sigma_min() && !may_be(a.product.algorithm, Algorithm::stationary_a) &&
           a.product.algorithm != Algorithm::block,
       fmt::format(
           "--sigma-min proven needs --algorithm stationary-a or block, and not {}: it reads whole rows "
           "of A",
           name_of(a.product.algorithm))},
      {a.proves_sigma_min() && a.product.device != "cpu",
       fmt::format("--sigma-min proven is for --device cpu, not for {}", a.product.device)},
      {a.bounds_errors() && a.sigma_min.value_or(0) == 0 && a.sigma_min_way.empty() && !a.is_damped(),
       "nothing bounds errors without damping, unless --sigma-min says that no singular value of A is near "
       "0"},
      {a.solver == Solver::bounded && !a.has_bounds(),
       "--solver bounded needs --nonnegative, --lower or --upper; without bounds cgls takes fewer "
       "iterations"},
      {row_of(a.solver).has(Feature::penalty) && !a.is_given("--lambda") && !a.lambda_relative,
       fmt::format("--solver {} needs --lambda, the weight of the penalty that makes X sparse, or "
                   "--lambda-relative, 0.1 say; 0 would be least squares, which lsqr solves in far fewer "
                   "iterations",
                   name_of(a.solver))},
  };
}

}  // namespace

std::vector<Rule> rules_of_weights(const SolveArguments& a) {
  const SolverRow& solver = row_of(a.solver);
  std::vector<Rule> rules;
  for (const auto& [feature, shared] :
       {std::pair{Feature::shared_space, "space"}, {Feature::factor, "factor"}})
    rules.push_back({a.weighs() && solver.has(feature),
                     fmt::format("{} gives every column an operator of its own, and these share no {}: take "
                                 "another solver than {}",
                                 a.option_of_weights(), shared, solver.name)});
  return rules;
}

std::vector<Rule> rules_of(const SolveArguments& arguments) {
  std::vector<Rule> rules = rules_of(requested_by(arguments));
  for (auto* more : {rules_of_problem, rules_of_sharing, rules_of_accuracy})
    for (Rule& rule : more(arguments)) rules.push_back(std::move(rule));
  return rules;
}

void relate_options(Options& options) {
  options.exclude("--damp-relative", "--damp");
  options.exclude("--lambda-relative", "--lambda");
  options.exclude("--nonnegative", "--lower");
  for (const char* other : {"--damp", "--damp-relative", "--space"}) options.exclude("--damps", other);
  options.exclude("--tolerances", "--tolerance");
  for (const char* of_sweep : {"--sweep", "--choose", "--curve"}) options.need(of_sweep, "--damps");
  for (const char* of_choice : {"--noise", "--save", "--space-dimension"})
    options.need(of_choice, "--choose");
  options.need("--checkpoint-every", "--checkpoint");
}

const char* option_for_elements(const SolveArguments& arguments) {
  const bool has_elements = !arguments.certify.empty();
  const std::vector<std::pair<const char*, bool>> needs{
      {"--precondition", arguments.precondition != "none"},
      {"--verify-matrix", arguments.verify_matrix && !has_elements},
      {"--column-stable", arguments.options.column_stable},
      {"--sigma-min", arguments.sigma_min || !arguments.sigma_min_way.empty()},
      {"--one-pass", arguments.one_pass.value_or(false)},
      {"--storage", arguments.stored_as.storage && !has_elements},
      {"--tiles", !arguments.tiles.empty()}};
  for (const auto& [option, is_asked] : needs)
    if (is_asked) return option;
  return nullptr;
}

}  // namespace gridlops::program
