// SPDX-License-Identifier: BSD-3-Clause
// Operators of the ranks' own matrices: block diagonal, stacked, side by side, and alike everywhere.
#include "gridlops/ops/local_operator.hpp"

#include <stdexcept>

#include "gridlops/base/error.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// The space of `total` rows that are cut along the axis in one of many ways.
Space space_of(const GridPtr& grid, Axis axis, Index total, int variant) {
  return {grid, {axis, cut_somehow(total, grid->parts(axis), variant)}, Axis::uncut};
}

/// Element (i, j) of the matrix of a part, in the numbers of the rows of the two spaces.
template <Scalar T>
T entry(Index i, Index j) {
  return small_integer<T>(3, i, j);
}

/// The operator of these elements. Blocks on a GPU are multiplied by its own BLAS, after the elements were
/// uploaded.
template <Scalar T>
OperatorPtr<T> operator_of(const Space& range, const Space& domain) {
  const ProcessGrid& grid = *range.grid;
  std::shared_ptr<Buffer<T>> B = std::make_shared<Buffer<T>>();
  Index m = 0, n = 0;
  if (grid.is_member()) {
    const Range rows = range.rows.partition.range(grid.my_part(range.rows.axis));
    const Range cols = domain.rows.partition.range(grid.my_part(domain.rows.axis));
    m = rows.size, n = cols.size;
    const std::vector<T> values =
        dense<T>(m, n, [&](Index i, Index j) { return entry<T>(rows.begin + i, cols.begin + j); });
    *B = Buffer<T>(grid.backend(), m * n);
    grid.backend()->upload(values.data(), B->data(), m * n * Index{sizeof(T)});
  }
  const auto product = [=, backend = grid.backend()](Op op) {
    return [=](MatrixView<const T> in, MatrixView<T> out) {
      backend->template kernels<T>().gemm(op, Op::none, T(1), B->matrix(m, n), in, T(0), out);
    };
  };
  return local_operator<T>(range, domain, product(Op::none), product(Op::adjoint));
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Matrices of ranks make operators as their spaces lie", "[local_operator]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (const int variant : {0, 3, 1}) {
      for (const Axis axis : all_axes) {
        for (const auto& [data, model] :
             {std::pair{axis, axis}, std::pair{axis, Axis::uncut}, std::pair{Axis::uncut, axis},
              std::pair{axis, axis == Axis::grid_rows ? Axis::grid_cols : Axis::grid_rows}}) {
          if (data != model && !legal(data, model)) continue;
          const Space range = space_of(grid, data, 7, variant), domain = space_of(grid, model, 5, variant);
          INFO(describe(*grid) << ": " << domain.describe() << " to " << range.describe() << ", variant "
                               << variant);
          const bool diagonal = data == axis && model == axis;
          check_elements<T>(
              *operator_of<T>(range, domain),
              [&](Index i, Index j) {
                const bool same_part = range.rows.partition.owner_of(i) == domain.rows.partition.owner_of(j);
                return diagonal && !same_part ? T(0) : entry<T>(i, j);
              },
              0);
        }
      }
    }
  }
}

TEST_CASE("A stack of matrices sums models in one reduction, and moves nothing else", "[local_operator]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space data = space_of(grid, Axis::all, 9, 0), model = space_of(grid, Axis::uncut, 4, 0);
    const OperatorPtr<double> op = operator_of<double>(data, model);
    DistMatrix<double> x(grid, model.layout(3)), y(grid, data.layout(3));
    x.set_zero(), y.set_zero();
    op->apply(1, x, 0, y), op->apply_adjoint(1, y, 0, x);
    const TrafficSince traffic(grid->comm());
    op->apply(1, x, 0, y);
    CHECK(traffic.nothing());
    op->apply_adjoint(1, y, 0, x);
    CHECK(traffic.calls() == 1);
    CHECK(traffic.calls(CommOperation::all_reduce) == 1);
  }
}

TEST_CASE("What one rank's function throws all ranks throw", "[local_operator]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int failing = grid->comm().size() - 1;
    const Space data = space_of(grid, Axis::all, 9, 0), model = space_of(grid, Axis::uncut, 4, 0);
    const LocalProduct<double> zero = [](MatrixView<const double>, MatrixView<double>) {};
    const LocalProduct<double> fails = [&](MatrixView<const double>, MatrixView<double>) {
      if (grid->comm().rank() == failing) throw UsageError("no such table");
    };
    const OperatorPtr<double> op = local_operator<double>(data, model, zero, fails);
    check_agreed<UsageError>(*grid, failing, "no such table", [&] { dot_test(*op); });
  }
}

TEST_CASE("Matrices of ranks cannot go between axes that share a dimension of the grid", "[local_operator]") {
  for (const GridPtr& grid : all_grids()) {
    const LocalProduct<double> none;
    CHECK_THROWS_AS(local_operator<double>(space_of(grid, Axis::all, 4, 0),
                                           space_of(grid, Axis::grid_cols, 4, 0), none, none),
                    ShapeError);
  }
}
