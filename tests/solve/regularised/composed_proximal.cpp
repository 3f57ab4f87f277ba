// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Index rows = 23;

ColumnScalars own_steps() { return ColumnScalars(std::vector<double>{0.3, 0, 1.7}); }

template <Scalar T>
T times(double factor, T x) {
  return static_cast<Real<T>>(factor) * x;
}

template <Scalar T>
double modulus(T x) {
  return static_cast<double>(std::abs(x));
}

template <Scalar T>
T soft(T x, double t) {
  return modulus(x) <= t ? T(0) : times((modulus(x) - t) / modulus(x), x);
}

template <Scalar T>
double real_product(T a, T b) {
  return static_cast<double>(std::real(conjugate(a) * b));
}

/// Calls check(X, vector) with X of three columns in every layout; vector(seed) is one column with rows cut
/// as those of X.
template <Scalar T, class Check>
void for_each_operand(Check&& check) {
  for_each_layout(rows, 3, 0, [&](const GridPtr& grid, const Layout& layout) {
    check(filled(grid, layout, random_elements<T>(8)), [&](std::uint64_t seed) {
      return filled(grid, Layout{layout.rows, {Axis::uncut, Partition::balanced(1, 1)}},
                    random_elements<T>(seed));
    });
  });
}

/// Checks the map of f, element by element, and its values.
template <Scalar T>
void check_map(const ProximalOperator<T>& f, DistMatrix<T> X,
               const std::function<T(T x, Index i, double tau)>& expected,
               const std::function<double(T x, Index i)>& term) {
  const Element<T> x = random_elements<T>(8);
  const ColumnScalars tau = own_steps(), values = value(f, X);
  f.prox(tau, X);
  CHECK(mismatches(
            X, [&](Index i, Index j) { return expected(x(i, j), i, tau[j]); }, 16 * epsilon_of<T>) == 0);
  if (!X.grid()->is_member()) return;
  for (Index j = 0; j < 3; ++j) {
    double sum = 0, size = 0;
    for (Index i = 0; i < rows; ++i) {
      sum += term(x(i, j), i);
      size += std::abs(term(x(i, j), i));
    }
    CHECK((std::isinf(sum) ? values[j] == sum : std::abs(values[j] - sum) <= 16 * epsilon_of<T> * size));
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Quadratic functions have the maps of their closed forms", "[composed_proximal]",
                        Scalars) {
  using T = TestType;
  const Element<T> a = random_elements<T>(5);
  for_each_operand<T>([&](const DistMatrix<T>& X, const auto& vector) {
    for (const double rho : {0.0, 0.6})
      for (const bool is_linear : {false, true})
        check_map<T>(
            *quadratic<T>(rho, is_linear ? vector(5) : DistMatrix<T>()), X.clone(),
            [&](T x, Index i, double tau) {
              return times(1 / (1 + tau * rho), is_linear ? x - times(tau, a(i, 0)) : x);
            },
            [&](T x, Index i) {
              return 0.5 * rho * modulus(x) * modulus(x) + (is_linear ? real_product(a(i, 0), x) : 0);
            });
  });
}

TEMPLATE_LIST_TEST_CASE(
    "Compositions with scalings, shifts and quadratics have the maps of their closed forms",
    "[composed_proximal]", Scalars) {
  using T = TestType;
  const Element<T> a = random_elements<T>(5), t = random_elements<T>(6);
  for_each_operand<T>([&](const DistMatrix<T>& X, const auto& vector) {
    for (const double s : {1.0, -0.5, 3.0}) {
      // 0.4 ‖s x + t‖₁
      check_map<T>(
          *precompose(threshold_penalty<T>(Threshold::soft, 0.4), s, vector(6)), X.clone(),
          [&](T x, Index i, double tau) {
            return times(1 / s, soft(times(s, x) + t(i, 0), s * s * tau * 0.4) - t(i, 0));
          },
          [&](T x, Index i) { return 0.4 * modulus(times(s, x) + t(i, 0)); });
      // 2 ‖s x‖₁ + 0.35 ‖x‖² + Re aᴴx
      check_map<T>(
          *postcompose(precompose(threshold_penalty<T>(Threshold::soft), s), 2, 0.7, vector(5)), X.clone(),
          [&](T x, Index i, double tau) {
            const double w = 1 + 0.7 * tau;
            return soft(times(1 / w, x - times(tau, a(i, 0))), 2 * std::abs(s) * tau / w);
          },
          [&](T x, Index i) {
            return 2 * std::abs(s) * modulus(x) + 0.35 * modulus(x) * modulus(x) + real_product(a(i, 0), x);
          });
      // (2 ‖y‖₁ + 0.35 ‖y‖²) of y = s x + t: both again in one function of y
      check_map<T>(
          *precompose(postcompose(threshold_penalty<T>(Threshold::soft), 2, 0.7), s, vector(6)), X.clone(),
          [&](T x, Index i, double tau) {
            const double step = s * s * tau, w = 1 + 0.7 * step;
            const T y = times(s, x) + t(i, 0);
            return times(1 / s, soft(times(1 / w, y), 2 * step / w) - t(i, 0));
          },
          [&](T x, Index i) {
            const double y = modulus(times(s, x) + t(i, 0));
            return 2 * y + 0.35 * y * y;
          });
    }
    // The box [-0.5, 1] of 2x is the box [-0.25, 0.5] of x.
    const auto clipped = [](Real<T> x) { return std::min(std::max(x, Real<T>(-0.25)), Real<T>(0.5)); };
    check_map<T>(
        *postcompose(precompose(box<T>(-0.5, 1), 2), 3), X.clone(),
        [&](T x, Index, double) {
          return number<T>(static_cast<double>(clipped(std::real(x))),
                           static_cast<double>(clipped(std::imag(x))));
        },
        [](T, Index) { return infinity; });
  });
}

TEMPLATE_TEST_CASE(
    "The map of a composition with an orthogonal operator fulfils its conditions of optimality",
    "[composed_proximal]", double, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 5, n = 9;
  constexpr double c = 4, sigma = 0.4, tau = 0.5;
  for (const GridPtr& grid : compact_grids()) {
    // A Aᴴ = 4 I.
    const OperatorPtr<T> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, std::vector<double>(m, 2.0)));
    const ProximalPtr<T> f = precompose(threshold_penalty<T>(Threshold::soft, sigma), A, c);
    const DistMatrix<T> V = filled(grid, A->domain().layout(3), [](Index i, Index j) {
      return j == 1 ? T(0) : random_elements<T>(3)(i, j);
    });
    DistMatrix<T> X = V.clone(), difference(grid, V.layout()), Y(grid, A->range().layout(3)),
                  W(grid, Y.layout());
    f->prox(tau, X);
    // v − x = τ Aᴴw, so w = A(v − x)/(τc), and w is a subgradient of σ‖y‖₁ at y = A x.
    copy(V, difference);
    difference -= X;
    A->apply(T(1), X, T(0), Y);
    A->apply(number<T>(1 / (tau * c), 0), difference, T(0), W);
    A->apply_adjoint(number<T>(-tau, 0), W, T(1), difference);
    const ColumnScalars values = value(*f, X);
    if (!grid->is_member()) continue;
    for (const double defect : column_norms(difference)) CHECK(defect <= 1e-14);
    const std::vector<T> y = everywhere(Y), w = everywhere(W);
    Index zeros = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const bool is_zero = std::abs(y[i]) <= 1e-13;
      zeros += is_zero ? 1 : 0;
      CHECK((is_zero ? std::abs(w[i]) <= sigma + 1e-13
                     : std::abs(w[i] - sigma / std::abs(y[i]) * y[i]) <= 1e-13));
    }
    CHECK((zeros > m && zeros < 3 * m));  // a column of zeros, and others with some
    for (Index j = 0; j < 3; ++j) {
      double sum = 0;
      for (Index i = 0; i < m; ++i) sum += sigma * std::abs(y[static_cast<std::size_t>(i + j * m)]);
      CHECK(std::abs(values[j] - sum) <= 1e-13);
    }
  }
}

