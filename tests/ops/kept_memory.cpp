// SPDX-License-Identifier: BSD-3-Clause
// An operator keeps as much memory as it says.
#include <functional>
#include <string>
#include <utility>

#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "support/grids.hpp"
#include "support/metered_backend.hpp"
#include "support/reference.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index columns = 3;

/// The bytes that an operator takes, with its matrix, beside scratch memory and the operands of its products.
template <Scalar T>
Index measured(const GridPtr& grid, const std::function<OperatorPtr<T>()>& make, Index& said) {
  const auto& memory = dynamic_cast<const MeteredBackend&>(*grid->backend());
  const Index before = memory.bytes_in_use();
  const OperatorPtr<T> A = make();
  said = A->kept_bytes(Partition::with_sizes({columns}));
  {
    DistMatrix<T> X(grid, A->domain().layout(columns)), Y(grid, A->range().layout(columns));
    X.set_zero();
    A->apply(T(1), X, T(0), Y);
    A->apply_adjoint(T(1), Y, T(0), X);
  }
  release_scratch(*grid);
  return memory.bytes_in_use() - before;
}

/// `more`: what the operator has outside the memory of its backend.
template <Scalar T>
void check_exactly(const GridPtr& grid, const std::string& name, Index more,
                   const std::function<OperatorPtr<T>()>& make) {
  INFO(describe(*grid) << ": " << name);
  Index said = 0;
  const Index found = measured<T>(grid, make, said);
  CHECK(said == found + more);
}

template <Scalar T>
DistMatrix<T> filled(const GridPtr& grid, const Layout& layout) {
  DistMatrix<T> X(grid, layout);
  X.fill([](Index i, Index j) { return small_integer<T>(1, i, j); });
  return X;
}

}  // namespace

TEST_CASE("Operators on arrays, and those made of them, keep what they say", "[kept_memory]") {
  using C = std::complex<float>;
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    const Space lines = array_space(grid, {7, 20}, 1);
    const auto band = [&] { return band_operator<float>(lines, 1, second_derivative(20)); };
    check_exactly<float>(grid, "a band", 0, band);
    const auto by_lines = [&](Index head) {
      return band_operator<float>(lines, 0, LineBands{1, 2, [=](Index) -> Band {
                                                        return {7,    1, 2,
                                                                head, 0, [](Index, Index) { return 1.0; }};
                                                      }});
    };
    for (const auto& [head, sets] : {std::pair<Index, Index>{0, 1}, {3, 4}, {7, 7}}) {
      const auto band_by_lines = [&, head = head] { return by_lines(head); };
      check_exactly<float>(grid, "bands of lines", 0, band_by_lines);
      const Index own = lines.local_box()[1].size * 4 * Index{sizeof(float)};
      // Of the transposed bands, columns that meet one of the first rows have weights of their own.
      const Index adjoint_sets = head == 0 ? 1 : std::min<Index>(7, head + 2 + 1);
      CHECK(by_lines(head)->kept_bytes(Partition::with_sizes({1})) == own * (sets + adjoint_sets));
    }
    check_exactly<float>(grid, "a Laplacian", 0, [&] { return laplacian<float>(lines, {{0}, {1}}); });
    check_exactly<float>(grid, "a gradient", 0, [&] { return gradient<float>(lines, {1, 1}); });
    check_exactly<float>(grid, "a restriction", 0, [&] {
      return restriction<float>(lines, 1, {1, 4, 5, 19});
    });
    const std::vector<float> matrix(5 * 7, 2);
    check_exactly<float>(grid, "a matrix along a dimension", 0, [&] {
      return matrix_along<float>(lines, 0, MatrixView<const float>(matrix.data(), 5, 7));
    });
    const auto weights = [&] { return diagonal<float>(lines, filled<float>(grid, lines.layout(1))); };
    check_exactly<float>(grid, "a diagonal", 0, weights);
    check_exactly<float>(grid, "a sum of scaled products", 0, [&] {
      return sum<float>(scale<float>(2, product<float>(weights(), band())), adjoint<float>(band()));
    });
    check_exactly<float>(grid, "a stack", 0, [&] { return vertical_stack<float>({band(), weights()}); });
    check_exactly<float>(grid, "a block diagonal", 0, [&] {
      return block_diagonal<float>({band(), weights()});
    });
    const Space kernel = array_space(grid, {9, 11, 8}, 0);
    DistMatrix<C> callers = filled<C>(grid, kernel.layout(1));
    check_exactly<C>(grid, "a Fredholm integral on the caller's kernel", 0, [&] {
      return fredholm<C>(kernel, DistMatrix<C>(grid, callers.layout(), callers.local()));
    });
    check_exactly<float>(grid, "a Fredholm integral on pairs", 0, [&] {
      return on_pairs<float>(fredholm<C>(kernel, filled<C>(grid, kernel.layout(1))));
    });
  }
}

