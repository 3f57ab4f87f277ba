// SPDX-License-Identifier: BSD-3-Clause
// Misfits that wild values do not spoil: each column ends where a dense solver with the textbook's weights
// does, and its distance from there is proven.
#include "gridlops/solve/robust.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/factor.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/weights.hpp"
#include "solve/robust/column_medians.hpp"
#include "support/grids.hpp"
#include "support/lapack.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 61, n = 9, nrhs = 5;
constexpr double not_there = std::numeric_limits<double>::quiet_NaN();

/// A x of ones, noise, and a tenth of wild values; column j is 4ʲ times as large.
template <Scalar T>
Element<T> wild_data() {
  return [](Index i, Index j) {
    T sum(0);
    for (Index k = 0; k < n; ++k) sum += random_elements<T>(7)(i, k);
    sum += T(static_cast<Real<T>>(0.1)) * random_elements<T>(4)(i, j);
    if (std::abs(counter_uniform(60, i, j)) < 0.1)
      sum += T(static_cast<Real<T>>(20 * counter_uniform(61, i, j)));
    return T(static_cast<Real<T>>(std::ldexp(1, 2 * static_cast<int>(j)))) * sum;
  };
}

/// The weights of b: some are 0, where b is NaN.
double given_weight(Index i, Index j) { return i % 11 == 3 ? 0 : 0.5 + std::abs(counter_uniform(62, i, j)); }

/// φ(t), from Holland and Welsch 1977, and 1/√(t² + δ²).
double phi(Misfit misfit, double t) {
  switch (misfit) {
    case Misfit::l2:
      return 1;
    case Misfit::huber:
      return std::min(1.0, 1.345 / std::max(t, 1e-300));
    case Misfit::l1:
      return 1 / std::sqrt(t * t + 0.01);
    case Misfit::cauchy:
      return 1 / (1 + std::pow(t / 2.385, 2));
    case Misfit::tukey:
      return t < 4.685 ? std::pow(1 - std::pow(t / 4.685, 2), 2) : 0;
  }
  return 0;
}

template <Scalar T>
struct Robust {
  RobustReport report;
  std::vector<T> x, w;  // whole
  Index cols;

  std::vector<T> column(Index j) const {
    return {x.begin() + static_cast<std::ptrdiff_t>(j * cols),
            x.begin() + static_cast<std::ptrdiff_t>((j + 1) * cols)};
  }
  const ColumnReport& verdict(Index j) const { return report.solve.columns[static_cast<std::size_t>(j)]; }
  const RobustColumn& facts(Index j) const { return report.columns[static_cast<std::size_t>(j)]; }
};

template <Scalar T>
Robust<T> solve_robustly(const LinearOperator<T>& A, const RobustOptions& robust, const SolveOptions& options,
                         bool weighs = false, Solver solver = Solver::cgls,
                         const SolverOperands<T>& operands = {}, Index columns = nrhs,
                         const Element<T>& data = wild_data<T>()) {
  DistMatrix<T> B(A.range().grid, A.range().layout(columns)), W(A.range().grid, A.range().layout(columns)),
      X(A.domain().grid, A.domain().layout(columns));
  B.fill([&](Index i, Index j) { return weighs && given_weight(i, j) == 0 ? T(not_there) : data(i, j); });
  W.fill([&](Index i, Index j) { return T(static_cast<Real<T>>(weighs ? given_weight(i, j) : 1)); });
  X.fill([&](Index, Index) { return T(options.initial_guess ? 0.5 : not_there); });
  RobustReport report = robust_solve<T>(solver, A, B, X, W, robust, options, operands);
  return {std::move(report), everywhere(X), everywhere(W), A.cols()};
}