TEMPLATE_TEST_CASE("A separable sum maps each member of a stack by its own function", "[composed_proximal]",
                   double, std::complex<float>) {
  using T = TestType;
  const ColumnScalars tau = own_steps();
  for_each_layout(rows, 3, 0, [&](const GridPtr& grid, const Layout& layout) {
    const Space space{grid, layout.rows, layout.cols.axis};
    const std::vector<Space> pair{space, space}, all{space, stack_spaces(pair), space};
    const ProximalPtr<T> sum =
        separable_sum<T>(all, {quadratic<T>(2), l21_norm<T>(pair, 0.3), postcompose(box<T>(-9, 9), 1, 0.5)});
    DistMatrix<T> X = filled(grid, stack_spaces(all).layout(layout.cols.partition), random_elements<T>(4));
    const DistMatrix<T> before = X.clone();
    const ColumnScalars values = value(*sum, X);
    sum->prox(tau, X);
    ColumnScalars expected(3);
    const std::vector<ProximalPtr<T>> alone{quadratic<T>(2), l21_norm<T>(pair, 0.3), quadratic<T>(0.5)};
    for (std::size_t k = 0; k < all.size(); ++k) {
      DistMatrix<T> Y = stack_rows(all, k, before).clone();
      expected += value(*alone[k], Y);
      alone[k]->prox(tau, Y);
      const std::vector<T> wanted = on_host(Y), found = on_host(stack_rows(all, k, std::as_const(X)));
      CHECK(wanted.size() == found.size());
      for (std::size_t i = 0; i < wanted.size(); ++i)
        CHECK(std::abs(wanted[i] - found[i]) <= 2 * epsilon_of<T>);
    }
    if (!grid->is_member()) return;
    for (Index j = 0; j < 3; ++j) CHECK(values[j] == Approx(expected[j]).epsilon(16 * epsilon_of<T>));
  });
}

