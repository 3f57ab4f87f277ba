// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/benchmarks.hpp"
#include "bench/measure/cases.hpp"
#include "bench/measure/results.hpp"
#include "bench/product_check.hpp"
#include "gridlops/ops/operator_algebra.hpp"

namespace gridlops::bench {

namespace {

/// A solver and its number of iterations.
struct SolverRun {
  Solver solver;
  bool reads_once;
  Index iterations;
  bool is_hermitian() const { return row_of(solver).problem == ProblemKind::hermitian; }
  int products() const { return row_of(solver).multiplies_with_adjoint() ? 2 : 1; }  ///< of an iteration
};

/// The operator A. Solvers of Hermitian systems keep all their vectors in the layout of models, so there A X
/// has it, too.
template <Scalar T>
OperatorPtr<T> operator_of(const Case& what, const SolverRun& method, LastProduct& last) {
  OperatorPtr<T> A = last.of<T>(what);
  if (!method.is_hermitian() || A->domain() == A->range()) return A;
  return product(identity<T>(A->domain(), A->range()), A);
}

/// A step below 1/‖A‖² for a random matrix. It saves the products that would estimate ‖A‖: ‖A‖ ≈ √v (√m + √n)
/// for elements of variance v (Geman, Ann. Probab. 8, 1980).
template <Scalar T>
double sparse_step(const ProductShape& shape) {
  constexpr double variance = is_complex<T> ? 2.0 / 3 : 1.0 / 3;
  const double roots =
      std::sqrt(static_cast<double>(shape.rows)) + std::sqrt(static_cast<double>(shape.cols));
  return 1 / (1.2 * variance * roots * roots);
}

template <Scalar T>
class Problem {
 public:
  Problem(const Case& what, const SolverRun& method, LastProduct& last)
      : what_(what),
        method_(method),
        A_(operator_of<T>(what, method, last)),
        B_(random_input<T>(what, A_->range())),
        X_(allocate_matrix<T>(what.grid, A_->domain().layout(what.shape.nrhs))) {
    // No column ends early: few iterations bring none down to its rounding level.
    options_.max_iterations = method.iterations;
    options_.tolerance = 0;
    options_.one_pass = method.reads_once;
    if (row_of(method.solver).has(Feature::penalty)) {
      options_.lambda = 1;
      options_.step = sparse_step<T>(what.shape);
    }
    options_.observers = {after_each_iteration([this](const IterationInfo&) {
      ends_.push_back(now());
      return false;
    })};
  }

  /// Solves, and returns the seconds of the slowest rank (collective over the grid).
  double run() {
    ends_.clear();
    what_.grid->comm().barrier();
    const double begin = now();
    report_ = gridlops::solve(method_.solver, *A_, B_, X_, options_);
    return maximum(*what_.grid, now() - begin);
  }

  /// The median over the iterations of the last run, except its first, on the slowest rank.
  double seconds_per_iteration() const {
    std::vector<double> seconds;
    for (std::size_t k = 1; k < ends_.size(); ++k) seconds.push_back(ends_[k] - ends_[k - 1]);
    return maximum(*what_.grid, seconds.empty() ? 0 : median(seconds));
  }

  /// How often an iteration reads A: for each of its products, or once for both where the operator can.
  int readings() const { return method_.reads_once && A_->has_one_pass() ? 1 : method_.products(); }

  /// The error of one more product in each direction.
  double product_error() const {
    double largest = 0;
    for (const bool adjoint : {false, true}) {
      const DistMatrix<T> X = random_input<T>(what_, adjoint ? A_->range() : A_->domain());
      DistMatrix<T> Y =
          allocate_matrix<T>(what_.grid, (adjoint ? A_->domain() : A_->range()).layout(what_.shape.nrhs));
      adjoint ? A_->apply_adjoint(T(1), X, T(0), Y) : A_->apply(T(1), X, T(0), Y);
      largest = std::max(largest, bench::product_error<T>(what_, adjoint, Y));
    }
    return largest;
  }

  /// The difference at the end between ‖b − Ax‖ by the recurrence and by its definition, relative to ‖b‖: the
  /// largest of all columns.
  double recurrence_error() const {
    const std::vector<double> norms = column_norms(B_);
    double largest = 0;
    const IterationRecord& last = report_.history.back();
    for (std::size_t k = 0; k < last.columns.size(); ++k) {
      const auto j = static_cast<std::size_t>(last.columns[k]);
      const double difference = last.residual_norms[k] - report_.columns[j].residual_norm;
      largest = std::max(largest, comparable(std::abs(difference) / (norms[j] > 0 ? norms[j] : 1)));
    }
    return largest;
  }

