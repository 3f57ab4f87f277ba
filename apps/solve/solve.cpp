// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "matrix/memory_plan.hpp"
#include "measure/metered_product.hpp"
#include "measure/number_checks.hpp"
#include "solve/known_errors.hpp"
#include "solve/matrix_of_task.hpp"
#include "solve/solve_progress.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/placement.hpp"

namespace gridlops::program {

namespace {

/// The product. For a Hermitian A, whose data are models, too, it redistributes to the layout of models.
template <Scalar T>
OperatorPtr<T> make_operator(const SolveTask& task, OperatorPtr<T> A) {
  if (row_of(task.arguments.solver).problem != ProblemKind::hermitian || A->domain() == A->range()) return A;
  return product(identity<T>(A->domain(), A->range()), A);
}

/// The plan of the run. Takes no memory.
template <Scalar T>
PlannedSolve plan_of(const SolveTask& task) {
  const Layout layout = layout_of_matrix(task);
  const OperatorPtr<T> product = planned_product<T>(task);
  const OperatorPtr<T> op = make_operator(task, product);
  const auto space_at = [&task, op](int row, int col) {
    const SweepArguments& sweep = task.arguments.sweep;
    const Index all = std::min(op->rows(), op->cols());
    const Index vectors = sweep.space_dimension > 0 ? std::min(sweep.space_dimension, all) : all;
    const Index columns = task.shape.nrhs + (sweep.rule == DampingRule::gcv ? 1 : 0);
    return solution_space_bytes(*op, columns, vectors, row, col);
  };
  const bool sketches = task.arguments.probable_sigma_min;
  const Index sketch_columns = sketches ? std::min(sketch_group, sketch_rows(task.shape.cols)) : 0;
  const auto sketch_at = [product](int row, int col) { return probable_sigma_min_bytes(*product, row, col); };
  PlannedSolve plan{.solver = task.arguments.solver,
                    .algorithm = task.iteration.algorithm,
                    .shape = task.shape,
                    .panel = task.arguments.product.panel,
                    .batch = task.arguments.options.batch,
                    .one_pass = task.iteration.one_pass,
                    .damped = task.arguments.is_damped(),
                    .initial_guess = task.X0.has_value() || task.sweep.in_space,
                    .scaled = is_scaled(task),
                    .variances = !task.arguments.variances.empty(),
                    .guarded = task.arguments.options.guard > 0,
                    .own_damps = task.sweep || !task.arguments.variances.empty(),
                    .curves = task.arguments.sweep.by_factor() ? std::ssize(task.sweep.damps) : 0,
                    .matrix = layout,
                    .tile_bytes = task.A.tile_bytes(task.kept()),
                    .product_range = product->range(),
                    .range = op->range(),
                    .domain = op->domain(),
                    .storage = task.iteration.storage};
  if (is_scaled(task) && task.is_on_disk())
    plan.norms_bytes = [&task, layout](int row, int col) {
      return column_norms_bytes<T>(task.shape.cols, layout.row_range(*task.grid, row, col).size,
                                   layout.col_range(*task.grid, row, col).size);
    };
  if (task.sweep.in_space) plan.space_bytes = space_at;
  if (task.sweep.leaves_rest) plan.rest = std::max(task.B.cols, std::ssize(task.sweep.damps));
  if (sketches) {
    plan.sketch_bytes = sketch_at;
    plan.sketch_columns = sketch_columns;
  }
  return plan;
}

/// A fact of checkpoints: the damping of the problem. The solver's may be 0, if the operator includes it.
constexpr const char* damp_fact = "damp";

/// The requested damping. A restart continues with exactly the damping of the first run.
template <Scalar T>
double damping_of(const SolveTask& task, const LinearOperator<T>& A) {
  const SolveArguments& arguments = task.arguments;
  if (!arguments.damp_relative) return arguments.options.damp.one_or(0);
  const auto saved = task.saved.find(damp_fact);
  return saved == task.saved.end() ? *arguments.damp_relative * estimate_norm(A)
                                   : std::strtod(saved->second.c_str(), nullptr);
}

bool is_sparse(const SolveTask& task) { return row_of(task.arguments.solver).has(Feature::penalty); }

/// λ of each column, 0 if Aᴴb is not finite; rank 0 reports how large they are if it talks. X: scratch
/// memory.
template <Scalar T>
std::vector<double> choose_lambdas(const SolveArguments& arguments, const LinearOperator<T>& A,
                                   const DistMatrix<T>& B, DistMatrix<T>& X, bool talks) {
  if (!arguments.lambda_relative && arguments.quiet)
    return std::vector<double>(static_cast<std::size_t>(X.cols()), arguments.options.lambda.one_or(0));
  const std::vector<double> of_zero = least_lambdas_of_zero(A, B, arguments.options, X);
  std::vector<double> lambdas(of_zero.size(), arguments.options.lambda.one_or(0));
  if (arguments.lambda_relative)
    for (std::size_t j = 0; j < of_zero.size(); ++j)
      lambdas[j] = std::isfinite(of_zero[j]) ? *arguments.lambda_relative * of_zero[j] : 0;
  if (talks) print(lambda_text(lambdas, of_zero, arguments.options.threshold));
  return lambdas;
}

/// Whether a history has all iterations: of a run that begins, or goes on from a state that has a whole one.
bool continues_history(const SolveTask& task) {
  return task.saved.empty() || saved_fact(task.saved, history_fact) == "whole";
}

/// What the user asks of checkpoints, with the facts of this run. damp: of the problem.
CheckpointOptions checkpoint_options(const SolveTask& task, double damp) {
  const SolveArguments& arguments = task.arguments;
  CheckpointOptions checkpoint = arguments.options.checkpoint;
  if (arguments.lambda_relative) checkpoint.computed = {"lambda"};
  checkpoint.requested = end_is_requested;
  checkpoint.facts = facts_of_run(*task.grid, task.iteration.algorithm, arguments.product, task.choices);
  checkpoint.facts.merge(fixed_options(task));
  checkpoint.facts[damp_fact] = fmt::format("{}", damp);
  checkpoint.facts[one_pass_fact] = task.iteration.one_pass ? "on" : "off";
  checkpoint.facts[storage_fact] = name_of_storage(task.iteration);
  checkpoint.facts[history_fact] = !arguments.history.empty() && continues_history(task) ? "whole" : "none";
  return checkpoint;
}

/// The space of all right-hand sides and dampings, or the one to start in; none if no space is asked for
/// (collective over the grid).
template <Scalar T>
std::optional<SolutionSpace<T>> make_space(const SolveTask& task, const OperatorPtr<T>& A,
                                           const DistMatrix<T>& B) {
  const SolveArguments& arguments = task.arguments;
  if (!arguments.space.empty()) return SolutionSpace<T>(A, arguments.space);
  if (!task.sweep.in_space) return std::nullopt;
  const PerColumn tolerance = arguments.options.tolerance.value_or(default_tolerance(scalar_type_of<T>));
  return SolutionSpace<T>(A, B,
                          {.damps = task.sweep.damps,
                           .tolerance = tolerance.one_or(0),
                           .max_dimension = arguments.sweep.space_dimension,
                           .has_probe = arguments.sweep.rule == DampingRule::gcv,
                           .limits_cost = task.sweep.leaves_rest,
                           .checkpoint = checkpoint_options(task, 0)});
}

/// Ends the solver on request, after its space was to be saved.
class EndInSpace : public SolveObserver {
 public:
  /// failure: SolutionSpace::save_failure().
  EndInSpace(std::string directory, std::string failure)
      : directory_(std::move(directory)), failure_(std::move(failure)) {}
  bool step(const IterationInfo&) override {
    if (!end_is_requested()) return false;
    if (!failure_.empty()) throw OutputError(failure_);
    throw Suspended(fmt::format("the space was saved in {} before; a restart solves from there", directory_));
  }

