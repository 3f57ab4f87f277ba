// SPDX-License-Identifier: BSD-3-Clause
// Steps with A and inner iterations with an approximation: solutions are those of A by the filter factors of
// Tikhonov regularisation, whatever the approximation.
#include "gridlops/solve/refined_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/error_bound.hpp"
#include "io/npy_files.hpp"
#include "support/disagreements.hpp"
#include "support/filtered_solutions.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <Scalar T>
constexpr double tolerance_for = sizeof(Real<T>) == 4 ? 1e-4 : 1e-10;

/// A + E, where ‖E‖₂ is about this.
template <Scalar T>
Element<T> perturbed(const KnownSpectrum<T>& A, double norm) {
  const double size =
      norm / (std::sqrt(static_cast<double>(A.rows())) + std::sqrt(static_cast<double>(A.cols())));
  return [=](Index i, Index j) { return A(i, j) + static_cast<Real<T>>(size) * counter_random<T>(77, i, j); };
}

/// A in 12 bits, as if in lower precision.
template <Scalar T>
Element<T> rounded(const KnownSpectrum<T>& A) {
  const auto round = [](Real<T> value) {
    int exponent = 0;
    const Real<T> fraction = std::frexp(value, &exponent);
    return std::ldexp(std::round(fraction * 4096) / 4096, exponent);
  };
  return [=](Index i, Index j) {
    const T a = A(i, j);
    if constexpr (is_complex<T>) {
      return T(round(a.real()), round(a.imag()));
    } else {
      return round(a);
    }
  };
}

template <Scalar T>
struct Refined {
  RefinedReport report;
  std::vector<T> X;
};

template <Scalar T>
Refined<T> refined(const LinearOperator<T>& A, const LinearOperator<T>& approximation, Index columns,
                   const Element<T>& b, RefinedOptions options, const Element<T>& guess = {}) {
  DistMatrix<T> B(A.range().grid, A.range().layout(columns)), X(A.domain().grid, A.domain().layout(columns));
  const T nan(std::numeric_limits<Real<T>>::quiet_NaN());
  B.fill(b);
  X.fill(guess ? guess : [nan](Index, Index) { return nan; });
  options.common.initial_guess = static_cast<bool>(guess);
  RefinedReport report = solve_refined(A, approximation, B, X, options);
  return {std::move(report), everywhere(X)};
}

/// ‖x − x*‖ for column j.
template <Scalar T>
double error_of(const std::vector<T>& X, Index j, const Filtered<T>& exact) {
  double squares = 0;
  for (std::size_t i = 0; i < exact.x.size(); ++i)
    squares += std::norm(Accumulator<T>(X[i + static_cast<std::size_t>(j) * exact.x.size()]) - exact.x[i]);
  return std::sqrt(squares);
}

template <Scalar T>
double reference_norm(const Refined<T>& solution, Index j) {
  return solution.report.solve.columns[static_cast<std::size_t>(j)].reference_norm;
}

}  // namespace

