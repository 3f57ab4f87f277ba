// SPDX-License-Identifier: BSD-3-Clause
// Operators of the ranks' own matrices: block diagonal, stacked, side by side, and alike everywhere.
#include "gridlops/ops/local_operator.hpp"

#include <array>
#include <stdexcept>
#include <utility>

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

/// Pairs of axes that go between the two dimensions of a grid, at least one of them over all its ranks.
constexpr std::array nested_axes{std::pair{Axis::all, Axis::grid_cols},
                                 std::pair{Axis::grid_cols, Axis::all},
                                 std::pair{Axis::all_transposed, Axis::grid_rows},
                                 std::pair{Axis::grid_rows, Axis::all_transposed},
                                 std::pair{Axis::all, Axis::all_transposed},
                                 std::pair{Axis::all_transposed, Axis::all}};

/// The rows of a space that this rank's functions have: those of its part, or between the dimensions of the
/// grid those of its grid row, or of its grid column.
Range rows_in_functions(const Space& space, const Space& other) {
  const ProcessGrid& grid = *space.grid;
  const Axis axis = space.rows.axis;
  const bool joined = other.rows.axis != Axis::uncut && other.rows.axis != axis;
  int first = grid.my_part(axis), last = first;
  if (joined && axis == Axis::all)
    first = grid.part_at(axis, grid.my_row(), 0), last = grid.part_at(axis, grid.my_row(), grid.cols() - 1);
  if (joined && axis == Axis::all_transposed)
    first = grid.part_at(axis, 0, grid.my_col()), last = grid.part_at(axis, grid.rows() - 1, grid.my_col());
  const Index begin = space.rows.partition.begin(first);
  return {begin, space.rows.partition.range(last).end() - begin};
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
    const Range rows = rows_in_functions(range, domain), cols = rows_in_functions(domain, range);
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

TEMPLATE_LIST_TEST_CASE("Matrices of ranks map between parts of grid rows and of grid columns",
                        "[local_operator]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (int variant = 0; variant < cut_variants; ++variant) {
      for (const auto& [data, model] : nested_axes) {
        // Some have fewer rows than most grids have ranks, or none. A space of one row makes products of one
        // column.
        for (const auto& [rows, cols] :
             {std::pair{11, 5}, std::pair{2, 1}, std::pair{1, 3}, std::pair{0, 5}}) {
          const Space range = space_of(grid, data, rows, variant),
                      domain = space_of(grid, model, cols, variant);
          INFO(describe(*grid) << ": " << domain.describe() << " to " << range.describe() << ", variant "
                               << variant);
          check_elements<T>(*operator_of<T>(range, domain), entry<T>, 0);
        }
      }
    }
  }
}

TEST_CASE("The parts of a grid row are gathered and scattered, and no more is sent", "[local_operator]") {
  constexpr Index nrhs = 3, size = sizeof(double);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    for (const int variant : {0, 3}) {
      for (const auto& [data_axis, model_axis] : nested_axes) {
        const Space data = space_of(grid, data_axis, 13, variant),
                    model = space_of(grid, model_axis, 9, variant);
        INFO(describe(*grid) << ": " << model.describe() << " to " << data.describe());
        const OperatorPtr<double> op = operator_of<double>(data, model);
        DistMatrix<double> x(grid, model.layout(nrhs)), y(grid, data.layout(nrhs));
        x.set_zero(), y.set_zero();
        op->apply(1, x, 0, y), op->apply_adjoint(1, y, 0, x);
        for (const bool forward : {true, false}) {
          const Space &from = forward ? model : data, &to = forward ? data : model;
          const auto is_nested = [](const Space& space) {
            return space.rows.axis == Axis::all || space.rows.axis == Axis::all_transposed;
          };
          const bool in_rows = to.rows.axis == Axis::all || to.rows.axis == Axis::grid_rows;
          const Index others_in = (in_rows ? grid->rows() : grid->cols()) - 1,
                      others_out = (in_rows ? grid->cols() : grid->rows()) - 1;
          // Each rank sends its part of the model to the others of its grid column, or row, and all but its
          // part of the sum. Sums that all ranks have go round twice, in balanced parts.
          const Index whole = rows_in_functions(to, from).size * nrhs, own = to.local_rows() * nrhs;
          Index sent = is_nested(from) ? from.local_rows() * nrhs * others_in : 0, received = 0;
          if (is_nested(from)) received = rows_in_functions(from, to).size * nrhs - from.local_rows() * nrhs;
          if (is_nested(to)) {
            sent += whole - own;
            received += own * others_out;
          } else {
            const int me = in_rows ? grid->my_col() : grid->my_row();
            const Index part = Partition::balanced(whole, static_cast<int>(others_out) + 1).size(me);
            sent += whole - part + part * others_out;
            received += whole - part + part * others_out;
          }
          const TrafficSince traffic(grid->comm());
          forward ? op->apply(1, x, 0, y) : op->apply_adjoint(1, y, 0, x);
          CAPTURE(forward);
          CHECK(traffic.sent() == sent * size);
          CHECK(traffic.received() == received * size);
          CHECK(traffic.calls() == (is_nested(from) && others_in > 0 ? 2 : 1));
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
    const LocalProduct<double> zero = [](MatrixView<const double>, MatrixView<double>) {};
    const LocalProduct<double> fails = [&](MatrixView<const double>, MatrixView<double>) {
      if (grid->comm().rank() == failing) throw UsageError("no such table");
    };
    for (const Axis axis : {Axis::uncut, Axis::grid_cols}) {
      const Space data = space_of(grid, Axis::all, 9, 0), model = space_of(grid, axis, 4, 0);
      const OperatorPtr<double> op = local_operator<double>(data, model, zero, fails);
      check_agreed<UsageError>(*grid, failing, "no such table", [&] { dot_test(*op); });
    }
  }
}

TEST_CASE("Matrices of ranks cannot go between axes that share a dimension of the grid", "[local_operator]") {
  for (const GridPtr& grid : all_grids()) {
    const LocalProduct<double> none;
    for (const auto& [data, model] :
         {std::pair{Axis::all, Axis::grid_rows}, std::pair{Axis::grid_cols, Axis::all_transposed}})
      CHECK_THROWS_AS(
          local_operator<double>(space_of(grid, data, 4, 0), space_of(grid, model, 4, 0), none, none),
          ShapeError);
  }
}
