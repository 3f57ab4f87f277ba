// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_distributedarray.py.
#include <limits>
#include <numeric>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Case {
  std::vector<Index> sizes;
  int cut;
  bool complex, everywhere;
};
const std::vector<Case> cases{
    {{500, 501}, 1, false, false}, {{501, 500}, 0, true, false},       {{500, 501}, 1, false, true},
    {{501, 500}, 0, true, true},   {{200, 201, 101}, 1, false, false}, {{200, 201, 101}, 2, true, false},
};

/// The array on every rank, in C order.
template <Scalar T>
std::vector<T> assembled(const Space& space, const ConstDistMatrix<T>& X) {
  const Space everywhere = array_space(space.grid, space.dims.sizes(), 0, Axis::uncut);
  const DistMatrix<T> whole = applied(*identity<T>(everywhere, space), X);
  return {whole.local().data, whole.local().data + whole.local().rows};
}

/// Element by element: the complex conjugate, and the product with an array.
template <Scalar T>
DistMatrix<T> conjugated(const Space& space, const ConstDistMatrix<T>& X) {
  const DistMatrix<T> ones = filled(space.grid, space.layout(1), [](Index, Index) { return T(1); });
  return applied(*diagonal<T>(space, X.clone()), ones, false);
}
template <Scalar T>
DistMatrix<T> elementwise(const Space& space, const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
  return applied(*diagonal<T>(space, X.clone()), Y);
}

}  // namespace

TEST_CASE("Arrays lie as the default split says, and are assembled from their blocks", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const int ranks = world().size();
  for (const Case& of : cases) {
    const Space space = cut_or_everywhere(grid, of.sizes, of.cut, of.everywhere);
    INFO(space.describe());
    const Box box = space.local_box();
    for (std::size_t d = 0; d < of.sizes.size(); ++d) {
      const bool cut = !of.everywhere && static_cast<int>(d) == of.cut;
      const Index share = of.sizes[d] / ranks + (world().rank() < of.sizes[d] % ranks ? 1 : 0);
      CHECK(box[d].size == (cut ? share : of.sizes[d]));
    }
    with_type(of.complex, [&](auto type) {
      using T = decltype(type);
      const Index elements = product_of(of.sizes);
      DistMatrix<T> X(grid, space.layout(1));
      X.set_zero();
      CHECK(column_norms(X, 0)[0] == 0);
      X.fill([](Index, Index) { return T(1); });
      CHECK(column_norms(X, 1)[0] == static_cast<double>(elements));
      CHECK(sum_over_ranks(X.local().rows) == (of.everywhere ? ranks : 1) * elements);
      const std::vector<T> array = random_array<T>(1, elements);
      const DistMatrix<T> Y = placed(space, array);
      CHECK(assembled(space, Y) == array);
    });
  }
}

TEST_CASE("What tests call the difference of arrays is NaN if an element is", "[pylops_mpi]") {
  // On one rank, so that each place of NaN is here.
  const auto self = world().split(world().rank(), 0);
  const auto grid = std::make_shared<const ProcessGrid>(*self, GridShape{1, 1}, make_backend());
  const Space space = array_space(grid, {3, 2}, 0);
  const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
  CHECK(difference(placed(space, numbers), space, numbers) == 0);
  for (std::size_t place = 0; place < numbers.size(); ++place) {
    std::vector<double> with_nan = numbers;
    with_nan[place] = std::nan("");
    CHECK(std::isnan(difference(placed(space, with_nan), space, numbers)));
    CHECK(std::isnan(difference(placed(space, numbers), space, with_nan)));
    CHECK(std::isnan(difference(placed(space, with_nan), numbers)));
    CHECK(std::isnan(difference(placed(space, numbers), with_nan)));
  }
}