TEMPLATE_TEST_CASE("Solutions are those of A, whatever the approximation", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  const double tolerance = tolerance_for<T>;
  struct Shape {
    Index m, n;
  };
  for (const Shape shape : {Shape{45, 23}, Shape{17, 40}, Shape{5, 3}, Shape{1, 2}}) {
    const std::vector<double> values = geometric(std::min(shape.m, shape.n), 1e2);
    const KnownSpectrum<T> matrix(shape.m, shape.n, values);
    const Element<T> b = right_hand_sides<T>();
    const std::vector<double> damps{0.1, 0.3, 0.05, 0.1, 1, 0.03};
    for (const GridPtr& grid : compact_grids()) {
      for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::summa}) {
        const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, matrix);
        for (const Element<T>& element :
             {Element<T>(matrix), rounded(matrix), perturbed(matrix, 1e-2), perturbed(matrix, 0.1)}) {
          const OperatorPtr<T> approximation = dense_operator<T>(grid, algorithm, shape.m, shape.n, element);
          for (const Index columns : {0, 1, 6}) {
            RefinedOptions options;
            options.common.tolerance = tolerance;
            options.common.max_iterations = 1000;
            options.common.damp = columns == 6 ? PerColumn(damps) : PerColumn(0.1);
            const Refined<T> solution = refined<T>(*A, *approximation, columns, b, options);
            if (!grid->is_member()) {
              CHECK(solution.report.columns.empty());
              CHECK(solution.report.solve.columns.empty());
              continue;
            }
            CAPTURE(shape.m, shape.n, columns, describe(*grid), name_of(algorithm));
            check_same_everywhere(solution.report.solve, grid->comm());
            CHECK(solution.report.solve.solver == "refined-cgls");
            CHECK(solution.report.refusal.empty());
            REQUIRE(std::ssize(solution.report.columns) == columns);
            for (Index j = 0; j < columns; ++j) {
              const double damp = options.common.damp[j];
              const Filtered<T> exact(matrix, values, b, j, damp);
              const ColumnReport& verdict = solution.report.solve.columns[static_cast<std::size_t>(j)];
              CAPTURE(j, damp, name_of(verdict.reason), verdict.iterations);
              CHECK(is_solved(verdict.reason));
              // ‖x − x*‖ ≤ ‖gradient‖/D²
              const double allowed = tolerance * verdict.reference_norm / (damp * damp) +
                                     1e2 * epsilon_of<T> / damp * (exact.residual_norm / damp + exact.x_norm);
              CHECK(error_of(solution.X, j, exact) <= allowed);
              CHECK(std::abs(verdict.residual_norm - exact.residual_norm) <=
                    allowed + 1e2 * epsilon_of<T> * exact.residual_norm);
            }
          }
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Without damping, a well conditioned tall system is solved", "", float,
                   std::complex<double>) {
  using T = TestType;
  const std::vector<double> values = geometric(23, 3);
  const KnownSpectrum<T> matrix(45, 23, values);
  const Element<T> b = right_hand_sides<T>();
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix),
                         approximation = dense_operator<T>(grid, Algorithm::stationary_a, 45, 23,
                                                           perturbed(matrix, 0.03));
    const Refined<T> solution = refined<T>(*A, *approximation, 6, b, {});
    for (std::size_t j = 0; j < solution.report.columns.size(); ++j) {
      const auto column = static_cast<Index>(j);
      const Filtered<T> exact(matrix, values, b, column, 0);
      CHECK(solution.report.solve.columns[j].reason == StopReason::converged);
      CHECK(error_of(solution.X, column, exact) <=
            9 * default_tolerance(scalar_type_of<T>) * reference_norm(solution, column) +
                1e2 * epsilon_of<T> * (exact.x_norm + exact.residual_norm));
    }
  }
}

TEST_CASE("With A for its own approximation, one step is enough") {
  const KnownSpectrum<double> matrix(45, 23, geometric(23, 1e3));
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix),
               copy_of_A = dense_operator<double>(grid, Algorithm::stationary_a, matrix);
    for (const bool is_same : {true, false}) {
      RefinedOptions options;
      options.common.damp = 0.1;
      options.common.tolerance = 1e-4;
      const auto solution =
          refined<double>(*A, is_same ? *A : *copy_of_A, 4, random_elements<double>(4), options);
      if (!grid->is_member()) continue;
      // Aᴴb, the step, and the verdicts.
      CHECK(solution.report.products_with_A == 1 + 2 + 2);
      CHECK(solution.report.passes() == 2.5);
      Index most = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        CHECK(solution.report.solve.columns[j].reason == StopReason::converged);
        CHECK(solution.report.solve.columns[j].iterations == 1);
        most = std::max(most, solution.report.columns[j].inner_iterations);
      }
      CHECK(solution.report.products_with_approximation == 2 * most);
      if (is_same) continue;
      CHECK(copy_of_A->activity().forward_applications + copy_of_A->activity().adjoint_applications ==
            2 * most);
    }
  }
}

