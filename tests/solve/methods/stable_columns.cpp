// SPDX-License-Identifier: BSD-3-Clause
// With `column_stable` a column's bits depend on nothing but that column, however many there are. Sums
// over more columns than fit into one message of MPI take the ranks in one order, too.
#include <cstring>

#include "support/grids.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <Scalar T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

}  // namespace

TEMPLATE_TEST_CASE("Of 1500 equal columns all have the same bits, which are those of the column alone", "",
                   double, std::complex<float>) {
  using T = TestType;
  constexpr Index many = 1500;
  const KnownSpectrum<T> matrix(37, 11, geometric(11, 30));
  const Element<T> b = [](Index i, Index) { return counter_random<T>(4, i, 0); };
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<T> A =
        dense_operator<T>(grid, Algorithm::stationary_a, matrix, {.column_stable = true});
    for (const SolverFunction<T>& solver : {SolverFunction<T>(cgls<T>), SolverFunction<T>(lsqr<T>)}) {
      SolveOptions options;
      options.column_stable = true;
      options.max_iterations = 8;
      options.tolerance = 0;
      const Solution<T> alone = solve_alone<T>(solver, *A, 0, b, options);
      const Solution<T> all = solve<T>(solver, *A, many, b, options);
      if (!grid->is_member()) continue;
      Index different = 0;
      for (Index j = 0; j < many; ++j) different += same_bits(all.column(j), alone.X) ? 0 : 1;
      CAPTURE(describe(*grid));
      CHECK(different == 0);
    }
  }
}
