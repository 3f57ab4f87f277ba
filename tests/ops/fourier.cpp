// SPDX-License-Identifier: BSD-3-Clause
// Compares Fourier transforms along dimensions of arrays, cut in many ways, with the sums that define them.
#include "gridlops/ops/fourier.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/band.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/arrays.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Calls check(space) for arrays of these sizes, cut along each dimension but `dim` in one variant after the
/// other, on every grid and axis.
template <class Check>
void for_each_space(const std::vector<Index>& sizes, int dim, Check&& check) {
  constexpr std::array variants{0, 1, 3};
  std::size_t first = 0;
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : all_axes) {
      ++first;
      for (int cut = 0; cut < static_cast<int>(sizes.size()); ++cut) {
        if (cut == dim) continue;
        const int variant = variants[(first + static_cast<std::size_t>(cut)) % variants.size()];
        const Space space = array_space(grid, dims_along(*grid, sizes, cut, axis, variant), axis);
        INFO(describe(*grid) << ": " << space.describe() << ", cut in variant " << variant);
        check(space);
      }
    }
  }
}

/// exp(−2πi t k/n).
std::complex<double> phase(Index t, Index k, Index n) {
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(t * k) / static_cast<double>(n));
}

/// Rounding of a sum of n products, with constants of the transforms' few stages.
template <class R>
double rounding(Index n) {
  return 40 * epsilon_of<R> * static_cast<double>(n + 1);
}

template <class R>
void check_complex(const std::vector<Index>& sizes, int dim, const FourierOptions& options) {
  const Index n = sizes[static_cast<std::size_t>(dim)];
  const double s = options.norm == FourierNorm::none   ? 1
                   : options.norm == FourierNorm::by_n ? 1 / static_cast<double>(n)
                                                       : 1 / std::sqrt(static_cast<double>(n));
  for_each_space(sizes, dim, [&](const Space& space) {
    const auto F = fourier<R>(space, dim, options);
    check_elements<std::complex<R>>(
        *F,
        [&](Index row, Index col) {
          std::vector<Index> to = place_of(space.dims, row), from = place_of(space.dims, col);
          const auto d = static_cast<std::size_t>(dim);
          const Index k = std::exchange(to[d], 0), i = std::exchange(from[d], 0);
          if (to != from) return std::complex<R>(0);
          return std::complex<R>(s * phase(i - options.time_zero, k - options.frequency_zero, n));
        },
        rounding<R>(n));
  });
}

template <class R>
void check_real(const std::vector<Index>& sizes, int dim, Index frequencies, Index time_zero) {
  const auto d = static_cast<std::size_t>(dim);
  const Index n = sizes[d];
  for_each_space(sizes, dim, [&](const Space& space) {
    const OperatorPtr<R> F = real_fourier<R>(space, dim, frequencies, time_zero);
    std::vector<Index> expected = sizes;
    expected[d] = frequencies == 0 ? n / 2 + 1 : frequencies;
    expected.push_back(2);
    CHECK(F->range().dims.sizes() == expected);
    check_elements<R>(
        *F,
        [&](Index row, Index col) {
          std::vector<Index> to = place_of(F->range().dims, row), from = place_of(space.dims, col);
          const bool imaginary = to.back() == 1;
          to.pop_back();
          const Index k = std::exchange(to[d], 0), i = std::exchange(from[d], 0);
          if (to != from) return R(0);
          const double s = std::sqrt((k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n));
          const std::complex<double> element = s * phase(i - time_zero, k, n);
          return static_cast<R>(imaginary ? element.imag() : element.real());
        },
        rounding<R>(n));
  });
}

/// ‖F x − y‖ for one column.
template <Scalar T>
double distance(const LinearOperator<T>& F, const ConstDistMatrix<T>& x, const ConstDistMatrix<T>& y) {
  DistMatrix<T> difference = y.clone();
  F.apply(T(1), x, T(-1), difference);
  return x.cols() == 0 || !x.grid()->is_member() ? 0 : column_norms(difference)[0];
}

}  // namespace

