// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_derivative.py. References are stencils in loops over whole arrays.
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Kind = Derivative::Kind;
constexpr Kind kinds[] = {Kind::forward, Kind::backward, Kind::centered};

/// The weights of one row of a derivative, by the places from which it takes samples.
using Row = std::vector<std::pair<Index, double>>;

/// The rows of y = D x / d: y_i = Σ weight · x_place.
std::vector<Row> first_rows(Index n, const Derivative& how) {
  std::vector<Row> rows(static_cast<std::size_t>(n));
  const double d = how.sampling;
  const auto set = [&](Index i, Row row) {
    for (auto& [place, weight] : row) weight /= d;
    rows[static_cast<std::size_t>(i)] = std::move(row);
  };
  const Index last = n - 1;
  for (Index i = 0; i < n; ++i) {
    if (how.kind == Kind::forward && i < last) set(i, {{i + 1, 1}, {i, -1}});
    if (how.kind == Kind::backward && i > 0) set(i, {{i, 1}, {i - 1, -1}});
    if (how.kind != Kind::centered) continue;
    if (how.order == 3 && 0 < i && i < last) set(i, {{i + 1, 0.5}, {i - 1, -0.5}});
    if (how.order == 5 && 1 < i && i < last - 1)
      set(i, {{i - 2, 1. / 12}, {i - 1, -2. / 3}, {i + 1, 2. / 3}, {i + 2, -1. / 12}});
  }
  if (how.kind != Kind::centered || !how.edge) return rows;
  set(0, {{1, 1}, {0, -1}});
  set(last, {{last, 1}, {last - 1, -1}});
  if (how.order == 3) return rows;
  set(1, {{2, 0.5}, {0, -0.5}});
  set(last - 1, {{last, 0.5}, {last - 2, -0.5}});
  return rows;
}

std::vector<Row> second_rows(Index n, const Derivative& how) {
  std::vector<Row> rows(static_cast<std::size_t>(n));
  const double d2 = how.sampling * how.sampling;
  const Index last = n - 1;
  for (Index i = 0; i < n; ++i) {
    Index middle = how.kind == Kind::forward ? i + 1 : how.kind == Kind::backward ? i - 1 : i;
    if (how.kind == Kind::centered && how.edge) middle = std::clamp<Index>(i, 1, last - 1);
    if (middle < 1 || middle > last - 1) continue;
    rows[static_cast<std::size_t>(i)] = {{middle - 1, 1 / d2}, {middle, -2 / d2}, {middle + 1, 1 / d2}};
  }
  return rows;
}

/// y += factor · D x or Dᵀ x along one dimension of arrays in C order.
template <Scalar T>
void add_along(const std::vector<Index>& sizes, int dim, const std::vector<Row>& rows, bool forward,
               double factor, const std::vector<T>& x, std::vector<T>& y) {
  Index inner = 1;
  for (std::size_t d = sizes.size(); d-- > static_cast<std::size_t>(dim) + 1;) inner *= sizes[d];
  const Index n = sizes[static_cast<std::size_t>(dim)], outer = product_of(sizes) / (n * inner);
  for (Index o = 0; o < outer; ++o) {
    for (Index i = 0; i < n; ++i) {
      for (const auto& [place, weight] : rows[static_cast<std::size_t>(i)]) {
        const auto row = static_cast<std::size_t>((o * n + i) * inner);
        const auto col = static_cast<std::size_t>((o * n + place) * inner);
        for (std::size_t k = 0; k < static_cast<std::size_t>(inner); ++k)
          forward ? y[row + k] += factor * weight * x[col + k] : y[col + k] += factor * weight * x[row + k];
      }
    }
  }
}

template <Scalar T>
void check_rows(const LinearOperator<T>& op, const Space& space, int dim, const std::vector<Row>& rows) {
  const std::vector<Index> sizes = space.dims.sizes();
  const std::vector<T> x = random_array<T>(1, product_of(sizes));
  const DistMatrix<T> X = placed(space, x);
  for (const bool forward : {true, false}) {
    std::vector<T> y(x.size());
    add_along(sizes, dim, rows, forward, 1, x, y);
    CAPTURE(forward);
    CHECK(difference(applied(op, X, forward), space, y) <= 1e-14);
  }
}

struct Case {
  std::vector<Index> sizes;
  double sampling;
  bool complex, edge, everywhere;
};
const std::vector<Case> cases{
    {{600}, 1, false, false, false},
    {{600}, 1, true, true, false},
    {{600}, 1, false, true, true},
    {{100, 151}, 1, false, false, false},
    {{100, 151}, 1, true, true, false},
    {{100, 151}, 1, true, false, true},
    {{101, 51, 100}, 0.4, false, true, false},
    {{101, 51, 100}, 0.4, true, false, false},
    {{79, 101, 50}, 0.4, false, false, false},
    {{79, 101, 50}, 0.4, true, true, true},
};

}  // namespace