TEST_CASE("Products with an approximation that shares memory with A, or applies it, are none with A") {
  const KnownSpectrum<double> matrix(45, 23, geometric(23, 1e3));
  for (const GridPtr& grid : compact_grids()) {
    if (grid->backend()->memory_space() != MemorySpace::host) continue;
    for (const bool applies_A : {false, true}) {
      const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix,
                                            {.storage = Storage::planes}),
                 rough = applies_A ? scale(1 + 1e-6, A) : high_plane(A);
      const auto products_with = [](const OperatorPtr<double>& op) {
        return op->activity().forward_applications + op->activity().adjoint_applications;
      };
      RefinedOptions options;
      options.common = {.tolerance = 1e-10, .damp = 0.1};
      const auto solution = refined<double>(*A, *rough, 4, random_elements<double>(4), options);
      if (!grid->is_member()) continue;
      CAPTURE(applies_A);
      CHECK(solution.report.products_with_approximation == products_with(rough));
      CHECK(solution.report.products_with_A == products_with(A) - (applies_A ? products_with(rough) : 0));
      // Aᴴb, the steps, and the verdicts.
      CHECK(solution.report.products_with_A == 1 + 2 * solution.report.solve.iterations + 2);
    }
  }
}

TEST_CASE("A better approximation takes fewer steps, as the measured contraction says") {
  const KnownSpectrum<double> matrix(60, 60, geometric(60, 1e3));
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix);
    RefinedOptions options;
    options.common = {.tolerance = 1e-10, .damp = 0.03};
    const Solution<double> plain = solve<double>(cgls, *A, 3, random_elements<double>(4),
                                                 {.max_iterations = 1000, .tolerance = 1e-10, .damp = 0.03});
    double last_contraction = 0;
    Index last = 0;
    for (const double norm : {1e-5, 1e-4, 1e-3, 1e-2}) {
      const auto approximation =
          dense_operator<double>(grid, Algorithm::stationary_a, 60, 60, perturbed(matrix, norm));
      const auto solution = refined<double>(*A, *approximation, 3, random_elements<double>(4), options);
      if (!grid->is_member()) continue;
      CAPTURE(norm, last_contraction);
      const RefinedColumn& column = solution.report.columns[0];
      const ColumnReport& verdict = solution.report.solve.columns[0];
      CHECK(verdict.reason == StopReason::converged);
      CHECK(verdict.iterations >= last);
      CHECK(column.contraction >= last_contraction);
      // As many steps as the contraction promises, for a gradient that is no more than κ times the error.
      const double promised = std::log(1e-10) / std::log(column.contraction);
      CHECK(static_cast<double>(verdict.iterations) >= 0.5 * promised);
      CHECK(static_cast<double>(verdict.iterations) <= 1.5 * promised + 1);
      CHECK(column.cgls_iterations >= 0.5 * static_cast<double>(plain.verdict(0).iterations));
      CHECK(column.cgls_iterations <= 2 * static_cast<double>(plain.verdict(0).iterations));
      CHECK(column.needed_contraction == 0);
      last = verdict.iterations;
      last_contraction = column.contraction;
    }
  }
}

TEST_CASE("An approximation with two wrong singular values takes few steps") {
  const std::vector<double> values = geometric(40, 30);
  std::vector<double> wrong = values;
  wrong[0] *= 5;
  wrong[10] /= 5;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a,
                                          KnownSpectrum<double>(50, 40, values)),
               approximation = dense_operator<double>(grid, Algorithm::stationary_a,
                                                      KnownSpectrum<double>(50, 40, wrong));
    RefinedOptions options;
    options.common = {.tolerance = 1e-6, .damp = 0.2};
    const auto solution = refined<double>(*A, *approximation, 3, random_elements<double>(4), options);
    for (const ColumnReport& column : solution.report.solve.columns) {
      CHECK(column.reason == StopReason::converged);
      CHECK(column.iterations <= 15);
    }
  }
}

