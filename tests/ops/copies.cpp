// SPDX-License-Identifier: BSD-3-Clause
// With GRIDLOPS_CHECK=all, which these tests run with, copies that differ are found before a product.
#include "gridlops/error.hpp"
#include "gridlops/operator_algebra.hpp"
#include "gridlops/solver.hpp"
#include "support/agreed_failures.hpp"
#include "support/problems.hpp"

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
