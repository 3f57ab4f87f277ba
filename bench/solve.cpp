// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve_observer.hpp"
#include "gridlops/solver.hpp"

#include <cmath>

#include "benchmarks.hpp"
#include "cases.hpp"
#include "results.hpp"

namespace gridlops::bench {

namespace {

std::string name_of_solver(const SolveArguments& arguments) {
  return arguments.one_pass ? "one-pass-" + arguments.solver : arguments.solver;
}

template <Scalar T>
class Problem {
 public:
  Problem(const Case& what, const SolveArguments& arguments)
      : what_(what),
        solver_(name_of_solver(arguments)),
        A_(random_product<T>(what)),
        B_(random_input<T>(what, A_->range())),
        X_(program::allocate_matrix<T>(what.grid, A_->domain().layout(what.shape.nrhs))) {
    // No column ends early, because so few iterations bring none to its rounding level.
    options_.max_iterations = arguments.iterations;
    options_.tolerance = options_.atol = options_.btol = 0;
    options_.one_pass = solver_ == "one-pass-cgls";
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
    report_ = solver_ == "lsqr"         ? lsqr(*A_, B_, X_, options_)
              : solver_ == "lsmr"       ? lsmr(*A_, B_, X_, options_)
              : solver_ == "block-cgls" ? block_cgls(*A_, B_, X_, options_)
                                        : cgls(*A_, B_, X_, options_);
    return maximum(*what_.grid, now() - begin);
  }

  /// The median over the iterations of the last run without the first, of the slowest rank.
  double seconds_per_iteration() const {
    std::vector<double> seconds;
    for (std::size_t k = 1; k < ends_.size(); ++k) seconds.push_back(ends_[k] - ends_[k - 1]);
    return maximum(*what_.grid, seconds.empty() ? 0 : median(seconds));
  }

  /// The difference between ‖b − Ax‖ of the recurrence and by its definition in the end, relative to ‖b‖; the
  /// largest of any column.
  double error() const {
    const std::vector<double> norms = column_norms(B_);
    double largest = 0;
    const IterationRecord& last = report_.history.back();
    for (std::size_t k = 0; k < last.columns.size(); ++k) {
      const auto j = static_cast<std::size_t>(last.columns[k]);
      const double difference = last.residual_norms[k] - report_.columns[j].residual_norm;
      largest = std::max(largest, std::abs(difference) / norms[j]);
    }
    return largest;
  }

 private:
  const Case& what_;
  std::string solver_;
  OperatorPtr<T> A_;
  DistMatrix<T> B_, X_;
  SolveOptions options_;
  SolveReport report_;
  std::vector<double> ends_;
};

/// What this rank sends, and how many kernels and products it gives to its GPU.
struct Counts {
  Index bytes_sent, launches;
  Counts operator-(const Counts& other) const {
    return {bytes_sent - other.bytes_sent, launches - other.launches};
  }
};

/// The counts of one iteration: the difference of two runs that differ by one iteration.
template <Scalar T>
Counts counts_of_iteration(const Case& what, SolveArguments arguments) {
  const auto so_far = [&] {
    return Counts{what.grid->comm().traffic().bytes_sent, what.grid->backend()->launches()};
  };
  const auto counts_of = [&](Index iterations) {
    arguments.iterations = iterations;
    Problem<T> problem(what, arguments);
    const Counts before = so_far();
    problem.run();
    return so_far() - before;
  };
  const Counts two = counts_of(2);
  return two - counts_of(1);
}

template <Scalar T>
Result measure(const Case& what, const SolveArguments& arguments, LimitMeter& meter) {
  Result result{.what = what, .solver = name_of_solver(arguments)};
  const Work product = product_work<T>(what.shape);
  // An iteration needs two products, and reads A for each of them or once for both.
  result.work = {2 * product.flops, (arguments.one_pass ? 1 : 2) * product.bytes};
  const Counts counts = counts_of_iteration<T>(what, arguments);
  result.bytes_sent = sum(*what.grid, counts.bytes_sent);
  result.launches = counts.launches;
  Problem<T> problem(what, arguments);
  meter.measure<T>(*what.grid);
  std::vector<double> totals;
  for (int repetition = 0; repetition < arguments.method.repetitions; ++repetition) {
    const MachineLimits limits = meter.measure<T>(*what.grid);
    const double waited = what.grid->comm().traffic().seconds_waiting;
    totals.push_back(problem.run());
    const double waiting = what.grid->comm().traffic().seconds_waiting - waited;
    result.samples.push_back({problem.seconds_per_iteration(), limits,
                              sum(*what.grid, waiting) / what.grid->comm().size() / totals.back()});
  }
  result.total_seconds = median(totals);
  result.error = problem.error();
  return result;
}

}  // namespace

void solve(Communicator& world, const SolveArguments& arguments) {
  if (arguments.one_pass && arguments.solver != "cgls")
    throw UsageError("--one-pass is for --solver cgls, not for " + arguments.solver);
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
  for_each_case(world, cases, [&](const Case& what) {
    check_algorithm(what.algorithm);
    with_scalar_type(what.shape.type, [&]<Scalar T>() { writer.add(measure<T>(what, arguments, meter)); });
  });
  writer.close();
}

}  // namespace gridlops::bench