/// argmin Σ 2s²ρ(|w(b − Ax)|/s) + D²‖x‖² for one column by `steps` dense solutions with weights from x.
template <Scalar T>
std::vector<T> reference(Misfit misfit, double scale, double damp, bool weighs, Index j, std::vector<T> x,
                         int steps) {
  const Element<T> A = random_elements<T>(7), b = wild_data<T>();
  for (int step = 0; step < steps; ++step) {
    std::vector<double> root;
    for (Index i = 0; i < m; ++i) {
      T r = b(i, j);
      for (Index k = 0; k < n; ++k) r -= A(i, k) * x[static_cast<std::size_t>(k)];
      const double w = weighs ? given_weight(i, j) : 1;
      root.push_back(w * std::sqrt(phi(misfit, w * std::abs(r) / scale)));
    }
    const auto of = [&](Index i) { return T(static_cast<Real<T>>(root[static_cast<std::size_t>(i)])); };
    x = lapack_solution<T>(
        m, n, [&](Index i, Index k) { return of(i) * A(i, k); },
        [&](Index i, Index) { return of(i) * b(i, j); }, 0, damp);
  }
  return x;
}

/// argmin 2sΣ|b − Ax| + D²‖x‖² for one column, whose δ falls to 10⁻⁹.
std::vector<double> least_l1(double scale, double damp, Index j) {
  const Element<double> A = random_elements<double>(7), b = wild_data<double>();
  std::vector<double> x(static_cast<std::size_t>(n));
  for (int step = 0; step < 2000; ++step) {
    const double delta = std::max(1e-9, std::pow(0.98, step));
    std::vector<double> root;
    for (Index i = 0; i < m; ++i) {
      double r = b(i, j);
      for (Index k = 0; k < n; ++k) r -= A(i, k) * x[static_cast<std::size_t>(k)];
      root.push_back(1 / std::sqrt(std::hypot(r / scale, delta)));
    }
    x = lapack_solution<double>(
        m, n, [&](Index i, Index k) { return root[static_cast<std::size_t>(i)] * A(i, k); },
        [&](Index i, Index) { return root[static_cast<std::size_t>(i)] * b(i, j); }, 0, damp);
  }
  return x;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : values[half - 1] / 2 + values[half] / 2;
}

}  // namespace

TEMPLATE_TEST_CASE("Each column ends where dense solutions with weights from x do", "", double,
                   std::complex<double>) {
  using T = TestType;
  struct Case {
    Misfit misfit;
    Algorithm algorithm;
    bool weighs;
  };
  for (const auto& grid : compact_grids())
    for (const auto& [misfit, algorithm, weighs] : {Case{Misfit::huber, Algorithm::stationary_a, false},
                                                    {Misfit::l1, Algorithm::block, true},
                                                    {Misfit::cauchy, Algorithm::stationary_b, false},
                                                    {Misfit::tukey, Algorithm::summa, true}}) {
      const OperatorPtr<T> A = dense_operator<T>(grid, algorithm, m, n, random_elements<T>(7));
      const double damp = weighs ? 0.5 : 0;
      SolveOptions options{.max_iterations = 2000, .tolerance = 1e-8, .damp = damp};
      options.batch = misfit == Misfit::tukey ? 2 : 0;
      const Robust<T> found = solve_robustly<T>(*A, {.misfit = misfit}, options, weighs);
      if (!grid->is_member()) continue;
      CAPTURE(describe(*grid), name_of(algorithm), name_of(misfit), weighs);
      check_same_everywhere(found.report.solve, grid->comm());
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(j, found.facts(j).scale, found.facts(j).solves, found.verdict(j).iterations);
        CHECK(found.verdict(j).reason == StopReason::converged);
        // A fixed point of the dense iteration, which is the minimiser of a convex misfit.
        const std::vector<T> next =
            reference<T>(misfit, found.facts(j).scale, damp, weighs, j, found.column(j), 1);
        CHECK(relative_difference(found.column(j), next) <= 1e-6);
        if (!is_convex(misfit) || j > 1) continue;
        const std::vector<T> best = reference<T>(misfit, found.facts(j).scale, damp, weighs, j,
                                                 std::vector<T>(static_cast<std::size_t>(n)), 500);
        CHECK(relative_difference(found.column(j), best) <= 1e-6);
      }
    }
}

