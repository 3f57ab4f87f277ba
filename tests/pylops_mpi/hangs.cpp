// SPDX-License-Identifier: BSD-3-Clause
// What PyLops-MPI hangs on, or gets wrong without saying so. Ranks that wait for others are ended by the time
// limit of test cases. Ragged products, slices and halos wider than blocks are in products.cpp, fredholm.cpp
// and halo.cpp; powers of stacks are in algebra.cpp.
#include <stdexcept>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "pylops_mpi/whole_arrays.hpp"
#include "support/agreed_failures.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// The space of these sizes for rank 0 and for each of the others.
Space uneven(const GridPtr& grid, Index first, Index others) {
  std::vector<Index> sizes(static_cast<std::size_t>(world().size()), others);
  sizes.front() = first;
  return {grid, {Axis::all, Partition::with_sizes(sizes)}, Axis::uncut};
}

OperatorPtr<double> identity_of_blocks(const Space& range, const Space& domain) {
  return matrices_of_ranks<double>(range, domain, [](int, Index i, Index j) { return i == j ? 1.0 : 0.0; });
}

/// Checks that all ranks end alike with an error of this kind, and that the grid still works.
template <class E>
void check_refused(const ProcessGrid& grid, const std::function<void()>& action) {
  const Ending mine = ending_of(action);
  INFO("it ended with: " << mine.text);
  CHECK((mine.type != nullptr && *mine.type == typeid(E)));
  CHECK(all_ended_alike(grid, mine));
  std::vector<double> ranks{1};
  grid.comm().all_reduce(ranks, ReduceOp::sum);
  CHECK(ranks[0] == grid.comm().size());
}

}  // namespace

TEST_CASE("Blocks of very different sizes are brought together over any distance", "[pylops_mpi]") {
  // PyLops-MPI hangs where sizes of 10, 1, 1 meet those of the default split, 4, 4, 4.
  const GridPtr grid = line_of_ranks();
  const Space domain = uneven(grid, 10, 1);
  const Index n = domain.dimension();
  const Space even{grid, {Axis::all, Partition::balanced(n, world().size())}, Axis::uncut};
  const OperatorPtr<double> op = identity_of_blocks(domain, domain);
  const std::vector<double> x = random_array<double>(1, n);
  if (even != domain) {
    check_refused<ShapeError>(*grid, [&] { product(op, identity_of_blocks(even, even)); });
    check_refused<ShapeError>(*grid, [&] { applied(*op, column(even, x)); });
  }
  const OperatorPtr<double> joined =
      product(identity<double>(even, domain), product(op, identity<double>(domain, even)));
  CHECK(difference(applied(*joined, column(even, x)), x) == 0);
  CHECK(difference(applied(*joined, column(even, x), false), x) == 0);
}

TEST_CASE("Derivatives of fewer samples than ranks are those of whole arrays", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (Index n = 0; n <= 4; ++n) {
    const Space space = array_space(grid, {n}, 0);
    for (const auto kind :
         {Derivative::Kind::forward, Derivative::Kind::backward, Derivative::Kind::centered}) {
      const std::vector<double> x = random_array<double>(1, n);
      const auto at = [&](Index i) { return x[static_cast<std::size_t>(i)]; };
      std::vector<double> y(x.size());
      for (Index i = 0; i < n; ++i) {
        double& value = y[static_cast<std::size_t>(i)];
        if (kind == Derivative::Kind::forward && i + 1 < n) value = at(i + 1) - at(i);
        if (kind == Derivative::Kind::backward && i > 0) value = at(i) - at(i - 1);
        if (kind == Derivative::Kind::centered && i > 0 && i + 1 < n) value = (at(i + 1) - at(i - 1)) / 2;
      }
      CAPTURE(n, static_cast<int>(kind));
      const OperatorPtr<double> op = band_operator<double>(space, 0, first_derivative(n, {kind}));
      CHECK(difference(applied(*op, placed(space, x)), space, y) <= 1e-15);
    }
  }
}