TEMPLATE_TEST_CASE("Operators of planned matrices say what they would take if they owned them",
                   "[kept_memory]", double, std::complex<float>) {
  using T = TestType;
  const Partition column = Partition::with_sizes({columns});
  const auto backend = std::make_shared<MeteredBackend>(make_backend());
  for (const GridPtr& grid : all_grids([&] { return backend; })) {
    INFO(describe(*grid));
    const auto check = [&](const Layout& layout, const std::function<OperatorPtr<T>(DistMatrix<T>)>& make) {
      const Index before = backend->bytes_in_use();
      const OperatorPtr<T> planned = make(planned_matrix<T>(grid, layout));
      CHECK(backend->bytes_in_use() == before);
      const OperatorPtr<T> made = make(DistMatrix<T>(grid, layout));
      CHECK(planned->kept_bytes(column) == made->kept_bytes(column));
      for (const ProductKind kind : {ProductKind::forward, ProductKind::adjoint, ProductKind::normal})
        CHECK(planned->scratch_bytes(kind, column) == made->scratch_bytes(kind, column));
    };
    const Space lines = array_space(grid, {7, 20}, 1), kernel = array_space(grid, {9, 11, 8}, 0);
    check(lines.layout(1), [&](DistMatrix<T> d) { return diagonal<T>(lines, std::move(d)); });
    check(kernel.layout(1), [&](DistMatrix<T> G) { return fredholm<T>(kernel, std::move(G)); });
    // A filter for each line.
    const Space whole = array_space(grid, {7, 20}, 0);
    const LineBands bands{1, 1, [](Index line) {
                            return convolution(20, {1, 2, static_cast<double>(line)}, 1);
                          }};
    const Index before = backend->bytes_in_use();
    const OperatorPtr<T> planned = band_operator<T>(whole, 1, LineBands{1, 1, {}});
    CHECK(backend->bytes_in_use() == before);
    CHECK(planned->kept_bytes(column) == band_operator<T>(whole, 1, bands)->kept_bytes(column));
    if (grid->is_member() && grid->comm().size() == 1) {
      DistMatrix<T> X(grid, whole.layout(1)), Y(grid, whole.layout(1));
      CHECK_THROWS_AS(planned->apply(T(1), X, T(0), Y), UsageError);
    }
    if (grid->is_member()) {
      check(matrix_layout(Algorithm::stationary_a, *grid, 45, 23),
            [&](DistMatrix<T> A) { return matrix_mult(Algorithm::stationary_a, std::move(A)); });
    }
  }
}

TEST_CASE("Migration keeps the tables that it says", "[kept_memory]") {
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    constexpr Index sources = 5, receivers = 3, samples = 40;
    const std::vector<Index> sizes{9, 4};
    const Space image = array_space(grid, sizes, 0, grid->cols() > 1 ? Axis::grid_cols : Axis::uncut);
    const Space data = array_space(grid, {sources, receivers, samples}, 0, Axis::grid_rows);
    const ImageAxes axes{{0, 1}, {1, 1}};
    const std::vector<Position> from(sources, Position{1, 0}), to(receivers, Position{2, 0});
    const auto make = [&](KirchhoffOptions options) {
      return kirchhoff<float>(data, image, straight_rays(sizes, axes, from, to, 1), {1, {1, 2, 1}, 1},
                              std::move(options));
    };
    // The numbers of points, and one column of a table in both precisions.
    const Index points = image.local_rows(),
                outside = points * Index{sizeof(Index) + sizeof(double) + sizeof(float)};
    check_exactly<float>(grid, "times", outside, [&] { return make({}); });
    check_exactly<float>(grid, "times and weights", outside,
                         [&] { return make({straight_ray_weights(sizes, axes, from, to, 1)}); });
    check_exactly<float>(grid, "times, delays and weights", outside, [&] {
      return make({.weights = straight_ray_weights(sizes, axes, from, to, 1),
                   .spread = Spread{straight_ray_delays(sizes, axes, from, to, 1, 0, 3), 4}});
    });
    // Two points at a time, or all where there are no traces.
    const Index own = data.local_box()[0].size, ends = own > 0 ? own + receivers : 0;
    const Index block = ends > 0 ? std::min<Index>(points, 2) : points;
    check_exactly<float>(grid, "some points at a time",
                         points * Index{sizeof(Index)} + block * Index{sizeof(double) + sizeof(float)}, [&] {
                           return make({{}, std::max<Index>(1, 2 * ends * Index{sizeof(float)})});
                         });
  }
}

TEMPLATE_TEST_CASE("Products of matrices keep their blocks, and at most the buffers that they say",
                   "[kept_memory]", double, std::complex<float>) {
  using T = TestType;
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); })) {
    if (!grid->is_member()) continue;
    const auto check = [&](const char* name, Index block, const std::function<OperatorPtr<T>()>& make) {
      INFO(describe(*grid) << ": " << name);
      Index said = 0;
      const Index found = measured<T>(grid, make, said);
      CHECK(block <= found);
      CHECK(found <= said);
    };
    for (const Algorithm algorithm : all_algorithms) {
      const Layout layout = matrix_layout(algorithm, *grid, 45, 23);
      DistMatrix<T> callers = filled<T>(grid, layout);
      const Index block = callers.local().size() * Index{sizeof(T)};
      check(name_of(algorithm), block, [&] { return matrix_mult(algorithm, filled<T>(grid, layout)); });
      check("on the caller's block", 0,
            [&] { return matrix_mult(algorithm, DistMatrix<T>(grid, layout, callers.local())); });
    }
    const std::vector<ProductShape> slices(3, {45, 23, columns, scalar_type_of<T>});
    const SliceGroups groups(grid, slices, divide_ranks(slices, grid->shape().size()));
    check("slices on groups", 0, [&] {
      std::vector<DistMatrix<T>> matrices = allocate_slices<T>(groups);
      for (DistMatrix<T>& matrix : matrices) matrix.set_zero();
      return grouped_slices<T>(groups, std::move(matrices));
    });
  }
}
