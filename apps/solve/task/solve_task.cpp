// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/solve_task.hpp"

#include <fmt/format.h>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "machine/machine_file.hpp"
#include "solve/certify.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/choose_solver.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

/// The headers of A, B and the initial guess.
struct InputHeaders {
  MatrixFile A;
  MatrixHeader B;
  std::optional<MatrixHeader> X0;
};

/// Reads them (collective over world). Throws InputError on all ranks if they do not fit together.
InputHeaders read_headers(Communicator& world, const SolveArguments& arguments) {
  const std::string &matrix = arguments.product.matrix, &rhs = arguments.rhs, &initial = arguments.initial;
  constexpr const char* hint = "did you transpose A? Its transpose would fit";
  const MatrixFile A(world, matrix);
  const MatrixHeader B = read_matrix_header(world, rhs);
  check_operand(matrix, A.header(), rhs, B, {A.rows(), "rows of A", hint});
  if (const std::string refusal = shape_refusal(arguments.solver, A.rows(), A.cols()); !refusal.empty())
    throw InputError(fmt::format("{} is {}", matrix, refusal));
  if (initial.empty()) return {A, B, {}};
  const MatrixHeader X0 = read_matrix_header(world, initial);
  check_operand(matrix, A.header(), initial, X0, {A.cols(), "columns of A", hint});
  if (X0.cols != B.cols) {
    throw InputError(fmt::format("{} has {} columns, but {} has {}: each right-hand side needs its own start",
                                 initial, X0.cols, rhs, B.cols));
  }
  return {A, B, X0};
}

CommonType common_type_of(const SolveArguments& arguments, const InputHeaders& inputs) {
  std::vector<std::pair<std::string, MatrixHeader>> files{{arguments.product.matrix, inputs.A.header()},
                                                          {arguments.rhs, inputs.B}};
  if (inputs.X0) files.emplace_back(arguments.initial, *inputs.X0);
  return common_type(files);
}

/// The facts in a restart's checkpoint; empty without a restart (collective over world). Rank 0 warns of a
/// later checkpoint that is incomplete.
CheckpointFacts read_saved(Communicator& world, const std::string& directory) {
  if (directory.empty()) return {};
  const CheckpointFacts saved = checkpoint_facts(world, directory);
  const std::string unfinished = unfinished_checkpoint(world, directory);
  if (!unfinished.empty() && world.rank() == 0) {
    warn(
        fmt::format("{} is left out, because the job that wrote it ended before it was complete; the restart "
                    "goes on after iteration {}",
                    unfinished, saved_fact(saved, "iteration")));
  }
  return saved;
}

/// The tolerances in a file, one for each column; empty without a file (collective over world).
std::vector<double> read_tolerances(Communicator& world, const std::string& path, const Sweep& sweep,
                                    Index columns_of_B) {
  if (path.empty()) return {};
  const std::vector<double> tolerances = read_vector(world, path, "a tolerance", "tolerances");
  const auto columns = sweep ? std::ssize(sweep.damps) : columns_of_B;
  if (std::ssize(tolerances) != columns) {
    throw InputError(fmt::format("{} holds {} tolerances, but there must be {}, one for each {}", path,
                                 tolerances.size(), columns, sweep ? "damping" : "right-hand side"));
  }
  return sweep.of_all_columns(tolerances);
}

/// The source of this run's choices (collective over world). A restart chooses like the run that it
/// continues: it measures nothing, and keeps built-in choices.
std::string source_of_choices(Communicator& world, const SolveArguments& arguments,
                              const CheckpointFacts& saved, const ProductShape& shape) {
  const std::string built_in = Calibration().source_of_choices(shape.type);
  if (saved_fact(saved, choices_fact) == built_in) return built_in;
  const bool may_measure = arguments.product.device == "cpu" && !arguments.dry_run && saved.empty();
  return calibration_for(world, shape, may_measure, world.rank() == 0 && !arguments.quiet)
      .source_of_choices(shape.type);
}

/// The most columns of a product: of a batch, or of a sketch.
Index most_columns(const SolveTask& task) {
  const Index of_solver =
      largest_batch(Partition::with_sizes({task.shape.nrhs}), task.arguments.options.batch);
  if (!task.arguments.probable_sigma_min) return of_solver;
  return std::max(of_solver, std::min(sketch_group, sketch_rows(task.shape.cols)));
}