 private:
  std::string directory_, failure_;
};

/// The options that all solves of the task share, all but the damping. known: what is known of A, if errors
/// are bounded; space: the space it begins in, or null.
template <Scalar T>
SolveOptions common_options(const SolveTask& task, const ErrorBoundOptions& known,
                            const SolutionSpace<T>* space) {
  SolveOptions options = task.arguments.options;
  if (task.arguments.bounds_errors()) {
    options.sigma_min = known.sigma_min;
    // An A that is not finite, or too large for ‖A‖_F, meets no bound, and has verdicts all the same.
    options.frobenius_norm =
        std::isfinite(known.frobenius_norm) ? known.frobenius_norm : std::numeric_limits<double>::max();
  }
  options.one_pass = task.iteration.one_pass;
  if (task.sweep.in_space)
    if (const std::string saved = std::exchange(options.checkpoint, {}).directory; !saved.empty())
      options.observers.push_back(std::make_shared<EndInSpace>(saved, space->save_failure()));
  options.observers.push_back(std::make_shared<IterationForSignals>());
  return options;
}

/// P: the preconditioner, or null; C: a compressed A, or null; space, factor: the same; known: of A, if
/// errors are bounded; variances: their destination, or null. Completes what was solved.
template <Scalar T>
SolveReport run_solver(const SolveTask& task, const OperatorPtr<T>& A, const OperatorPtr<T>& P,
                       const LinearOperator<T>* C, const SolutionSpace<T>* space, const Factor<T>* factor,
                       const ErrorBoundOptions& known, const DistMatrix<T>& B, DistMatrix<T>& X,
                       DistMatrix<T>* variances, const std::shared_ptr<IterationTimes>& times,
                       bool shows_progress, Solved& solved) {
  const SolveArguments& arguments = task.arguments;
  CostFunction& cost = solved.cost;
  SolveOptions options = common_options(task, known, space);
  if (!task.sweep.chooses_each)
    cost.damp = task.sweep ? PerColumn(task.sweep.of_all_columns(task.sweep.damps)) : damping_of(task, *A);
  options.damp = cost.damp;
  if (!task.tolerances.empty()) options.tolerance = task.tolerances;
  if (is_sparse(task)) options.lambda = cost.lambdas;
  options.initial_guess = task.X0.has_value();
  options.record_history = !arguments.history.empty();
  if (!task.sweep.in_space) options.checkpoint = checkpoint_options(task, options.damp.one_or(0));
  options.observers.push_back(times);
  std::shared_ptr<Nonzeros<T>> nonzeros;
  if (is_sparse(task) && !arguments.quiet) {
    nonzeros = std::make_shared<Nonzeros<T>>(X);
    options.observers.push_back(nonzeros);
  }
  if (shows_progress) {
    const Index batches = batch_count(B.layout().cols.partition, options.batch);
    options.observers.push_back(std::make_shared<SolveProgress>(batches, nonzeros));
  }
  if (task.sweep.in_space) return space->solve(B, X, options);
  if (space != nullptr) return space->solve_others(B, X, options);
  if (C != nullptr) return solve_for_original(task, *A, *C, B, X, options, *solved.compressed);
  if (P == nullptr)
    return gridlops::solve(arguments.solver, *A, B, X, options, {.variances = variances, .factor = factor});
  return preconditioned_inversion(A, B, X, {.P = P, .solver = task.arguments.solver, .damps_x = true},
                                  options);
}

/// Records the bytes that this rank received in the products of an iteration, next to the model's figure.
void note_bytes(const SolveTask& task, const ReceivedBytes& received, Measurements& measured) {
  const ProcessGrid& grid = *task.grid;
  const PlannedIteration& iteration = task.iteration;
  measured.predicted_bytes_received =
      iteration_cost(iteration, grid.shape(), grid.my_row(), grid.my_col()).bytes_received;
  const Index forward = received.of(ReceivedBytes::forward), adjoint = received.of(ReceivedBytes::adjoint);
  if (task.iteration.one_pass) {
    measured.counted_bytes_received = received.of(ReceivedBytes::normal);
  } else if (!row_of(iteration.solver).multiplies_with_adjoint()) {
    measured.counted_bytes_received = forward;
  } else if (forward >= 0 && adjoint >= 0) {
    measured.counted_bytes_received = forward + adjoint;
  }
}

/// The inputs' values that are not finite, in words (collective over the grid). Reads the inputs again, since
/// packing and the solver have changed their memory.
template <Scalar T>
std::string non_finite_inputs(const SolveTask& task, const Space& range, const Space& domain) {
  const SolveArguments& arguments = task.arguments;
  std::string text = non_finite_in_file<T>(arguments.rhs, task.B, task.grid, range.layout(task.B.cols));
  if (task.X0)
    text += non_finite_in_file<T>(arguments.initial, *task.X0, task.grid, domain.layout(task.X0->cols));
  const MatrixFile* A = task.elements();
  if (A == nullptr) return text;
  if (!task.is_on_disk())
    return text + non_finite_in_file<T>(A->name(), A->header(), task.grid, layout_of_matrix(task));
  return text.empty() ? fmt::format("; NaN or infinity are in {}, or numbers left their range", A->name())
                      : text;
}

/// The right-hand sides, and what is to be written.
template <Scalar T>
struct Columns {
  DistMatrix<T> B, X;
  std::optional<DistMatrix<T>> variances{};
};

/// Reads B, and X0 into X; and chooses λ.
template <Scalar T>
Columns<T> read_all_columns(const SolveTask& task, const LinearOperator<T>& op, bool shows_progress,
                            CostFunction& cost, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  Stopwatch clock;
  Columns<T> columns{allocate_matrix<T>(task.grid, op.range().layout(task.shape.nrhs)),
                     allocate_matrix<T>(task.grid, op.domain().layout(task.shape.nrhs))};
  if (!arguments.variances.empty())
    columns.variances.emplace(allocate_matrix<T>(task.grid, columns.X.layout()));
  measured.setup_seconds += clock.lap();
  read_columns(task.sweep, arguments.rhs, task.B, columns.B);
  draw_probes(task.sweep, columns.B);
  measured.read_seconds += clock.lap();
  if (is_sparse(task)) cost.lambdas = choose_lambdas(arguments, op, columns.B, columns.X, shows_progress);
  measured.setup_seconds += clock.lap();
  if (task.X0) read_columns(task.sweep, arguments.initial, *task.X0, columns.X);
  measured.read_seconds += clock.lap();
  return columns;
}

/// Solves in a space, if the task says so, and then with the solver. known: completed by σ.
template <Scalar T>
void compute(const SolveTask& task, const MatrixOfTask<T>& A, const OperatorPtr<T>& op, Columns<T>& columns,
             const std::shared_ptr<IterationTimes>& times, bool shows_progress, ErrorBoundOptions& known,
             Solved& solved) {
  const SolveArguments& arguments = task.arguments;
  known.sigma_min = sigma_min_of(arguments, *A.product);
  std::optional<SolutionSpace<T>> space = make_space(task, op, columns.B);
  std::shared_ptr<const SpectralFactor<T>> factor;
  const double noise = arguments.sweep.noise.value_or(0);
  if (task.sweep.in_space) {
    const SolveReport rest = task.sweep.leaves_rest
                                 ? space->solve_rest(columns.B, common_options<T>(task, known, &*space))
                                 : SolveReport();
    solved.sweep = {.curves = space->curves(arguments.sweep.rule, noise, known),
                    .space = SweptSpace{space->dimension(), space->products(), space->end(), rest}};
  } else if (task.sweep.chooses_each) {
    const std::vector<double>& damps = task.sweep.damps;
    factor = spectral_factor(*op, *std::min_element(damps.begin(), damps.end()));
    solved.sweep = {.curves = damping_curves(*op, columns.B, *factor, damps, arguments.sweep.rule, noise,
                                             common_options<T>(task, known, nullptr)),
                    .factor = factor->facts()};
  }
  if (solved.sweep) solved.cost.damp = solved.sweep->damps();
  solved.report = run_solver(
      task, op, A.preconditioner, A.approximation.get(), space ? &*space : nullptr, factor.get(), known,
      columns.B, columns.X, columns.variances ? &*columns.variances : nullptr, times, shows_progress, solved);
  solved.cost.lambdas = solved.report.lambdas;  // in a restart, those of the run that it continues
}

/// Writes X and variances, of a sweep those of the chosen dampings.
template <Scalar T>
void write_solutions(const SolveTask& task, Columns<T>& columns, Solved& solved) {
  const SolveArguments& arguments = task.arguments;
  if (task.sweep && !task.sweep.chooses_each)
    solved.curve = damping_curve(task.sweep.damps, solved.report, columns.X, arguments.sweep.rule,
                                 arguments.sweep.noise.value_or(0));
  const Range saved =
      solved.curve ? saved_columns(arguments.sweep, *solved.curve) : Range{0, columns.X.cols()};
  write_columns(arguments.output, saved, task.B.dimensions, arguments.rhs, columns.X);
  if (columns.variances)
    write_columns(arguments.variances, saved, task.B.dimensions, arguments.rhs, *columns.variances);
}

/// Bounds the errors of x, of the problem, and of the one before A was compressed.
template <Scalar T>
void bound_errors(const SolveTask& task, const MatrixOfTask<T>& A, const Columns<T>& columns,
                  bool shows_progress, ErrorBoundOptions known, Solved& solved) {
  if (task.arguments.bounds_errors()) {
    known.damp = solved.cost.damp;
    solved.sigma_min = known.sigma_min;
    solved.error_bounds = error_bounds(solved.report, columns.B, columns.X, known);
    if (solved.curve)
      for (std::size_t k = 0; k < solved.curve->points.size(); ++k)
        solved.curve->points[k].error_bound = solved.error_bounds[k];
    const std::string text = error_text(task, known.sigma_min, solved.error_bounds, column_norms(columns.X));
    if (shows_progress) print(text);
  }
  if (A.compression) {
    if (!A.approximation)
      solved.compressed->bounds =
          bounds_for_original(task, solved.report, columns.B, columns.X, solved.cost.damp, *A.compression);
    const std::string text = verdicts_text(task, *solved.compressed, column_norms(columns.X));
    if (shows_progress) print(text);
  }
}

template <Scalar T>
Solved solve_on_grid(const SolveTask& task, bool shows_progress, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  const auto& grid = task.grid;
  MatrixOfTask<T> A = open_matrix<T>(task, measured);
  const bool is_hermitian = row_of(arguments.solver).problem == ProblemKind::hermitian;
  ErrorBoundOptions known{.frobenius_norm = A.frobenius_norm, .is_definite = is_hermitian};
  Solved solved;
  if (A.compression) solved.compressed = CompressedSolve{*A.compression, A.seen_error};
  solved.cost.threshold = arguments.options.threshold;
  solved.cost.is_quadratic_form = is_hermitian;
  const auto received = std::make_shared<ReceivedBytes>();
  const auto times = std::make_shared<IterationTimes>();
  OperatorPtr<T> op = A.product;
  if (!arguments.product.report.empty()) op = std::make_shared<MeteredProduct<T>>(op, received);
  op = make_operator(task, op);
  Columns<T> columns = read_all_columns(task, *op, shows_progress, solved.cost, measured);
  const auto hash = arguments.verify_matrix ? block_hash(*A.product) : std::nullopt;
  measured.compute(*grid, [&] { compute(task, A, op, columns, times, shows_progress, known, solved); });
  if (arguments.verify_matrix)
    require_same_matrix(task.elements()->name(), *grid, layout_of_matrix(task),
                        hash == block_hash(*A.product));
  // Results are safe before anything is derived from them, which may fail.
  Stopwatch clock;
  write_solutions(task, columns, solved);
  measured.write_seconds = clock.lap();
  measured.predicted_part_seconds = times->median();
  if (task.is_on_disk()) solved.disk = disk_use(task, A.disk_reads());
  if (A.approximation) {
    measured.planned_bytes = certified_bytes(task, *planned_product<T>(task)).back();
  } else {
    note_bytes(task, *received, measured);
    measured.planned_bytes = memory_of_rank(plan_of<T>(task), grid->my_row(), grid->my_col());
  }
  if (!arguments.product.report.empty())
    solved.column_figures = column_figures(columns.B, columns.X, solved.report, solved.cost);
  bound_errors(task, A, columns, shows_progress, known, solved);
  if (has_column(solved.report, StopReason::non_finite)) {
    const Space range = op->range(), domain = op->domain();
    op = nullptr;
    A = {};  // frees the memory to read A again
    solved.non_finite_inputs = non_finite_inputs<T>(task, range, domain);
  }
  return solved;
}

std::string headline(const SolveTask& task) {
  const std::string sweep = task.sweep ? fmt::format(" with {} dampings", task.sweep.damps.size()) : "";
  const std::string why =
      task.arguments.chooses_solver ? fmt::format("--solver auto: {}\n", task.why_solver) : "";
  const std::string& matrix = task.A.name();
  return fmt::format("{}: {} x {} {}, {} right-hand side{}{}; {} with {} on {} x {} ranks\n{}",
                     task.original ? fmt::format("{} by {}", task.original->name(), matrix) : matrix,
                     task.shape.rows, task.shape.cols, name_of(task.shape.type), task.B.cols,
                     task.B.cols == 1 ? "" : "s", sweep,
                     task.iteration.one_pass ? "one-pass-cgls" : name_of(task.arguments.solver),
                     name_of(task.iteration.algorithm), task.grid->rows(), task.grid->cols(), why);
}

/// Advice for columns that are not finite, or broke down.
std::string advice(Solver solver, const Solved& solved) {
  const SolveReport& report = solved.report;
  const bool breaks_down_otherwise = row_of(solver).problem != ProblemKind::least_squares;
  const bool is_non_finite = has_column(report, StopReason::non_finite);
  if (!solved.non_finite_inputs.empty()) return solved.non_finite_inputs;
  if (!is_non_finite && (breaks_down_otherwise || !has_column(report, StopReason::breakdown))) return "";
  return fmt::format(
      "; {}numbers left the range of their type: scale A and B so that their norms are about 1",
      is_non_finite ? "no input holds NaN or infinity, so " : "");
}

void warn_of_rounding(const SolveTask& task) {
  const std::string difference = rounding_difference(
      task.saved, facts_of_run(*task.grid, task.iteration.algorithm, task.arguments.product, task.choices));
  if (!difference.empty())
    warn(fmt::format("results will agree with those of one long run to rounding only: {}", difference));
}

void warn_of_history(const SolveTask& task) {
  const std::string& history = task.arguments.history;
  if (history.empty() || task.sweep.in_space || continues_history(task)) return;
  warn(
      fmt::format("{} will not have all iterations up to {}, which were made before this run goes on: a run "
                  "before it had no --history, so that its state has none",
                  history, saved_fact(task.saved, "iteration")));
}

/// Throws, on all ranks, if an output cannot be written, or is an input (collective over world).
void check_files(Communicator& world, const SolveArguments& arguments) {
  const CheckpointOptions& checkpoint = arguments.options.checkpoint;
  std::vector<NamedFile> outputs;
  if (!arguments.dry_run)
    outputs = {{"--output", arguments.output},
               {"--variances", arguments.variances},
               {"--history", arguments.history, NamedFile::text},
               {"--curve", arguments.sweep.curve, NamedFile::text},
               {"--report", arguments.product.report, NamedFile::text}};
  check_outputs(world,
                {{"--matrix", arguments.product.matrix},
                 {"--certify", arguments.certify},
                 {"--rhs", arguments.rhs},
                 {"--initial", arguments.initial},
                 {"--damps", damps_file(arguments.sweep)},
                 {"--tolerances", arguments.tolerances},
                 {"--machine", arguments.product.machine},
                 manifest_in("--restart", checkpoint.restart),
                 manifest_in("--checkpoint", checkpoint.directory),
                 manifest_in("--space", arguments.space)},
                outputs);
  if (!arguments.dry_run) check_checkpoint_directory(world, checkpoint);
}

/// Prints what the run would take (collective over world).
void tell_plan(Communicator& world, const SolveTask& task) {
  const bool talks = world.rank() == 0;
  with_scalar_type(task.shape.type, [&]<Scalar T>() {
    if (!task.arguments.certify.empty()) {
      const std::string text =
          certified_plan_text(world, task, certified_bytes(task, *planned_product<T>(task)));
      if (talks) print(text);
    } else if (talks) {
      print(plan_text(plan_of<T>(task)));
    }
  });
  if (talks && task.is_on_disk()) print(disk_text(task));
}

}  // namespace

ExitStatus solve(Communicator& world, const SolveArguments& arguments) {
  const bool talks = world.rank() == 0;
  catch_signals(!arguments.options.checkpoint.directory.empty(), talks);
  Stopwatch clock;
  Measurements measured;
  const Ranks ranks = make_ranks(world, arguments.product.device, arguments.product.transport);
  measured.setup_seconds = clock.lap();
  check_files(world, arguments);
  SolveTask task = read_task(world, arguments, ranks);
  find_room(world, task, [](const SolveTask& of) {
    return with_scalar_type(of.shape.type, [&]<Scalar T>() { return plan_of<T>(of); });
  });
  const ProcessGrid& grid = *task.grid;
  measured.read_seconds = clock.lap();
  if (talks && !task.saved.empty()) {
    warn_of_rounding(task);
    warn_of_history(task);
  }

  if (talks && !(arguments.quiet && !arguments.dry_run))
    print(headline(task) + task.promotions + task.why_disk);
  if (arguments.dry_run) {
    tell_plan(world, task);
    return ExitStatus::done;
  }
  Solved solved;
  run_on_grid(world, grid, [&] {
    with_scalar_type(task.shape.type, [&]<Scalar T>() {
      solved = solve_on_grid<T>(task, talks && !arguments.quiet, measured);
    });
  });
  const SolveReport& report = solved.report;
  if (!grid.is_member())
    measured = {.predicted_bytes_received = 0, .counted_bytes_received = 0, .planned_bytes = 0};
  write_history(world, arguments.history, report);
  if (task.sweep.chooses_each) {
    tell_curves(world, arguments, solved.sweep.value_or(SweepOfEach()));
  } else if (task.sweep) {
    tell_curve(world, arguments, solved.curve.value_or(DampingCurve()));
  }
  write_report(world, arguments.product.report, facts_of(task, solved), measured, &report);
  if (talks) warn_of_alarms(report);
  const bool lacks_choice = (solved.curve && solved.curve->lacks_choice()) ||
                            (solved.sweep && !solved.sweep->without_choice().empty());
  if (all_solved(report)) return lacks_choice ? ExitStatus::check_failed : ExitStatus::done;
  if (talks) {
    const std::string refused = solved.compressed ? refusal_text(task, *solved.compressed) : "";
    warn(fmt::format("not every column was solved: {}; {} is written all the same{}{}", verdict_text(report),
                     arguments.output, advice(arguments.solver, solved), refused));
  }
  return ExitStatus::not_converged;
}

}  // namespace gridlops::program