TEST_CASE("W has the weights of x, for which x solves the weighted problem without an iteration") {
  using T = double;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, random_elements<T>(7));
    DistMatrix<T> B(grid, A->range().layout(nrhs)), W(grid, A->range().layout(nrhs)),
        X(grid, A->domain().layout(nrhs));
    B.fill(wild_data<T>());
    W.fill([](Index i, Index j) { return given_weight(i, j); });
    SolveOptions options{.max_iterations = 1000, .tolerance = 1e-9};
    const RobustReport report =
        robust_solve<T>(Solver::cgls, *A, B, X, W, {.misfit = Misfit::tukey}, options);
    options.initial_guess = true;
    const SolveReport plain = solve<T>(Solver::cgls, *A, B, X, options, {.weights = &W});
    const std::vector<T> x = everywhere(X), w = everywhere(W);
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    for (Index j = 0; j < nrhs; ++j) {
      const ColumnReport &judged = report.solve.columns[static_cast<std::size_t>(j)],
                         &again = plain.columns[static_cast<std::size_t>(j)];
      CHECK(again.iterations == 0);
      CHECK(again.reason == StopReason::converged);
      CHECK(judged.normal_residual_norm == again.normal_residual_norm);
      CHECK(judged.residual_norm == again.residual_norm);
      CHECK(judged.iterations > 0);
      const RobustColumn& facts = report.columns[static_cast<std::size_t>(j)];
      CHECK(std::isinf(facts.distance));
      std::vector<double> sizes;
      Index rejected = 0;
      for (Index i = 0; i < m; ++i) {
        T r = wild_data<T>()(i, j);
        for (Index k = 0; k < n; ++k)
          r -= random_elements<T>(7)(i, k) * x[static_cast<std::size_t>(k + j * n)];
        const double e = given_weight(i, j) * std::abs(r), expected = phi(Misfit::tukey, e / facts.scale);
        if (given_weight(i, j) > 0) sizes.push_back(e);
        if (given_weight(i, j) > 0 && expected < 0.5) ++rejected;
        CHECK(std::abs(w[static_cast<std::size_t>(i + j * m)] - given_weight(i, j) * std::sqrt(expected)) <=
              1e-12 * (1 + std::abs(w[static_cast<std::size_t>(i + j * m)])) / (1e-3 + std::sqrt(expected)));
      }
      CHECK(facts.rejected == rejected);
      CHECK(rejected >= 2);
      // The scale is that of Huber's residuals, which are much the same.
      CHECK(std::abs(facts.scale / (1.482602218505602 * median(sizes)) - 1) < 0.25);
    }
  }
}

TEST_CASE("Convex misfits with damping bound the distance from their minimiser, l1 from that without delta") {
  using T = double;
  const double damp = 2, scale = 0.2;
  for (const auto& grid : compact_grids())
    for (const Misfit misfit : {Misfit::huber, Misfit::l1})
      for (const double tolerance : {1e-1, 1e-3}) {
        const OperatorPtr<T> A =
            dense_operator<T>(grid, Algorithm::stationary_a, m, n, random_elements<T>(7));
        const Robust<T> found =
            solve_robustly<T>(*A, {.misfit = misfit, .scale = scale},
                              {.max_iterations = 500, .tolerance = tolerance, .damp = damp});
        if (!grid->is_member()) continue;
        for (Index j = 0; j < 2; ++j) {
          const std::vector<T> best = misfit == Misfit::l1
                                          ? least_l1(scale, damp, j)
                                          : reference<T>(misfit, scale, damp, false, j,
                                                         std::vector<T>(static_cast<std::size_t>(n)), 300);
          double squares = 0;
          for (std::size_t k = 0; k < best.size(); ++k) squares += std::pow(best[k] - found.column(j)[k], 2);
          CAPTURE(describe(*grid), name_of(misfit), tolerance, j);
          CHECK(std::sqrt(squares) <= found.facts(j).distance);
          CHECK(found.facts(j).distance <= 200 * std::sqrt(squares));
        }
      }
}

