// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/inversion.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/problems.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 26, n = 13, nrhs = 3;

template <Scalar T>
using Dense = std::vector<Extended<T>>;  // column-major

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

template <Scalar T>
Dense<T> widened(Index rows, Index cols, const Element<T>& element) {
  Dense<T> A;
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) A.push_back(extended(element(i, j)));
  return A;
}

template <Scalar T>
Extended<T> conjugated(Extended<T> a) {
  if constexpr (is_complex<T>) {
    return std::conj(a);
  } else {
    return a;
  }
}

/// Adds factor · Aᴴ B to C, with A rows × cols and B rows × width.
template <Scalar T>
Dense<T> add_adjoint_product(Dense<T> C, long double factor, Index rows, const Dense<T>& A, Index cols,
                             const Dense<T>& B, Index width) {
  for (Index j = 0; j < width; ++j)
    for (Index i = 0; i < cols; ++i)
      for (Index k = 0; k < rows; ++k)
        C[at(i + j * cols)] += factor * conjugated<T>(A[at(k + i * rows)]) * B[at(k + j * rows)];
  return C;
}

/// Solves M X = B by Gaussian elimination with pivots, with M size × size and B size × width.
template <Scalar T>
Dense<T> eliminated(Index size, Dense<T> M, Dense<T> B, Index width) {
  for (Index k = 0; k < size; ++k) {
    Index pivot = k;
    for (Index i = k; i < size; ++i)
      if (std::abs(M[at(i + k * size)]) > std::abs(M[at(pivot + k * size)])) pivot = i;
    for (Index j = 0; j < size; ++j) std::swap(M[at(k + j * size)], M[at(pivot + j * size)]);
    for (Index j = 0; j < width; ++j) std::swap(B[at(k + j * size)], B[at(pivot + j * size)]);
    for (Index i = 0; i < size; ++i) {
      if (i == k) continue;
      const Extended<T> factor = M[at(i + k * size)] / M[at(k + k * size)];
      for (Index j = k; j < size; ++j) M[at(i + j * size)] -= factor * M[at(k + j * size)];
      for (Index j = 0; j < width; ++j) B[at(i + j * size)] -= factor * B[at(k + j * size)];
    }
  }
  for (Index i = 0; i < size; ++i)
    for (Index j = 0; j < width; ++j) B[at(i + j * size)] /= M[at(i + i * size)];
  return B;
}

/// A with right-hand sides, and two regularisers, of which the first has data.
template <Scalar T>
struct Problem {
  GridPtr grid;
  KnownSpectrum<T> matrix{m, n, geometric(n, 8)}, first{17, n, geometric(n, 3), 11},
      second{9, n, geometric(9, 2), 13};
  Element<T> b = random_elements<T>(4), d = random_elements<T>(5), guess = random_elements<T>(6);
  OperatorPtr<T> A;
  std::vector<Regularizer<T>> regularizers;
  DistMatrix<T> B, X, D;
  static constexpr double first_epsilon = 0.7, second_epsilon = 0.3;

  Problem(const GridPtr& grid_, Algorithm algorithm)
      : grid(grid_),
        A(dense_operator(grid, algorithm, matrix)),
        regularizers{{dense_operator(grid, algorithm, first), first_epsilon},
                     {dense_operator(grid, algorithm, second), second_epsilon}},
        B(grid, A->range().layout(nrhs)),
        X(grid, A->domain().layout(nrhs)),
        D(grid, regularizers[0].R->range().layout(nrhs)) {
    B.fill(b);
    D.fill(d);
    X.fill(guess);
    regularizers[0].data = &D;
  }

  OperatorPtr<T> weight(double power) const {
    DistMatrix<T> w(grid, {A->range().rows, Cut::uncut(1)});
    w.fill([power](Index i, Index) { return T(static_cast<Real<T>>(std::pow(weight_of(i), power))); });
    return diagonal(std::move(w), A->range().columns);
  }
  static double weight_of(Index i) { return 0.5 + static_cast<double>(i % 4); }