TEST_CASE("Wrong dimensions are an error on all ranks, and nothing waits", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const Space data = rows_on_ranks(grid, 5), model = rows_on_ranks(grid, 3);
  const OperatorPtr<double> op = identity_of_blocks(data, model);
  const DistMatrix<double> x(grid, model.layout(2)), wrong(grid, rows_on_ranks(grid, 4).layout(2)),
      everywhere(grid, Space{grid, Cut::uncut(model.dimension()), Axis::uncut}.layout(2));
  DistMatrix<double> y(grid, data.layout(2)), narrow(grid, data.layout(1));
  check_refused<ShapeError>(*grid, [&] { op->apply(1, wrong, 0, y); });
  check_refused<ShapeError>(*grid, [&] { op->apply(1, x, 0, narrow); });
  check_refused<ShapeError>(*grid, [&] { column_dots(x, wrong); });
  if (world().size() > 1) check_refused<ShapeError>(*grid, [&] { op->apply(1, everywhere, 0, y); });
  check_refused<ShapeError>(*grid, [&] { sum(op, identity_of_blocks(model, model)); });
  check_refused<ShapeError>(*grid, [&] { product(op, op); });
  check_refused<ShapeError>(*grid, [&] { vertical_stack<double>({op, identity_of_blocks(data, data)}); });
  check_refused<ShapeError>(*grid, [&] { horizontal_stack<double>({op, identity_of_blocks(model, model)}); });
  DistMatrix<double> z(grid, model.layout(2));
  check_refused<ShapeError>(*grid, [&] { cgls(*op, wrong, z); });
  check_refused<ShapeError>(*grid, [&] { cg(*op, y, z); });
  check_refused<UsageError>(*grid, [&] {
    ProcessGrid(world(), GridShape{world().size(), 2}, make_backend());
  });
}

TEST_CASE("What one rank alone finds wrong all ranks throw", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const Space space = rows_on_ranks(grid, 3);
  const int failing = world().size() - 1;
  const LocalProduct<double> copies = [](MatrixView<const double> x, MatrixView<double> y) {
    for (Index j = 0; j < x.cols; ++j)
      for (Index i = 0; i < x.rows; ++i) y(i, j) = x(i, j);
  };
  int calls = 0;
  const LocalProduct<double> fails = [&](MatrixView<const double> x, MatrixView<double> y) {
    copies(x, y);
    if (++calls == 2 && world().rank() == failing) throw UsageError("no such table");
  };
  const OperatorPtr<double> op = local_operator<double>(space, space, fails, copies);
  const DistMatrix<double> b = column(space, random_array<double>(1, space.dimension()));
  DistMatrix<double> x(grid, space.layout(1));
  check_agreed<UsageError>(*grid, failing, "no such table", [&] { cgls(*op, b, x); });
  CHECK(column_norms(b)[0] > 0);
}

TEST_CASE("A right-hand side of zeros has the solution zero, and one of NaN harms no other", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const Space space = rows_on_ranks(grid, 4);
  const OperatorPtr<double> op = scale(2.0, identity<double>(space));
  // Columns: zero, ordinary, with NaN in one place.
  const auto b = [](Index i, Index j) {
    return j == 0 ? 0.0 : j == 1 ? static_cast<double>(i + 1) : i == 1 ? quiet_nan<double>() : 1.0;
  };
  const auto check = [&](const SolveReport& report, const ConstDistMatrix<double>& X) {
    CAPTURE(report.solver);
    CHECK(report.columns[0].reason == StopReason::converged);
    CHECK(report.columns[1].reason == StopReason::converged);
    CHECK(report.columns[2].reason == StopReason::non_finite);
    CHECK(mismatches(
              X,
              [](Index i, Index j) {
                return j == 0 ? 0.0 : j == 1 ? static_cast<double>(i + 1) / 2 : quiet_nan<double>();
              },
              1e-12) == 0);
  };
  const DistMatrix<double> B = filled(grid, space.layout(3), b);
  DistMatrix<double> X(grid, space.layout(3));
  check(cg(*op, B, X), X);
  check(cgls(*op, B, X), X);
  check(lsqr(*op, B, X), X);
  SolveOptions options;
  options.step = 0.25;
  check(ista(*op, B, X, options), X);
  check(fista(*op, B, X, options), X);
}

TEST_CASE("Operators work on the communicator of a group, while another group does something else",
          "[pylops_mpi]") {
  // Adjoints, products and sums of PyLops-MPI are always on all ranks.
  const int group = world().rank() % 2;
  const auto comm = world().split(group, world().rank());
  const auto grid = std::make_shared<const ProcessGrid>(*comm, GridShape{comm->size(), 1}, make_backend());
  for (int repetition = 0; repetition < 1 + 2 * group; ++repetition) {
    const Space space = array_space(grid, {12}, 0);
    const OperatorPtr<double> D =
        band_operator<double>(space, 0, first_derivative(12, {Derivative::Kind::forward}));
    const OperatorPtr<double> op = sum(product(adjoint(D), D), identity<double>(space));
    const DistMatrix<double> ones = filled(grid, space.layout(1), [](Index, Index) { return 1.0; });
    CHECK(mismatches(applied(*op, ones), [](Index, Index) { return 1.0; }) == 0);
    CHECK(column_dots(ones, ones)[0] == 12);
  }
}