TEST_CASE("Any weight function will do, and a guess, a factor and batches change no solution") {
  using T = double;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, random_elements<T>(7));
    const SolveOptions options{.max_iterations = 1000, .tolerance = 1e-11};
    SolveOptions guessed = options;
    guessed.initial_guess = true;
    guessed.batch = 1;
    const RobustOptions tukey{.misfit = Misfit::tukey, .scale = PerColumn({0.1, 0.4, 1.6, 6.4, 25.6})};
    RobustOptions own = tukey;
    own.misfit = Misfit::huber;
    own.weights = [](std::span<const double> t, std::span<double> weights) {
      for (std::size_t i = 0; i < t.size(); ++i) weights[i] = phi(Misfit::tukey, t[i]);
    };
    std::shared_ptr<const Factor<T>> M;  // factors are made in host memory
    if (grid->backend()->memory_space() == MemorySpace::host) M = factor(*A, 0);
    const Robust<T> named = solve_robustly<T>(*A, tukey, options),
                    given = solve_robustly<T>(*A, own, options),
                    from_guess = solve_robustly<T>(*A, tukey, guessed),
                    by_factor = solve_robustly<T>(*A, tukey, options, false, M ? Solver::pcgls : Solver::cgls,
                                                  {.preconditioner = M.get()});
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    for (Index j = 0; j < nrhs; ++j) {
      CHECK(named.facts(j).scale == 0.1 * std::pow(4, j));
      CHECK(std::isinf(given.facts(j).distance));
      for (const Robust<T>* other : {&given, &from_guess, &by_factor}) {
        CHECK(is_solved(other->verdict(j).reason));
        CHECK(relative_difference(named.column(j), other->column(j)) <= 1e-8);
      }
      if (M) CHECK(by_factor.verdict(j).iterations < named.verdict(j).iterations);
    }
  }
}

TEST_CASE(
    "Data that fit to rounding have the scale 0, and limits, holes, NaN and small problems have verdicts") {
  using T = double;
  const Element<T> exact = [](Index i, Index) {
    T sum(0);
    for (Index k = 0; k < n; ++k) sum += random_elements<T>(7)(i, k);
    return sum;
  };
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, random_elements<T>(7));
    const SolveOptions options{.max_iterations = 300};
    const Element<T> odd = [&](Index i, Index j) {
      return j == 0 ? exact(i, 0) : j == 1 ? T(0) : j == 2 && i == 5 ? T(not_there) : wild_data<T>()(i, j);
    };
    const Robust<T> found = solve_robustly<T>(*A, {}, options, false, Solver::cgls, {}, nrhs, odd),
                    limited = solve_robustly<T>(*A, {}, {.max_iterations = 7});
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    CHECK(is_solved(found.verdict(0).reason));
    CHECK(found.verdict(1).reason == StopReason::converged);
    CHECK(norm_of(found.column(1)) == 0);
    CHECK(found.facts(1).scale == 0);
    CHECK(found.verdict(2).reason == StopReason::non_finite);
    CHECK(is_solved(found.verdict(3).reason));
    for (Index j = 0; j < nrhs; ++j) {
      CHECK(limited.verdict(j).reason == StopReason::iteration_limit);
      CHECK(limited.verdict(j).iterations <= 7);
    }
  }
  for (const auto& grid : compact_grids())
    for (const Index rows : {0, 1, 3})
      for (const Index columns : {0, 1, 3}) {
        using C = std::complex<float>;
        const OperatorPtr<C> A =
            dense_operator<C>(grid, Algorithm::stationary_a, rows, 2, random_elements<C>(7));
        const Robust<C> small = solve_robustly<C>(*A, {.misfit = Misfit::cauchy}, {}, true, Solver::cgls, {},
                                                  columns, random_elements<C>(4));
        if (!grid->is_member()) continue;
        CAPTURE(describe(*grid), rows, columns);
        for (Index j = 0; j < columns; ++j) CHECK(is_solved(small.verdict(j).reason));
      }
}

TEST_CASE("A solve that an observer stops leaves the weights and the bound of its own x") {
  constexpr double scale = 0.1, damp = 2;
  for (const auto& grid : compact_grids())
    for (const Index after : {1, 2, 4}) {
      const OperatorPtr<double> A =
          dense_operator<double>(grid, Algorithm::stationary_a, m, n, random_elements<double>(7));
      SolveOptions options{.tolerance = 0.15, .damp = damp};
      options.observers.push_back(
          after_each_iteration([after](const IterationInfo& info) { return info.iteration >= after; }));
      const Robust<double> found = solve_robustly<double>(*A, {.scale = PerColumn(scale)}, options);
      if (!grid->is_member()) continue;
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(describe(*grid), after, j);
        const std::vector<double> x = found.column(j);
        for (Index i = 0; i < m; ++i) {
          double r = wild_data<double>()(i, j);
          for (Index k = 0; k < n; ++k)
            r -= random_elements<double>(7)(i, k) * x[static_cast<std::size_t>(k)];
          CHECK(std::abs(found.w[static_cast<std::size_t>(i + j * m)] -
                         std::sqrt(phi(Misfit::huber, std::abs(r) / scale))) <= 1e-9);
        }
        const std::vector<double> best = reference<double>(Misfit::huber, scale, damp, false, j, x, 400);
        double squares = 0;
        for (std::size_t k = 0; k < x.size(); ++k) squares += std::pow(x[k] - best[k], 2);
        CHECK(std::sqrt(squares) <= 1.001 * found.facts(j).distance);
      }
    }
}

