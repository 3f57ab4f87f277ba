// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>

#include "gridlops/solve/solve_observer.hpp"
#include "support/lapack.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 23;

template <Scalar T>
void compare_with_lapack(const GridPtr& grid, Algorithm algorithm, double damp, bool initial_guess) {
  const Index nrhs = 5;
  const KnownSpectrum<T> matrix(m, n, geometric(n, 30));
  const Element<T> b = random_elements<T>(4), guess = initial_guess ? random_elements<T>(9) : Element<T>{};
  SolveOptions options;
  options.damp = damp;
  options.tolerance = 1e-12;
  const OperatorPtr<T> A = dense_operator(grid, algorithm, matrix);
  const Solution<T> solution = solve<T>(cgls, *A, nrhs, b, options, guess);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), damp, initial_guess);
  check_report(WholeSystem<T>(cgls, m, n, Element<T>(matrix), b, options, guess), solution, grid->comm());
  for (Index j = 0; j < nrhs; ++j) {
    CHECK(solution.verdict(j).reason == StopReason::converged);
    const std::vector<T> expected = lapack_solution<T>(m, n, Element<T>(matrix), b, j, damp);
    CHECK(relative_difference(solution.column(j), expected) <= 1e-8);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("CGLS finds what LAPACK's least squares find", "", double, std::complex<double>) {
  for (const auto& grid : compact_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (const double damp : {0.0, 0.3})
        for (const bool guess : {false, true}) compare_with_lapack<TestType>(grid, algorithm, damp, guess);
}

TEMPLATE_TEST_CASE("By default columns of CGLS converge to the tolerance of their precision", "", float,
                   double, std::complex<float>, std::complex<double>) {
  for (const auto& grid : compact_grids()) {
    // The matrix has a kernel, and is so well conditioned that the tolerance is reached long before the n-th
    // step, which ends at rounding.
    const KnownSpectrum<TestType> wide(n, m, geometric(n, 2));
    const auto A = dense_operator(grid, Algorithm::stationary_a, wide);
    const Element<TestType> b = random_elements<TestType>(4);
    const auto solution = solve<TestType>(cgls, *A, 6, b);
    if (!grid->is_member()) continue;
    const WholeSystem<TestType> system(cgls, n, m, Element<TestType>(wide), b, {});
    check_report(system, solution, grid->comm());
    for (Index j = 0; j < 6; ++j) {
      CHECK(solution.verdict(j).reason == StopReason::converged);
      // It stops at the tolerance, not far below.
      const auto norms = system.norms(j, solution.column(j));
      CHECK(norms.tested > 1e-4 * system.tolerance() * norms.reference);
    }
  }
}

namespace {

/// The x with ‖Ax − b‖² + D²‖x‖² least, for b = A·model + noise, the noise orthogonal to the range. It is the
/// model with each component along a right singular vector multiplied by σ²/(σ² + D²).
template <Scalar T>
struct DampedModel {
  std::vector<double> values;
  KnownSpectrum<T> A;
  double damp;

  DampedModel(double condition, double damp_)
      : values(geometric(n, condition)), A(m, n, values), damp(damp_) {}

  T coefficient(Index k, Index j) const { return counter_random<T>(21, k, j); }
  Element<T> data(double noise) const {
    return [this, noise](Index i, Index j) {
      T sum(0);
      for (Index k = 0; k < n; ++k)
        sum += A.left(i, k) * static_cast<Real<T>>(values[static_cast<std::size_t>(k)]) * coefficient(k, j);
      for (Index k = n; k < m; ++k)
        sum += static_cast<Real<T>>(j % 2 == 0 ? 0 : noise) * A.left(i, k) * coefficient(k, j);
      return sum;
    };
  }
  std::vector<T> solution(Index j) const {
    std::vector<T> x(static_cast<std::size_t>(n), T(0));
    for (Index k = 0; k < n; ++k) {
      const double squared = values[static_cast<std::size_t>(k)] * values[static_cast<std::size_t>(k)];
      const auto kept = static_cast<Real<T>>(squared / (squared + damp * damp));
      for (Index i = 0; i < n; ++i)
        x[static_cast<std::size_t>(i)] += A.right(i, k) * kept * coefficient(k, j);
    }
    return x;
  }
};

/// Even columns are consistent, odd ones are not.
template <Scalar T>
void run_far_past_convergence(const GridPtr& grid, double condition, double damp) {
  const Index nrhs = 8;
  const DampedModel<T> model(condition, damp);
  const auto A = dense_operator(grid, Algorithm::stationary_a, model.A);
  const Element<T> b = model.data(0.5);
  SolveOptions options;
  options.damp = damp;
  options.tolerance = 1e-300;
  options.max_iterations = 2000;
  options.record_history = false;
  const Solution<T> solution = solve<T>(cgls, *A, nrhs, b, options);
  if (!grid->is_member()) return;
  const WholeSystem<T> system(cgls, m, n, Element<T>(model.A), b, options);
  check_report(system, solution, grid->comm());
  const double kappa = std::sqrt((1 + damp * damp) / (1 / (condition * condition) + damp * damp));
  for (Index j = 0; j < nrhs; ++j) {
    CAPTURE(grid->rows(), grid->cols(), condition, damp, j, solution.verdict(j).iterations);
    CHECK(std::string(name_of(solution.verdict(j).reason)) == "stagnated");
    CHECK(solution.verdict(j).iterations < (condition == 3 ? 200 : 2000));
    const std::vector<T> expected = model.solution(j), x = solution.column(j);
    // The bound is a constant times what perturbations of A by ε make of the solution (Björck: Numerical
    // methods for least squares problems, §1.4). The residual is that of [A; D·I].
    const double residual = std::hypot(system.norms(j, x).residual, damp * norm_of(x));
    const double sensitivity = kappa + kappa * kappa * residual / norm_of(expected);
    CHECK(relative_difference(x, expected) <= 20 * epsilon_of<T> * sensitivity);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Far past convergence every column of CGLS stagnates, as accurate as it can be", "",
                   double, std::complex<float>) {
  const auto grids = compact_grids();
  for (const double condition : {3.0, 30.0, 1e4}) {
    if (sizeof(Real<TestType>) == 4 && condition > 1000) continue;  // κ²ε > 1
    for (const double damp : {0.0, 0.01, 1.0})
      run_far_past_convergence<TestType>(grids.front(), condition, damp);
  }
}

// The solution of this consistent system is nearly all in the direction of the smallest singular value. On
// the way there ‖Aᴴr‖ grows before ‖r‖ vanishes, so the iterate with the least ‖Aᴴr‖ solves nothing.
TEMPLATE_TEST_CASE("A consistent system that rounding ends is solved, whatever its gradient was before", "",
                   float, double) {
  const double condition = sizeof(TestType) == 4 ? 1e4 : 1e8;
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<TestType> matrix(m, n, geometric(n, condition));
    const auto A = dense_operator(grid, Algorithm::stationary_a, matrix);
    SolveOptions options;
    options.tolerance = 0;
    options.max_iterations = 300;  // about a hundred are needed; how many exactly, rounding decides
    const Element<TestType> b = [&](Index i, Index j) { return matrix.left(i, n - 1) + matrix.left(i, j); };
    const auto solution = solve<TestType>(cgls, *A, 6, b, options);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < 6; ++j) {
      CAPTURE(grid->rows(), grid->cols(), j, solution.verdict(j).iterations);
      CHECK(solution.verdict(j).reason == StopReason::stagnated);
      CHECK(solution.verdict(j).residual_norm <= 20 * epsilon_of<TestType> * norm_of(solution.column(j)));
    }
  }
}

namespace {

/// An operator with the adjoint of another: CGLS first comes nearer to a solution, and then goes astray.
class Mismatched final : public LinearOperator<double> {
 public:
  Mismatched(OperatorPtr<double> A, OperatorPtr<double> other)
      : LinearOperator<double>(A->range(), A->domain()), A_(std::move(A)), other_(std::move(other)) {}

 private:
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    other_->apply_adjoint(alpha, Y, beta, X);
  }

  OperatorPtr<double> A_, other_;
};

}  // namespace

TEST_CASE("A column whose residual rises ends unsolved with its best iterate, to a factor of two") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<double> matrix(m, n, geometric(n, 3));
    const Element<double> perturbed = [&](Index i, Index j) {
      return matrix(i, j) + 0.1 * counter_random<double>(31, i, j);
    };
    const Mismatched A(dense_operator(grid, Algorithm::stationary_a, matrix),
                       dense_operator<double>(grid, Algorithm::stationary_a, m, n, perturbed));
    SolveOptions options;
    options.max_iterations = 2000;
    const Element<double> b = random_elements<double>(2);
    const auto solution = solve<double>(cgls, A, 6, b, options);
    if (!grid->is_member()) continue;
    std::vector<double> least(6, 1), last(6, 1);
    for (const IterationRecord& record : solution.report.history) {
      for (std::size_t k = 0; k < record.columns.size(); ++k) {
        const auto column = static_cast<std::size_t>(record.columns[k]);
        last[column] = record.tested_norms[k];
        least[column] = std::min(least[column], last[column]);
      }
    }
    const auto start = solve<double>(cgls, A, 6, b, [] {
      SolveOptions none;
      none.max_iterations = 0;
      return none;
    }());
    for (Index j = 0; j < 6; ++j) {
      const auto column = static_cast<std::size_t>(j);
      CAPTURE(grid->rows(), grid->cols(), j, solution.verdict(j).iterations, least[column], last[column]);
      CHECK(solution.verdict(j).reason == StopReason::iteration_limit);
      CHECK(solution.verdict(j).normal_residual_norm <=
            2.01 * least[column] * start.verdict(j).normal_residual_norm);
    }
  }
}