TEST_CASE("Arrays whose right-hand sides are cut are convolved, too", "[fourier]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {6, 3}, 1, Axis::grid_rows, Axis::grid_cols);
    const auto band = convolution(6, {1, -2, 4}, 1);
    check_elements<double>(
        *fourier_convolution<double>(space, 0, {1, -2, 4}, 1),
        [&](Index i, Index j) {
          const std::vector<Index> row = place_of(space.dims, i), col = place_of(space.dims, j);
          return row[1] == col[1] ? band(row[0], col[0]) : 0;
        },
        10 * rounding<double>(9));
  }
}

TEMPLATE_LIST_TEST_CASE("A convolution by Fourier transforms is that of its definition", "[fourier]",
                        Scalars) {
  using T = TestType;
  const std::vector<double> filter{1, -2, 4, 8, -16};
  for (const std::vector<Index>& sizes : {std::vector<Index>{6, 3}, {1, 2}, {11}}) {
    for (int dim = 0; dim < static_cast<int>(sizes.size()); ++dim) {
      for_each_space(sizes, dim, [&](const Space& space) {
        for (const Index centre : {0, 2, 4}) {
          CAPTURE(dim, centre);
          const auto d = static_cast<std::size_t>(dim);
          check_elements<T>(
              *fourier_convolution<T>(space, dim, filter, centre),
              [&](Index i, Index j) {
                std::vector<Index> row = place_of(space.dims, i), col = place_of(space.dims, j);
                const Index k = row[d] + centre - col[d];
                row[d] = col[d];
                return row == col && 0 <= k && k < 5 ? number<T>(filter[static_cast<std::size_t>(k)], 0)
                                                     : T(0);
              },
              31 * rounding<Real<T>>(16));
        }
        CHECK_THROWS_AS(fourier_convolution<T>(space, dim, filter, 5), UsageError);
        CHECK_THROWS_AS(fourier_convolution<T>(space, 2, filter, 1), ShapeError);
      });
    }
  }
}

TEST_CASE("Complex transforms are those of their definition", "[fourier]") {
  check_complex<double>({5, 3}, 0, {});
  check_complex<double>({3, 6}, 1, {FourierNorm::none, 3, 3});
  check_complex<double>({2, 7, 3}, 1, {FourierNorm::by_n, 3, 0});
  check_complex<float>({2, 4}, 1, {FourierNorm::ortho, 2, -1});
  check_complex<double>({1, 5}, 0, {});
  check_complex<float>({3, 1}, 1, {});
  check_complex<double>({4, 13}, 1, {FourierNorm::ortho, 6, 6});
  check_complex<double>({8, 0}, 0, {});
  check_complex<double>({41, 2}, 0, {FourierNorm::none, 20, 20});
  check_complex<double>({2, 51}, 1, {FourierNorm::by_n, 0, 25});
  check_complex<double>({50, 2}, 0, {FourierNorm::ortho, 25, 0});
}

TEST_CASE("Real transforms are those of their definition", "[fourier]") {
  check_real<double>({7, 3}, 0, 0, 3);
  check_real<double>({6, 3}, 0, 0, 0);
  check_real<double>({3, 9}, 1, 4, 4);
  check_real<double>({2, 8, 3}, 1, 5, 4);
  check_real<float>({5, 4}, 0, 2, 2);
  check_real<double>({1, 2}, 0, 0, 0);
  check_real<double>({2, 3}, 0, 1, 1);
  check_real<float>({3, 1}, 1, 0, 0);
  check_real<double>({4, 13}, 1, 0, 6);
  check_real<double>({2, 16, 3}, 1, 8, 0);
  check_real<double>({0, 8}, 1, 0, 3);
}

