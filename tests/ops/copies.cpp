// SPDX-License-Identifier: BSD-3-Clause
// With GRIDLOPS_CHECK=all, which these tests run with, copies that differ and matrices that have changed are
// found before a product.
#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "support/agreed_failures.hpp"
#include "support/problems.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

TEST_CASE("Copies that differ are found before a product, by all ranks", "[copies]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int ranks = grid->comm().size();
    for (const Axis axis : all_axes) {
      const Space space{grid, Cut::balanced(axis, 12, *grid), Axis::uncut};
      const OperatorPtr<double> op = identity<double>(space);
      DistMatrix<double> y(grid, space.layout(2));
      const auto result = [&](int odd_rank) {
        const DistMatrix<double> x = filled(grid, space.layout(2), [&](Index i, Index j) {
          return static_cast<double>(i + j) + (grid->comm().rank() == odd_rank && j == 1 ? 1e-9 : 0);
        });
        return ending_of([&] { op->apply(1, x, 0, y); });
      };
      INFO(describe(*grid) << ", rows along " << name_of(axis));
      CHECK(result(ranks).text.empty());
      const Ending last = result(ranks - 1);
      const bool has_copies = grid->parts(axis) < ranks;
      CHECK(all_ended_alike(*grid, last));
      CHECK(contains(last.text, "the copies of one block") == has_copies);
    }
  }
}

TEST_CASE("Solvers keep copies alike without broadcasting them", "[copies]") {
  for (const GridPtr& grid : all_grids()) {
    const KnownSpectrum<double> A(15, 9, geometric(9, 30));
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      const OperatorPtr<double> op = dense_operator(grid, algorithm, A);
      for (const SolverFunction<double> solver : {cgls<double>, lsqr<double>, lsmr<double>}) {
        const Partition columns = Partition::balanced(3, grid->parts(op->domain().columns));
        const Solution<double> solution = solve<double>(solver, *op, columns, random_elements<double>(4));
        if (grid->is_member()) CHECK(solution.verdict(0).reason == StopReason::converged);
      }
    }
  }
}

TEST_CASE("A matrix that one rank changes in place is found before a product, by all ranks", "[copies]") {
  const Whole<double> first = integers<double>(1, 12, 10), second = integers<double>(2, 12, 10);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    for (const Algorithm algorithm : all_algorithms) {
      for (const StorageRow& row : storage_table) {
        const Storage storage = row.storage;
        if (!row.is_as_given && !may_be_packed(algorithm)) continue;
        const bool in_planes = storage == Storage::planes;
        if (in_planes && grid->backend()->memory_space() != MemorySpace::host) continue;
        const Layout layout = matrix_layout(algorithm, *grid, 12, 10);
        DistMatrix<double> memory = filled(grid, layout, first);
        const OperatorPtr<double> op = matrix_mult(
            algorithm, DistMatrix<double>(grid, layout, memory.local()), {.panel = 3, .storage = storage});
        const DistMatrix<double> X = filled(grid, op->domain().layout(2), integers<double>(3, 10, 2)),
                                 Y = filled(grid, op->range().layout(2), integers<double>(4, 12, 2));
        DistMatrix<double> AX(grid, Y.layout()), AhY(grid, X.layout()), again(grid, X.layout());
        const auto endings = [&] {
          return std::array{ending_of([&] { op->apply(1, X, 0, AX); }),
                            ending_of([&] { op->apply_adjoint(1, Y, 0, AhY); }),
                            ending_of([&] { op->normal_product(X, Y, AX, AhY, again); })};
        };
        // The first rank's block is never empty here.
        const bool am_odd = grid->comm().rank() == 0;
        const auto change = [&](double by) {
          if (am_odd) memory.local()(0, 0) += by;
        };
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << name_of(storage));
        for (const Ending& ending : endings()) CHECK(ending.text.empty());
        change(1);
        for (const Ending& ending : endings()) {
          CHECK(all_ended_alike(*grid, ending));
          CHECK(rank_of(ending) == (grid->comm().size() == 1 ? -1 : 0));
          CHECK(contains(ending.text, "call matrix_changed() on all ranks"));
        }
        if (in_planes) {
          const OperatorPtr<double> high = high_plane(op);
          const Ending ending = ending_of([&] { high->apply(1, X, 0, AX); });
          CHECK(all_ended_alike(*grid, ending));
          CHECK(contains(ending.text, "call matrix_changed() on all ranks"));
        }
        memory.fill(second);
        matrix_changed(*op);
        for (const Ending& ending : endings()) CHECK(ending.text.empty());
        op->apply(1, X, 0, AX);
        CHECK(mismatches(AX, multiplied(Op::none, second, integers<double>(3, 10, 2))) == 0);
        // Before the first product, too.
        const OperatorPtr<double> fresh =
            matrix_mult(algorithm, DistMatrix<double>(grid, layout, memory.local()), {.storage = storage});
        change(1);
        const Ending ending = ending_of([&] { fresh->apply(1, X, 0, AX); });
        CHECK(all_ended_alike(*grid, ending));
        CHECK(contains(ending.text, "have changed since its operator was made"));
      }
    }
  }
}