TEST_CASE("Wild numbers among exact ones, and rows without data, spoil no scale") {
  // A fifth of b is wild, all else is exact: the solution is ones. Of the first column two thirds of the rows
  // are 0 in A and b.
  const Element<double> A = [](Index i,
                               Index k) { return i % 3 != 0 ? 0 : random_elements<double>(7)(i, k); },
                        full = random_elements<double>(7);
  for (const auto& grid : compact_grids())
    for (const bool has_rows_of_zeros : {false, true})
      for (const bool guess : {false, true})
        for (const Misfit misfit : {Misfit::huber, Misfit::tukey}) {
          const Element<double>& element = has_rows_of_zeros ? A : full;
          const OperatorPtr<double> op =
              dense_operator<double>(grid, Algorithm::stationary_a, 3 * m, n, element);
          const Element<double> b = [&](Index i, Index j) {
            double sum = 0;
            for (Index k = 0; k < n; ++k) sum += element(i, k);
            if (has_rows_of_zeros)
              sum += element(i, 0) == 0 ? 0 : 0.01 * counter_uniform(80, i, j) + (i % 21 == 0 ? 50 : 0);
            return sum + (!has_rows_of_zeros && i % 5 == 2 ? 50 * counter_uniform(81, i, j) : 0);
          };
          DistMatrix<double> B(grid, op->range().layout(1)), W(grid, op->range().layout(1)),
              X(grid, op->domain().layout(1));
          B.fill(b);
          W.fill([](Index, Index) { return 1.0; });
          X.fill([](Index, Index) { return 1.0; });
          const RobustReport report =
              robust_solve<double>(Solver::cgls, *op, B, X, W, {.misfit = misfit},
                                   {.max_iterations = 20000, .tolerance = 1e-6, .initial_guess = guess});
          const std::vector<double> x = everywhere(X);
          if (!grid->is_member()) continue;
          CAPTURE(describe(*grid), has_rows_of_zeros, guess, name_of(misfit), report.columns[0].scale,
                  name_of(report.solve.columns[0].reason));
          CHECK(report.columns[0].scale > 0);
          for (const double element_of_x : x) CHECK(std::abs(element_of_x - 1) <= 0.02);
        }
}

TEST_CASE("A misfit that rejects all data ends without a verdict, and l1's distance has any scale") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, m, n, random_elements<double>(7));
    const Robust<double> rejected =
        solve_robustly<double>(*A, {.misfit = Misfit::tukey, .scale = PerColumn(1e-6)}, {});
    const auto l1 = [&](int power) {
      return solve_robustly<double>(
          *A, {.misfit = Misfit::l1, .scale = PerColumn(std::ldexp(1.0, power))},
          {.max_iterations = 5000, .tolerance = 1e-6, .damp = 1.0}, false, Solver::cgls, {}, 2,
          [&](Index i, Index j) { return std::ldexp(wild_data<double>()(i, j), power); });
    };
    const Robust<double> small = l1(-600), usual = l1(0);
    if (!grid->is_member()) continue;
    for (Index j = 0; j < nrhs; ++j) {
      CAPTURE(describe(*grid), j, name_of(rejected.verdict(j).reason));
      if (norm_of(rejected.column(j)) == 0) CHECK(!is_solved(rejected.verdict(j).reason));
    }
    for (Index j = 0; j < 2; ++j)
      CHECK(std::abs(std::ldexp(small.facts(j).distance, 600) - usual.facts(j).distance) <=
            1e-3 * usual.facts(j).distance);
  }
}