/// Like request_of(), but a restart with `--one-pass auto`, or of a run with A on disks, continues in the way
/// in which its run began.
IterationRequest request_of(const SolveArguments& arguments, bool is_compressed,
                            const CheckpointFacts& saved) {
  IterationRequest asked = request_of(arguments, is_compressed);
  const bool was_on_disk = saved_fact(saved, storage_fact) == disk_name;
  const bool is_open = !asked.one_pass || (!arguments.is_given("--one-pass") && was_on_disk);
  if (const std::string one_pass = saved_fact(saved, one_pass_fact); is_open && !one_pass.empty())
    asked.one_pass = one_pass == "on";
  return asked;
}

/// The requested grid; else the grid of the run that a restart continues, if it has the same number of ranks;
/// else the best grid for its iterations.
GridShape grid_for(const SolveArguments& arguments, const MatrixFile& A, const CheckpointFacts& saved,
                   const ProductShape& shape, const MachineModel& machine, int ranks) {
  if (arguments.product.grid) return *arguments.product.grid;
  if (const std::string fact = saved_fact(saved, grid_fact); !fact.empty())
    if (const GridShape grid = parse_grid_shape(fact); grid.size() == ranks) return grid;
  const IterationRequest asked = request_of(arguments, A.is_compressed(), saved);
  return choose_grid(ranks, [&](GridShape grid) {
    return A.cost_on(grid, shape, [&] {
      return iteration_seconds(plan_iteration(asked, shape, grid, machine), grid, machine);
    });
  });
}

/// The iteration of the run. A restart with `--storage auto` stores A like the run that it continues, if the
/// algorithm is the same.
PlannedIteration iteration_for(const SolveArguments& arguments, bool is_compressed,
                               const CheckpointFacts& saved, const ProductShape& shape, GridShape grid,
                               const MachineModel& machine) {
  IterationRequest asked = request_of(arguments, is_compressed, saved);
  const PlannedIteration planned = plan_iteration(asked, shape, grid, machine);
  const std::string storage = saved_fact(saved, storage_fact);
  if (asked.storage || asked.place == MatrixPlace::disk || storage.empty() ||
      saved_fact(saved, algorithm_fact) != name_of(planned.algorithm))
    return planned;
  if (storage == disk_name) {
    asked.place = MatrixPlace::disk;
  } else {
    asked.storage = parse_storage(storage);
  }
  return plan_iteration(asked, shape, grid, machine);
}

/// The modelled seconds with this solver; none if no model knows them.
std::optional<SolverSeconds> seconds_with(Solver solver, SolveArguments arguments, const MatrixFile& A,
                                          const CheckpointFacts& saved, const ProductShape& shape,
                                          const MachineModel& machine, int ranks) {
  if (A.is_compressed()) return {};
  arguments.solver = solver;
  const GridShape grid = grid_for(arguments, A, saved, shape, machine, ranks);
  const PlannedIteration iteration = plan_iteration(request_of(arguments, false), shape, grid, machine);
  return SolverSeconds{iteration_seconds(iteration, grid, machine), factor_seconds(iteration, grid, machine)};
}

/// Throws UsageError if --sigma-min cannot be for an A of this shape.
void check_sigma_min(const SolveArguments& arguments, const ProductShape& shape) {
  if (arguments.sigma_min.value_or(0) > 0 && shape.rows < shape.cols) {
    throw UsageError(fmt::format(
        "--sigma-min is {}, but A is {} x {}: it takes some x to 0, and only damping bounds errors there",
        *arguments.sigma_min, shape.rows, shape.cols));
  }
  if (arguments.probable_sigma_min && shape.rows < sketch_rows(shape.cols)) {
    throw UsageError(fmt::format(
        "--sigma-min is probable, but A is {} x {}, and a sketch would have {} rows: give a number, the "
        "smallest singular value of A",
        shape.rows, shape.cols, sketch_rows(shape.cols)));
  }
}

}  // namespace

