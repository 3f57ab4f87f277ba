// SPDX-License-Identifier: BSD-3-Clause
// Compares Fredholm integrals with their slices, and convolutions with sums in time.
#include "gridlops/ops/fredholm.hpp"

#include <cmath>
#include <numbers>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "local/products/packed_matrix.hpp"
#include "support/arrays.hpp"
#include "support/metered_backend.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Element (x, y) of slice f.
template <Scalar T>
T slice_element(Index f, Index x, Index y) {
  return small_integer<T>(5, f * 64 + x, y);
}

template <Scalar T>
OperatorPtr<T> example(const Space& kernel, Axis columns = Axis::uncut) {
  DistMatrix<T> G(kernel.grid, kernel.layout(1));
  G.fill([&](Index row, Index) {
    const std::vector<Index> at = place_of(kernel.dims, row);
    return slice_element<T>(at[0], at[2], at[1]);
  });
  return fredholm<T>(kernel, std::move(G), columns);
}

template <Scalar T>
void check_slices(Index slices, Index nx, Index ny) {
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : all_axes) {
      for (const int variant : {0, 1, 3}) {
        const Space kernel = array_space(grid, dims_along(*grid, {slices, ny, nx}, 0, axis, variant), axis);
        INFO(describe(*grid) << ": " << kernel.describe() << ", cut in variant " << variant);
        const OperatorPtr<T> G = example<T>(kernel);
        CHECK(G->range().dims.sizes() == std::vector<Index>{slices, nx});
        CHECK(G->domain().dims.sizes() == std::vector<Index>{slices, ny});
        check_elements<T>(
            *G,
            [&](Index row, Index col) {
              const std::vector<Index> to = place_of(G->range().dims, row),
                                       from = place_of(G->domain().dims, col);
              return to[0] == from[0] ? slice_element<T>(to[0], to[1], from[1]) : T(0);
            },
            0);
      }
    }
  }
}

/// The traces of a kernel in time.
double trace_of(Index x, Index y, Index t) { return small_integer<double>(11, 16 * x + y, t); }

/// The first frequencies of that kernel.
OperatorPtr<std::complex<double>> spectrum(const GridPtr& grid, Index nt, Index nx, Index ny,
                                           Index frequencies) {
  const Space kernel = array_space(grid, {frequencies, ny, nx}, 0);
  DistMatrix<std::complex<double>> G(grid, kernel.layout(1));
  G.fill([&](Index row, Index) {
    const std::vector<Index> at = place_of(kernel.dims, row);
    std::complex<double> sum = 0;
    for (Index t = 0; t < nt; ++t)
      sum +=
          trace_of(at[2], at[1], t) *
          std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(t * at[0]) / static_cast<double>(nt));
    // A real kernel has no imaginary parts there.
    return at[0] == 0 || 2 * at[0] == nt ? sum.real() : sum;
  });
  return fredholm(kernel, std::move(G));
}

SolveOptions iterations(Index count) {
  SolveOptions options;
  options.max_iterations = count;
  options.tolerance = 0;
  return options;
}

}  // namespace

TEST_CASE("A Fredholm integral multiplies every slice of its own", "[fredholm]") {
  check_slices<double>(7, 3, 2);
  check_slices<float>(2, 2, 3);
  check_slices<std::complex<float>>(3, 1, 4);
  check_slices<std::complex<double>>(5, 3, 3);
  check_slices<double>(0, 3, 2);
  check_slices<double>(3, 2, 0);
  check_slices<double>(3, 0, 2);
}

TEST_CASE("Right-hand sides of a Fredholm integral may be cut, too", "[fredholm]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : all_grids()) {
    const Space kernel = array_space(grid, {5, 2, 3}, 0, Axis::grid_rows);
    const OperatorPtr<T> G = example<T>(kernel, Axis::grid_cols);
    CHECK(G->domain().columns == Axis::grid_cols);
    check_elements<T>(
        *G,
        [&](Index row, Index col) {
          return row / 3 == col / 2 ? slice_element<T>(row / 3, row % 3, col % 2) : T(0);
        },
        0);
  }
}

TEST_CASE("A Fredholm integral moves nothing, and one pass over it is its three products", "[fredholm]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> G = example<T>(array_space(grid, {7, 4, 3}, 0));
    const Space &model = G->domain(), &data = G->range();
    DistMatrix<T> P(grid, model.layout(3)), R(grid, data.layout(3)), Q(grid, data.layout(3)),
        U(grid, model.layout(3)), V(grid, model.layout(3)), expected(grid, model.layout(3));
    P.fill(random_elements<T>(1));
    R.fill(random_elements<T>(2));
    G->normal_product(P, R, Q, U, V);  // ranks agree on memory once
    G->apply_adjoint(T(1), Q, T(0), expected);
    const TrafficSince traffic(grid->comm());
    G->normal_product(P, R, Q, U, V);
    G->apply_adjoint(T(1), Q, T(0), expected);
    CHECK(G->has_one_pass() == (grid->backend()->memory_space() == MemorySpace::host));
    const std::vector<T> v = on_host<T>(expected);
    Index k = 0;
    CHECK(mismatches<T>(V, [&](Index, Index) { return v[static_cast<std::size_t>(k++)]; }) == 0);
    G->apply_adjoint(T(1), R, T(0), expected);
    const std::vector<T> u = on_host<T>(expected);
    k = 0;
    CHECK(mismatches<T>(U, [&](Index, Index) { return u[static_cast<std::size_t>(k++)]; }) == 0);
    CHECK(traffic.sent() == 0);
    CHECK(traffic.received() == 0);
  }
}