TEST_CASE("Columns of B, W and X may be longer in memory than in number") {
  using T = double;
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::block, m, n, random_elements<T>(7));
    const SolveOptions options{.max_iterations = 500};
    const Robust<T> dense = solve_robustly<T>(*A, {}, options, true);
    std::vector<Buffer<T>> memory(3);
    const auto padded = [&](std::size_t k, const Layout& layout, const Element<T>& element) {
      if (!grid->is_member()) return DistMatrix<T>(grid, layout);
      const DistMatrix<T> shape = planned_matrix<T>(grid, layout);
      const Index rows = shape.local().rows, cols = shape.local().cols;
      memory[k].reserve(grid->backend(), (rows + 3) * cols);
      DistMatrix<T> X(grid, layout, {memory[k].data(), rows, cols, rows + 3});
      X.fill(element);
      return X;
    };
    const DistMatrix<T> B = padded(0, A->range().layout(nrhs), [](Index i, Index j) {
      return given_weight(i, j) == 0 ? not_there : wild_data<T>()(i, j);
    });
    DistMatrix<T> W = padded(1, A->range().layout(nrhs), given_weight),
                  X = padded(2, A->domain().layout(nrhs), [](Index, Index) { return not_there; });
    robust_solve<T>(Solver::cgls, *A, B, X, W, {}, options);
    const std::vector<T> x = everywhere(X), w = everywhere(W);
    if (!grid->is_member()) continue;
    CAPTURE(describe(*grid));
    CHECK(x == dense.x);
    CHECK(w == dense.w);
  }
}

TEST_CASE("Medians of columns are exact on every grid, also of equal and few values") {
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    Communicator& comm = grid->comm();
    for (const Index rows : {0, 1, 2, 7, 64})
      for (const int kind : {0, 1, 2}) {
        const auto value = [kind](Index i, Index j) {
          const double u = counter_uniform(70, i, j);
          return kind == 0   ? std::abs(u) * std::pow(10.0, 300 * counter_uniform(71, i, j))
                 : kind == 1 ? std::floor(std::abs(3 * u))
                             : u;  // half of them do not count
        };
        constexpr Index columns = 3;
        std::vector<double> mine, expected;
        for (Index j = 0; j < columns; ++j) {
          std::vector<double> all;
          for (Index i = 0; i < rows; ++i) {
            if (i % comm.size() == comm.rank()) mine.push_back(value(i, j));
            if (value(i, j) > 0) all.push_back(value(i, j));
          }
          expected.push_back(median(all));
        }
        const Index here = static_cast<Index>(mine.size()) / columns;
        CAPTURE(describe(*grid), rows, kind);
        CHECK(column_medians(comm, {.values = mine, .rows = here, .first = 0, .counts = true}, columns) ==
              expected);
      }
  }
}

TEST_CASE("Misfits with wrong scales, weights or solvers are refused on all ranks") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, m, n, random_elements<double>(7));
    if (!grid->is_member()) continue;
    const auto refusal = [&](const RobustOptions& robust, const SolveOptions& options = {},
                             Solver solver = Solver::cgls) {
      return message_of<UsageError>([&] { solve_robustly<double>(*A, robust, options, false, solver); });
    };
    const auto has = [](const std::string& text, const char* part) {
      return text.find(part) != std::string::npos;
    };
    for (const double scale : {0.0, -1.0, not_there, std::numeric_limits<double>::infinity()})
      CHECK(has(refusal({.scale = scale}), "the scale of a misfit is"));
    for (const Solver solver : {Solver::block_cgls, Solver::direct, Solver::fista, Solver::lsqr})
      CHECK(has(refusal({}, {}, solver), "does not take a misfit; take cgls"));
    CHECK(has(refusal({}, {.error = 0.1}), "belong to one weighted problem"));
    CHECK(has(refusal({}, {.one_pass = true}), "one pass"));
    CHECK(has(refusal({}, {.checkpoint = {.directory = "nowhere"}}), "a checkpoint belongs to one solve"));
    RobustOptions wrong;
    wrong.weights = [](std::span<const double> t, std::span<double> weights) {
      for (std::size_t i = 0; i < t.size(); ++i) weights[i] = t[i] > 2 ? not_there : 1;
    };
    CHECK(has(refusal(wrong), "the weight of a residual of"));
  }
}
