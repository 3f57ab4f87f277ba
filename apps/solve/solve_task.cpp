// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_task.hpp"

#include <fmt/format.h>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/machine_file.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "solve/solve_record.hpp"

namespace gridlops::program {

namespace {

/// How A is stored. A restart with `auto` continues with the first run's storage, if the algorithm is the
/// same.
Storage storage_of_run(const SolveTask& task) {
  AskedChoices asked = asked_choices(task);
  if (const std::string saved = saved_fact(task.saved, storage_fact);
      !asked.storage && !saved.empty() && saved_fact(task.saved, algorithm_fact) == name_of(task.algorithm))
    asked.storage = parse_storage(saved);
  return storage_for(asked, planned_iteration(task), task.grid->shape());
}

/// The requested grid; else the grid of the run that a restart continues, if it has this many ranks; else the
/// one with the fastest iterations.
GridShape grid_for(const SolveTask& task, int ranks) {
  if (task.arguments.product.grid) return *task.arguments.product.grid;
  if (const std::string saved = saved_fact(task.saved, grid_fact); !saved.empty())
    if (const GridShape grid = parse_grid_shape(saved); grid.size() == ranks) return grid;
  return choose_grid(ranks, [&](GridShape grid) {
    const AskedChoices asked = asked_choices(task);
    const bool one_pass = reads_once(asked, task.shape, grid);
    Algorithm algorithm = algorithm_for(asked, one_pass);
    if (algorithm == Algorithm::automatic) algorithm = choose_algorithm(task.shape, grid, task.machine);
    return iteration_seconds(planned_iteration(asked, task.shape, algorithm, one_pass, grid), grid,
                             task.machine);
  });
}

/// The calibration by which the run chooses (collective over world). A restart chooses as its first run did:
/// it measures nothing, and built-in choices stay.
Calibration calibration_of_run(Communicator& world, const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  if (saved_fact(task.saved, choices_fact) == Calibration().source_of_choices(task.shape.type)) return {};
  const bool may_measure = arguments.product.device == "cpu" && !arguments.dry_run && task.saved.empty();
  return calibration_for(world, task.shape, may_measure, world.rank() == 0 && !arguments.quiet);
}

/// One tolerance for each column, if there is a file of them (collective over world).
std::vector<double> read_tolerances(Communicator& world, const SolveTask& task) {
  const std::string& path = task.arguments.tolerances;
  if (path.empty()) return {};
  const std::vector<double> tolerances = read_vector(world, path, "a tolerance", "tolerances");
  const auto columns = task.sweep ? std::ssize(task.sweep.damps) : task.B.cols;
  if (std::ssize(tolerances) != columns) {
    throw InputError(fmt::format("{} holds {} tolerances, but there must be {}, one for each {}", path,
                                 tolerances.size(), columns, task.sweep ? "damping" : "right-hand side"));
  }
  return task.sweep.of_all_columns(tolerances);
}

}  // namespace

SolveTask read_task(Communicator& world, const SolveArguments& arguments, const Ranks& ranks) {
  const std::string& matrix = arguments.product.matrix;
  SolveTask task;
  task.arguments = arguments;
  task.A = read_npy_header(world, matrix);
  task.B = read_npy_header(world, arguments.rhs);
  if (const std::string& saved = arguments.options.checkpoint.restart; !saved.empty()) {
    task.saved = checkpoint_facts(world, saved);
    const std::string unfinished = unfinished_checkpoint(world, saved);
    if (!unfinished.empty() && world.rank() == 0) {
      warn(fmt::format(
          "{} is left out, because the job that wrote it ended before it was complete; the restart goes "
          "on after iteration {}",
          unfinished, saved_fact(task.saved, "iteration")));
    }
  }
  check_operand(matrix, task.A, arguments.rhs, task.B,
                {task.A.rows, "rows of A", "did you transpose A? Its transpose would fit"});
  if (const std::string refusal = shape_refusal(arguments.solver, task.A.rows, task.A.cols); !refusal.empty())
    throw InputError(fmt::format("{} is {}", matrix, refusal));
  if (!arguments.initial.empty()) {
    task.X0 = read_npy_header(world, arguments.initial);
    check_operand(matrix, task.A, arguments.initial, *task.X0,
                  {task.A.cols, "columns of A", "did you transpose A? Its transpose would fit"});
    if (task.X0->cols != task.B.cols) {
      throw InputError(
          fmt::format("{} has {} columns, but {} has {}: each right-hand side needs its own start",
                      arguments.initial, task.X0->cols, arguments.rhs, task.B.cols));
    }
  }
  std::vector<std::pair<std::string, NpyHeader>> files{{matrix, task.A}, {arguments.rhs, task.B}};
  if (task.X0) files.emplace_back(arguments.initial, *task.X0);
  const CommonType common = common_type(files);
  task.promotions = common.promotions;
  task.sweep = plan_sweep(world, arguments, task.B.cols);
  task.tolerances = read_tolerances(world, task);
  task.shape = {task.A.rows, task.A.cols, task.sweep.columns(task.B.cols), common.type};
  task.calibration = calibration_of_run(world, task);
  const Machine machine = read_machine(world, arguments.product.machine);
  task.machine = model_of(machine, ranks);
  task.machine_source = machine.source;
  task.grid = make_grid(ranks, grid_for(task, world.size()));
  adopt_choices(task.saved, task.grid->shape(), task.arguments.product);
  const AskedChoices asked = asked_choices(task);
  task.one_pass = reads_once(asked, task.shape, task.grid->shape());
  require_same_options(task);
  require_compatible(asked);  // with what a restart has taken from its run
  task.algorithm = resolve(algorithm_for(asked, task.one_pass), task.shape, *task.grid, task.machine);
  task.storage = storage_of_run(task);
  task.grid = matrix_grid(task.algorithm, task.grid);
  return task;
}

AskedChoices asked_choices(const SolveArguments& arguments) {
  return {.solver = arguments.solver,
          .one_pass = arguments.one_pass,
          .algorithm = arguments.product.algorithm,
          .storage = arguments.storage,
          .panel = arguments.product.panel,
          .batch = arguments.options.batch,
          .scaled = arguments.precondition == "column-norms",
          .on_host = arguments.product.device == "cpu"};
}

AskedChoices asked_choices(const SolveTask& task) {
  AskedChoices asked = asked_choices(task.arguments);
  const std::string saved = saved_fact(task.saved, one_pass_fact);
  if (asked.one_pass == "auto" && !saved.empty()) asked.one_pass = saved;
  return asked;
}

Layout layout_of_matrix(const SolveTask& task) {
  return matrix_layout(task.algorithm, *task.grid, task.A.rows, task.A.cols);
}

PlannedIteration planned_iteration(const SolveTask& task) {
  return planned_iteration(asked_choices(task), task.shape, task.algorithm, task.one_pass,
                           task.grid->shape());
}

std::string choices_of(const SolveTask& task) { return task.calibration.source_of_choices(task.shape.type); }

}  // namespace gridlops::program