TEST_CASE("No approximation makes a step worse than none") {
  // The stationary correction x += (ÃᴴÃ + D²I)⁻¹ s diverges here.
  const Index n = 31;
  const std::vector<double> values = geometric(n, 1e3);
  const KnownSpectrum<double> matrix(n, n, values);
  const Element<double> b = random_elements<double>(4);
  const double damp = 0.01;
  const Filtered<double> exact(matrix, values, b, 0, damp);
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix),
               useless = dense_operator<double>(grid, Algorithm::stationary_a, n, n,
                                                Element<double>(KnownSpectrum<double>(n, n, values, 9)));
    double last = std::numeric_limits<double>::infinity();
    for (const Index steps : {1, 2, 3, 5, 10, 20}) {
      RefinedOptions options;
      options.common = {.max_iterations = steps, .tolerance = 0, .damp = damp};
      const auto solution = refined<double>(*A, *useless, 1, b, options);
      if (!grid->is_member()) continue;
      // ‖Ae‖² + D²‖e‖²
      double squares = 0;
      for (Index i = 0; i < n; ++i) {
        double product = 0;
        for (Index j = 0; j < n; ++j)
          product +=
              matrix(i, j) * (solution.X[static_cast<std::size_t>(j)] - exact.x[static_cast<std::size_t>(j)]);
        squares += product * product;
      }
      const double energy = squares + std::pow(damp * error_of(solution.X, 0, exact), 2);
      CAPTURE(steps);
      CHECK(energy < last);
      last = energy;
    }
  }
}

TEST_CASE("Columns that would cost more than by CGLS are refused, and say what they need") {
  const Index n = 60;
  const std::vector<double> values = geometric(n, 1e3);
  const KnownSpectrum<double> matrix(n, n, values);
  const Element<double> b = random_elements<double>(4);
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix),
               useless = dense_operator<double>(grid, Algorithm::stationary_a, n, n, perturbed(matrix, 0.02)),
               good = dense_operator<double>(grid, Algorithm::stationary_a, n, n, perturbed(matrix, 1e-4));
    RefinedOptions options;
    options.common = {.max_iterations = 1000, .tolerance = 1e-10, .damp = PerColumn{0.003, 0.3, 0.003}};
    options.cost_of_A = 8;
    options.cost_of_approximation = 2;
    DistMatrix<double> B = filled(A->range(), 3, b), X(grid, A->domain().layout(3));
    const RefinedReport report = solve_refined(*A, *useless, B, X, options);
    const auto gains = refined<double>(*A, *good, 3, b, options);
    options.cost_of_approximation = 8;
    const auto too_dear = refined<double>(*A, *useless, 3, b, options);
    if (!grid->is_member()) continue;
    for (const std::size_t j : {0U, 2U}) {
      const RefinedColumn& column = report.columns[j];
      CHECK(report.solve.columns[j].reason == StopReason::user_stop);
      CHECK(report.solve.columns[j].iterations >= 2);
      CHECK(report.solve.columns[j].iterations <= 4);
      CHECK(column.is_refused);
      CHECK(column.contraction > column.needed_contraction);
      CHECK(column.needed_contraction > 0);
      CHECK(column.needed_contraction < 1);
    }
    // This damping is larger than the difference.
    CHECK(report.solve.columns[1].reason == StopReason::converged);
    CHECK(!report.columns[1].is_refused);
    CHECK(report.refusal.find("2 columns") != std::string::npos);
    CHECK(report.refusal.find("times smaller") != std::string::npos);
    CHECK(gains.report.refusal.empty());
    CHECK(too_dear.report.refusal.find("none could leave little enough") != std::string::npos);
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(gains.report.solve.columns[j].reason == StopReason::converged);
      CHECK(gains.report.columns[j].contraction <= gains.report.columns[j].needed_contraction);
    }
    // CGLS goes on from there.
    options.common.initial_guess = true;
    for (const ColumnReport& column : cgls(*A, B, X, options.common).columns)
      CHECK(column.reason == StopReason::converged);
  }
}