TEST_CASE("Arrays may be cut where the caller says, in reversed order of sizes", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const Case& of : cases) {
    if (of.everywhere) continue;
    const Partition even = Partition::balanced(of.sizes[static_cast<std::size_t>(of.cut)], world().size());
    std::vector<Index> reversed;
    for (int part = even.parts(); part-- > 0;) reversed.push_back(even.size(part));
    std::vector<Partition> cuts;
    for (std::size_t d = 0; d < of.sizes.size(); ++d)
      cuts.push_back(static_cast<int>(d) == of.cut ? Partition::with_sizes(reversed)
                                                   : Partition::balanced(of.sizes[d], 1));
    const Space space = array_space(grid, Dims(cuts), Axis::all);
    CHECK(space.local_box()[static_cast<std::size_t>(of.cut)].size ==
          even.size(even.parts() - 1 - world().rank()));
    const std::vector<double> array = random_array<double>(2, product_of(of.sizes));
    CHECK(assembled(space, placed(space, array)) == array);
  }
}

TEMPLATE_TEST_CASE("Arrays are redistributed from axis to axis and back in one exchange each", "[pylops_mpi]",
                   double, std::complex<double>) {
  using T = TestType;
  const GridPtr grid = line_of_ranks();
  for (const std::vector<Index>& sizes : {std::vector<Index>{500, 501}, {200, 21, 101}}) {
    const std::vector<T> array = random_array<T>(3, product_of(sizes));
    for (int from = 0; from < static_cast<int>(sizes.size()); ++from) {
      for (int to = 0; to < static_cast<int>(sizes.size()); ++to) {
        const Space domain = array_space(grid, sizes, from), range = array_space(grid, sizes, to);
        const OperatorPtr<T> turn = identity<T>(range, domain);
        const DistMatrix<T> X = placed(domain, array);
        applied(*turn, X);  // takes its memory
        const TrafficSince traffic(grid->comm());
        const DistMatrix<T> turned = applied(*turn, X);
        CHECK(traffic.calls() <= 1);
        CHECK(difference(turned, range, array) == 0);
        CHECK(difference(applied(*turn, turned, false), domain, array) == 0);
      }
    }
  }
}

TEST_CASE("Arrays are added, subtracted, negated, scaled, conjugated and multiplied element by element",
          "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (Case of : cases) {
    if (of.sizes.size() == 3) of.sizes = {100, 101, 51};
    const Space space = cut_or_everywhere(grid, of.sizes, of.cut, of.everywhere);
    INFO(space.describe());
    with_type(of.complex, [&](auto type) {
      using T = decltype(type);
      const std::vector<T> x = random_array<T>(4, product_of(of.sizes)),
                           y = random_array<T>(5, product_of(of.sizes));
      const DistMatrix<T> X = placed(space, x), Y = placed(space, y);
      const auto check = [&](const ConstDistMatrix<T>& result, const auto& expected) {
        std::vector<T> values = x;
        for (std::size_t k = 0; k < x.size(); ++k) values[k] = expected(x[k], y[k]);
        CHECK(difference(result, space, values) <= 1e-15);
      };
      DistMatrix<T> Z = X.clone();
      Z += Y;
      check(Z, [](T a, T b) { return a + b; });
      copy(X, Z);
      Z -= Y;
      check(Z, [](T a, T b) { return a - b; });
      Z *= -1;
      check(Z, [](T a, T b) { return b - a; });
      copy(X, Z);
      Z *= 5.1;
      check(Z, [](T a, T) { return a * 5.1; });
      check(conjugated(space, X), [](T a, T) { return conjugate(a); });
      check(elementwise(space, X, Y), [](T a, T b) { return a * b; });
    });
  }
}

TEST_CASE("Dot products of arrays are those of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const bool everywhere : {false, true}) {
    for (const bool complex : {false, true}) {
      for (const std::vector<Index>& sizes : {std::vector<Index>{600, 600}, {1200}}) {
        with_type(complex, [&](auto type) {
          using T = decltype(type);
          const std::vector<T> x = random_array<T>(6, product_of(sizes)),
                               y = random_array<T>(7, product_of(sizes));
          Extended<T> dot{}, vdot{};
          long double scale = 0;
          for (std::size_t k = 0; k < x.size(); ++k) {
            dot += extended(x[k]) * extended(y[k]);
            vdot += extended(conjugate(x[k])) * extended(y[k]);
            scale += std::abs(extended(x[k]) * extended(y[k]));
          }
          const Space space = cut_or_everywhere(grid, sizes, 0, everywhere);
          const DistMatrix<T> X = placed(space, x), Y = placed(space, y);
          const double bound = 1e-14 * static_cast<double>(scale);
          CHECK(std::abs(column_dots(X, Y)[0] - rounded<T>(vdot)) <= bound);
          CHECK(std::abs(column_dots(conjugated(space, X), Y)[0] - rounded<T>(dot)) <= bound);
        });
      }
    }
  }
}