TEST_CASE("Transforms of several dimensions are products, with the array recut between", "[fourier]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : all_grids()) {
    for (const std::vector<Index>& sizes : {std::vector<Index>{5, 6}, {6, 5}, {3, 4, 2}}) {
      CAPTURE(describe(*grid), sizes);
      const int count = static_cast<int>(sizes.size()), last = count - 1;
      const auto size = [&](int dim) { return sizes[static_cast<std::size_t>(dim)]; };
      const auto factor = [](Index t, Index k, Index n) {
        return phase(t, k, n) / std::sqrt(static_cast<double>(n));
      };
      OperatorPtr<T> F;
      for (int dim = 0; dim < count; ++dim) {
        const Space lines = array_space(grid, sizes, (dim + 1) % count);
        const auto one = fourier<double>(lines, dim, {FourierNorm::ortho, size(dim) / 2, size(dim) / 2});
        F = F == nullptr ? one : product(one, product(identity<T>(lines, F->range()), F));
      }
      check_elements<T>(
          *F,
          [&](Index row, Index col) {
            const std::vector<Index> to = place_of(F->range().dims, row),
                                     from = place_of(F->domain().dims, col);
            T element = 1;
            for (std::size_t d = 0; d < sizes.size(); ++d)
              element *= factor(from[d] - sizes[d] / 2, to[d] - sizes[d] / 2, sizes[d]);
            return element;
          },
          rounding<double>(30));
      // Real along the last dimension, and complex along the others.
      std::vector<Index> spectrum = sizes;
      spectrum.back() = size(last) / 2 + 1;
      OperatorPtr<double> G = real_fourier<double>(array_space(grid, sizes, 0), last);
      for (int dim = last; dim-- > 0;) {
        const Space lines = array_space(grid, spectrum, dim == 0 ? last : 0);
        const auto one = on_pairs(fourier<double>(lines, dim, {FourierNorm::ortho}));
        G = product(one, product(identity<double>(one->domain(), G->range()), G));
      }
      check_elements<double>(
          *G,
          [&](Index row, Index col) {
            const std::vector<Index> to = place_of(G->range().dims, row),
                                     from = place_of(G->domain().dims, col);
            T element =
                to[sizes.size() - 1] == 0 || 2 * to[sizes.size() - 1] == sizes.back() ? 1 : std::sqrt(2.0);
            for (std::size_t d = 0; d < sizes.size(); ++d) element *= factor(from[d], to[d], sizes[d]);
            return to.back() == 1 ? element.imag() : element.real();
          },
          rounding<double>(30));
    }
  }
}

