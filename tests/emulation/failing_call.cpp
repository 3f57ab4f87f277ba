// SPDX-License-Identifier: BSD-3-Clause
// Computes products on a grid where one rank fails: a call of NCCL fails there (GRIDLOPS_FAULT), or,
// with an argument, the rank of that number takes no part. Every other rank must get an error and print it,
// or find out that it waits in vain. None may wait for ever.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "gridlops/gpu.hpp"
#include "gridlops/matrix_mult.hpp"
#include "gridlops/mpi.hpp"
#include "gridlops/random.hpp"

using namespace gridlops;

namespace {

void multiply_often(Communicator& world, int absent) {
  const auto backend = make_gpu_backend(0);
  const auto gpus = make_gpu_communicator(world, backend, "nccl");
  const auto grid = std::make_shared<const ProcessGrid>(*gpus, near_square(world.size()), backend);
  const auto random = [](Index i, Index j) { return counter_random<double>(1, i, j); };
  DistMatrix<double> A(grid, matrix_layout(Algorithm::summa, *grid, 12, 9));
  A.fill(random);
  const auto op = matrix_mult(Algorithm::summa, std::move(A), {.panel = 2});
  DistMatrix<double> X(grid, op->domain().layout(3)), Y(grid, op->range().layout(3));
  X.fill(random);
  // In the first round ranks agree on memory, on their hosts.
  for (int round = 0; round < 5; ++round) {
    if (round == 1 && world.rank() == absent) {
      sleep(20);
      _exit(0);
    }
    op->apply(1, X, 0, Y);
    op->apply_adjoint(1, Y, 0, X);
    backend->synchronize();
  }
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(&argc, &argv);
  try {
    multiply_often(session.world(), argc > 1 ? std::atoi(argv[1]) : -1);
  } catch (const CommunicationError& error) {
    std::fprintf(stderr, "rank %d got: %s\n", session.world().rank(), error.what());
    // The session would end the job at once; here every rank prints its own error.
    sleep(3);
    _exit(static_cast<int>(error.status()));
  }
  return 0;
}
