// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_ffts.py: transforms along one axis, and of several made of them, with the array recut
// between. References are the sums of the definition.
#include "gridlops/ops/fourier.hpp"

#include <numbers>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Complex = std::complex<double>;
using Array = std::vector<Complex>;

/// y_k = Σ_i exp(∓2πi (i − c)(k − d)/n) x_i along one dimension, in C order.
Array transformed(const std::vector<Index>& sizes, int dim, const Array& x, double sign, Index c, Index d) {
  Index inner = 1;
  for (std::size_t k = sizes.size(); k-- > static_cast<std::size_t>(dim) + 1;) inner *= sizes[k];
  const Index n = sizes[static_cast<std::size_t>(dim)];
  Array roots, y(x.size());
  for (Index k = 0; k < n; ++k)
    roots.push_back(
        std::polar(1.0, sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n)));
  for (Index outer = 0; outer < static_cast<Index>(x.size()) / (n * inner); ++outer) {
    for (Index k = 0; k < n; ++k) {
      for (Index i = 0; i < n; ++i) {
        const Index turns = ((i - c) * (k - d) % n + n) % n;
        const Complex root = roots[static_cast<std::size_t>(turns)];
        const auto from = static_cast<std::size_t>((outer * n + i) * inner),
                   to = static_cast<std::size_t>((outer * n + k) * inner);
        for (std::size_t j = 0; j < static_cast<std::size_t>(inner); ++j) y[to + j] += root * x[from + j];
      }
    }
  }
  return y;
}

Array scaled(Array x, double factor) {
  for (Complex& value : x) value *= factor;
  return x;
}

struct Case {
  std::vector<Index> sizes;
  std::vector<int> dims;  // in the order in which they are transformed
  FourierNorm norm;
};

/// The transform along these dimensions: one after the other, each where its lines are whole.
OperatorPtr<Complex> transform_along(const GridPtr& grid, const Case& of, bool shift_before,
                                     bool shift_after) {
  const int all = static_cast<int>(of.sizes.size());
  OperatorPtr<Complex> op;
  for (const int dim : of.dims) {
    const Index half = of.sizes[static_cast<std::size_t>(dim)] / 2;
    const Space lines = array_space(grid, of.sizes, (dim + 1) % all);
    const OperatorPtr<Complex> F =
        fourier<double>(lines, dim, {of.norm, shift_before ? half : 0, shift_after ? half : 0});
    op = op == nullptr ? F : product(F, product(identity<Complex>(lines, op->range()), op));
  }
  return op;
}

}  // namespace

TEST_CASE("Complex transforms of two and three dimensions are their sums, and invert", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const Case& of :
       {Case{{41, 51}, {0, 1}, FourierNorm::none}, Case{{41, 51}, {1, 0}, FourierNorm::by_n},
        Case{{50, 50}, {0, 1}, FourierNorm::by_n}, Case{{50, 50}, {1}, FourierNorm::none},
        Case{{41, 51}, {0}, FourierNorm::ortho}, Case{{41, 51, 50}, {2, 1, 0}, FourierNorm::none},
        Case{{21, 16, 15}, {2, 0, 1}, FourierNorm::by_n},
        Case{{21, 16, 15}, {0, 2, 1}, FourierNorm::ortho}}) {
    for (const bool before : {false, true}) {
      for (const bool after : {false, true}) {
        if (product_of(of.sizes) > 100000 && before != after) continue;  // the sums take long
        CAPTURE(of.sizes, of.dims, before, after);
        const OperatorPtr<Complex> op = transform_along(grid, of, before, after);
        const Array x = random_array<Complex>(1, product_of(of.sizes));
        Array y = x, back = x;
        double elements = 1, scale = 1;
        for (const int dim : of.dims) {
          const Index n = of.sizes[static_cast<std::size_t>(dim)];
          elements *= static_cast<double>(n);
          y = transformed(of.sizes, dim, y, -1, before ? n / 2 : 0, after ? n / 2 : 0);
          back = transformed(of.sizes, dim, back, 1, after ? n / 2 : 0, before ? n / 2 : 0);
        }
        if (of.norm == FourierNorm::by_n) scale = 1 / elements;
        if (of.norm == FourierNorm::ortho) scale = 1 / std::sqrt(elements);
        const Space from = op->domain(), to = op->range();
        const DistMatrix<Complex> Y = applied(*op, placed(from, x));
        CHECK(difference(Y, to, scaled(y, scale)) <= 1e-13);
        CHECK(difference(applied(*op, placed(to, x), false), from, scaled(back, scale)) <= 1e-13);
        // The inverse is the adjoint over the elements and the scale's square.
        DistMatrix<Complex> again = applied(*op, Y, false);
        again *= 1 / (elements * scale * scale);
        CHECK(difference(again, from, x) <= 1e-13);
      }
    }
  }
}

TEST_CASE("Real transforms of two and three dimensions are their sums, and invert", "[pylops_mpi]") {
  // The last dimension gives its frequencies ≥ 0, scaled to keep norms; the others are complex.
  const GridPtr grid = line_of_ranks();
  for (const std::vector<Index>& sizes : {std::vector<Index>{41, 51}, {50, 50}, {11, 12, 15}, {12, 11, 10}}) {
    for (const auto& [before, after] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      CAPTURE(sizes, before, after);
      const int last = static_cast<int>(sizes.size()) - 1;
      const Index n = sizes.back();
      const Space samples = array_space(grid, sizes, 0);
      OperatorPtr<double> op = real_fourier<double>(samples, last, 0, before ? n / 2 : 0);
      std::vector<Index> spectrum = sizes;
      spectrum.back() = n / 2 + 1;
      // The first dimension is transformed where the last is cut, the others where the first is.
      for (int dim = last; dim-- > 0;) {
        const Index m = sizes[static_cast<std::size_t>(dim)];
        const Space lines = array_space(grid, spectrum, dim == 0 ? last : 0);
        const OperatorPtr<double> F = on_pairs(
            fourier<double>(lines, dim, {FourierNorm::ortho, before ? m / 2 : 0, after ? m / 2 : 0}));
        op = product(F, product(identity<double>(F->domain(), op->range()), op));
      }
      const std::vector<double> x = random_array<double>(1, product_of(sizes));
      Array y = transformed(sizes, last, Array(x.begin(), x.end()), -1, before ? n / 2 : 0, 0);
      Array kept;
      for (std::size_t k = 0; k < y.size(); ++k) {
        const Index frequency = static_cast<Index>(k) % n;
        const double s =
            std::sqrt((frequency == 0 || 2 * frequency == n ? 1.0 : 2.0) / static_cast<double>(n));
        if (frequency <= n / 2) kept.push_back(s * y[k]);
      }
      for (int dim = last; dim-- > 0;) {
        const Index m = sizes[static_cast<std::size_t>(dim)];
        kept = scaled(transformed(spectrum, dim, kept, -1, before ? m / 2 : 0, after ? m / 2 : 0),
                      1 / std::sqrt(static_cast<double>(m)));
      }
      std::vector<double> pairs;
      for (const Complex& value : kept) pairs.push_back(value.real()), pairs.push_back(value.imag());
      const DistMatrix<double> Y = applied(*op, placed(samples, x));
      CHECK(difference(Y, op->range(), pairs) <= 1e-13);
      CHECK(difference(applied(*op, Y, false), samples, x) <= 1e-13);
    }
  }
}
