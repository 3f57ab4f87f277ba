// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/solve_task.hpp"

#include <fmt/format.h>

#include <utility>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/option_values.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "machine/machine_file.hpp"
#include "solve/certify.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/choose_solver.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

/// Throws UsageError if --sigma-min cannot be for an A of this shape.
void check_sigma_min(const SolveArguments& arguments, const MatrixFile& A) {
  if ((arguments.sigma_min.value_or(0) > 0 || arguments.proves_sigma_min()) && A.rows() < A.cols()) {
    throw UsageError(fmt::format(
        "--sigma-min is {}, but A is {} x {}: it takes some x to 0, and only damping bounds errors there",
        arguments.sigma_min ? fmt::format("{}", *arguments.sigma_min) : arguments.sigma_min_way, A.rows(),
        A.cols()));
  }
  if (arguments.sketches() && A.rows() < sketch_rows(A.cols())) {
    throw UsageError(fmt::format(
        "--sigma-min is probable, but A is {} x {}, and a sketch would have {} rows: take proven, or give a "
        "number, the smallest singular value of A",
        A.rows(), A.cols(), sketch_rows(A.cols())));
  }
}

/// The header of a file with bounds; none if they are a number (collective over world). Throws InputError on
/// all ranks if the file does not fit.
std::optional<MatrixHeader> read_bounds_header(Communicator& world, const MatrixFile& A, Index columns_of_B,
                                               const std::string& bounds) {
  if (bounds.empty() || bound_in(bounds)) return std::nullopt;
  const MatrixHeader header = read_matrix_header(world, bounds);
  if (header.rows != A.cols() || (header.cols != 1 && header.cols != columns_of_B))
    throw InputError(
        fmt::format("{} is {} x {}, but bounds of X must be {} x 1, for all right-hand sides, or {} x {}",
                    bounds, header.rows, header.cols, A.cols(), A.cols(), columns_of_B));
  return header;
}

/// The header of --weights (collective over world). Throws InputError on all ranks if it does not fit.
MatrixHeader read_weights_header(Communicator& world, const SolveArguments& arguments, const SolveTask& task,
                                 ScalarType type) {
  const std::string& name = arguments.weights;
  const MatrixHeader W = read_matrix_header(world, name);
  if (W.rows != task.B.rows || (W.cols != task.B.cols && W.cols != 1))
    throw InputError(
        fmt::format("{} is {} x {}, but {} is {} x {}: there must be a weight for each number of "
                    "B, or one column for all",
                    name, W.rows, W.cols, arguments.rhs, task.B.rows, task.B.cols));
  if (common_type(W.type, type) != type)
    throw InputError(
        fmt::format("{} has elements of type {}, but A and B have {}, which cannot hold them: "
                    "save the weights as {}",
                    name, name_of(W.type), name_of(type),
                    type == ScalarType::f32 || type == ScalarType::c64 ? "f32" : "f64"));
  return W;
}

/// Begins a task with the headers of A, B and the initial guess (collective over world). Throws InputError or
/// UsageError on all ranks if they do not fit together.
SolveTask read_headers(Communicator& world, const SolveArguments& arguments) {
  const std::string &matrix = arguments.product.matrix, &rhs = arguments.rhs, &initial = arguments.initial;
  constexpr const char* hint = "did you transpose A? Its transpose would fit";
  SolveTask task{.arguments = arguments, .A = MatrixFile(world, matrix), .B = read_matrix_header(world, rhs)};
  const MatrixFile& A = task.A;
  check_operand(matrix, A.header(), rhs, task.B, {A.rows(), "rows of A", hint});
  if (const std::string refusal = shape_refusal(arguments.solver, A.rows(), A.cols()); !refusal.empty())
    throw InputError(fmt::format("{} is {}", matrix, refusal));
  check_sigma_min(arguments, A);
  std::vector<std::pair<std::string, MatrixHeader>> files{{matrix, A.header()}, {rhs, task.B}};
  if (!initial.empty()) {
    const MatrixHeader& X0 = task.X0.emplace(read_matrix_header(world, initial));
    check_operand(matrix, A.header(), initial, X0, {A.cols(), "columns of A", hint});
    if (X0.cols != task.B.cols)
      throw InputError(
          fmt::format("{} has {} columns, but {} has {}: each right-hand side needs its own start", initial,
                      X0.cols, rhs, task.B.cols));
    files.emplace_back(initial, X0);
  }
  task.lower = read_bounds_header(world, A, task.B.cols, arguments.lower);
  task.upper = read_bounds_header(world, A, task.B.cols, arguments.upper);
  if (task.lower) files.emplace_back(arguments.lower, *task.lower);
  if (task.upper) files.emplace_back(arguments.upper, *task.upper);
  const CommonType common = common_type(files);
  if (arguments.has_bounds() && (common.type == ScalarType::c64 || common.type == ScalarType::c128))
    throw InputError(
        fmt::format("the elements are {}, and complex numbers have no order, so that nothing bounds "
                    "them; take matrices of real and imaginary parts",
                    name_of(common.type)));
  if (!arguments.weights.empty()) task.W = read_weights_header(world, arguments, task, common.type);
  task.promotions = common.promotions;
  task.shape = {A.rows(), A.cols(), task.B.cols, common.type};
  return task;
}