 private:
  const Case& what_;
  const SolverRun& method_;
  OperatorPtr<T> A_;
  DistMatrix<T> B_, X_;
  SolveOptions options_;
  SolveReport report_;
  std::vector<double> ends_;
};

/// The bytes that this rank sends, and the kernels and products that it launches on its GPU.
struct Counts {
  Index bytes_sent, launches;
  Counts operator-(const Counts& other) const {
    return {bytes_sent - other.bytes_sent, launches - other.launches};
  }
};

/// The counts of one iteration: the difference of two runs that differ by one iteration.
template <Scalar T>
Counts counts_of_iteration(const Case& what, SolverRun method, LastProduct& last) {
  const auto so_far = [&] {
    return Counts{what.grid->comm().traffic().bytes_sent, what.grid->backend()->launches()};
  };
  const auto counts_of = [&](Index iterations) {
    method.iterations = iterations;
    Problem<T> problem(what, method, last);
    const Counts before = so_far();
    problem.run();
    return so_far() - before;
  };
  const Counts two = counts_of(2);
  return two - counts_of(1);
}

template <Scalar T>
Result measure(const Case& what, const SolverRun& method, int repetitions, LimitMeter& meter,
               LastProduct& last) {
  Result result{.what = what, .solver = method.reads_once ? "one-pass-cgls" : name_of(method.solver)};
  const Counts counts = counts_of_iteration<T>(what, method, last);
  result.bytes_sent = sum(*what.grid, counts.bytes_sent);
  result.launches = counts.launches;
  Problem<T> problem(what, method, last);
  const Work product = product_work<T>(what.shape);
  result.work = {method.products() * product.flops, problem.readings() * product.bytes};
  RecentLimits<T> recent(*what.grid, meter);
  std::vector<double> totals;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    const MachineLimits limits = recent.get();
    const double waited = what.grid->comm().traffic().seconds_waiting;
    totals.push_back(problem.run());
    recent.add_work(totals.back());
    const double waiting = what.grid->comm().traffic().seconds_waiting - waited;
    result.samples.push_back({problem.seconds_per_iteration(), limits,
                              sum(*what.grid, waiting) / what.grid->comm().size() / totals.back()});
  }
  result.total_seconds = median(totals);
  // Both grow with the errors of the products.
  result.error = std::max(problem.recurrence_error(), problem.product_error());
  result.allowed_error =
      static_cast<double>(method.iterations) *
      (allowed_product_error<T>(what.shape, false) + allowed_product_error<T>(what.shape, true));
  return result;
}

}  // namespace

ExitStatus solve(Communicator& world, const SolveArguments& arguments) {
  std::vector<SolverRun> methods;
  for (const Solver solver : arguments.solvers) {
    if (arguments.one_pass && !row_of(solver).has(Feature::one_pass))
      throw UsageError(fmt::format("--one-pass is for --solver {}, not for {}",
                                   names_of(solvers_with(Feature::one_pass)), name_of(solver)));
    methods.push_back({solver, arguments.one_pass, arguments.iterations});
  }
  const auto check_algorithm = [&](Algorithm algorithm) {
    if (arguments.one_pass && algorithm != Algorithm::stationary_a)
      throw UsageError(std::string("--one-pass is for --algorithm stationary-a, not for ") +
                       name_of(algorithm));
  };
  for (const Algorithm algorithm : arguments.cases.algorithms)
    if (algorithm != Algorithm::automatic) check_algorithm(algorithm);
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  Cases cases = arguments.cases;
  if (arguments.one_pass) cases.storages = {Storage::packed};
  warn_of_copies(world, cases);
  for_each_case(world, cases, [&](Case what, LastProduct& last) {
    check_algorithm(what.algorithm);
    for (const SolverRun& method : methods) {
      what.positive_definite = method.is_hermitian();
      if (what.positive_definite && what.shape.rows != what.shape.cols)
        throw UsageError(fmt::format("--solver {} needs square matrices, not {} x {}", name_of(method.solver),
                                     what.shape.rows, what.shape.cols));
      with_scalar_type(what.shape.type, [&]<Scalar T>() {
        writer.add(measure<T>(what, method, arguments.method.repetitions, meter, last));
      });
    }
  });
  return writer.close();
}

}  // namespace gridlops::bench
