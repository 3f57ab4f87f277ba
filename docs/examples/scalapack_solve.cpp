// SPDX-License-Identifier: BSD-3-Clause
// A code that has its matrices for ScaLAPACK solves least squares for many right-hand sides by CGLS: three
// exchanges between its block-cyclic layouts and those of the library, and nothing else changes.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/dist/block_cyclic.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;

/// A matrix as ScaLAPACK has it. NUMROC and DESCINIT would give the same numbers; the context of the BLACS is
/// not read.
struct CyclicMatrix {
  int desc[9];
  std::vector<double> local;
};

/// A block-cyclic matrix of value(i, j), in blocks of 32 x 8 from the first process.
template <class Function>
CyclicMatrix make_cyclic(gl::GridShape shape, int rank, int rows, int cols, Function&& value) {
  const int P = shape.rows, Q = shape.cols, row = rank / Q, col = rank % Q, mb = 32, nb = 8;
  std::vector<double> local;
  int local_rows = 0;
  for (int i = 0; i < rows; ++i) local_rows += i / mb % P == row;
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i)
      if (i / mb % P == row && j / nb % Q == col) local.push_back(value(i, j));
  return {{1, 0, rows, cols, mb, nb, 0, 0, std::max(local_rows, 1)}, std::move(local)};
}

int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  gl::Communicator& world = session.world();
  const int rank = world.rank(), rows = 600, cols = 40, columns_of_B = 4;

  // The code has A and B = A X for a known X, dealt out to a grid of all ranks in row-major order.
  const gl::GridShape shape = gl::near_square(world.size());
  const auto a = [](int i, int k) { return gl::counter_uniform(1, i, k); };
  const auto x = [](int k, int j) { return gl::counter_uniform(2, k, j); };
  const auto b = [&](int i, int j) {
    double sum = 0;
    for (int k = 0; k < cols; ++k) sum += a(i, k) * x(k, j);
    return sum;
  };
  const CyclicMatrix given_A = make_cyclic(shape, rank, rows, cols, a);
  const CyclicMatrix given_B = make_cyclic(shape, rank, rows, columns_of_B, b);
  CyclicMatrix wanted_X = make_cyclic(shape, rank, cols, columns_of_B, [](int, int) { return 0; });

  // In: the library has a grid and layouts of its own.
  const auto grid =
      std::make_shared<gl::ProcessGrid>(world, gl::GridShape{1, world.size()}, gl::make_host_backend());
  auto matrix =
      gl::allocate_matrix<double>(grid, gl::matrix_layout(gl::Algorithm::stationary_a, *grid, rows, cols));
  gl::from_block_cyclic(world, gl::BlockCyclic::of_descriptor(given_A.desc, shape), given_A.local.data(),
                        matrix);
  const auto A = gl::matrix_mult(gl::Algorithm::stationary_a, std::move(matrix));
  auto B = gl::allocate_matrix<double>(grid, A->range().layout(columns_of_B));
  auto X = gl::allocate_matrix<double>(grid, A->domain().layout(columns_of_B));
  gl::from_block_cyclic(world, gl::BlockCyclic::of_descriptor(given_B.desc, shape), given_B.local.data(), B);

  X.set_zero();
  gl::SolveOptions options;
  options.tolerance = 1e-10;
  const gl::SolveReport report = gl::cgls(*A, B, X, options);

  // Out: X lies as the code's other matrices do.
  gl::to_block_cyclic(world, X, gl::BlockCyclic::of_descriptor(wanted_X.desc, shape), wanted_X.local.data());
  const CyclicMatrix truth = make_cyclic(shape, rank, cols, columns_of_B, x);
  double error = 0;
  for (std::size_t k = 0; k < truth.local.size(); ++k)
    error = std::max(error, std::abs(wanted_X.local[k] - truth.local[k]));
  world.all_reduce(std::span(&error, 1), gl::ReduceOp::max);
  if (rank == 0)
    std::printf("%lld iterations, error %.1e\n", static_cast<long long>(report.iterations), error);
  return error <= 1e-8 ? 0 : 1;
}
