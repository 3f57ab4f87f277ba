// SPDX-License-Identifier: BSD-3-Clause
// MPI of your own: the program starts and ends it, and gives the library some of its ranks. The last rank
// does something else meanwhile.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;

/// The largest error of argmin ‖AX − AX*‖ for random A and X*, computed by the ranks of a communicator.
double solve(MPI_Comm ranks) {
  // The library duplicates the communicator, so its messages never meet those of the program. All that is
  // made of it must be gone before MPI_Finalize.
  const auto comm = gl::make_mpi_communicator(ranks);
  const auto grid =
      std::make_shared<gl::ProcessGrid>(*comm, gl::near_square(comm->size()), gl::make_host_backend());
  auto matrix = gl::allocate_matrix<float>(grid, gl::matrix_layout(gl::Algorithm::summa, *grid, 300, 50));
  matrix.fill([](gl::Index i, gl::Index j) { return gl::counter_random<float>(1, i, j); });
  const auto A = gl::matrix_mult(gl::Algorithm::summa, std::move(matrix));
  auto truth = gl::allocate_matrix<float>(grid, A->domain().layout(10)),
       X = gl::allocate_matrix<float>(grid, truth.layout());
  auto B = gl::allocate_matrix<float>(grid, A->range().layout(10));
  truth.fill([](gl::Index i, gl::Index j) { return gl::counter_random<float>(2, i, j); });
  A->apply(1, truth, 0, B);
  gl::cgls(*A, B, X, {.tolerance = 1e-6});
  double error = 0;
  for (gl::Index j = 0; j < X.local().cols; ++j)
    for (gl::Index i = 0; i < X.local().rows; ++i)
      error = std::max<double>(error, std::abs(X.local()(i, j) - truth.local()(i, j)));
  comm->all_reduce(std::span(&error, 1), gl::ReduceOp::max);
  return error;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const bool solves = rank < size - 1 || size == 1;
  MPI_Comm ranks;
  MPI_Comm_split(MPI_COMM_WORLD, solves ? 0 : 1, rank, &ranks);
  double error = 0;
  try {
    if (solves) error = solve(ranks);
  } catch (const gl::Error& failure) {
    // An error that one rank knows alone would leave the others waiting. So the job ends, with the error's
    // status.
    std::fprintf(stderr, "rank %d: %s\n", rank, failure.what());
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(failure.status()));
  }
  MPI_Bcast(&error, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank == size - 1) std::printf("the others found X with error %.1e\n", error);
  MPI_Comm_free(&ranks);
  MPI_Finalize();
  return error <= 1e-4 ? 0 : 1;
}