TEST_CASE("Transforms along several dimensions are those of their definition, in any cut", "[fourier]") {
  using T = std::complex<double>;
  struct Variant {
    std::vector<Index> sizes;
    std::vector<FourierAxis> axes;
    FourierNorm norm;
  };
  const std::vector<Variant> variants{
      {{5, 6}, {{0}, {1}}, FourierNorm::ortho},
      {{4, 3}, {{1, 5, 2, 1}, {0, 6, 0, 3}}, FourierNorm::none},
      {{3, 4, 2}, {{2, 3}, {0, 0, 1, 1}}, FourierNorm::by_n},
      {{2, 3, 3}, {{0}, {1}, {2, 4, 2}}, FourierNorm::ortho},
      {{4, 3}, {{1}}, FourierNorm::none},
  };
  for (const Variant& variant : variants) {
    const std::size_t last = static_cast<std::size_t>(variant.axes.back().dim);
    const auto length = [&](const FourierAxis& axis) {
      return std::max(axis.length, variant.sizes[static_cast<std::size_t>(axis.dim)]);
    };
    std::vector<FourierAxis> real_axes = variant.axes;
    real_axes.back().frequency_zero = 0;
    // The factor from place `from` to place `to`, which along no axis differ but along these.
    const auto element = [&](std::vector<Index> to, std::vector<Index> from, bool is_real) {
      T product = 1;
      for (const FourierAxis& axis : is_real ? real_axes : variant.axes) {
        const auto d = static_cast<std::size_t>(axis.dim);
        const Index n = length(axis), k = std::exchange(to[d], 0), i = std::exchange(from[d], 0);
        const double s = variant.norm == FourierNorm::none   ? 1
                         : variant.norm == FourierNorm::by_n ? 1 / static_cast<double>(n)
                                                             : 1 / std::sqrt(static_cast<double>(n));
        const bool stands_for_two = is_real && d == last && k > 0 && 2 * k != n;
        product *=
            (stands_for_two ? std::sqrt(2.0) : 1) * s * phase(i - axis.time_zero, k - axis.frequency_zero, n);
      }
      return to == from ? product : T(0);
    };
    for (const GridPtr& grid : all_grids()) {
      for (int cut = 0; cut < static_cast<int>(variant.sizes.size()); ++cut) {
        CAPTURE(describe(*grid), variant.sizes, cut);
        const Space space = array_space(grid, variant.sizes, cut);
        const auto F = fourier<double>(space, variant.axes, variant.norm);
        std::vector<Index> lengths = variant.sizes;
        for (const FourierAxis& axis : variant.axes)
          lengths[static_cast<std::size_t>(axis.dim)] = length(axis);
        CHECK(F->range().dims.sizes() == lengths);
        check_elements<T>(
            *F,
            [&](Index row, Index col) {
              return element(place_of(F->range().dims, row), place_of(space.dims, col), false);
            },
            rounding<double>(60));
        const auto G = real_fourier<double>(space, real_axes, variant.norm);
        lengths[last] = lengths[last] / 2 + 1;
        lengths.push_back(2);
        CHECK(G->range().dims.sizes() == lengths);
        check_elements<double>(
            *G,
            [&](Index row, Index col) {
              std::vector<Index> to = place_of(G->range().dims, row);
              const bool imaginary = to.back() == 1;
              to.pop_back();
              const T value = element(to, place_of(space.dims, col), true);
              return imaginary ? value.imag() : value.real();
            },
            rounding<double>(60));
      }
      // Two dimensions are cut: one redistribution makes both whole, one after the other.
      const Space blocks = array_space(
          grid, Dims({Partition::balanced(4, grid->rows()), Partition::balanced(3, grid->cols())}),
          Axis::all);
      const auto F = fourier<double>(blocks, {{0}, {1}});
      check_elements<T>(
          *F,
          [&](Index row, Index col) {
            const std::vector<Index> to = place_of(F->range().dims, row), from = place_of(blocks.dims, col);
            return phase(to[0], from[0], 4) * phase(to[1], from[1], 3) / std::sqrt(12.0);
          },
          rounding<double>(12));
    }
  }
}

TEST_CASE("Long transforms are accurate, whatever primes their length has", "[fourier]") {
  const GridPtr grid = all_grids().front();
  for (const Index n : {1599, 1024, 1000, 127}) {
    const Space space = array_space(grid, {n, 18}, 1);
    const auto F = fourier<double>(space, 0);
    const auto back = fourier<double>(space, 0, {.time_zero = 5});
    CHECK(dot_test(*F).passed);
    DistMatrix<std::complex<double>> x(grid, space.layout(1)), y(grid, space.layout(1)),
        z(grid, space.layout(1));
    x.fill(random_elements<std::complex<double>>(1));
    F->apply(1, x, 0, y);
    F->apply_adjoint(1, y, 0, z);
    copy(ConstDistMatrix<std::complex<double>>(x), y);
    CHECK(distance<std::complex<double>>(*identity<std::complex<double>>(space), z, x) <=
          1e-14 * std::sqrt(18.0 * static_cast<double>(n)));
    CHECK(distance<std::complex<double>>(*product(adjoint<std::complex<double>>(back), back), x, x) <=
          1e-14 * std::sqrt(18.0 * static_cast<double>(n)));
  }
}