namespace {

/// Initial guesses far from the solution that A makes small. What rounding leaves of them in x is large
/// beside Aᴴ(b − Ax₀), so that the recurrences claim what the definitions deny.
Element<float> faint_guess(const KnownSpectrum<float>& A) {
  return [&A](Index i, Index j) {
    float sum = 0;
    for (Index k = n / 2; k < n; ++k) sum += A.right(i, k) * counter_random<float>(6, k, j);
    return 1000 * sum;
  };
}

/// How often a column was iterated on again after the history said that it had converged.
Index times_taken_up_again(const SolveReport& report, double tolerance) {
  std::vector<char> ended(report.columns.size(), 0);
  Index times = 0;
  for (const IterationRecord& record : report.history) {
    for (std::size_t k = 0; k < record.columns.size(); ++k) {
      char& has_ended = ended[static_cast<std::size_t>(record.columns[k])];
      times += has_ended;
      has_ended = record.tested_norms[k] <= tolerance ? 1 : 0;
    }
  }
  return times;
}

}  // namespace

TEST_CASE("Tolerances that rounding may not allow give honest verdicts") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<float> matrix(m, n, geometric(n, 100));
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const Element<float> b = random_elements<float>(4), guess = faint_guess(matrix);
    Index taken_up_again = 0, converged = 0, stagnated = 0, limited = 0;
    for (const double tolerance : {1e-3, 1e-5, 1e-6, 1e-7, 1e-9}) {
      for (const Index limit : {30, 400}) {
        SolveOptions options;
        options.tolerance = tolerance;
        options.max_iterations = limit;
        const auto solution = solve<float>(cgls, *A, 40, b, options, guess);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), tolerance, limit);
        check_report(WholeSystem<float>(cgls, m, n, Element<float>(matrix), b, options, guess), solution,
                     grid->comm());
        taken_up_again += times_taken_up_again(solution.report, tolerance);
        for (const ColumnReport& column : solution.report.columns) {
          CHECK(column.iterations <= limit);
          converged += column.reason == StopReason::converged ? 1 : 0;
          stagnated += column.reason == StopReason::stagnated ? 1 : 0;
          limited += column.reason == StopReason::iteration_limit ? 1 : 0;
        }
      }
    }
    if (!grid->is_member()) continue;
    CHECK(taken_up_again > 10);
    CHECK(converged > 0);
    CHECK(stagnated > 0);
    CHECK(limited > 0);
    CHECK(converged + stagnated + limited == 5 * 2 * 40);
  }
}

