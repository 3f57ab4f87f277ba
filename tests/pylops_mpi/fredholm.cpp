// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_fredholm.py, also of ranks with one slice and with none, on which PyLops-MPI hangs.
#include "gridlops/ops/fredholm.hpp"

#include "gridlops/ops/dot_test.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Slice f is nx × ny; models have ny rows and data nx rows for each slice, and nz columns.
template <Scalar T>
void check_slices(Index slices, Index nx, Index ny, Index nz) {
  const GridPtr grid = line_of_ranks();
  CAPTURE(slices, nx, ny, nz);
  const auto kernel = [](Index f, Index x, Index y) { return small_integer<T>(1, 100 * f + x, y); };
  const auto model = [](Index f, Index y, Index z) { return small_integer<T>(2, 100 * f + y, z); };
  const auto data = [](Index f, Index x, Index z) { return small_integer<T>(3, 100 * f + x, z); };
  DistMatrix<T> G(grid, array_space(grid, {slices, ny, nx}, 0).layout(1));
  G.fill([&](Index row, Index) { return kernel(row / (nx * ny), row % nx, row / nx % ny); });
  const OperatorPtr<T> op = fredholm<T>(array_space(grid, {slices, ny, nx}, 0), std::move(G));
  DistMatrix<T> M =
      filled(grid, op->domain().layout(nz), [&](Index row, Index z) { return model(row / ny, row % ny, z); });
  DistMatrix<T> D(grid, op->range().layout(nz));
  op->apply(T(1), M, T(0), D);
  CHECK(mismatches(D, [&](Index row, Index z) {
          T sum = 0;
          for (Index y = 0; y < ny; ++y) sum += kernel(row / nx, row % nx, y) * model(row / nx, y, z);
          return sum;
        }) == 0);
  D.fill([&](Index row, Index z) { return data(row / nx, row % nx, z); });
  op->apply_adjoint(T(1), D, T(0), M);
  CHECK(mismatches(M, [&](Index row, Index z) {
          T sum = 0;
          for (Index x = 0; x < nx; ++x)
            sum += conjugate(kernel(row / ny, x, row % ny)) * data(row / ny, x, z);
          return sum;
        }) == 0);
  CHECK(dot_test(*op).passed);
}

}  // namespace

TEMPLATE_TEST_CASE("Fredholm integrals multiply every slice, with one and several columns", "[pylops_mpi]",
                   float, std::complex<float>) {
  using T = TestType;
  const Index ranks = world().size();
  for (const Index slices : {21 * ranks, Index{21}}) {
    for (const Index nz : {5, 1}) {
      check_slices<T>(slices, 6, 4, nz);
      check_slices<T>(slices, 4, 6, nz);
    }
  }
  // One slice on each rank, on one rank only, and fewer slices than ranks.
  for (const Index slices : {ranks, Index{1}, ranks - 1, 2 * ranks - 1}) check_slices<T>(slices, 6, 4, 5);
}
