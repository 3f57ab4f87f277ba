// SPDX-License-Identifier: BSD-3-Clause
#include "local/host_kernels.hpp"

#include <array>

#include "gridlops/base/error.hpp"
#include "support/catch.hpp"
#include "support/padded_matrix.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index rows, cols, padding;
};
// Rows are below, at and above the eight lanes that sums are unrolled by.
constexpr std::array shapes{Shape{0, 0, 0},   Shape{0, 3, 2}, Shape{3, 0, 0},  Shape{1, 1, 0},
                            Shape{1, 9, 0},   Shape{1, 4, 6}, Shape{7, 1, 1},  Shape{8, 2, 0},
                            Shape{9, 3, 0},   Shape{9, 3, 4}, Shape{16, 1, 0}, Shape{31, 2, 1},
                            Shape{100, 5, 0}, Shape{65, 4, 3}};

template <Scalar T>
std::array<T, 3> coefficients() {
  return {T(0), T(1), general<T>()};
}

/// Memory that must not be read holds NaN.
template <Scalar T>
PaddedMatrix<T> output(T beta, Index rows, Index cols, Index padding) {
  return {rows, cols, padding,
          [=](Index i, Index j) { return beta == T(0) ? quiet_nan<T>() : small_integer<T>(7, i, j); }};
}

template <Scalar T>
T times_old(T beta, Index i, Index j) {
  return beta == T(0) ? T(0) : beta * small_integer<T>(7, i, j);
}

template <Scalar T>
std::vector<T> factors(Index count) {
  std::vector<T> values;
  for (Index j = 0; j < count; ++j) values.push_back(small_integer<T>(11, j, 0));
  return values;
}

template <Scalar T>
MatrixView<const T> dense_view(const std::vector<T>& data, Index rows, Index cols) {
  return {data.data(), rows, cols};
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Copies and fills write every element of a block", "[kernels]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    for (const Index y_padding : {Index{0}, padding}) {
      auto Y = output(T(0), rows, cols, y_padding);
      kernels.copy(X.view(), Y.view());
      Y.check([](Index i, Index j) { return small_integer<T>(1, i, j); });
      kernels.fill(general<T>(), Y.view());
      Y.check([](Index, Index) { return general<T>(); });
    }
  }
}

