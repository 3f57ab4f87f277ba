// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_task.hpp"

#include <fmt/format.h>

#include "command_line/console.hpp"
#include "command_line/dependent_options.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/machine_file.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "measure/memory_plan.hpp"
#include "solve/certify.hpp"
#include "solve/choose_solver.hpp"
#include "solve/solve_record.hpp"

namespace gridlops::program {

namespace {

/// The headers of A, B and the initial guess.
struct InputHeaders {
  MatrixHeader A, B;
  bool is_compressed = false;
  std::optional<MatrixHeader> X0;
};

/// Reads them (collective over world). Throws InputError on all ranks if they do not fit together.
InputHeaders read_headers(Communicator& world, const SolveArguments& arguments) {
  const std::string &matrix = arguments.product.matrix, &rhs = arguments.rhs, &initial = arguments.initial;
  constexpr const char* hint = "did you transpose A? Its transpose would fit";
  const auto [A, is_compressed] = read_operator_header(world, matrix);
  const MatrixHeader B = read_matrix_header(world, rhs);
  check_operand(matrix, A, rhs, B, {A.rows, "rows of A", hint});
  if (const std::string refusal = shape_refusal(arguments.solver, A.rows, A.cols); !refusal.empty())
    throw InputError(fmt::format("{} is {}", matrix, refusal));
  if (initial.empty()) return {A, B, is_compressed, {}};
  const MatrixHeader X0 = read_matrix_header(world, initial);
  check_operand(matrix, A, initial, X0, {A.cols, "columns of A", hint});
  if (X0.cols != B.cols) {
    throw InputError(fmt::format("{} has {} columns, but {} has {}: each right-hand side needs its own start",
                                 initial, X0.cols, rhs, B.cols));
  }
  return {A, B, is_compressed, X0};
}

CommonType common_type_of(const SolveArguments& arguments, const InputHeaders& inputs) {
  std::vector<std::pair<std::string, MatrixHeader>> files{{arguments.product.matrix, inputs.A},
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

/// Throws UsageError if the arguments ask for what needs the elements of a matrix, which is compressed.
void require_plain(const SolveArguments& arguments) {
  const bool has_elements = !arguments.certify.empty(),
             is_stored_otherwise = arguments.storage.value_or(Storage::disk) != Storage::disk;
  const char* option = arguments.precondition != "none"                      ? "--precondition"
                       : arguments.verify_matrix && !has_elements            ? "--verify-matrix"
                       : arguments.options.column_stable                     ? "--column-stable"
                       : arguments.sigma_min || arguments.probable_sigma_min ? "--sigma-min"
                       : arguments.one_pass.value_or(false)                  ? "--one-pass"
                       : is_stored_otherwise && !has_elements                ? "--storage"
                       : !arguments.tiles.empty()                            ? "--tiles"
                                                                             : nullptr;
  if (option != nullptr)
    throw UsageError(fmt::format("{} is compressed, and {} is for matrices whose elements are there",
                                 arguments.product.matrix, option));
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

/// Like request_of(), but a restart with `--one-pass auto`, or of a run with A on disks, continues in the way
/// in which its run began.
IterationRequest request_of(const SolveArguments& arguments, bool is_compressed,
                            const CheckpointFacts& saved) {
  IterationRequest asked = request_of(arguments, is_compressed);
  const bool is_open = !asked.one_pass || (!arguments.one_pass_is_given &&
                                           saved_fact(saved, storage_fact) == name_of(Storage::disk));
  if (const std::string one_pass = saved_fact(saved, one_pass_fact); is_open && !one_pass.empty())
    asked.one_pass = one_pass == "on";
  return asked;
}

/// The requested grid; else the grid of the run that a restart continues, if it has the same number of ranks;
/// else the grid with the fastest iterations, or with the fewest bytes of a compressed matrix.
GridShape grid_for(const SolveArguments& arguments, const SavedCompressed* compressed,
                   const CheckpointFacts& saved, const ProductShape& shape, const MachineModel& machine,
                   int ranks) {
  if (arguments.product.grid) return *arguments.product.grid;
  if (const std::string fact = saved_fact(saved, grid_fact); !fact.empty())
    if (const GridShape grid = parse_grid_shape(fact); grid.size() == ranks) return grid;
  const IterationRequest asked = request_of(arguments, compressed != nullptr, saved);
  return choose_grid(ranks, [&](GridShape grid) {
    if (compressed != nullptr) return bytes_moved(*compressed, shape, grid);
    return iteration_seconds(plan_iteration(asked, shape, grid, machine), grid, machine);
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
  if (asked.storage || storage.empty() || saved_fact(saved, algorithm_fact) != name_of(planned.algorithm))
    return planned;
  asked.storage = parse_storage(storage);
  return plan_iteration(asked, shape, grid, machine);
}

}  // namespace

SolveTask read_task(Communicator& world, const SolveArguments& arguments_given, const Ranks& ranks) {
  SolveArguments given = arguments_given;
  const InputHeaders inputs = read_headers(world, given);
  const CommonType common = common_type_of(given, inputs);
  require_fits({inputs.A, inputs.is_compressed}, given.product.matrix, given.product.algorithm, common.type);
  if (inputs.is_compressed) require_plain(given);
  if (!given.certify.empty() && !inputs.is_compressed)
    throw UsageError(
        fmt::format("--certify is for a compressed matrix, and {} is not one: the verdicts are "
                    "for it anyway",
                    given.product.matrix));
  const MatrixHeader elements =
      given.certify.empty() ? inputs.A : read_original_header(world, given, inputs.A);
  std::shared_ptr<const SavedCompressed> compressed;
  if (inputs.is_compressed) compressed = std::make_shared<SavedCompressed>(world, given.product.matrix);
  const CheckpointFacts saved = read_saved(world, given.options.checkpoint.restart);
  const Sweep sweep = plan_sweep(world, given, inputs.B.cols);
  const std::vector<double> tolerances = read_tolerances(world, given.tolerances, sweep, inputs.B.cols);
  const ProductShape shape{inputs.A.rows, inputs.A.cols, sweep.columns(inputs.B.cols), common.type};
  const std::string choices = source_of_choices(world, given, saved, shape);
  const Machine machine = read_machine(world, given.product.machine);
  const MachineModel model = model_of(machine, *ranks.comm);
  std::string why_solver;
  if (given.chooses_solver) {
    const ChosenSolver chosen =
        choose_solver(given, saved, shape, [&](Solver solver) -> std::optional<double> {
          if (inputs.is_compressed) return {};  // no model knows
          SolveArguments with = given;
          with.solver = solver;
          const GridShape grid = grid_for(with, compressed.get(), saved, shape, model, world.size());
          return iteration_seconds(plan_iteration(request_of(with, inputs.is_compressed), shape, grid, model),
                                   grid, model);
        });
    given.solver = chosen.solver;
    why_solver = chosen.why;
  }
  const auto grid = make_grid(ranks, grid_for(given, compressed.get(), saved, shape, model, world.size()));
  const MachineModel grid_model = with_shared_memory(model, *grid);
  const SolveArguments arguments = adopt_choices(saved, grid->shape(), given);
  const PlannedIteration iteration =
      iteration_for(arguments, inputs.is_compressed, saved, shape, grid->shape(), grid_model);
  const SolveTask task{.arguments = arguments,
                       .A = inputs.A,
                       .B = inputs.B,
                       .compressed = compressed,
                       .elements = elements,
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
                       .iteration = iteration,
                       .grid = matrix_grid(iteration.algorithm, grid),
                       .own_memory = grid};
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
  require_same_options(task);
  // With the values that a restart takes from its run.
  require_compatible(request_of(arguments, inputs.is_compressed, saved));
  return task;
}

void SolveTask::asks_for(Storage storage) {
  arguments.storage = storage;
  iteration = iteration_for(arguments, compressed != nullptr, saved, shape, grid->shape(), machine);
  grid = matrix_grid(iteration.algorithm, own_memory);
}

IterationRequest request_of(const SolveArguments& arguments, bool is_compressed) {
  const bool never_moves = arguments.needs_space() || is_compressed;
  const bool has_passes = arguments.one_pass_is_given || arguments.storage != Storage::disk;
  return {.solver = arguments.solver,
          .algorithm = never_moves ? Algorithm::stationary_a : arguments.product.algorithm,
          .one_pass = is_compressed ? false
                      : has_passes  ? arguments.one_pass
                                    : std::nullopt,
          .storage = is_compressed && arguments.certify.empty() ? arguments.storage.value_or(Storage::columns)
                                                                : arguments.storage,
          .panel = arguments.product.panel,
          .batch = arguments.options.batch,
          .on_host = arguments.product.device == "cpu"};
}

Layout layout_of_matrix(const SolveTask& task) {
  return matrix_layout(task.iteration.algorithm, *task.grid, task.A.rows, task.A.cols);
}

std::string file_of_elements(const SolveTask& task) {
  return task.compressed ? task.arguments.certify : task.arguments.product.matrix;
}

}  // namespace gridlops::program
