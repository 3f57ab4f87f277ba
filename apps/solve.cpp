// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "calibrate.hpp"
#include "checkpointing.hpp"
#include "console.hpp"
#include "file_checks.hpp"
#include "grid.hpp"
#include "gridlops/block_hash.hpp"
#include "gridlops/inversion.hpp"
#include "gridlops/matrix_mult.hpp"
#include "gridlops/non_finite.hpp"
#include "gridlops/npy.hpp"
#include "gridlops/operator_algebra.hpp"
#include "gridlops/plan.hpp"
#include "gridlops/solve_observer.hpp"
#include "gridlops/solver.hpp"
#include "gridlops/sparse_solver.hpp"
#include "gridlops/spectrum.hpp"
#include "memory_plan.hpp"
#include "metered_product.hpp"
#include "number_checks.hpp"
#include "report.hpp"
#include "solve_progress.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

/// What all ranks know before any matrix is read.
struct Task {
  SolveArguments arguments;
  MachineModel machine;
  std::string machine_source;
  std::shared_ptr<const ProcessGrid> grid;
  NpyHeader A, B;
  std::optional<NpyHeader> X0;
  ProductShape shape;
  Algorithm algorithm = Algorithm::automatic;
  bool one_pass = false;
  Storage storage = Storage::columns;
  CheckpointFacts saved;  // of the run that a restart goes on with
  Calibration calibration;
};

bool may_be_stationary_a(const SolveArguments& arguments) {
  const Algorithm asked = arguments.product.algorithm;
  return asked == Algorithm::automatic || asked == Algorithm::stationary_a;
}

/// The products of the first batch.
ProductShape shape_at_once(const Task& task, Algorithm algorithm, GridShape grid) {
  return first_batch(algorithm, task.shape, grid, task.arguments.options.batch);
}

/// Whether CGLS is to read A once in an iteration. A restart with `auto` goes on as the run was begun.
bool reads_once(const Task& task, GridShape grid) {
  const SolveArguments& arguments = task.arguments;
  if (arguments.solver != "cgls") return false;
  if (arguments.one_pass != "auto") return arguments.one_pass == "on";
  if (const std::string saved = saved_fact(task.saved, one_pass_fact); !saved.empty()) return saved == "on";
  return may_be_stationary_a(arguments) && arguments.precondition == "none" &&
         arguments.product.device == "cpu" &&
         one_pass_is_faster(shape_at_once(task, Algorithm::stationary_a, grid), grid);
}

/// The algorithm that was asked for. block-cgls, whose right-hand sides must lie together, and one pass leave
/// no choice.
Algorithm algorithm_for(const Task& task, bool one_pass) {
  const SolveArguments& arguments = task.arguments;
  if (arguments.solver != "block-cgls" && !one_pass) return arguments.product.algorithm;
  if (!may_be_stationary_a(arguments)) {
    throw UsageError(fmt::format("{} works with --algorithm stationary-a only, not with {}",
                                 one_pass ? "--one-pass" : "--solver block-cgls",
                                 name_of(arguments.product.algorithm)));
  }
  return Algorithm::stationary_a;
}

/// How A is stored; for one pass it is packed. A restart with `auto` goes on as the run was begun, if the
/// algorithm is the same.
Storage storage_for(const Task& task) {
  const bool on_host = task.arguments.product.device == "cpu";
  if (task.one_pass && on_host) return Storage::packed;
  if (task.arguments.storage) return *task.arguments.storage;
  if (const std::string saved = saved_fact(task.saved, storage_fact);
      !saved.empty() && saved_fact(task.saved, algorithm_fact) == name_of(task.algorithm))
    return parse_storage(saved);
  const GridShape grid = task.grid->shape();
  return on_host ? faster_storage(task.algorithm, shape_at_once(task, task.algorithm, grid), grid)
                 : Storage::columns;
}

Solver solver_of(const Task& task) {
  for (const Solver solver :
       {Solver::lsqr, Solver::lsmr, Solver::block_cgls, Solver::cg, Solver::ista, Solver::fista})
    if (task.arguments.solver == name_of(solver)) return solver;
  return Solver::cgls;
}

/// An iteration with all columns of the first batch, as the model has it.
PlannedIteration planned_iteration(const Task& task, Algorithm algorithm, bool one_pass, GridShape grid) {
  return {solver_of(task), one_pass, algorithm, shape_at_once(task, algorithm, grid),
          task.arguments.product.panel};
}