TEMPLATE_TEST_CASE("A column depends on no other, also beside NaN", "", float, std::complex<double>) {
  using T = TestType;
  const KnownSpectrum<T> matrix(45, 23, geometric(23, 30));
  const Element<T> random = right_hand_sides<T>();
  const Element<T> b = [=](Index i, Index j) {
    return j == 5 && i == 7 ? T(std::numeric_limits<Real<T>>::quiet_NaN()) : random(i, j);
  };
  for (const GridPtr& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::block}) {
      const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, matrix, {.column_stable = true}),
                           approximation = dense_operator<T>(grid, algorithm, 45, 23, perturbed(matrix, 1e-2),
                                                             {.column_stable = true});
      RefinedOptions options;
      options.common = {.tolerance = 10 * tolerance_for<T>, .damp = 0.1, .column_stable = true};
      const Refined<T> together = refined<T>(*A, *approximation, 6, b, options);
      options.common.batch = 2;
      const Refined<T> in_batches = refined<T>(*A, *approximation, 6, b, options);
      options.common.batch = 0;
      for (Index j = 0; j < 6; ++j) {
        const Element<T> alone = [&b, j](Index i, Index) { return b(i, j); };
        const Refined<T> single = refined<T>(*A, *approximation, 1, alone, options);
        if (!grid->is_member()) continue;
        const auto place = static_cast<std::size_t>(j);
        const ColumnReport &of_many = together.report.solve.columns[place],
                           &of_one = single.report.solve.columns[0];
        CAPTURE(describe(*grid), name_of(algorithm), j);
        CHECK(of_many.reason == (j == 5 ? StopReason::non_finite : StopReason::converged));
        CHECK(of_one.reason == of_many.reason);
        CHECK(in_batches.report.solve.columns[place].reason == of_many.reason);
        CHECK(of_one.iterations == of_many.iterations);
        if (j == 5) {
          CHECK(std::isnan(std::abs(together.X[5 * 23])));
          continue;
        }
        CHECK(single.report.columns[0].inner_iterations == together.report.columns[place].inner_iterations);
        CHECK(single.report.columns[0].contraction == together.report.columns[place].contraction);
        for (std::size_t i = 0; i < 23; ++i) {
          CHECK(single.X[i] == together.X[place * 23 + i]);
          CHECK(in_batches.X[place * 23 + i] == together.X[place * 23 + i]);
        }
      }
      if (grid->is_member()) {
        CHECK(together.report.solve.columns[3].iterations == 0);
        CHECK(norm_of(std::vector<T>(together.X.begin() + 3 * 23, together.X.begin() + 4 * 23)) == 0);
      }
    }
  }
}