TEST_CASE("Slices of a caller that are larger than a cache have no pass of their own", "[fredholm]") {
  constexpr Index n = 300;
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space kernel = array_space(grid, {1, n, n}, 0);
    DistMatrix<double> entries(grid, kernel.layout(1));
    entries.fill(random_elements<double>(4));
    const OperatorPtr<double> view = fredholm<double>(kernel, {grid, kernel.layout(1), entries.local()});
    CHECK_FALSE(view->has_one_pass());
  }
}

TEMPLATE_LIST_TEST_CASE("Packed slices have the products of slices in columns, and no other copy",
                        "[fredholm]", Scalars) {
  using T = TestType;
  constexpr Index count = 9, nx = 105, ny = 111, columns = 3;
  const auto elements = [](std::uint64_t seed) {
    return [seed](Index i, Index j) { return small_integer<T>(seed, i, j); };
  };
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    auto& memory = dynamic_cast<MeteredBackend&>(*grid->backend());
    const Space kernel = array_space(grid, {count, ny, nx}, 0);
    DistMatrix<T> entries(grid, kernel.layout(1));
    entries.fill([&](Index row, Index) {
      const std::vector<Index> at = place_of(kernel.dims, row);
      return slice_element<T>(at[0], at[2], at[1]);
    });
    const OperatorPtr<T> in_columns =
        fredholm<T>(kernel, DistMatrix<T>(grid, entries.layout(), entries.local()));
    const OperatorPtr<T> own = example<T>(kernel);
    const Space &model = own->domain(), &data = own->range();
    DistMatrix<T> P(grid, model.layout(columns)), R(grid, data.layout(columns));
    P.fill(elements(1));
    R.fill(elements(2));
    struct Results {
      DistMatrix<T> Q, U, V;
    };
    const auto results = [&] {
      Results all{DistMatrix<T>(grid, data.layout(columns)), DistMatrix<T>(grid, model.layout(columns)),
                  DistMatrix<T>(grid, model.layout(columns))};
      all.Q.fill(elements(3));
      all.U.fill(elements(4));
      return all;
    };
    Results expected = results(), found = results();
    const bool packs = memory.memory_space() == MemorySpace::host &&
                       packed_is_faster(scalar_type_of<T>, nx, ny, 16, kernel_choice());
    const Index before = memory.bytes_in_use();
    // Every rank has two slices at least.
    if (packs) {
      if (grid->comm().rank() == 0) memory.fail_at(2);
      CHECK_THROWS_AS(own->apply(T(2), P, T(-1), found.Q), OutOfMemory);
    }
    own->apply(T(2), P, T(-1), found.Q);
    in_columns->apply(T(2), P, T(-1), expected.Q);
    own->apply_adjoint(T(3), R, T(1), found.U);
    in_columns->apply_adjoint(T(3), R, T(1), expected.U);
    // Slices are filled up to whole tiles.
    CHECK(static_cast<double>(memory.bytes_in_use() - before) <
          0.3 * static_cast<double>(entries.local().size() * Index{sizeof(T)}));
    const auto is_same = [](const DistMatrix<T>& a, const DistMatrix<T>& b) {
      const std::vector<T> all = on_host<T>(b);
      std::size_t k = 0;
      return mismatches<T>(a, [&](Index, Index) { return all[k++]; }) == 0;
    };
    CHECK(is_same(found.Q, expected.Q));
    CHECK(is_same(found.U, expected.U));
    own->normal_product(P, R, found.Q, found.U, found.V);
    in_columns->normal_product(P, R, expected.Q, expected.U, expected.V);
    CHECK(is_same(found.Q, expected.Q));
    CHECK(is_same(found.U, expected.U));
    CHECK(is_same(found.V, expected.V));
  }
}

TEST_CASE("A convolution is a sum over traces and times", "[fredholm]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Index nt : {5, 6}) {
      for (const ConvolutionTimes& times :
           {ConvolutionTimes{nt, 0, 0}, ConvolutionTimes{nt, nt / 2, nt / 2}, ConvolutionTimes{nt, 1, 0}}) {
        INFO(describe(*grid) << ": " << nt << " samples, zeros " << times.model_zero << ", "
                             << times.data_zero);
        const auto A = multidimensional_convolution(spectrum(grid, nt, 3, 2, nt / 2 + 1), times);
        CHECK(A->domain().dims.sizes() == std::vector<Index>{nt, 2});
        CHECK(A->range().dims.sizes() == std::vector<Index>{nt, 3});
        check_elements<double>(
            *A,
            [&](Index row, Index col) {
              const std::vector<Index> to = place_of(A->range().dims, row),
                                       from = place_of(A->domain().dims, col);
              const Index lag = to[0] - times.data_zero - from[0] + times.model_zero;
              return trace_of(to[1], from[1], ((lag % nt) + nt) % nt);
            },
            1e-13);
      }
    }
  }
}