/// The grid that was asked for; else that of the run that a restart goes on with, if it has as many ranks;
/// else the one with the fastest iterations.
GridShape grid_for(const Task& task, int ranks) {
  if (task.arguments.product.grid) return *task.arguments.product.grid;
  if (const std::string saved = saved_fact(task.saved, grid_fact); !saved.empty())
    if (const GridShape grid = parse_grid_shape(saved); grid.size() == ranks) return grid;
  return choose_grid(ranks, [&](GridShape grid) {
    const bool one_pass = reads_once(task, grid);
    Algorithm algorithm = algorithm_for(task, one_pass);
    if (algorithm == Algorithm::automatic) algorithm = choose_algorithm(task.shape, grid, task.machine);
    return iteration_seconds(planned_iteration(task, algorithm, one_pass, grid), grid, task.machine);
  });
}

/// What the run chooses by (collective over world). A restart chooses as its run did: it measures nothing,
/// and built-in choices stay.
Calibration calibration_of_run(Communicator& world, const Task& task) {
  const SolveArguments& arguments = task.arguments;
  if (saved_fact(task.saved, choices_fact) == Calibration().source_of_choices(task.shape.type)) return {};
  const bool may_measure = arguments.product.device == "cpu" && !arguments.dry_run && task.saved.empty();
  return calibration_for(world, task.shape, may_measure, world.rank() == 0 && !arguments.quiet);
}

std::string choices_of(const Task& task) { return task.calibration.source_of_choices(task.shape.type); }

Task read_headers(Communicator& world, const SolveArguments& arguments, const Ranks& ranks) {
  const std::string& matrix = arguments.product.matrix;
  Task task;
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
  check_operand(matrix, task.A, arguments.rhs, task.B, {task.A.rows, "rows of A"});
  if (arguments.solver == "cg" && task.A.rows != task.A.cols) {
    throw InputError(fmt::format("{} is {} x {}, but --solver cg needs a square matrix; cgls takes any",
                                 matrix, task.A.rows, task.A.cols));
  }
  if (!arguments.initial.empty()) {
    task.X0 = read_npy_header(world, arguments.initial);
    check_operand(matrix, task.A, arguments.initial, *task.X0, {task.A.cols, "columns of A"});
    if (task.X0->cols != task.B.cols) {
      throw InputError(
          fmt::format("{} has {} columns, but {} has {}: each right-hand side needs its own start",
                      arguments.initial, task.X0->cols, arguments.rhs, task.B.cols));
    }
  }
  task.shape = {task.A.rows, task.A.cols, task.B.cols, task.A.type};
  task.calibration = calibration_of_run(world, task);
  const Machine machine = read_machine(world, arguments.product.machine);
  task.machine = model_of(machine, ranks);
  task.machine_source = machine.source;
  task.grid = make_grid(ranks, grid_for(task, world.size()));
  adopt_choices(task.saved, task.grid->shape(), task.arguments.product);
  task.one_pass = reads_once(task, task.grid->shape());
  task.algorithm = resolve(algorithm_for(task, task.one_pass), task.shape, *task.grid, task.machine);
  task.storage = storage_for(task);
  task.grid = matrix_grid(task.algorithm, task.grid);
  return task;
}

Layout layout_of_matrix(const Task& task) {
  return matrix_layout(task.algorithm, *task.grid, task.A.rows, task.A.cols);
}

template <Scalar T>
OperatorPtr<T> make_product(const Task& task, DistMatrix<T> A) {
  return matrix_mult(task.algorithm, std::move(A),
                     {.panel = task.arguments.product.panel,
                      .column_stable = task.arguments.options.column_stable,
                      .storage = task.storage});
}

/// The product; for cg, whose vectors are models and data at once, also redistributed to the layout of
/// models.
template <Scalar T>
OperatorPtr<T> make_operator(const Task& task, OperatorPtr<T> A) {
  if (task.arguments.solver != "cg" || A->domain() == A->range()) return A;
  return product(identity<T>(A->domain(), A->range()), A);
}

bool is_damped(const SolveArguments& arguments) {
  return arguments.options.damp > 0 || arguments.damp_relative.value_or(0) > 0;
}

bool is_scaled(const SolveArguments& arguments) { return arguments.precondition == "column-norms"; }