/// The facts in a restart's checkpoint; empty without a restart (collective over world). Rank 0 warns of a
/// later checkpoint that is incomplete.
CheckpointFacts read_saved(Communicator& world, const std::string& directory) {
  if (directory.empty()) return {};
  CheckpointFacts saved = checkpoint_facts(world, directory);
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
std::string source_of_choices(Communicator& world, const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  const ScalarType type = task.shape.type;
  std::string built_in = Calibration().source_of_choices(type);
  if (saved_fact(task.saved, choices_fact) == built_in) return built_in;
  const bool may_measure = arguments.product.device == "cpu" && !arguments.dry_run && task.saved.empty();
  return calibration_for(world, task.shape, may_measure, world.rank() == 0 && !arguments.quiet)
      .source_of_choices(type);
}

/// The most columns of a product: of a batch, or of a sketch.
Index most_columns(const SolveTask& task) {
  const Index of_solver =
      largest_batch(Partition::with_sizes({task.shape.nrhs}), task.arguments.options.batch);
  if (!task.arguments.sketches()) return of_solver;
  return std::max(of_solver, std::min(sketch_group, sketch_rows(task.shape.cols)));
}

/// The request of the arguments, as far as A leaves a choice, but a restart with `--one-pass auto`, or of a
/// run with A on disks, continues in the way in which its run began. With --certify the storage is that of
/// the other matrix.
IterationRequest request_of(const SolveTask& task) {
  IterationRequest asked = requested_by(task.arguments);
  task.A.narrow(asked);
  if (!task.arguments.certify.empty()) asked.storage = task.arguments.stored_as.storage;
  const bool was_on_disk = saved_fact(task.saved, storage_fact) == disk_name;
  const bool is_open = !asked.one_pass || (!task.arguments.is_given("--one-pass") && was_on_disk);
  if (const std::string one_pass = saved_fact(task.saved, one_pass_fact); is_open && !one_pass.empty())
    asked.one_pass = one_pass == "on";
  return asked;
}

/// The requested grid; else the grid of the run that a restart continues, if it has the same number of ranks;
/// else the best grid for its iterations.
GridShape grid_for(const SolveTask& task, int ranks) {
  if (task.arguments.product.grid) return *task.arguments.product.grid;
  if (const std::string fact = saved_fact(task.saved, grid_fact); !fact.empty())
    if (const GridShape grid = parse_grid_shape(fact); grid.size() == ranks) return grid;
  const IterationRequest asked = request_of(task);
  return choose_grid(ranks, [&](GridShape grid) {
    return task.A.cost_on(grid, task.shape, [&] {
      return iteration_seconds(plan_iteration(asked, task.shape, grid, task.machine), grid, task.machine);
    });
  });
}

/// The iteration of the run, where A is to be. A restart with `--storage auto` stores A like the run that it
/// continues, if the algorithm is the same.
PlannedIteration iteration_for(const SolveTask& task, GridShape grid) {
  IterationRequest asked = request_of(task);
  const PlannedIteration planned = plan_iteration(asked, task.shape, grid, task.machine);
  const std::string storage = saved_fact(task.saved, storage_fact);
  if (asked.storage || asked.place == MatrixPlace::disk || storage.empty() ||
      saved_fact(task.saved, algorithm_fact) != name_of(planned.algorithm))
    return planned;
  if (storage == disk_name) {
    asked.place = MatrixPlace::disk;
  } else {
    asked.storage = parse_storage(storage);
  }
  return plan_iteration(asked, task.shape, grid, task.machine);
}

/// The modelled seconds with this solver, of all batches; none if no model knows them.
std::optional<SolverSeconds> seconds_with(Solver solver, SolveTask task, int ranks) {
  if (task.A.is_compressed()) return {};
  task.arguments.solver = solver;
  const GridShape grid = grid_for(task, ranks);
  const PlannedIteration iteration = plan_iteration(request_of(task), task.shape, grid, task.machine);
  const Index batch = task.arguments.options.batch, nrhs = task.shape.nrhs,
              batches = batch_count(columns_of(iteration.algorithm, nrhs, grid), batch);
  return SolverSeconds{static_cast<double>(batches) * iteration_seconds(iteration, grid, task.machine),
                       direct_seconds(iteration, nrhs, task.X0.has_value(), grid, task.machine),
                       iteration.algorithm};
}

/// Excludes a factor of columns on disks, and counts readings of rows as far as the disks are measured.
void allow_for_disks(SolveTask& task) {
  if (task.shape.rows < task.shape.cols) {
    task.patience.reset();
    task.why_solver += fmt::format(", but {}: it will not", columns_on_disks);
  } else if (task.iteration().pass_seconds > 0) {
    task.patience = direct_seconds(task.iteration(), task.shape.nrhs, task.X0.has_value(),
                                   task.grid()->shape(), task.machine);
    task.why_solver += fmt::format("; from disks, {:.2g} s", *task.patience);
  }
}

}  // namespace

