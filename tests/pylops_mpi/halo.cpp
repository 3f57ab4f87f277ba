// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_halo.py. The expected blocks are cut out of the whole array, with zeros around it.
#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Blocks of ⌈n / parts⌉, the last ones smaller.
Partition ceil_blocks(Index n, int parts) {
  const Index block = (n + parts - 1) / parts;
  std::vector<Index> sizes;
  for (Index begin = 0; static_cast<int>(sizes.size()) < parts; begin += block)
    sizes.push_back(std::clamp<Index>(n - begin, 0, block));
  return Partition::with_sizes(sizes);
}

/// Arrays over a grid of blocks with one dimension of all ranks, and also over one of two.
std::vector<Space> spaces_of(const GridPtr& grid, Index more) {
  const int ranks = world().size();
  const Index n = 16 * ranks + more;
  std::vector<std::vector<int>> shapes{{ranks},       {ranks, 1},    {1, ranks},
                                       {ranks, 1, 1}, {1, ranks, 1}, {1, 1, ranks}};
  const GridShape square = near_square(ranks);
  shapes.push_back({square.rows, square.cols});
  std::vector<Space> spaces;
  for (const std::vector<int>& shape : shapes) {
    std::vector<Partition> cuts;
    for (const int parts : shape) cuts.push_back(ceil_blocks(parts > 1 || shape.size() == 1 ? n : 8, parts));
    spaces.push_back(array_space(grid, Dims(cuts), Axis::all));
  }
  return spaces;
}

/// Halos: a number for all sides, one for each dimension, and one for each side.
std::vector<HaloWidths> halos_of(std::size_t dims) {
  HaloWidths scalar{std::vector<Index>(dims, 2), std::vector<Index>(dims, 2), false};
  HaloWidths each = scalar, sides = scalar;
  each.beyond_array = sides.beyond_array = true;
  for (std::size_t d = 0; d < dims; ++d) {
    each.before[d] = each.behind[d] = static_cast<Index>(d) + 1;
    sides.before[d] = static_cast<Index>(d + 1) % 3, sides.behind[d] = 2;
  }
  return {scalar, each, sides};
}

/// The block of this rank with its halo, which lies where the cells of the array do.
Box box_with_halo(const Space& space, const HaloWidths& widths) {
  Box box = space.local_box();
  for (std::size_t d = 0; d < box.size(); ++d) {
    Index begin = box[d].begin - widths.before[d], end = box[d].end() + widths.behind[d];
    if (!widths.beyond_array) {
      begin = std::max<Index>(begin, std::min<Index>(0, box[d].begin));
      end = std::min<Index>(end, space.dims.size(static_cast<int>(d)));
    }
    box[d] = {begin, end - begin};
  }
  return box;
}

template <Scalar T>
void check_halo(const Space& space, const HaloWidths& widths) {
  INFO(space.describe());
  CAPTURE(widths.before, widths.behind, widths.beyond_array);
  const std::vector<Index> sizes = space.dims.sizes();
  const std::vector<T> x = random_array<T>(1, product_of(sizes));
  const DistMatrix<T> X = placed(space, x);
  const OperatorPtr<T> op = halo<T>(space, widths);
  const DistMatrix<T> Y = applied(*op, X);
  const Box box = box_with_halo(space, widths);
  REQUIRE(Y.local().rows == size_of(box));
  Index wrong = 0;
  for_each_cell(box, [&](Index row, const std::vector<Index>& place) {
    bool inside = true;
    for (std::size_t d = 0; d < place.size(); ++d) inside = inside && 0 <= place[d] && place[d] < sizes[d];
    if (Y.local()(row, 0) != (inside ? x[in_c_order(sizes, place)] : T(0))) ++wrong;
  });
  CHECK(wrong == 0);
  CHECK(difference(applied(*crop<T>(space, widths), Y), space, x) == 0);
  CHECK(dot_test(*op).passed);
}

}  // namespace

TEST_CASE("Blocks get the halos that the whole array has there, and cropping restores them", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const Index more : {0, 1}) {
    for (const Space& space : spaces_of(grid, more)) {
      for (const HaloWidths& widths : halos_of(static_cast<std::size_t>(space.dims.count()))) {
        check_halo<double>(space, widths);
        check_halo<std::complex<double>>(space, widths);
      }
    }
  }
}