TEST_CASE("Norms along an axis are those of the columns of a matrix, however it is cut", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const bool complex : {false, true}) {
    with_type(complex, [&](auto type) {
      using T = decltype(type);
      const Whole<T> x = fractions<T>(8, 500, 501);
      for (const auto& [rows, cols] :
           {std::pair{Axis::all, Axis::uncut}, {Axis::uncut, Axis::all}, {Axis::uncut, Axis::uncut}}) {
        const DistMatrix<T> X = filled(grid, layout_along(*grid, rows, cols, 500, 501), x);
        for (const double order : {0.0, 1.0, 2.0, 3.0, infinity}) {
          CAPTURE(name_of(rows), name_of(cols), order);
          const std::vector<double> norms = column_norms(X, order);
          double worst = 0;
          for (Index j = 0; j < 501; ++j) {
            long double sum = 0;
            for (Index i = 0; i < 500; ++i) {
              const long double m = std::abs(extended(x(i, j)));
              sum = order == infinity ? std::max(sum, m)
                                      : sum + (order == 0 ? 1 : std::pow(m, static_cast<long double>(order)));
            }
            if (order == 2 || order == 3) sum = std::pow(sum, 1 / static_cast<long double>(order));
            worst =
                std::max(worst, std::abs(norms[static_cast<std::size_t>(j)] / static_cast<double>(sum) - 1));
          }
          CHECK(worst <= 1e-14);
        }
      }
    });
  }
}

// A mask of PyLops-MPI gives every rank a colour; dots, norms and assembled arrays are those of a colour.
// Here colours are communicators, and their grids.
TEMPLATE_TEST_CASE("Groups of ranks have dots, norms and arrays of their own", "[pylops_mpi]", double,
                   std::complex<double>) {
  using T = TestType;
  for (const int groups : {2, 3}) {
    if (world().size() % groups != 0) continue;
    const int members = world().size() / groups;
    const int group = world().rank() / members;
    const auto comm = world().split(group, world().rank());
    const auto grid = std::make_shared<const ProcessGrid>(*comm, GridShape{members, 1}, make_backend());
    const Space space = array_space(grid, {1200 / groups}, 0);
    // All groups have one array: the whole one's dot is that of a group, times the groups.
    const std::vector<T> x = random_array<T>(9, 1200 / groups), y = random_array<T>(10, 1200 / groups);
    const DistMatrix<T> X = placed(space, x), Y = placed(space, y);
    CHECK(assembled(space, X) == x);
    Extended<T> dot{};
    long double squares = 0, sizes = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      dot += extended(conjugate(x[k])) * extended(y[k]);
      squares += std::norm(extended(x[k]));
      sizes += std::abs(extended(x[k]));
    }
    CHECK(std::abs(column_dots(X, Y)[0] - rounded<T>(dot)) <= 1e-14 * static_cast<double>(squares));
    CHECK(column_norms(X)[0] == Approx(static_cast<double>(std::sqrt(squares))).epsilon(1e-14));
    CHECK(column_norms(X, 1)[0] == Approx(static_cast<double>(sizes)).epsilon(1e-14));
    CHECK(column_norms(X, infinity)[0] == largest_of(x));
    // As rows of a grid, the groups hold copies of what lies along the grid's columns, which count once.
    const auto all = std::make_shared<const ProcessGrid>(world(), GridShape{groups, members}, make_backend());
    const Space copies = array_space(all, {1200 / groups}, 0, Axis::grid_cols);
    const DistMatrix<T> copied = placed(copies, x);
    CHECK(column_norms(copied, 1)[0] == Approx(static_cast<double>(sizes)).epsilon(1e-14));
    CHECK(column_norms(copied)[0] == Approx(static_cast<double>(std::sqrt(squares))).epsilon(1e-14));
  }
}
