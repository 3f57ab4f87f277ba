// SPDX-License-Identifier: BSD-3-Clause
#include "solve_record.hpp"

#include <fmt/format.h>

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Threshold threshold) {
  switch (threshold) {
    case Threshold::soft:
      return "soft";
    case Threshold::hard:
      return "hard";
    case Threshold::half:
      break;
  }
  return "half";
}

const char* penalty_of(Threshold threshold) {
  switch (threshold) {
    case Threshold::soft:
      return "|x|_1";
    case Threshold::hard:
      return "|x|_0";
    case Threshold::half:
      break;
  }
  return "sum sqrt|x| / 2";
}

bool is_sparse(Solver solver) { return solver == Solver::ista || solver == Solver::fista; }

std::string problem_of(const SolveTask& task) {
  const Solver solver = solver_of(task);
  if (solver == Solver::cg) return "(A + D^2 I) x = b";
  if (is_sparse(solver))
    return fmt::format("min |A x - b|^2 / 2 + lambda {}", penalty_of(task.arguments.threshold));
  return "min |A x - b|^2 + D^2 |x|^2";
}

/// Those that mean something to the solver, with the names that they have on the command line.
Json options_of(const SolveTask& task, const Solved& solved) {
  const SolveArguments& arguments = task.arguments;
  const SolveOptions& common = arguments.options;
  const Solver solver = solver_of(task);
  const double tolerance = common.tolerance.value_or(default_tolerance(task.shape.type));
  Json options{{"iterations", common.max_iterations}, {"tolerance", tolerance}};
  if (solver == Solver::lsqr || solver == Solver::lsmr) {
    options["atol"] = common.atol.value_or(tolerance);
    options["btol"] = common.btol.value_or(tolerance);
    options["conlim"] = common.condition_limit;
  }
  if (is_sparse(solver)) {
    if (arguments.lambda) options["lambda"] = *arguments.lambda;
    if (arguments.lambda_relative) options["lambda_relative"] = *arguments.lambda_relative;
    options["threshold"] = name_of(arguments.threshold);
    options["step"] = solved.report.step;
    options["backtracking"] = arguments.backtracking;
    if (solver == Solver::fista) options["monotone"] = arguments.monotone;
  } else {
    options["damp"] = solved.cost.damp;
    if (arguments.damp_relative) options["damp_relative"] = *arguments.damp_relative;
    if (solver != Solver::cg) options["precondition"] = arguments.precondition;
    if (solver == Solver::cgls) options["one_pass"] = task.one_pass;
  }
  options["panel"] = arguments.product.panel;
  options["batch"] = common.batch;
  options["column_stable"] = common.column_stable;
  options["guard"] = common.guard;
  options["verify_matrix"] = arguments.verify_matrix;
  return options;
}

std::vector<RunFile> files_of(const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  const NpyHeader solution{.type = task.shape.type,
                           .rows = task.shape.cols,
                           .cols = task.shape.nrhs,
                           .dimensions = task.B.dimensions};
  return {{"--matrix", arguments.product.matrix, task.A}, {"--rhs", arguments.rhs, task.B},
          {"--initial", arguments.initial, task.X0},      {"--output", arguments.output, solution},
          {"--variances", arguments.variances, solution}, {"--history", arguments.history, {}}};
}

}  // namespace

RunFacts facts_of(const SolveTask& task, const Solved& solved) {
  const ProcessGrid& grid = *task.grid;
  const double seconds =
      iteration_seconds(planned_iteration(task), grid.shape(), with_shared_memory(task.machine, grid));
  return {.command = "solve",
          .grid = grid.shape(),
          .shape = task.shape,
          .device = task.arguments.product.device,
          .transport = transport_of(grid),
          .product = RunFacts::Product{task.algorithm, task.storage, choices_of(task)},
          .prediction = RunFacts::Prediction{"iteration", task.machine_source, seconds},
          .column_figures = solved.column_figures,
          .problem = problem_of(task),
          .options = options_of(task, solved),
          .files = files_of(task),
          .hashes = task.arguments.product.hashes};
}

}  // namespace gridlops::program