TEST_CASE("Powers of two change no digit, and guesses, guards and bounds of errors are those of CGLS") {
  const KnownSpectrum<double> matrix(45, 23, geometric(23, 30));
  const Element<double> b = random_elements<double>(4), near = perturbed(matrix, 1e-2);
  const auto times = [](int power, const Element<double>& of) -> Element<double> {
    return [=](Index i, Index j) { return std::ldexp(of(i, j), power); };
  };
  const std::vector<double> values = geometric(23, 30);
  for (const GridPtr& grid : compact_grids()) {
    const auto operator_of = [&](const Element<double>& element) {
      return dense_operator<double>(grid, Algorithm::stationary_a, 45, 23, element);
    };
    const auto A = operator_of(Element<double>(matrix)), approximation = operator_of(near);
    RefinedOptions options;
    options.common = {.tolerance = 1e-9, .damp = std::ldexp(1.0, -4)};
    const auto plain = refined<double>(*A, *approximation, 3, b, options);
    RefinedOptions tiny = options;
    tiny.common.damp = std::ldexp(1.0, -504);
    const auto scaled = refined<double>(*operator_of(times(-500, Element<double>(matrix))),
                                        *operator_of(times(-500, near)), 3, times(-600, b), tiny);
    const auto from_solution = refined<double>(*A, *approximation, 3, b, options, [&](Index i, Index j) {
      return plain.X.empty() ? 0 : plain.X[static_cast<std::size_t>(i + 23 * j)];
    });
    options.common.guard = 1;
    const auto guarded = refined<double>(*A, *approximation, 3, b, options);
    options.common.guard = 0;
    options.common.tolerance.reset();
    options.common.error = 1e-6;
    options.common.frobenius_norm = 5;
    const auto bounded = refined<double>(*A, *approximation, 3, b, options);
    if (!grid->is_member()) continue;
    CHECK(guarded.report.solve.alarms.empty());
    CHECK(guarded.X == plain.X);
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(scaled.report.solve.columns[j].reason == StopReason::converged);
      CHECK(from_solution.report.solve.columns[j].iterations == 0);
      CHECK(bounded.report.solve.columns[j].reason == StopReason::converged);
      CHECK(bounded.report.solve.columns[j].iterations <= plain.report.solve.columns[j].iterations);
      const Filtered<double> exact(matrix, values, b, static_cast<Index>(j), std::ldexp(1.0, -4));
      CHECK(error_of(bounded.X, static_cast<Index>(j), exact) <= 1e-6 * exact.x_norm);
    }
    for (std::size_t i = 0; i < plain.X.size(); ++i)
      CHECK(std::abs(std::ldexp(scaled.X[i], 100) - plain.X[i]) <= 1e-12 * std::abs(plain.X[i]));
  }
}

TEST_CASE("A restart ends with the bits of a run that was not interrupted") {
  const KnownSpectrum<double> matrix(45, 23, geometric(23, 1e2));
  const ScratchFolder folder;
  Index number = 0;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix),
               approximation =
                   dense_operator<double>(grid, Algorithm::stationary_a, 45, 23, perturbed(matrix, 0.03));
    RefinedOptions options;
    options.common = {.tolerance = 1e-10, .damp = 0.1, .column_stable = true};
    const auto plain = refined<double>(*A, *approximation, 4, right_hand_sides<double>(), options);
    const std::string directory = folder.file("refined-" + std::to_string(number++));
    Index asked = 0;
    options.common.checkpoint.directory = directory;
    options.common.checkpoint.requested = [&asked] { return ++asked == 2; };
    if (grid->is_member()) {
      CHECK_THROWS_AS(refined<double>(*A, *approximation, 4, right_hand_sides<double>(), options), Suspended);
    }
    options.common.checkpoint.requested = {};
    options.common.checkpoint.restart = directory;
    if (!grid->is_member()) continue;
    const auto restarted = refined<double>(*A, *approximation, 4, right_hand_sides<double>(), options);
    CHECK(restarted.X == plain.X);
    for (std::size_t j = 0; j < 4; ++j) {
      CHECK(restarted.report.solve.columns[j].iterations == plain.report.solve.columns[j].iterations);
      CHECK(restarted.report.columns[j].contraction == plain.report.columns[j].contraction);
      CHECK(restarted.report.columns[j].inner_iterations == plain.report.columns[j].inner_iterations);
    }
    CHECK(plain.report.solve.iterations > 2);
  }
}