  /// The solution of (AᴴWA + Σ ε²RᴴR + normal · I) x = AᴴWb + ε²R₁ᴴd.
  Dense<T> expected(bool weighted, double normal) const {
    const Dense<T> whole = widened<T>(m, n, matrix), data = widened<T>(m, nrhs, b);
    Dense<T> weighted_whole = whole, weighted_data = data;
    for (Index i = 0; weighted && i < m; ++i) {
      for (Index j = 0; j < n; ++j) weighted_whole[at(i + j * m)] *= static_cast<long double>(weight_of(i));
      for (Index j = 0; j < nrhs; ++j) weighted_data[at(i + j * m)] *= static_cast<long double>(weight_of(i));
    }
    const Dense<T> R1 = widened<T>(17, n, first), R2 = widened<T>(9, n, second), d1 = widened<T>(17, nrhs, d);
    Dense<T> M(at(n * n), Extended<T>(0)), right(at(n * nrhs), Extended<T>(0));
    M = add_adjoint_product<T>(M, 1, m, whole, n, weighted_whole, n);
    M = add_adjoint_product<T>(M, first_epsilon * first_epsilon, 17, R1, n, R1, n);
    M = add_adjoint_product<T>(M, second_epsilon * second_epsilon, 9, R2, n, R2, n);
    for (Index i = 0; i < n; ++i) M[at(i + i * n)] += static_cast<long double>(normal);
    right = add_adjoint_product<T>(right, 1, m, whole, n, weighted_data, nrhs);
    right = add_adjoint_product<T>(right, first_epsilon * first_epsilon, 17, R1, n, d1, nrhs);
    return eliminated<T>(n, M, right, nrhs);
  }
};

SolveOptions strict(double damp, bool initial_guess, bool single) {
  SolveOptions options;
  options.tolerance = single ? 1e-6 : 1e-12;
  options.damp = damp;
  options.initial_guess = initial_guess;
  return options;
}

template <Scalar T>
void check_solution(const Problem<T>& problem, const SolveReport& report, const Dense<T>& expected) {
  const std::vector<T> X = everywhere(problem.X);
  if (!problem.grid->is_member()) return;
  CHECK(relative_difference(X, expected) <= (sizeof(Real<T>) == 8 ? 1e-9 : 1e-3));
  for (const ColumnReport& column : report.columns)
    CHECK((column.reason == StopReason::converged || column.reason == StopReason::stagnated));
}

}  // namespace

TEMPLATE_TEST_CASE("Regularised inversions are what elimination makes of the normal equations", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr bool single = sizeof(Real<T>) == 4;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const bool weighted : {false, true}) {
        for (const bool guess : {false, true}) {
          CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), weighted, guess);
          Problem<T> problem(grid, algorithm);
          const double damp = 0.2;
          const SolveOptions options = strict(damp, guess, single);
          NormalEquationsTerms<T> normal_terms;
          if (weighted) normal_terms.weight = problem.weight(1);
          normal_terms.regularizers = problem.regularizers;
          normal_terms.normal_regularizers = {{identity<T>(problem.A->domain()), 0.4}};
          const SolveReport normal =
              normal_equations_inversion(problem.A, problem.B, problem.X, normal_terms, options);
          check_solution(problem, normal, problem.expected(weighted, damp * damp + 0.16));

          RegularizedTerms<T> terms;
          if (weighted) terms.weight = problem.weight(0.5);
          terms.regularizers = problem.regularizers;
          for (const auto solver : {Solver::cgls, Solver::lsqr, Solver::lsmr}) {
            terms.solver = solver;
            problem.X.fill(problem.guess);
            const SolveReport report = regularized_inversion(problem.A, problem.B, problem.X, terms, options);
            check_solution(problem, report, problem.expected(weighted, damp * damp));
          }
        }
      }
    }
  }
}

TEST_CASE("A regulariser may lie along another axis than the data") {
  for (const auto& grid : compact_grids()) {
    Problem<double> problem(grid, Algorithm::stationary_a);
    const Space& model = problem.A->domain();
    const Space elsewhere{grid, Cut::balanced(Axis::uncut, 17, *grid), model.columns};
    auto& R = problem.regularizers[0].R;
    R = product(identity<double>(elsewhere, R->range()), R);
    DistMatrix<double> D(grid, elsewhere.layout(nrhs));
    D.fill(problem.d);
    problem.regularizers[0].data = &D;
    RegularizedTerms<double> terms;
    terms.regularizers = problem.regularizers;
    const SolveReport report =
        regularized_inversion(problem.A, problem.B, problem.X, terms, strict(0, false, false));
    check_solution(problem, report, problem.expected(false, 0));
  }
}

