// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "local/host_kernels.hpp"
#include "support/catch.hpp"
#include "support/padded_matrix.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Threshold kinds[] = {Threshold::soft, Threshold::hard, Threshold::half};

/// The minimiser of ½(x − m)² + t·penalty(x) over x ≥ 0, found by search.
double minimiser(Threshold kind, double m, double t) {
  const auto objective = [=](double x) {
    const double penalty = kind == Threshold::soft ? x : kind == Threshold::hard ? (x > 0) : std::sqrt(x) / 2;
    return (x - m) * (x - m) / 2 + t * penalty;
  };
  constexpr int points = 200000;
  double best = 0;
  for (int k = 1; k <= points; ++k)
    if (const double x = m * k / points; objective(x) < objective(best)) best = x;
  return best;
}

}  // namespace

TEST_CASE("Thresholds minimise what they are the proximal maps of", "[kernels]") {
  const HostKernels<double> kernels;
  for (const Threshold kind : kinds) {
    for (const double t : {0.0, 0.1, 0.5, 2.0}) {
      for (const double m : {0.05, 0.3, 0.7, 1.3, 2.9}) {
        double x[] = {m, -m, 0};
        kernels.column_threshold(kind, &t, MatrixView<double>(x, 3, 1));
        CAPTURE(static_cast<int>(kind), t, m);
        CHECK(x[0] == Approx(minimiser(kind, m, t)).margin(1e-4));
        CHECK(x[1] == -x[0]);
        CHECK(x[2] == 0);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("clip projects onto a box, and leaves NaN", "[kernels]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  const double infinity = std::numeric_limits<double>::infinity();
  PaddedMatrix<T> X(7, 2, 2, [](Index i, Index j) { return small_integer<T>(1, i, j); });
  kernels.clip(-1, 2, X.view());
  kernels.clip(-infinity, infinity, X.view());
  for (Index j = 0; j < 2; ++j) {
    for (Index i = 0; i < 7; ++i) {
      const T x = small_integer<T>(1, i, j), y = MatrixView<const T>(X.view())(i, j);
      CHECK(std::real(y) == std::min(std::max(std::real(x), Real<T>(-1)), Real<T>(2)));
      CHECK(std::imag(y) == (is_complex<T> ? std::min(std::max(std::imag(x), Real<T>(-1)), Real<T>(2)) : 0));
    }
  }
  T spoiled[] = {quiet_nan<T>()};
  kernels.clip(0, 1, MatrixView<T>(spoiled, 1, 1));
  CHECK(is_nan(spoiled[0]));
}

TEMPLATE_TEST_CASE("Updates in a box say how far numbers may go, and end on bounds exactly", "[kernels]",
                   float, double) {
  using T = TestType;
  const HostKernels<T> kernels;
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
          epsilon = std::numeric_limits<T>::epsilon(), smallest = std::numeric_limits<T>::min(),
          farthest = 1 / smallest;
  const double t = 2;
  const auto updated = [&](BoxKind kind, T v, T x, T lower, T upper) {
    T y = 7;
    const auto view = [](T& z) { return MatrixView<T>(&z, 1, 1); };
    kernels.arrays().box_update({kind, &t, view(v), view(x), view(lower), view(upper), view(y)});
    return y;
  };
  // v, x, l, u, and what is expected of free, chopped, arc, reach and step.
  const T cases[][9] = {
      {3, 1, 0, infinity, 3, 0, 6, 0, 7},   // nothing is met
      {3, 1, 0, 4, 3, 0, 3, 1, 4},          // the upper bound is met
      {-1, 1, 0, 4, -1, 0, -1, 1, 0},       // the lower one
      {-1, 0, 0, 4, 0, 0, 0, farthest, 0},  // v leads out of the box
      {1, 0, 0, 4, 0, 1, 2, 0.25, 2},       // into it
      {1, 4, 0, 4, 0, 0, 0, farthest, 4},   // out at the other end
      {-1, 4, 0, 4, 0, -1, -2, 0.25, 2},    // into it
      {1, 2, 2, 2, 0, 0, 0, farthest, 2},   // there is one number
      {0, 2, 2, 5, 0, 0, 0, 0, 2},          // no way
      {1, 0, -infinity, infinity, 1, 0, 2, 0, 2},
  };
  constexpr BoxKind kinds_of_case[] = {BoxKind::free, BoxKind::chopped, BoxKind::arc, BoxKind::reach,
                                       BoxKind::step};
  for (const auto& [v, x, l, u, free, chopped, arc, reach, step] : cases) {
    const T expected[] = {free, chopped, arc, reach, step};
    CAPTURE(v, x, l, u);
    for (std::size_t k = 0; k < 5; ++k) CHECK(updated(kinds_of_case[k], v, x, l, u) == expected[k]);
  }
  // Of a short way 1/t would leave the range; the step of the capped one ends on the bound.
  for (const T width : {smallest / 4, std::numeric_limits<T>::denorm_min()}) {
    CHECK(updated(BoxKind::reach, 1, 0, 0, width) == farthest);
    CHECK(updated(BoxKind::reach, -1, 0, -width, 0) == farthest);
    CHECK(updated(BoxKind::step, smallest / 2, 0, 0, width) == width);
  }
  // A step that ends a rounding before the bound ends on it, but one that leads away does not.
  CHECK(updated(BoxKind::step, T(-0.5) + epsilon, 1 + epsilon, 0, infinity) == 0);
  CHECK(updated(BoxKind::step, epsilon, 2, 2, infinity) == 2 * (1 + epsilon));
  CHECK(updated(BoxKind::nearest, 0, -3, -1, 2) == -1);
  CHECK(updated(BoxKind::nearest, 0, 3, -1, 2) == 2);
  CHECK(updated(BoxKind::nearest, nan, 1, -1, 2) == 1);
  for (const BoxKind kind : {BoxKind::free, BoxKind::arc, BoxKind::reach, BoxKind::step})
    CHECK(is_nan(updated(kind, nan, 1, 0, 2)));
  for (const BoxKind kind : {BoxKind::reach, BoxKind::step, BoxKind::nearest})
    CHECK(is_nan(updated(kind, 1, nan, 0, 2)));
}

TEMPLATE_LIST_TEST_CASE("column_threshold shrinks columns by their own thresholds", "[kernels]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  constexpr Index rows = 19, cols = 3;
  const double t[] = {0, 0.4, 100}, nan = std::numeric_limits<double>::quiet_NaN();
  for (const Threshold kind : kinds) {
    PaddedMatrix<T> X(rows, cols, 2, [](Index i, Index j) { return small_integer<T>(1, i, j); });
    kernels.column_threshold(kind, t, X.view());
    const MatrixView<const T> result = X.view();
    for (Index i = 0; i < rows; ++i) {
      const T before = small_integer<T>(1, i, 1), after = result(i, 1);
      CHECK(std::abs(result(i, 0) - small_integer<T>(1, i, 0)) <= 1e-5);
      CHECK(result(i, 2) == T(0));
      CHECK(std::abs(after) <= std::abs(before));
      // The phase stays.
      CHECK(std::abs(after * std::abs(before) - before * std::abs(after)) <= 1e-5);
    }
    T spoiled[] = {T(static_cast<Real<T>>(nan))};
    kernels.column_threshold(kind, t + 1, MatrixView<T>(spoiled, 1, 1));
    CHECK(std::isnan(std::abs(spoiled[0])));
  }
}