TEST_CASE("Halos may be wider than blocks, and differ from side to side", "[pylops_mpi]") {
  // PyLops-MPI refuses these: wider than the block, and other widths before than behind.
  const GridPtr grid = line_of_ranks();
  const Space space = array_space(grid, {4 * world().size()}, 0);
  for (const bool beyond : {true, false}) {
    check_halo<double>(space, {{5}, {5}, beyond});
    check_halo<double>(space, {{1}, {2}, beyond});
    check_halo<double>(space, {{4 * world().size() + 3}, {9}, beyond});
  }
  check_halo<double>(cut_or_everywhere(grid, {12}, 0, true), {{2}, {1}});
}

TEST_CASE("Wrong halos are refused on all ranks, which go on", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const Space line = array_space(grid, {16 * world().size()}, 0),
              plane = array_space(grid, {16 * world().size(), 8}, 0);
  const TrafficSince traffic(world());
  CHECK_THROWS_AS(array_space(grid, Dims({Partition::balanced(16, world().size() + 1)}), Axis::all),
                  ShapeError);
  CHECK_THROWS_AS(halo<double>(line, {{1, 1, 1}, {1, 1, 1}}), ShapeError);
  CHECK_THROWS_AS(halo<double>(plane, {{1}, {1}}), ShapeError);
  CHECK_THROWS_AS(halo<double>(line, {{-1}, {-1}}), UsageError);
  CHECK_THROWS_AS(halo<double>(plane, {{1, -1}, {1, -1}}), UsageError);
  CHECK(traffic.nothing());
  check_halo<double>(plane, {{1, 1}, {1, 1}});
}

TEMPLATE_TEST_CASE("A derivative of blocks with halos is that of the array", "[pylops_mpi]", double,
                   std::complex<double>) {
  using T = TestType;
  const GridPtr grid = line_of_ranks();
  for (const std::vector<Index>& sizes :
       {std::vector<Index>{16 * world().size()}, {16 * world().size() + 1, 5}}) {
    const Space space = array_space(grid, sizes, 0);
    const HaloWidths widths{std::vector<Index>(sizes.size(), 0), std::vector<Index>(sizes.size(), 0), false};
    HaloWidths one = widths;
    one.before[0] = one.behind[0] = 1;
    const Space larger = halo_space(space, one);
    const Index inner = sizes.size() == 1 ? 1 : sizes[1], rows = box_with_halo(space, one)[0].size;
    // yᵢ = (xᵢ₊₁ − xᵢ₋₁)/2 within the block, and 0 at its ends.
    const OperatorPtr<T> of_blocks = local_operator<T>(
        larger, larger,
        [=](MatrixView<const T> x, MatrixView<T> y) {
          for (Index j = 0; j < x.cols; ++j)
            for (Index i = 0; i < rows * inner; ++i)
              y(i, j) =
                  i < inner || i >= (rows - 1) * inner ? T(0) : (x(i + inner, j) - x(i - inner, j)) / 2.0;
        },
        [=](MatrixView<const T> y, MatrixView<T> x) {
          for (Index j = 0; j < x.cols; ++j) {
            for (Index i = 0; i < rows * inner; ++i) x(i, j) = T(0);
            for (Index i = inner; i < (rows - 1) * inner; ++i)
              x(i + inner, j) += y(i, j) / 2.0, x(i - inner, j) -= y(i, j) / 2.0;
          }
        });
    const OperatorPtr<T> op = product(crop<T>(space, one), product(of_blocks, halo<T>(space, one)));
    const std::vector<T> x = random_array<T>(1, product_of(sizes));
    std::vector<T> y(x.size()), back(x.size());
    const auto stride = static_cast<std::size_t>(inner);
    for (std::size_t i = stride; i + stride < x.size(); ++i) {
      y[i] = (x[i + stride] - x[i - stride]) / 2.0;
      back[i + stride] += x[i] / 2.0, back[i - stride] -= x[i] / 2.0;
    }
    CHECK(difference(applied(*op, placed(space, x)), space, y) <= 1e-14);
    CHECK(difference(applied(*op, placed(space, x), false), space, back) <= 1e-14);
    CHECK(dot_test(*op).passed);
  }
}