SolveTask make_task(Communicator& world, const SolveArguments& given, const Ranks& ranks) {
  SolveTask task = read_headers(world, given);
  task.A.require_fits(given.product.algorithm, task.shape.type);
  task.A.require_elements(option_for_elements(given));
  task.original = read_original(world, given, task.A);
  task.A.read_tables(world);
  task.saved = read_saved(world, given.options.checkpoint.restart);
  task.sweep = plan_sweep(world, given, task.B.cols);
  task.tolerances = read_tolerances(world, given.tolerances, task.sweep, task.B.cols);
  task.shape.nrhs = task.sweep.columns(task.B.cols);
  task.choices = source_of_choices(world, task);
  const Machine machine = read_machine(world, given.product.machine);
  task.machine_source = machine.source;
  task.machine = model_of(machine, *ranks.comm);
  if (given.chooses_solver) {
    ChosenSolver chosen = choose_solver(
        task, world.size(), [&](Solver solver) { return seconds_with(solver, task, world.size()); });
    task.arguments.solver = chosen.solver;
    task.why_solver = std::move(chosen.why);
    task.patience = chosen.patience;
  }
  const auto grid = make_grid(ranks, grid_for(task, world.size()));
  task.machine = with_shared_memory(task.machine, *grid);
  task.arguments = adopt_choices(task.saved, grid->shape(), task.arguments);
  task.own_memory = grid;
  task.placed.iteration = iteration_for(task, grid->shape());
  task.placed.grid = matrix_grid(task.iteration().algorithm, grid);
  require_same_options(task);
  // With the values that a restart takes from its run.
  check_rules(rules_of(task.arguments));
  check_rules(rules_of(request_of(task)));
  if (task.patience && !has_room_for_factor(world, task)) {
    task.patience.reset();
    task.why_solver += ", but a rank has no memory for it: it will not";
  }
  task.placed = find_room(world, task);
  if (task.patience && task.is_on_disk()) allow_for_disks(task);
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
  SolveTask on_disk = *this;
  on_disk.arguments.stored_as = {.place = MatrixPlace::disk};
  const PlannedIteration iteration = iteration_for(on_disk, grid()->shape());
  return {.iteration = iteration, .grid = matrix_grid(iteration.algorithm, own_memory)};
}

IterationRequest requested_by(const SolveArguments& arguments) {
  const bool is_open = arguments.product.algorithm == Algorithm::automatic;
  const bool never_moves = arguments.needs_space() || (arguments.proves_sigma_min() && is_open);
  const bool has_passes =
      arguments.is_given("--one-pass") || arguments.stored_as.place == MatrixPlace::memory;
  return {.solver = arguments.solver,
          .algorithm = never_moves ? Algorithm::stationary_a : arguments.product.algorithm,
          .one_pass = arguments.weighs() ? false
                      : has_passes       ? arguments.one_pass
                                         : std::nullopt,
          .storage = arguments.stored_as.storage,
          .place = arguments.stored_as.place,
          .panel = arguments.product.panel,
          .batch = arguments.options.batch,
          .on_host = arguments.product.device == "cpu"};
}

Layout layout_of_matrix(const SolveTask& task) {
  return matrix_layout(task.iteration().algorithm, *task.grid(), task.A.rows(), task.A.cols());
}

}  // namespace gridlops::program