TEST_CASE("A regulariser may be of an image, cut along any dimension, wherever the data are") {
  const std::vector<Index> sizes{4, 6};
  // In the order of the array, so that it is the same however the image is cut.
  const auto of_array = [](const Space& space, std::uint64_t seed) {
    return [&space, seed](Index row, Index j) {
      return random_elements<double>(seed)(number_of(space.dims, place_of(space.dims, row)), j);
    };
  };
  for (const auto& grid : compact_grids()) {
    for (const auto& [models, along] :
         {std::pair{Axis::all, Axis::uncut}, std::pair{Axis::all, Axis::all},
          std::pair{Axis::grid_rows, Axis::grid_cols}, std::pair{Axis::uncut, Axis::all}}) {
      for (const int cut : {0, 1}) {
        const Space image = array_space(grid, sizes, cut, models),
                    data = array_space(grid, sizes, 1 - cut, along);
        const OperatorPtr<double> A = identity<double>(data, image), I = identity<double>(image);
        const DistMatrix<double> B = filled(grid, data.layout(2), of_array(data, 1)),
                                 D = filled(grid, image.layout(2), of_array(image, 2));
        DistMatrix<double> X(grid, image.layout(2));
        RegularizedTerms<double> terms;
        terms.regularizers = {{I, 0.5, &D}, {I, 0.25, nullptr}};
        for (const Solver solver : {Solver::cgls, Solver::lsqr}) {
          terms.solver = solver;
          regularized_inversion(A, B, X, terms, strict(0, false, false));
          INFO(image.describe() << " and " << data.describe());
          CHECK(mismatches(
                    X,
                    [&](Index i, Index j) {
                      return (of_array(image, 1)(i, j) + 0.25 * of_array(image, 2)(i, j)) /
                             (1 + 0.25 + 0.0625);
                    },
                    1e-13) == 0);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("A preconditioned inversion moves within the range of the preconditioner", "", double,
                   std::complex<double>) {
  using T = TestType;
  constexpr Index few = 6;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      Problem<T> problem(grid, algorithm);
      const KnownSpectrum<T> narrow(n, few, geometric(few, 2), 17);
      OperatorPtr<T> P = dense_operator(grid, algorithm, narrow);
      P = product(identity<T>(problem.A->domain(), P->range()), P);
      const Dense<T> whole = widened<T>(m, n, problem.matrix), wide_P = widened<T>(n, few, narrow),
                     x0 = widened<T>(n, nrhs, problem.guess);
      // A P is (Aᴴ)ᴴ P.
      Dense<T> A_adjoint;
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < n; ++j) A_adjoint.push_back(conjugated<T>(whole[at(i + j * m)]));
      const Dense<T> AP =
          add_adjoint_product<T>(Dense<T>(at(m * few), Extended<T>(0)), 1, n, A_adjoint, m, wide_P, few);
      for (const bool guess : {false, true}) {
        Dense<T> data = widened<T>(m, nrhs, problem.b);
        if (guess) data = add_adjoint_product<T>(data, -1, n, A_adjoint, m, x0, nrhs);
        const Dense<T> M =
            add_adjoint_product<T>(Dense<T>(at(few * few), Extended<T>(0)), 1, m, AP, few, AP, few);
        const Dense<T> right =
            add_adjoint_product<T>(Dense<T>(at(few * nrhs), Extended<T>(0)), 1, m, AP, few, data, nrhs);
        const Dense<T> z = eliminated<T>(few, M, right, nrhs);
        Dense<T> expected = guess ? x0 : Dense<T>(at(n * nrhs), Extended<T>(0));
        for (Index j = 0; j < nrhs; ++j)
          for (Index i = 0; i < n; ++i)
            for (Index k = 0; k < few; ++k)
              expected[at(i + j * n)] += wide_P[at(i + k * n)] * z[at(k + j * few)];
        for (const auto solver : {Solver::cgls, Solver::lsqr, Solver::lsmr}) {
          problem.X.fill(problem.guess);
          const SolveReport report = preconditioned_inversion(
              problem.A, problem.B, problem.X, {.P = P, .solver = solver}, strict(0, guess, false));
          check_solution(problem, report, expected);
        }
      }
    }
  }
}

TEMPLATE_TEST_CASE("Scaled columns are equally long, and save iterations", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  // The columns have very different lengths, and the fifth is zero.
  const Element<T> matrix = [](Index i, Index j) {
    const double length = j == 4 ? 0 : std::pow(10.0, static_cast<double>(j % 5) - 2);
    return counter_random<T>(3, i, j) * static_cast<Real<T>>(length);
  };
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      DistMatrix<T> M(grid, matrix_layout(algorithm, *grid, m, n));
      M.fill(matrix);
      const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, matrix);
      const OperatorPtr<T> P = column_scaling(M, A->domain());
      CAPTURE(grid->rows(), grid->cols(), name_of(algorithm));
      CHECK(P->domain() == A->domain());
      CHECK(P->range() == A->domain());
      // Applied to I, it shows its entries. Applied before A, it makes columns of length 1.
      DistMatrix<T> unit(grid, A->domain().layout(n)), entries(grid, A->domain().layout(n)),
          columns(grid, A->range().layout(n));
      unit.fill([](Index i, Index j) { return T(i == j ? 1 : 0); });
      P->apply(T(1), unit, T(0), entries);
      A->apply(T(1), entries, T(0), columns);
      const std::vector<double> lengths = column_norms(columns);
      const std::vector<T> diagonal_entries = everywhere(entries);
      SolveOptions options = strict(0, false, sizeof(Real<T>) == 4);
      options.tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-8;
      options.max_iterations = 2000;
      DistMatrix<T> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), Y = X.clone();
      B.fill(random_elements<T>(4));
      const Index plain = lsqr(*A, B, X, options).iterations;
      const SolveReport scaled = preconditioned_inversion(A, B, Y, {.P = P}, options);
      if (!grid->is_member()) continue;
      for (Index j = 0; j < n; ++j) {
        CHECK(lengths[at(j)] == Approx(j == 4 ? 0 : 1).epsilon(1e-5));
        if (j == 4) CHECK(diagonal_entries[at(j + j * n)] == T(1));
      }
      CHECK(scaled.iterations < plain);
      for (const ColumnReport& column : scaled.columns) CHECK(column.reason == StopReason::converged);
    }
  }
}