TEMPLATE_TEST_CASE("What an approximation costs in accuracy is bounded without A", "", float,
                   std::complex<double>) {
  using T = TestType;
  const std::vector<double> values = geometric(40, 1e2);
  const KnownSpectrum<T> matrix(40, 40, values), difference(40, 40, geometric(40, 10), 5);
  const Element<T> b = random_elements<T>(4);
  const Real<T> size = Real<T>(0.01);
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, matrix),
                         approximation = dense_operator<T>(
                             grid, Algorithm::stationary_a, 40, 40,
                             [=](Index i, Index j) { return matrix(i, j) - size * difference(i, j); });
    const double norm = difference_norm<T>(A, approximation, 30);
    for (const double damp : {0.0, 0.03, 0.3}) {
      DistMatrix<T> B = filled(A->range(), 3, b), X(grid, A->domain().layout(3));
      const SolveReport report = cgls(*approximation, B, X, {.max_iterations = 1000, .damp = damp});
      const std::vector<double> bounds =
          error_bounds(report, B, X, {.damp = damp, .frobenius_norm = 40, .difference_norm = norm});
      const std::vector<T> whole = everywhere(X);
      if (!grid->is_member()) {
        CHECK(norm == 0);
        CHECK(bounds.empty());
        continue;
      }
      CHECK(norm <= 0.01 * (1 + 1e-4));
      CHECK(norm >= 0.0099);
      for (Index j = 0; j < 3; ++j) {
        const double bound = bounds[static_cast<std::size_t>(j)];
        if (damp == 0) {
          CHECK(std::isinf(bound));
          continue;
        }
        const double error = error_of(whole, j, Filtered<T>(matrix, values, b, j, damp));
        CAPTURE(j, damp, bound, error);
        CHECK(error <= bound);
        const ColumnReport& column = report.columns[static_cast<std::size_t>(j)];
        const double x_norm = norm_of(std::vector<T>(whole.begin() + j * 40, whole.begin() + (j + 1) * 40)),
                     formula = norm * (column.residual_norm / (damp * damp) + x_norm / (2 * damp)) +
                               column.normal_residual_norm / (damp * damp);
        CHECK((bound >= formula && bound <= (1 + 1e5 * epsilon_of<T>)*formula));  // and rounding
        CHECK(bound <= 300 * error);
      }
    }
  }
}

TEST_CASE("What does not fit is refused on all ranks") {
  const KnownSpectrum<double> matrix(9, 7, geometric(7, 3)), other(9, 6, geometric(6, 3));
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator<double>(grid, Algorithm::stationary_a, matrix),
               wrong = dense_operator<double>(grid, Algorithm::stationary_a, other);
    DistMatrix<double> B(grid, A->range().layout(2)), X(grid, A->domain().layout(2));
    const auto said = [&](const LinearOperator<double>& approximation, const RefinedOptions& options) {
      return message_of<Error>([&] { solve_refined(*A, approximation, B, X, options); });
    };
    CHECK_THROWS_AS(solve_refined(*A, *wrong, B, X), ShapeError);
    CHECK(said(*wrong, {}).find("same spaces") != std::string::npos);
    CHECK(said(*A, {.inner_iterations = 0}).find("inner iterations") != std::string::npos);
    CHECK(said(*A, {.cost_of_A = -1}).find("-1") != std::string::npos);
    CHECK(said(*A, {.cost_of_A = 1}).find("both") != std::string::npos);
    RefinedOptions options;
    options.common.one_pass = true;
    CHECK(said(*A, options).find("one-pass") != std::string::npos);
    options.common.one_pass = false;
    options.common.atol = 1e-3;
    CHECK(said(*A, options).find("atol") != std::string::npos);
    const SolveReport report{};
    CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = 1.0, .difference_norm = -1}), UsageError);
    CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = 1.0, .is_definite = true, .difference_norm = 1}),
                    UsageError);
    if (grid->is_member()) CHECK_THROWS_AS(error_bounds(report, B, X, {.damp = 1.0}), ShapeError);
  }
}

TEST_CASE("Ranks that disagree about costs or iterations learn it") {
  if (world().size() == 1) return;
  const auto grid = all_grids().front();
  const auto A =
      dense_operator<double>(grid, Algorithm::stationary_a, KnownSpectrum<double>(9, 7, geometric(7, 3)));
  DistMatrix<double> B(grid, A->range().layout(2)), X(grid, A->domain().layout(2));
  RefinedOptions options{.cost_of_A = 8, .cost_of_approximation = world().rank() == 1 ? 3.0 : 2.0};
  check_disagreement(world(), {"at most 1000 inner iterations, costs 8 and 3"},
                     [&] { solve_refined(*A, *A, B, X, options); });
}