TEST_CASE("A stop that one rank asks for when the last columns claim to be done leaves all ranks agreed") {
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<float> matrix(m, n, geometric(n, 100));
    const auto A = dense_operator(grid, Algorithm::summa, matrix);
    const Element<float> b = random_elements<float>(4), guess = faint_guess(matrix);
    for (const double tolerance : {3e-6, 1e-6}) {
      SolveOptions options;
      options.tolerance = tolerance;
      options.max_iterations = 1000;
      options.observers = {after_each_iteration(
          [&](const IterationInfo& info) { return info.active_columns == 0 && grid->comm().rank() == 0; })};
      const auto solution = solve<float>(cgls, *A, 40, b, options, guess);
      if (!grid->is_member()) continue;
      CHECK(std::any_of(solution.report.columns.begin(), solution.report.columns.end(),
                        [](const ColumnReport& column) { return column.reason == StopReason::user_stop; }));
      check_report(WholeSystem<float>(cgls, m, n, Element<float>(matrix), b, options, guess), solution,
                   grid->comm());
    }
  }
}

TEMPLATE_TEST_CASE("A guess that solves the system to the last bit stays the solution", "", float, double) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    const KnownSpectrum<T> matrix(m, n, geometric(n, 3));
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::summa}) {
      const auto A = dense_operator(grid, algorithm, matrix);
      DistMatrix<T> X(grid, A->domain().layout(5)), B(grid, A->range().layout(5));
      X.fill(random_elements<T>(7));
      A->apply(T(1), X, T(0), B);
      for (const auto& solver : {cgls<T>, lsqr<T>, lsmr<T>}) {
        DistMatrix<T> found = X.clone();
        SolveOptions options;
        options.initial_guess = true;
        const SolveReport report = solver(*A, B, found, options);
        if (!grid->is_member()) continue;
        for (const ColumnReport& column : report.columns) {
          INFO(name_of(algorithm) << " on " << grid->rows() << "x" << grid->cols() << ": "
                                  << name_of(column.reason));
          CHECK((column.reason == StopReason::converged || column.reason == StopReason::stagnated));
        }
      }
    }
  }
}