TEMPLATE_LIST_TEST_CASE("A sum of blocks is αX + βY, and does not read Y where β is zero", "[kernels]",
                        Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    for (const T alpha : coefficients<T>()) {
      for (const T beta : coefficients<T>()) {
        auto Y = output(beta, rows, cols, 0);
        kernels.add(alpha, X.view(), beta, Y.view());
        Y.check([=](Index i, Index j) { return alpha * small_integer<T>(1, i, j) + times_old(beta, i, j); });
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("diagonal_multiply scales every row by its entry", "[kernels]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    const std::vector<T> d = factors<T>(rows);
    for (const bool conjugated : {false, true}) {
      for (const T beta : coefficients<T>()) {
        auto Y = output(beta, rows, cols, padding);
        kernels.diagonal_multiply(general<T>(), d.data(), conjugated, X.view(), beta, Y.view());
        Y.check([&d, conjugated, beta](Index i, Index j) {
          const T entry = d[static_cast<std::size_t>(i)];
          return general<T>() * (conjugated ? conjugate(entry) : entry) * small_integer<T>(1, i, j) +
                 times_old(beta, i, j);
        });
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("gemm_batched multiplies each block with its own", "[kernels]", Scalars) {
  using T = TestType;
  constexpr Index count = 5, m = 4, n = 3, r = 2;
  const auto A = integers<T>(1, m, n * count, 2), X = integers<T>(2, n, r * count, 1);
  auto Y = integers<T>(3, m, r * count, 3);
  const MatrixView<const T> a = A.view(), x = X.view();
  const MatrixView<T> y = Y.view();
  HostKernels<T>().gemm_batched(count, Op::none, Op::none, general<T>(), {a.col_block({0, n}), n * a.stride},
                                {x.col_block({0, r}), r * x.stride}, T(2),
                                {y.col_block({0, r}), r * y.stride});
  Y.check([](Index i, Index j) {
    T sum(0);
    for (Index k = 0; k < n; ++k) sum += small_integer<T>(1, i, j / r * n + k) * small_integer<T>(2, k, j);
    return general<T>() * sum + T(2) * small_integer<T>(3, i, j);
  });
}

TEMPLATE_LIST_TEST_CASE("column_axpy, column_xpby and column_scale have a scalar for each column",
                        "[kernels]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    std::vector<T> scalars = factors<T>(cols);
    const auto scalar = [&scalars](Index j) { return scalars[static_cast<std::size_t>(j)]; };
    auto Y = integers<T>(2, rows, cols, 1);
    kernels.column_axpy(scalars.data(), X.view(), Y.view());
    Y.check(
        [&](Index i, Index j) { return small_integer<T>(2, i, j) + scalar(j) * small_integer<T>(1, i, j); });
    auto S = integers<T>(3, rows, cols, padding);
    kernels.column_scale(scalars.data(), S.view());
    S.check([&](Index i, Index j) { return scalar(j) * small_integer<T>(3, i, j); });
    // A zero β, here for the first column, means that the old one is not read.
    auto Z = PaddedMatrix<T>(rows, cols, padding, [](Index i, Index j) {
      return j == 0 ? quiet_nan<T>() : small_integer<T>(4, i, j);
    });
    if (cols > 0) scalars[0] = T(0);
    kernels.column_xpby(X.view(), scalars.data(), Z.view());
    Z.check([&](Index i, Index j) {
      return small_integer<T>(1, i, j) + (j == 0 ? T(0) : scalar(j) * small_integer<T>(4, i, j));
    });
  }
}

TEMPLATE_LIST_TEST_CASE("column_updates have shapes of their own, and come one after the other", "[kernels]",
                        Scalars) {
  using T = TestType;
  // Of the longer columns the second piece is of a thread's size, too.
  for (const Index rows : {Index{9}, Index{20000}}) {
    auto X = integers<T>(1, rows, 3, 2), Y = integers<T>(2, rows, 3, 0), Z = integers<T>(3, 7, 2, 1),
         W = integers<T>(4, 0, 5, 0);
    const std::vector<T> a = factors<T>(5), b(5, T(-2)), c(5, T(3));
    const std::vector<BlockUpdate<T>> updates{{UpdateKind::scale, a.data(), {}, X.view()},
                                              {UpdateKind::axpy, c.data(), X.view(), Y.view()},
                                              {UpdateKind::scale, c.data(), {}, Z.view()},
                                              {UpdateKind::scale, c.data(), {}, W.view()},
                                              {UpdateKind::xpby, b.data(), Y.view(), X.view()}};
    HostKernels<T>().column_updates(updates);
    const auto x = [&](Index i, Index j) {
      return a[static_cast<std::size_t>(j)] * small_integer<T>(1, i, j);
    };
    const auto y = [&](Index i, Index j) { return small_integer<T>(2, i, j) + T(3) * x(i, j); };
    Y.check(y);
    X.check([&](Index i, Index j) { return y(i, j) - T(2) * x(i, j); });
    Z.check([&](Index i, Index j) { return T(3) * small_integer<T>(3, i, j); });
  }
}

TEMPLATE_LIST_TEST_CASE("column_dots and column_norms_squared are those of each column", "[kernels]",
                        Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    const auto Y = integers<T>(2, rows, cols, 2);
    std::vector<Accumulator<T>> dots(static_cast<std::size_t>(cols), Accumulator<T>(99));
    std::vector<double> norms(static_cast<std::size_t>(cols), 99.0);
    kernels.column_dots(X.view(), Y.view(), dots.data());
    kernels.column_norms_squared(X.view(), norms.data());
    for (Index j = 0; j < cols; ++j) {
      Extended<T> dot{};
      double norm = 0;
      for (Index i = 0; i < rows; ++i) {
        dot += extended(conjugate(X.view()(i, j))) * extended(Y.view()(i, j));
        norm += static_cast<double>(std::norm(X.view()(i, j)));
      }
      CHECK(extended(dots[static_cast<std::size_t>(j)]) == dot);
      CHECK(norms[static_cast<std::size_t>(j)] == norm);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("column_power_sums are those of each column, or its largest magnitude", "[kernels]",
                        Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  for (const auto [rows, cols, padding] : shapes) {
    const auto X = integers<T>(1, rows, cols, padding);
    for (const double p : {0.0, 0.5, 1.0, 3.5, std::numeric_limits<double>::infinity()}) {
      CAPTURE(p, rows, cols);
      std::vector<double> sums(static_cast<std::size_t>(cols), 99.0);
      kernels.column_power_sums(p, X.view(), sums.data());
      for (Index j = 0; j < cols; ++j) {
        double expected = 0;
        for (Index i = 0; i < rows; ++i) {
          const auto m = static_cast<double>(std::abs(extended(X.view()(i, j))));
          expected = std::isinf(p) ? std::max(expected, m) : expected + (m == 0 ? 0 : std::pow(m, p));
        }
        CHECK(sums[static_cast<std::size_t>(j)] == Approx(expected).epsilon(1e-13));
      }
      // NaN counts as one element, and goes through all other sums, first and last.
      for (const std::size_t place : {std::size_t{0}, std::size_t{2}}) {
        T x[] = {T(5), T(1), T(7)};
        x[place] = quiet_nan<T>();
        double sum = 0;
        kernels.column_power_sums(p, MatrixView<const T>(x, 3, 1), &sum);
        CHECK((p == 0 ? sum == 3 : std::isnan(sum)));
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Dots are summed in double precision", "[kernels]", Scalars) {
  using T = TestType;
  const Index n = 100'003;
  const auto x = dense<T>(n, 1, [](Index i, Index j) { return counter_random<T>(1, i, j); });
  const auto y = dense<T>(n, 1, [](Index i, Index j) { return counter_random<T>(2, i, j); });
  Extended<T> expected{};
  for (Index i = 0; i < n; ++i) {
    expected +=
        extended(conjugate(x[static_cast<std::size_t>(i)])) * extended(y[static_cast<std::size_t>(i)]);
  }
  Accumulator<T> dot{};
  HostKernels<T>().column_dots(dense_view(x, n, 1), dense_view(y, n, 1), &dot);
  // The eight partial sums have n/8 terms of at most 2 each; random signs leave far less than the bound.
  const double tolerance = static_cast<double>(n) / 8 * 0x1p-53 * 2 * static_cast<double>(n) / 1000;
  CHECK(static_cast<double>(std::abs(extended(dot) - expected)) <= tolerance);
}

TEMPLATE_LIST_TEST_CASE("gemm is exact on integers for all operations, coefficients and shapes",
                        "[kernels][gemm]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  struct Sizes {
    Index m, n, k;
  };
  std::vector<Sizes> sizes{{67, 33, 70}, {130, 1, 75}, {1, 40, 90}};
  for (const Index m : {0, 1, 5}) {
    for (const Index n : {0, 1, 4}) {
      for (const Index k : {0, 1, 6}) sizes.push_back({m, n, k});
    }
  }
  for (const Op op_a : {Op::none, Op::transpose, Op::adjoint}) {
    for (const Op op_b : {Op::none, Op::transpose, Op::adjoint}) {
      for (const auto [m, n, k] : sizes) {
        for (const Index padding : {0, 3}) {
          const auto a = op_a == Op::none ? std::pair(m, k) : std::pair(k, m);
          const auto b = op_b == Op::none ? std::pair(k, n) : std::pair(n, k);
          const auto A = integers<T>(1, a.first, a.second, padding);
          const auto B = integers<T>(2, b.first, b.second, padding);
          const auto dense_A = integers<T>(1, a.first, a.second, 0);
          const auto dense_B = integers<T>(2, b.first, b.second, 0);
          const auto op_B = reference_op(op_b, dense_B.view().data, b.first, b.second);
          const auto old = integers<T>(7, m, n, 0);
          for (const T alpha : coefficients<T>()) {
            for (const T beta : coefficients<T>()) {
              auto C = output(beta, m, n, padding);
              kernels.gemm(op_a, op_b, alpha, A.view(), B.view(), beta, C.view());
              const auto expected = reference_product(op_a, alpha, dense_A.view().data, a.first, a.second,
                                                      op_B.data(), n, beta, old.view().data);
              CAPTURE(op_a, op_b, m, n, k, padding, alpha, beta);
              C.check([&expected, rows = m](Index i, Index j) {
                return expected[static_cast<std::size_t>(i + j * rows)];
              });
            }
          }
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Adjoint products with a low and wide result are those of single columns",
                        "[kernels][gemm]", Scalars) {
  using T = TestType;
  const Index k = 260;
  for (const auto& [m, n] : {std::pair<Index, Index>{64, 150}, {65, 131}, {500, 1100}}) {
    const auto A = integers<T>(1, k, m, 3);
    const auto B = integers<T>(2, k, n, 5);
    for (const T beta : coefficients<T>()) {
      CAPTURE(m, n, beta);
      auto C = output(beta, m, n, 1), single = output(beta, m, n, 1);
      host_gemm<T>(Op::adjoint, Op::none, general<T>(), A.view(), B.view(), beta, C.view(), blas_limit());
      for (Index j = 0; j < n; ++j)
        host_gemm<T>(Op::adjoint, Op::none, general<T>(), A.view(), B.view().col_block({j, 1}), beta,
                     single.view().col_block({j, 1}), blas_limit());
      const MatrixView<const T> expected = single.view();
      C.check([&](Index i, Index j) { return expected.column(j)[i]; });
    }
  }
}

TEMPLATE_LIST_TEST_CASE("gemm rounds like a product of inner dimension k", "[kernels][gemm]", Scalars) {
  using T = TestType;
  const Index m = 30, k = 200;
  const auto random = [](std::uint64_t seed) {
    return [seed](Index i, Index j) { return counter_random<T>(seed, i, j); };
  };
  const auto A = dense<T>(m, k, random(1));
  for (const Index n : {1, 20}) {
    const auto B = dense<T>(k, n, random(2));
    PaddedMatrix<T> C(m, n, 2, random(3));
    const auto old = dense<T>(m, n, random(3));
    HostKernels<T>().gemm(Op::none, Op::none, general<T>(), dense_view(A, m, k), dense_view(B, k, n), T(-1),
                          C.view());
    const auto expected =
        reference_product(Op::none, general<T>(), A.data(), m, k, B.data(), n, T(-1), old.data());
    // Each of k terms of at most |α|·2 is rounded at most k times, and twice as often in complex products.
    const double tolerance = 2.0 * static_cast<double>(k) * std::numeric_limits<Real<T>>::epsilon() *
                             static_cast<double>(k) * 2 * std::abs(general<T>());
    C.check([&expected](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * m)]; },
            tolerance);
  }
}

TEMPLATE_LIST_TEST_CASE("gemm cuts dimensions beyond BLAS's integers", "[kernels][gemm]", Scalars) {
  using T = TestType;
  constexpr Index limit = 4;
  const auto check = [](Op op_a, Op op_b, Index m, Index n, Index k, T beta) {
    const auto a = op_a == Op::none ? std::pair(m, k) : std::pair(k, m);
    const auto b = op_b == Op::none ? std::pair(k, n) : std::pair(n, k);
    const auto A = integers<T>(1, a.first, a.second, 0);
    const auto B = integers<T>(2, b.first, b.second, 0);
    const auto op_B = reference_op(op_b, B.view().data, b.first, b.second);
    const auto old = integers<T>(7, m, n, 0);
    auto C = output(beta, m, n, 0);
    host_gemm(op_a, op_b, general<T>(), A.view(), B.view(), beta, C.view(), limit);
    const auto expected = reference_product(op_a, general<T>(), A.view().data, a.first, a.second, op_B.data(),
                                            n, beta, old.view().data);
    CAPTURE(op_a, op_b, m, n, k, beta);
    C.check([&expected, m](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * m)]; });
  };
  for (const T beta : coefficients<T>()) {
    check(Op::none, Op::adjoint, 3, 4, 11, beta);
    check(Op::none, Op::transpose, 4, 1, 8, beta);
    check(Op::none, Op::none, 3, 1, 11, beta);
    check(Op::none, Op::none, 2, 13, 3, beta);
    check(Op::adjoint, Op::none, 11, 1, 3, beta);
    check(Op::adjoint, Op::transpose, 11, 1, 3, beta);
    check(Op::none, Op::none, 11, 1, 1, beta);
    CHECK_THROWS_AS(check(Op::none, Op::none, 11, 2, 3, beta), UsageError);
    CHECK_THROWS_AS(check(Op::none, Op::none, 3, 2, 11, beta), UsageError);
    CHECK_THROWS_AS(check(Op::transpose, Op::none, 2, 1, 11, beta), UsageError);
  }
}

TEMPLATE_LIST_TEST_CASE("NaN in one product does not reach the next", "[kernels][gemm]", Scalars) {
  using T = TestType;
  const HostKernels<T> kernels;
  const Index m = 59, k = 50;
  for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
    for (const Index n : {1, 2, 5}) {
      const auto a = op == Op::none ? std::pair(m, k) : std::pair(k, m);
      const auto A = integers<T>(1, a.first, a.second, 0);
      const auto B = integers<T>(2, k, n, 0);
      const PaddedMatrix<T> bad(k, n, 0, [](Index, Index) { return quiet_nan<T>(); });
      auto C = output(T(0), m, n, 0);
      kernels.gemm(op, Op::none, T(1), A.view(), bad.view(), T(0), C.view());
      CHECK(is_nan(C.view()(m - 1, n - 1)));
      kernels.gemm(op, Op::none, T(1), A.view(), B.view(), T(0), C.view());
      const auto expected = reference_product(op, T(1), A.view().data, a.first, a.second, B.view().data, n);
      CAPTURE(op, n);
      C.check([&expected](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * m)]; });
    }
  }
}