template <Scalar T>
void print_plan(const Task& task) {
  const Layout layout = layout_of_matrix(task);
  const Range rows = layout.row_range(*task.grid, 0, 0), cols = layout.col_range(*task.grid, 0, 0);
  // Only its shape matters; there is no memory behind it.
  DistMatrix<T> A(task.grid, layout, MatrixView<T>(nullptr, rows.size, cols.size));
  const OperatorPtr<T> product = make_product(task, std::move(A));
  const OperatorPtr<T> op = make_operator(task, product);
  print(plan_text({solver_of(task), task.algorithm, task.shape, task.arguments.product.panel,
                   task.arguments.options.batch, task.one_pass, is_damped(task.arguments),
                   task.X0.has_value(), is_scaled(task.arguments), !task.arguments.variances.empty(),
                   task.arguments.options.guard > 0, layout, product->range(), op->range(), op->domain()}));
}

/// A fact of checkpoints: the damping of the problem. The solver's may be 0, where the operator has it.
constexpr const char* damp_fact = "damp";

/// The damping that was asked for. A restart goes on with the damping of the first run, to the last bit.
template <Scalar T>
double damping_of(const Task& task, const LinearOperator<T>& A) {
  const SolveArguments& arguments = task.arguments;
  if (!arguments.damp_relative) return arguments.options.damp;
  const auto saved = task.saved.find(damp_fact);
  return saved == task.saved.end() ? *arguments.damp_relative * estimate_norm(A)
                                   : std::strtod(saved->second.c_str(), nullptr);
}

SparseOptions sparse_options(const SolveArguments& arguments, const SolveOptions& common) {
  SparseOptions options;
  options.common = common;
  options.lambda = arguments.lambda.value_or(0);
  options.threshold = arguments.threshold;
  options.step = arguments.step;
  options.backtracking = arguments.backtracking;
  options.restart = arguments.monotone;
  return options;
}

template <Scalar T>
SolveReport call_solver(const Task& task, const LinearOperator<T>& A, const DistMatrix<T>& B,
                        DistMatrix<T>& X, DistMatrix<T>* variances, const SolveOptions& options) {
  switch (solver_of(task)) {
    case Solver::ista:
      return ista(A, B, X, sparse_options(task.arguments, options));
    case Solver::fista:
      return fista(A, B, X, sparse_options(task.arguments, options));
    case Solver::lsqr:
      return variances == nullptr ? lsqr(A, B, X, options) : lsqr(A, B, X, *variances, options);
    case Solver::lsmr:
      return lsmr(A, B, X, options);
    case Solver::block_cgls:
      return block_cgls(A, B, X, options);
    case Solver::cg:
    case Solver::pcg:
      return cg(A, B, X, options);
    case Solver::cgls:
      break;
  }
  return cgls(A, B, X, options);
}

/// P: the preconditioner, or null; variances: where they go, or null.
template <Scalar T>
SolveReport run_solver(const Task& task, const OperatorPtr<T>& A, const OperatorPtr<T>& P,
                       const DistMatrix<T>& B, DistMatrix<T>& X, DistMatrix<T>* variances,
                       const std::shared_ptr<IterationTimes>& times, bool shows_progress) {
  const SolveArguments& arguments = task.arguments;
  SolveOptions options = arguments.options;
  options.damp = damping_of(task, *A);
  options.initial_guess = task.X0.has_value();
  options.one_pass = task.one_pass;
  options.record_history = !arguments.history.empty();
  options.checkpoint.requested = end_is_requested;
  options.checkpoint.facts =
      facts_of_run(task.grid->shape(), task.algorithm, arguments.product, choices_of(task));
  options.checkpoint.facts[damp_fact] = fmt::format("{}", options.damp);
  options.checkpoint.facts[one_pass_fact] = task.one_pass ? "on" : "off";
  options.checkpoint.facts[storage_fact] = name_of(task.storage);
  options.observers.push_back(std::make_shared<IterationForSignals>());
  options.observers.push_back(times);
  if (shows_progress) {
    const Index batches = batch_count(B.layout().cols.partition, options.batch);
    options.observers.push_back(std::make_shared<SolveProgress>(batches));
  }
  if (P == nullptr) return call_solver(task, *A, B, X, variances, options);
  return preconditioned_inversion(A, B, X, {.P = P, .solver = solver_of(task), .damps_x = true}, options);
}