TEST_CASE("A convolution of a few frequencies is solved in time as among the frequencies", "[fredholm]") {
  using C = std::complex<double>;
  for (const GridPtr& grid : compact_grids()) {
    const Index nt = 9, nf = 3;
    const ConvolutionTimes times{nt, nt / 2, nt / 2};
    const auto G = spectrum(grid, nt, 4, 3, nf);
    const auto A = multidimensional_convolution(G, times);
    DistMatrix<double> m(grid, A->domain().layout(2)), d(grid, A->range().layout(2));
    m.fill(random_elements<double>(1));
    A->apply(1, m, 0, d);

    DistMatrix<C> m_f(grid, G->domain().layout(2)), d_f(grid, G->range().layout(2));
    DistMatrix<double> d_pairs = pairs_of(G->range(), d_f);
    trace_spectra<double>(G->range(), nt, times.data_zero)->apply(1, d, 0, d_pairs);

    const SolveReport in_time = cgls(*A, d, m, iterations(6)),
                      in_frequency = cgls(*G, d_f, m_f, iterations(6));
    REQUIRE(in_time.history.size() == in_frequency.history.size());
    for (std::size_t k = 0; k < in_time.history.size(); ++k)
      for (std::size_t j = 0; j < in_time.history[k].residual_norms.size(); ++j)
        CHECK(std::abs(in_time.history[k].residual_norms[j] - in_frequency.history[k].residual_norms[j]) <=
              1e-11 * in_time.history[0].residual_norms[j]);
  }
}

TEST_CASE("Products with a convolution take five spectra of scratch memory, whatever it is made of",
          "[fredholm]") {
  using C = std::complex<double>;
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    const auto& memory = dynamic_cast<const MeteredBackend&>(*grid->backend());
    constexpr Index nt = 64, nx = 24, ny = 24, columns = 5;
    const OperatorPtr<C> G = spectrum(grid, nt, nx, ny, nt / 2 + 1);
    // The memory of an operator for both directions, beside its operands.
    const auto memory_of = [&](const OperatorPtr<double>& A) {
      DistMatrix<double> X(grid, A->domain().layout(columns)), Y(grid, A->range().layout(columns));
      X.fill(random_elements<double>(1));
      const Index before = memory.bytes_in_use();
      A->apply(1, X, 0, Y);
      A->apply_adjoint(1, Y, 0, X);
      return memory.bytes_in_use() - before;
    };
    const OperatorPtr<double> F = trace_spectra<double>(G->domain(), nt);
    const Index before = memory.bytes_in_use();
    memory_of(F);
    release_scratch(*grid);
    const Index transform = memory.bytes_in_use() - before;  // what one keeps
    // The larger of a rank's part of the spectra and of the traces, for as many frequencies.
    const Index elements =
                    std::max(G->domain().local_rows(), array_space(grid, {nt / 2 + 1, nx}, 1).local_rows()),
                spectra = elements * columns * Index{sizeof(C)};
    const Index used = memory_of(multidimensional_convolution(G, {nt, 0, 0}));
    CAPTURE(used, spectra, transform);
    CHECK(used <= 5 * spectra + 2 * transform);
  }
}

TEST_CASE("An iteration of CGLS on a Fredholm integral sends two sums of scalars", "[fredholm]") {
  using T = std::complex<double>;
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<T> G = example<T>(array_space(grid, {13, 2, 3}, 0));
    DistMatrix<T> B(grid, G->range().layout(4)), X(grid, G->domain().layout(4));
    B.fill(random_elements<T>(1));
    const auto calls = [&](Index count) {
      const TrafficSince traffic(grid->comm());
      cgls(*G, B, X, iterations(count));
      CHECK(traffic.calls() == traffic.calls(CommOperation::all_reduce));
      return traffic.calls();
    };
    calls(3);  // ranks agree on memory
    CHECK(calls(8) - calls(3) == 5 * 2);
  }
}

TEST_CASE("Kernels that are no slices are refused", "[fredholm]") {
  for (const GridPtr& grid : all_grids()) {
    const auto refused = [&](const Space& kernel, Index columns) {
      DistMatrix<double> G(grid, kernel.layout(columns));
      return message_of<ShapeError>([&] { fredholm<double>(kernel, std::move(G)); });
    };
    CHECK(contains(refused(array_space(grid, {4, 6}, 0), 1), "(slices, ny, nx)"));
    if (grid->shape().size() > 1)
      CHECK(contains(refused(array_space(grid, {4, 6, 2}, 1), 1), "along the slices only"));
    CHECK(contains(refused(array_space(grid, {4, 6, 2}, 0), 2), "one uncut column"));
  }
}