SolveTask make_task(Communicator& world, const SolveArguments& arguments_given, const Ranks& ranks) {
  SolveArguments given = arguments_given;
  InputHeaders inputs = read_headers(world, given);
  const CommonType common = common_type_of(given, inputs);
  const bool is_compressed = inputs.A.is_compressed();
  inputs.A.require_fits(given.product.algorithm, common.type);
  inputs.A.require_elements(option_for_elements(given));
  const std::optional<MatrixFile> original = read_original(world, given, inputs.A);
  inputs.A.read_tables(world);
  const CheckpointFacts saved = read_saved(world, given.options.checkpoint.restart);
  const Sweep sweep = plan_sweep(world, given, inputs.B.cols);
  const std::vector<double> tolerances = read_tolerances(world, given.tolerances, sweep, inputs.B.cols);
  const ProductShape shape{inputs.A.rows(), inputs.A.cols(), sweep.columns(inputs.B.cols), common.type};
  const std::string choices = source_of_choices(world, given, saved, shape);
  const Machine machine = read_machine(world, given.product.machine);
  const MachineModel model = model_of(machine, *ranks.comm);
  std::string why_solver;
  if (given.chooses_solver) {
    const auto [solver, why] = choose_solver(given, saved, shape, world.size(), [&](Solver with) {
      return seconds_with(with, given, inputs.A, saved, shape, model, world.size());
    });
    given.solver = solver;
    why_solver = why;
  }
  const auto grid = make_grid(ranks, grid_for(given, inputs.A, saved, shape, model, world.size()));
  const MachineModel grid_model = with_shared_memory(model, *grid);
  const SolveArguments arguments = adopt_choices(saved, grid->shape(), given);
  const PlannedIteration iteration =
      iteration_for(arguments, is_compressed, saved, shape, grid->shape(), grid_model);
  SolveTask task{.arguments = arguments,
                 .A = inputs.A,
                 .original = original,
                 .B = inputs.B,
                 .X0 = inputs.X0,
                 .promotions = common.promotions,
                 .saved = saved,
                 .sweep = sweep,
                 .tolerances = tolerances,
                 .shape = shape,
                 .why_solver = why_solver,
                 .choices = choices,
                 .machine_source = machine.source,
                 .machine = grid_model,
                 .own_memory = grid,
                 .placed = {.iteration = iteration, .grid = matrix_grid(iteration.algorithm, grid)}};
  check_sigma_min(arguments, shape);
  require_same_options(task);
  // With the values that a restart takes from its run.
  check_rules(rules_of(request_of(arguments, is_compressed, saved)));
  task.placed = find_room(world, task);
  return task;
}

KeptMatrix SolveTask::kept() const {
  return {.type = shape.type,
          .grid = grid()->shape(),
          .columns = most_columns(*this),
          .place = iteration().place,
          .memory = placed.memory_of_tiles,
          .in_place = placed.in_place};
}

Placement SolveTask::on_disk() const {
  SolveArguments on_disk = arguments;
  on_disk.stored_as = {.place = MatrixPlace::disk};
  const PlannedIteration iteration =
      iteration_for(on_disk, A.is_compressed(), saved, shape, grid()->shape(), machine);
  return {.iteration = iteration, .grid = matrix_grid(iteration.algorithm, own_memory)};
}

IterationRequest request_of(const SolveArguments& arguments, bool is_compressed) {
  const bool never_moves = arguments.needs_space() || is_compressed;
  const bool has_passes =
      arguments.is_given("--one-pass") || arguments.stored_as.place == MatrixPlace::memory;
  return {
      .solver = arguments.solver,
      .algorithm = never_moves ? Algorithm::stationary_a : arguments.product.algorithm,
      .one_pass = is_compressed ? false
                  : has_passes  ? arguments.one_pass
                                : std::nullopt,
      .storage = is_compressed && arguments.certify.empty() ? Storage::columns : arguments.stored_as.storage,
      .place = arguments.stored_as.place,
      .panel = arguments.product.panel,
      .batch = arguments.options.batch,
      .on_host = arguments.product.device == "cpu"};
}

Layout layout_of_matrix(const SolveTask& task) {
  return matrix_layout(task.iteration().algorithm, *task.grid(), task.A.rows(), task.A.cols());
}

}  // namespace gridlops::program
