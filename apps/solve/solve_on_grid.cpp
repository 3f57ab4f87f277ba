// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_on_grid.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/option_values.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "matrix/memory_plan.hpp"
#include "measure/metered_product.hpp"
#include "measure/number_checks.hpp"
#include "solve/column_figures.hpp"
#include "solve/matrix_of_task.hpp"
#include "solve/solver_run.hpp"
#include "solve/task/placement.hpp"

namespace gridlops::program {

namespace {

/// Records the bytes that this rank received in the products of an iteration, next to the model's figure.
void note_bytes(const SolveTask& task, const ReceivedBytes& received, Measurements& measured) {
  const ProcessGrid& grid = *task.grid();
  const PlannedIteration& iteration = task.iteration();
  measured.predicted_bytes_received =
      iteration_cost(iteration, grid.shape(), grid.my_row(), grid.my_col()).bytes_received;
  const Index forward = received.of(ReceivedBytes::forward), adjoint = received.of(ReceivedBytes::adjoint);
  if (task.iteration().one_pass) {
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
  std::string text = non_finite_in_file<T>(arguments.rhs, task.B, task.grid(), range.layout(task.B.cols));
  if (task.X0)
    text += non_finite_in_file<T>(arguments.initial, *task.X0, task.grid(), domain.layout(task.X0->cols));
  const MatrixFile* A = task.elements();
  if (A == nullptr) return text;
  if (!task.is_on_disk())
    return text + non_finite_in_file<T>(A->name(), A->header(), task.grid(), layout_of_matrix(task));
  return text.empty() ? fmt::format("; NaN or infinity are in {}, or numbers left their range", A->name())
                      : text;
}

/// The bounds in a file, or a number for all, in the layout of X; none if there are none (collective over the
/// grid).
template <Scalar T>
std::optional<DistMatrix<T>> read_bounds(const std::string& bounds, const std::optional<MatrixHeader>& header,
                                         const DistMatrix<T>& X) {
  if (bounds.empty()) return std::nullopt;
  std::optional<DistMatrix<T>> all(allocate_matrix<T>(X.grid(), X.layout()));
  if (const auto number = bound_in(bounds)) {
    const T of_all(static_cast<Real<T>>(*number));
    all->fill([of_all](Index, Index) { return of_all; });
  } else if (header->cols == X.cols()) {
    read_matrix(bounds, *header, *all);
  } else {
    DistMatrix<T> column = allocate_matrix<T>(X.grid(), replicated(X.rows(), 1));
    read_matrix(bounds, *header, column);
    if (!X.grid()->is_member()) return all;
    attempt(X.grid()->comm(), [&] {
      std::vector<T> here(static_cast<std::size_t>(X.rows()));
      X.grid()->backend()->download(column.local().data, here.data(), X.rows() * Index{sizeof(T)});
      all->fill([&here](Index i, Index) { return here[static_cast<std::size_t>(i)]; });
    });
  }
  return all;
}

/// Reads the weights of B, and marks its holes (collective over the grid).
template <Scalar T>
void read_weights(const SolveTask& task, Columns<T>& columns, Solved& solved, bool shows_progress) {
  const SolveArguments& arguments = task.arguments;
  if (!arguments.weighs()) return;
  DistMatrix<T>& W = columns.weights.emplace(allocate_matrix<T>(task.grid(), columns.B.layout()));
  if (task.W) {
    read_columns(task.sweep, arguments.weights, *task.W, W);
  } else {
    W.fill([](Index, Index) { return T(1); });
  }
  if (arguments.holes != "nan") return;
  const Index times = task.sweep.copies ? W.cols() : 1;  // that each number of the file is in B
  solved.holes = mark_holes(columns.B, W) / times;
  if (shows_progress)
    print(fmt::format("--holes nan: {} of {} numbers of B are missing\n", solved.holes,
                      W.rows() * W.cols() / times));
}

/// Reads B, bounds, and X0 into X; and chooses λ.
template <Scalar T>
Columns<T> read_all_columns(const SolveTask& task, const LinearOperator<T>& op, const SolverRun<T>& run,
                            bool shows_progress, Solved& solved, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  Stopwatch clock;
  Columns<T> columns{allocate_matrix<T>(task.grid(), op.range().layout(task.shape.nrhs)),
                     allocate_matrix<T>(task.grid(), op.domain().layout(task.shape.nrhs))};
  if (!arguments.variances.empty())
    columns.variances.emplace(allocate_matrix<T>(task.grid(), columns.X.layout()));
  measured.setup_seconds += clock.lap();
  read_columns(task.sweep, arguments.rhs, task.B, columns.B);
  draw_probes(task.sweep, columns.B);
  read_weights(task, columns, solved, shows_progress);
  measured.read_seconds += clock.lap();
  if (row_of(arguments.solver).has(Feature::penalty))
    solved.cost.lambdas = run.choose_lambdas(columns.B, columns.given_weights(), columns.X);
  measured.setup_seconds += clock.lap();
  if (task.X0) read_columns(task.sweep, arguments.initial, *task.X0, columns.X);
  columns.lower = read_bounds(arguments.lower, task.lower, columns.X);
  columns.upper = read_bounds(arguments.upper, task.upper, columns.X);
  measured.read_seconds += clock.lap();
  return columns;
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

/// The largest error that any column can have, relative to the norm of its x, in words.
std::string error_text(const SolveTask& task, double sigma_min, const std::vector<double>& bounds,
                       const std::vector<double>& norms) {
  for (std::size_t j = 0; j < bounds.size(); ++j)
    if (!std::isfinite(relative_bound(bounds[j], norms[j])))
      return fmt::format("error: nothing bounds that of column {}\n", j);
  const double largest = largest_relative(bounds, norms);
  if (task.arguments.proves_sigma_min())
    return fmt::format(
        "error: |x - x*| is at most {:.1e} |x| in every column: it is proven that no singular value of A is "
        "below {:.3g}\n",
        largest, sigma_min);
  if (!task.arguments.sketches())
    return fmt::format("error: |x - x*| is at most {:.1e} |x| in every column\n", largest);
  return fmt::format(
      "error: |x - x*| is probably at most {:.1e} |x| in every column: a random sketch of A with {} rows "
      "says "
      "that no singular value is below {:.3g}, which is wrong at most once in {:.0e} times\n",
      largest, sketch_rows(task.shape.cols), sigma_min, 1 / sketch_failure);
}

/// Bounds the errors of x, of the problem, and of the one before A was compressed.
template <Scalar T>
void bound_errors(const SolveTask& task, const MatrixOfTask<T>& A, const Columns<T>& columns,
                  bool shows_progress, ErrorBoundOptions known, Solved& solved) {
  if (task.arguments.bounds_errors()) {
    known.damp = solved.cost.damp;
    known.weights = solved.weights;
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
      solved.compressed->bounds = bounds_for_original(task, solved.report, columns.B, columns.X,
                                                      solved.cost.damp, *A.compression, solved.weights);
    const std::string text = verdicts_text(task, *solved.compressed, column_norms(columns.X));
    if (shows_progress) print(text);
  }
}

/// Notes what the run has taken, next to what was planned and predicted.
template <Scalar T>
void note_figures(const SolveTask& task, const MatrixOfTask<T>& A, const ReceivedBytes& received,
                  Measurements& measured, Solved& solved) {
  const ProcessGrid& grid = *task.grid();
  if (task.is_on_disk()) solved.disk = disk_use(task, A.disk_reads());
  if (A.approximation) {
    measured.planned_bytes = certified_bytes(task, *planned_product<T>(task)).back();
  } else {
    note_bytes(task, received, measured);
    measured.planned_bytes = memory_of_rank(plan_of(task), grid.my_row(), grid.my_col());
  }
}

template <Scalar T>
Solved solve_as(const SolveTask& task, bool shows_progress, Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  MatrixOfTask<T> A = open_matrix<T>(task, measured);
  Solved solved;
  if (A.compression) solved.compressed = CompressedSolve{*A.compression, A.seen_error};
  solved.cost.threshold = arguments.options.threshold;
  solved.cost.is_quadratic_form = row_of(arguments.solver).problem == ProblemKind::hermitian;
  solved.cost.is_misfit = arguments.reweighs();
  const auto received = std::make_shared<ReceivedBytes>();
  OperatorPtr<T> op = A.product;
  if (!arguments.product.report.empty()) op = std::make_shared<MeteredProduct<T>>(op, received);
  op = make_operator(task, op);
  std::optional<SolverRun<T>> run(std::in_place, task, A, op, shows_progress);
  Columns<T> columns = read_all_columns(task, *op, *run, shows_progress, solved, measured);
  const auto hash = arguments.verify_matrix ? block_hash(*A.product) : std::nullopt;
  measured.compute(*task.grid(), [&] { run->solve(columns, solved); });
  // Everything that follows is about the weighted problem.
  if (columns.weights) solved.weights = weigh<T>(*columns.weights, columns.B);
  if (arguments.verify_matrix)
    require_same_matrix(task.elements()->name(), *task.grid(), layout_of_matrix(task),
                        hash == block_hash(*A.product));
  // Results are safe before anything is derived from them, which may fail.
  Stopwatch clock;
  write_solutions(task, columns, solved);
  measured.write_seconds = clock.lap();
  measured.predicted_part_seconds = run->iteration_seconds();
  note_figures(task, A, *received, measured, solved);
  if (!arguments.product.report.empty())
    solved.column_figures = column_figures(columns.B, columns.X, solved.report, solved.cost);
  bound_errors(task, A, columns, shows_progress, run->known(), solved);
  if (has_column(solved.report, StopReason::non_finite)) {
    const Space range = op->range(), domain = op->domain();
    run.reset();
    op = nullptr;
    A = {};  // frees the memory to read A again
    solved.non_finite_inputs = non_finite_inputs<T>(task, range, domain);
  }
  return solved;
}

}  // namespace

Solved solve_on_grid(const SolveTask& task, bool shows_progress, Measurements& measured) {
  return with_scalar_type(task.shape.type,
                          [&]<Scalar T>() { return solve_as<T>(task, shows_progress, measured); });
}

}  // namespace gridlops::program