// D² is beyond single precision, and so is x ~ Aᴴb/D² below it, unless b is large.
TEST_CASE(
    "A preconditioned inversion has true norms, or refuses the damping, where D leaves the range of its "
    "type") {
  const Element<float> matrix = random_elements<float>(3),
                       b = [](Index i, Index j) { return 1e12F * counter_random<float>(4, i, j); };
  for (const auto& grid : compact_grids()) {
    DistMatrix<float> M(grid, matrix_layout(Algorithm::stationary_a, *grid, m, n));
    M.fill(matrix);
    const OperatorPtr<float> A = dense_operator<float>(grid, Algorithm::stationary_a, m, n, matrix);
    const OperatorPtr<float> P = column_scaling(M, A->domain());
    DistMatrix<float> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs)), S = X.clone();
    B.fill(b);
    A->apply_adjoint(1, B, 0, S);
    SolveOptions options;
    options.damp = 1e20;
    const SolveReport report =
        preconditioned_inversion<float>(A, B, X, {.P = P, .solver = Solver::cgls, .damps_x = true}, options);
    for (const double damp : {1e39, 1e-40}) {
      options.damp = damp;
      CHECK(contains(message_of<UsageError>([&] {
                       preconditioned_inversion<float>(
                           A, B, X, {.P = P, .solver = Solver::cgls, .damps_x = true}, options);
                     }),
                     "is out of the range of f32"));
    }
    if (!grid->is_member()) continue;
    const std::vector<double> at_zero = column_norms(S);
    for (std::size_t j = 0; j < report.columns.size(); ++j) {
      CHECK(is_solved(report.columns[j].reason));
      CHECK(report.columns[j].normal_residual_norm <= 1e-3 * at_zero[j]);
    }
  }
}

TEST_CASE("Inversions refuse what does not fit, on all ranks") {
  for (const auto& grid : compact_grids()) {
    Problem<double> problem(grid, Algorithm::summa);
    RegularizedTerms<double> terms;
    const auto attempt = [&] { regularized_inversion(problem.A, problem.B, problem.X, terms, {}); };
    terms.regularizers = {{problem.regularizers[0].R, -1}};
    CHECK_THROWS_AS(attempt(), UsageError);
    terms.regularizers = {{problem.regularizers[1].R, 1, &problem.D}};
    CHECK_THROWS_AS(attempt(), ShapeError);
    terms.regularizers = {{adjoint(problem.A), 1}};
    CHECK_THROWS_AS(attempt(), ShapeError);
    NormalEquationsTerms<double> normal_terms;
    normal_terms.normal_regularizers = {{problem.A, 1}};
    CHECK_THROWS_AS(normal_equations_inversion(problem.A, problem.B, problem.X, normal_terms), ShapeError);
    CHECK_THROWS_AS(preconditioned_inversion(problem.A, problem.B, problem.X, {.P = problem.A}), ShapeError);
    DistMatrix<double> M(grid, matrix_layout(Algorithm::summa, *grid, m, n + 1));
    CHECK_THROWS_AS(column_scaling(M, problem.A->domain()), ShapeError);
  }
}