TEMPLATE_LIST_TEST_CASE("Conjugates of quadratics and of L2,1 norms have the maps of their closed forms",
                        "[composed_proximal]", Scalars) {
  using T = TestType;
  const ColumnScalars tau(std::vector<double>{0.3, 0.9, 1.7});
  const Element<T> x = random_elements<T>(8);
  for_each_operand<T>([&](DistMatrix<T> X, const auto&) {
    // The conjugate of ρ/2 ‖x‖² is ‖y‖²/(2ρ), whose map is y/(1 + τ/ρ).
    DistMatrix<T> Y = X.clone(), W(X.grid(), X.layout());
    prox_of_conjugate(*quadratic<T>(0.5), tau, Y, W);
    CHECK(mismatches(
              Y, [&](Index i, Index j) { return times(1 / (1 + 2 * tau[j]), x(i, j)); },
              16 * epsilon_of<T>) == 0);
    // The conjugate of σ Σ|x_g| lets no group be longer than σ. Groups of one element are enough here.
    prox_of_conjugate(*l21_norm<T>({Space{X.grid(), X.layout().rows, X.layout().cols.axis}}, 0.4), tau, X, W);
    CHECK(mismatches(
              X, [&](Index i, Index j) { return times(0.4 / std::max(0.4, modulus(x(i, j))), x(i, j)); },
              16 * epsilon_of<T>) == 0);
  });
}

TEST_CASE("The elastic net is a lasso with more rows", "[composed_proximal]") {
  constexpr Index m = 20, n = 12;
  constexpr double lambda = 0.1, rho = 0.8;
  for (const GridPtr& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(m, n, geometric(n, 3)));
    const auto larger = dense_operator<double>(grid, Algorithm::summa, m + n, n, [](Index i, Index j) {
      return i < m ? KnownSpectrum<double>(m, n, geometric(n, 3))(i, j)
                   : (i - m == j ? std::sqrt(lambda * rho) : 0);
    });
    const Element<double> b = random_elements<double>(4);
    const DistMatrix<double> B = filled(grid, A->range().layout(2), b),
                             more = filled(grid, larger->range().layout(2),
                                           [&](Index i, Index j) { return i < m ? b(i, j) : 0.0; });
    DistMatrix<double> X(grid, A->domain().layout(2)), Y(grid, larger->domain().layout(2));
    SolveOptions options;
    options.lambda = lambda;
    options.tolerance = 1e-12;
    options.max_iterations = 5000;
    proximal_gradient(*A, postcompose(threshold_penalty<double>(Threshold::soft), 1, rho), B, X, options);
    fista(*larger, more, Y, options);
    if (grid->is_member()) CHECK(relative_difference(everywhere(X), everywhere(Y)) <= 1e-9);
  }
}

TEST_CASE("Wrong arguments of compositions are refused on all ranks", "[composed_proximal]") {
  for (const GridPtr& grid : compact_grids()) {
    const Space space = array_space(grid, {6}, 0), other = array_space(grid, {7}, 0);
    const ProximalPtr<double> f = threshold_penalty<double>(Threshold::soft);
    const OperatorPtr<double> I = identity<double>(space);
    DistMatrix<double> X(grid, space.layout(2)), Y(grid, other.layout(2));
    X.set_zero();
    Y.set_zero();
    CHECK_THROWS_AS(precompose(f, 0), UsageError);
    CHECK_THROWS_AS(precompose(f, I, 0), UsageError);
    CHECK_THROWS_AS(postcompose(f, 0), UsageError);
    CHECK_THROWS_AS(postcompose(f, 1, -1), UsageError);
    CHECK_THROWS_AS(quadratic<double>(-1), UsageError);
    CHECK_THROWS_AS(quadratic<double>(0, DistMatrix<double>(grid, space.layout(2))), ShapeError);
    DistMatrix<double> a(grid, space.layout(1));
    a.set_zero();
    CHECK_THROWS_AS(precompose(f, 1, std::move(a))->prox(1, Y), ShapeError);
    CHECK_THROWS_AS(precompose(f, I)->prox(1, Y), ShapeError);
    CHECK_THROWS_AS(separable_sum<double>({space, space}, {f}), ShapeError);
    CHECK_THROWS_AS(separable_sum<double>({space, space}, {f, f}), UsageError);
    CHECK_THROWS_AS(separable_sum<double>({other}, {f})->prox(1, X), ShapeError);
    // Parameters that differ from column to column do so in a composition, too.
    const DistMatrix<double> B(grid, space.layout(2));
    CHECK_THROWS_AS(proximal_gradient(*I, postcompose(l2_misfit(I, B), 1), B, X), UsageError);
    DistMatrix<double> none(grid, space.layout(0));
    CHECK(value(*postcompose(precompose(f, I), 1, 1), none).size() == 0);
  }
}