TEST_CASE("A real transform of all frequencies keeps norms", "[fourier]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Index n : {1, 2, 9, 10, 127, 1599, 1024}) {
      const Space space = array_space(grid, {n, 5}, 1);
      const OperatorPtr<double> F = real_fourier<double>(space, 0, 0, n / 2);
      DistMatrix<double> x(grid, space.layout(1));
      x.fill(random_elements<double>(1));
      CHECK(distance<double>(*product(adjoint<double>(F), F), x, x) <= rounding<double>(n));
    }
  }
}

TEST_CASE("A complex operator on pairs is its real form", "[fourier]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::block}) {
      DistMatrix<T> matrix(grid, matrix_layout(algorithm, *grid, 5, 4));
      matrix.fill([](Index i, Index j) { return small_integer<T>(3, i, j); });
      const auto A = on_pairs<double>(matrix_mult(algorithm, std::move(matrix)));
      check_elements<double>(
          *A,
          [](Index row, Index col) {
            const T a = small_integer<T>(3, row / 2, col / 2);
            return row % 2 == col % 2 ? a.real() : row % 2 == 0 ? -a.imag() : a.imag();
          },
          0);
    }
  }
}

TEST_CASE("A NaN spoils the transform of its right-hand side, and no other", "[fourier]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {39, 4}, 1);
    const auto value = [](Index i, Index j) { return i == 5 && j == 1 ? quiet_nan<double>() : 1.0; };
    const OperatorPtr<double> F = real_fourier<double>(space, 0);
    DistMatrix<double> x = filled(grid, space.layout(3), value), y(grid, F->range().layout(3));
    F->apply(1, x, 0, y);
    F->apply_adjoint(1, y, 0, x);
    if (!grid->is_member()) continue;
    for (const DistMatrix<double>* result : {&x, &y}) {
      const std::vector<double> norms = column_norms(ConstDistMatrix<double>(*result));
      CHECK(std::isfinite(norms[0]));
      CHECK(std::isnan(norms[1]));
      CHECK(std::isfinite(norms[2]));
    }
  }
}

TEMPLATE_TEST_CASE("A line of a real transform knows nothing of its neighbours", "[fourier]", float, double) {
  using R = TestType;
  const std::vector<double> sizes{1e4, 1, std::nan(""), 1e-4, 1e8, 1, 1};
  const auto lines = static_cast<Index>(sizes.size());
  for (const GridPtr& grid : all_grids()) {
    for (const Index n : {1, 2, 3, 4, 6, 9, 10, 16, 25, 60, 127, 128}) {
      for (const int dim : {0, 1}) {
        const std::vector<Index> shape = dim == 0 ? std::vector{n, lines} : std::vector{lines, n};
        const Space space = array_space(grid, shape, 1 - dim);
        const auto d = static_cast<std::size_t>(dim);
        const OperatorPtr<R> F = real_fourier<R>(space, dim);
        const Space spectra = F->range();
        const auto x = [&](Index line, Index i) {
          return static_cast<R>(sizes[static_cast<std::size_t>(line)] * random_elements<double>(7)(i, line));
        };
        // Numbers in pairs: the real and imaginary part of a frequency.
        const auto number = [&](Index line, Index k, Index part) {
          return static_cast<R>(sizes[static_cast<std::size_t>(line)] *
                                random_elements<double>(8)(2 * k + part, line));
        };
        const auto place_in = [&](const Dims& dims, Index row) {
          const std::vector<Index> place = place_of(dims, row);
          return std::pair(place[1 - d], place[d]);
        };
        const DistMatrix<R> X = filled(grid, space.layout(1),
                                       [&](Index row, Index) {
                                         const auto [line, i] = place_in(space.dims, row);
                                         return x(line, i);
                                       }),
                            Y = filled(grid, spectra.layout(1), [&](Index row, Index) {
                              const auto [line, k] = place_in(spectra.dims, row / 2 * 2);
                              return number(line, k, row % 2);
                            });
        DistMatrix<R> FX(grid, Y.layout()), FhY(grid, X.layout());
        F->apply(1, X, 0, FX);
        F->apply_adjoint(1, Y, 0, FhY);
        INFO(describe(*grid) << ": " << n << " samples along dimension " << dim);
        const auto weight = [&](Index k) {
          return std::sqrt((k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n));
        };
        // Relative to the line's own size.
        const auto error = [&](Index line, R found, double exact) {
          const double size = sizes[static_cast<std::size_t>(line)];
          if (std::isnan(size)) return 0.0;
          return std::abs(static_cast<double>(found) - exact) / size;
        };
        double forward = 0, backward = 0;
        const std::vector<R> found = on_host<R>(FX), back = on_host<R>(FhY);
        for (std::size_t t = 0; t < found.size(); ++t) {
          const Index row = FX.local_row_range().begin + static_cast<Index>(t);
          const auto [line, k] = place_in(spectra.dims, row / 2 * 2);
          std::complex<double> sum(0);
          for (Index i = 0; i < n; ++i) sum += phase(i, k, n) * static_cast<double>(x(line, i));
          sum *= weight(k);
          if (std::isnan(sizes[static_cast<std::size_t>(line)]) && row % 2 == 0) CHECK(std::isnan(found[t]));
          forward = std::max(forward, error(line, found[t], row % 2 == 0 ? sum.real() : sum.imag()));
        }
        for (std::size_t t = 0; t < back.size(); ++t) {
          const auto [line, i] = place_in(space.dims, FhY.local_row_range().begin + static_cast<Index>(t));
          double sum = 0;
          for (Index k = 0; k <= n / 2; ++k) {
            const std::complex<double> y(number(line, k, 0), number(line, k, 1));
            sum += weight(k) * (std::conj(phase(i, k, n)) * y).real();
          }
          backward = std::max(backward, error(line, back[t], sum));
        }
        CHECK(forward <= rounding<R>(n));
        CHECK(backward <= rounding<R>(n));
      }
    }
  }
}