/// What this rank received in the products of an iteration, beside what the model says.
void note_bytes(const Task& task, const ReceivedBytes& received, Measurements& measured) {
  const ProcessGrid& grid = *task.grid;
  const PlannedIteration iteration = planned_iteration(task, task.algorithm, task.one_pass, grid.shape());
  measured.predicted_bytes_received =
      iteration_cost(iteration, grid.shape(), grid.my_row(), grid.my_col()).bytes_received;
  const Index forward = received.of(ReceivedBytes::forward), adjoint = received.of(ReceivedBytes::adjoint);
  if (task.one_pass) {
    measured.counted_bytes_received = received.of(ReceivedBytes::normal);
  } else if (iteration.solver == Solver::cg) {
    measured.counted_bytes_received = forward;
  } else if (forward >= 0 && adjoint >= 0) {
    measured.counted_bytes_received = forward + adjoint;
  }
}

/// What the inputs hold that is not finite, in words (collective over the grid). A and the guess are read
/// again, since packing and the solver have changed their memory.
template <Scalar T>
std::string non_finite_inputs(const Task& task, const DistMatrix<T>& B, DistMatrix<T>& X) {
  const SolveArguments& arguments = task.arguments;
  std::string text = non_finite_text(arguments.rhs, find_non_finite(B));
  if (task.X0) {
    read_npy(arguments.initial, *task.X0, X);
    text += non_finite_text(arguments.initial, find_non_finite(X));
  }
  DistMatrix<T> A = allocate_matrix<T>(task.grid, layout_of_matrix(task));
  read_npy(arguments.product.matrix, task.A, A);
  return text + non_finite_text(arguments.product.matrix, find_non_finite(A));
}

struct Solved {
  SolveReport report;
  std::string non_finite_inputs;  ///< in words, where a column is not finite
};

template <Scalar T>
Solved solve_on_grid(const Task& task, bool shows_progress, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  const auto& grid = task.grid;
  Stopwatch clock;
  DistMatrix<T> A = allocate_matrix<T>(grid, layout_of_matrix(task));
  measured.setup_seconds += clock.lap();
  read_npy(arguments.product.matrix, task.A, A);
  measured.read_seconds += clock.lap();

  const DistMatrix<T> entries(grid, A.layout(),
                              A.local());  // a view of the memory that the operator takes over
  const auto received = std::make_shared<ReceivedBytes>();
  const auto times = std::make_shared<IterationTimes>();
  OperatorPtr<T> product = make_product(task, std::move(A));
  OperatorPtr<T> matrix = arguments.verify_matrix ? product : nullptr;
  if (!arguments.product.report.empty()) product = std::make_shared<MeteredProduct<T>>(product, received);
  OperatorPtr<T> op = make_operator(task, product),
                 P = is_scaled(arguments) ? column_scaling(entries, op->domain()) : nullptr;
  DistMatrix<T> B = allocate_matrix<T>(grid, op->range().layout(task.shape.nrhs));
  DistMatrix<T> X = allocate_matrix<T>(grid, op->domain().layout(task.shape.nrhs));
  std::optional<DistMatrix<T>> variances;
  if (!arguments.variances.empty()) variances.emplace(allocate_matrix<T>(grid, X.layout()));
  measured.setup_seconds += clock.lap();
  read_npy(arguments.rhs, task.B, B);
  if (task.X0) read_npy(arguments.initial, *task.X0, X);
  measured.read_seconds += clock.lap();

  Solved solved;
  const auto hash = matrix ? block_hash(*matrix) : std::nullopt;
  measured.compute(*grid, [&] {
    solved.report = run_solver(task, op, P, B, X, variances ? &*variances : nullptr, times, shows_progress);
  });
  if (matrix)
    require_same_matrix(arguments.product.matrix, *grid, layout_of_matrix(task), hash == block_hash(*matrix));
  measured.predicted_part_seconds = times->median();
  note_bytes(task, *received, measured);

  clock.lap();
  write_npy(arguments.output, X, task.B.dimensions);
  if (variances) write_npy(arguments.variances, *variances, task.B.dimensions);
  measured.write_seconds = clock.lap();
  if (has_column(solved.report, StopReason::non_finite)) {
    op = product = matrix = P = nullptr;  // their memory is needed to read A again
    solved.non_finite_inputs = non_finite_inputs(task, B, X);
  }
  return solved;
}

