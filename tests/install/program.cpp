// SPDX-License-Identifier: BSD-3-Clause
// A first program of a user of the installed library: a product on a 2-D grid, and the test of its adjoint.
#include <gridlops/base/random.hpp>
#include <gridlops/base/version.hpp>
#include <gridlops/comm/mpi.hpp>
#include <gridlops/ops/dot_test.hpp>
#include <gridlops/ops/matrix_mult.hpp>

#include <complex>
#include <iostream>

int main(int argc, char** argv) {
  using namespace gridlops;
  using T = std::complex<double>;
  MpiSession session(&argc, &argv);
  return session.run([&] {
    Communicator& world = session.world();
    const auto grid =
        std::make_shared<const ProcessGrid>(world, near_square(world.size()), make_host_backend());
    DistMatrix<T> A(grid, matrix_layout(Algorithm::summa, *grid, 13, 7));
    A.fill([](Index i, Index j) { return counter_random<T>(1, i, j); });
    const DotTestResult result = dot_test(*matrix_mult(Algorithm::summa, std::move(A)));
    if (world.rank() == 0) {
      std::cout << "gridlops " << version << " on " << world.size() << " ranks: mismatch " << result.mismatch
                << '\n';
    }
    return result.passed ? 0 : 1;
  });
}