TEST_CASE("What a Fourier transform cannot do it says", "[fourier]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space = array_space(grid, {6, 4}, 0);
    if (grid->shape().size() > 1) {
      const std::string text = message_of<ShapeError>([&] { real_fourier<double>(space, 0); });
      CHECK(contains(text, "is cut"));
      CHECK(contains(text, "identity()"));
    }
    CHECK(contains(message_of<ShapeError>([&] { fourier<double>(space, 2); }), "no such dimension"));
    CHECK(contains(message_of<ShapeError>([&] { fourier<double>(space, -1); }), "no such dimension"));
    CHECK(contains(message_of<ShapeError>([&] {
                     fourier<double>(array_space(grid, {6, 0}, 0), 1);
                   }),
                   "at least one sample"));
    CHECK(contains(message_of<UsageError>([&] { real_fourier<double>(space, 1, 4); }), "frequencies 0 … 2"));
    CHECK(contains(message_of<UsageError>([&] { real_fourier<double>(space, 1, -1); }), "frequencies 0 … 2"));
    using Axes = std::vector<FourierAxis>;
    const auto refusal = [&](const Axes& axes) {
      const std::string text = message_of<UsageError>([&] { fourier<double>(space, axes); });
      CHECK(text == message_of<UsageError>([&] { real_fourier<double>(space, axes); }));
      return text;
    };
    CHECK(contains(refusal({}), "name at least one"));
    CHECK(contains(refusal({{0}, {2}}), "no such dimension"));
    CHECK(contains(refusal({{1}, {0}, {1}}), "once"));
    CHECK(contains(refusal({{0}, {1, 3}}), "which has 4"));
    const Axes shifted{{0, 0, 0, 1}, {1, 0, 0, 1}};
    CHECK(contains(message_of<UsageError>([&] { real_fourier<double>(space, shifted); }), "no negative"));
    if (grid->shape().size() > 1)
      CHECK(contains(message_of<ShapeError>([&] { fourier<double>(array_space(grid, {6}, 0), Axes{{0}}); }),
                     "no other to cut"));
  }
}