std::string headline(const Task& task) {
  return fmt::format("{}: {} x {} {}, {} right-hand sides; {} with {} on {} x {} ranks\n",
                     task.arguments.product.matrix, task.shape.rows, task.shape.cols,
                     name_of(task.shape.type), task.shape.nrhs,
                     task.one_pass ? "one-pass-cgls" : name_of(solver_of(task)), name_of(task.algorithm),
                     task.grid->rows(), task.grid->cols());
}

/// What can be done about columns that are not finite, or broke down.
std::string advice(const Solved& solved) {
  const SolveReport& report = solved.report;
  const bool breaks_down_otherwise =
      report.solver == "cg" || report.solver == "ista" || report.solver == "fista";
  const bool is_non_finite = has_column(report, StopReason::non_finite);
  if (!solved.non_finite_inputs.empty()) return solved.non_finite_inputs;
  if (!is_non_finite && (breaks_down_otherwise || !has_column(report, StopReason::breakdown))) return "";
  return fmt::format(
      "; {}numbers left the range of their type: scale A and B so that their norms are about 1",
      is_non_finite ? "no input holds NaN or infinity, so " : "");
}

void warn_of_rounding(const Task& task) {
  const std::string difference = rounding_difference(
      task.saved, facts_of_run(task.grid->shape(), task.algorithm, task.arguments.product, choices_of(task)));
  if (!difference.empty())
    warn(fmt::format("results will agree with those of one long run to rounding only: {}", difference));
}

}  // namespace

ExitStatus solve(Communicator& world, const SolveArguments& arguments) {
  const bool talks = world.rank() == 0;
  const CheckpointOptions& checkpoint = arguments.options.checkpoint;
  catch_signals(!checkpoint.directory.empty(), talks);
  Stopwatch clock;
  Measurements measured;
  const Ranks ranks = make_ranks(world, arguments.product.device, arguments.product.transport);
  measured.setup_seconds = clock.lap();
  const std::string& report_path = arguments.product.report;
  std::vector<NamedFile> outputs;
  if (!arguments.dry_run)
    outputs = {{"--output", arguments.output},
               {"--variances", arguments.variances},
               {"--history", arguments.history, NamedFile::text},
               {"--report", report_path, NamedFile::text}};
  check_outputs(world,
                {{"--matrix", arguments.product.matrix},
                 {"--rhs", arguments.rhs},
                 {"--initial", arguments.initial},
                 {"--machine", arguments.product.machine},
                 manifest_in("--restart", checkpoint.restart),
                 manifest_in("--checkpoint", checkpoint.directory)},
                outputs);
  const Task task = read_headers(world, arguments, ranks);
  const ProcessGrid& grid = *task.grid;
  measured.read_seconds = clock.lap();
  if (talks && !task.saved.empty()) warn_of_rounding(task);

  if (talks && !(arguments.quiet && !arguments.dry_run)) print(headline(task));
  if (arguments.dry_run) {
    if (talks) with_scalar_type(task.shape.type, [&]<Scalar T>() { print_plan<T>(task); });
    return ExitStatus::done;
  }
  Solved solved;
  run_on_grid(world, grid, [&] {
    with_scalar_type(task.shape.type, [&]<Scalar T>() {
      solved = solve_on_grid<T>(task, talks && !arguments.quiet, measured);
    });
  });
  const SolveReport& report = solved.report;
  if (!grid.is_member()) measured = {.predicted_bytes_received = 0, .counted_bytes_received = 0};
  write_history(world, arguments.history, report);
  const PlannedIteration iteration = planned_iteration(task, task.algorithm, task.one_pass, grid.shape());
  write_report(world, report_path,
               {"solve", grid.shape(), task.shape, arguments.product.device, transport_of(grid),
                RunFacts::Product{task.algorithm, task.storage, choices_of(task)},
                RunFacts::Prediction{
                    "iteration", task.machine_source,
                    iteration_seconds(iteration, grid.shape(), with_shared_memory(task.machine, grid))}},
               measured, &report);
  if (talks) warn_of_alarms(report);
  if (all_solved(report)) return ExitStatus::done;
  if (talks) {
    warn(fmt::format("not every column was solved: {}; {} is written all the same{}", verdict_text(report),
                     arguments.output, advice(solved)));
  }
  return ExitStatus::not_converged;
}

}  // namespace gridlops::program