TEST_CASE("First derivatives along the cut are those of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const Case& of : cases) {
    const Space space = cut_or_everywhere(grid, of.sizes, 0, of.everywhere);
    for (const Kind kind : kinds) {
      for (const int order : {3, 5}) {
        if (order == 5 && kind != Kind::centered) continue;
        const Derivative how{kind, of.sampling, of.edge, order};
        INFO(space.describe() << ", kind " << static_cast<int>(kind) << ", order " << order);
        with_type(of.complex, [&](auto type) {
          using T = decltype(type);
          const Index n = of.sizes[0];
          check_rows<T>(*band_operator<T>(space, 0, first_derivative(n, how)), space, 0, first_rows(n, how));
        });
      }
    }
  }
}

TEST_CASE("Second derivatives along the cut are those of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const Case& of : cases) {
    const Space space = cut_or_everywhere(grid, of.sizes, 0, of.everywhere);
    for (const Kind kind : kinds) {
      const Derivative how{kind, of.sampling, of.edge};
      INFO(space.describe() << ", kind " << static_cast<int>(kind));
      with_type(of.complex, [&](auto type) {
        using T = decltype(type);
        const Index n = of.sizes[0];
        check_rows<T>(*band_operator<T>(space, 0, second_derivative(n, how)), space, 0, second_rows(n, how));
      });
    }
  }
}

TEST_CASE("Laplacians are weighted sums of second derivatives of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  struct Line {
    std::vector<Index> sizes;
    std::vector<int> dims;
    double weight, sampling;
    bool complex;
  };
  for (const Line& of :
       {Line{{120, 101, 60}, {0, 1, 2}, 0.7, 0.4, false}, Line{{79, 60, 101}, {2, 1, 0}, 0.7, 0.4, true},
        Line{{100, 151}, {0, 1}, 1, 1, false}}) {
    const Space space = array_space(grid, of.sizes, 0);
    for (const Kind kind : kinds) {
      for (const bool edge : {false, true}) {
        with_type(of.complex, [&](auto type) {
          using T = decltype(type);
          std::vector<LaplacianTerm> terms;
          for (const int dim : of.dims) terms.push_back({dim, of.weight, of.sampling});
          const OperatorPtr<T> op = laplacian<T>(space, terms, kind, edge);
          const std::vector<T> x = random_array<T>(1, product_of(of.sizes));
          const DistMatrix<T> X = placed(space, x);
          for (const bool forward : {true, false}) {
            std::vector<T> y(x.size());
            for (const int dim : of.dims)
              add_along(of.sizes, dim,
                        second_rows(of.sizes[static_cast<std::size_t>(dim)], {kind, of.sampling, edge}),
                        forward, of.weight, x, y);
            CAPTURE(static_cast<int>(kind), edge, forward);
            CHECK(difference(applied(*op, X, forward), space, y) <= 1e-14);
          }
        });
      }
    }
  }
}

TEST_CASE("Gradients are stacks of first derivatives of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  struct Line {
    std::vector<Index> sizes;
    bool complex;
  };
  for (const Line& of : {Line{{120, 101, 60}, false}, Line{{79, 60, 101}, false}, Line{{100, 151}, true}}) {
    const Space space = array_space(grid, of.sizes, 0);
    const std::size_t dims = of.sizes.size();
    const std::vector<Space> members(dims, space);
    for (const Kind kind : kinds) {
      for (const bool edge : {false, true}) {
        with_type(of.complex, [&](auto type) {
          using T = decltype(type);
          const OperatorPtr<T> op = gradient<T>(space, std::vector<double>(dims, 0.4), kind, edge);
          const std::vector<T> x = random_array<T>(1, product_of(of.sizes));
          const auto rows = [&](std::size_t dim) { return first_rows(of.sizes[dim], {kind, 0.4, edge}); };
          CAPTURE(static_cast<int>(kind), edge);
          DistMatrix<T> y(grid, op->range().layout(1));
          op->apply(T(1), placed(space, x), T(0), y);
          std::vector<T> back(x.size());
          for (std::size_t dim = 0; dim < dims; ++dim) {
            std::vector<T> expected(x.size());
            add_along(of.sizes, static_cast<int>(dim), rows(dim), true, 1, x, expected);
            DistMatrix<T> member = stack_rows(members, dim, y);
            CHECK(difference(member, space, expected) <= 1e-14);
            const std::vector<T> given = random_array<T>(2 + dim, product_of(of.sizes));
            copy(placed(space, given), member);
            add_along(of.sizes, static_cast<int>(dim), rows(dim), false, 1, given, back);
          }
          CHECK(difference(applied(*op, y, false), space, back) <= 1e-14);
        });
      }
    }
  }
}
