// SPDX-License-Identifier: BSD-3-Clause
// Computes products on a grid where one rank fails: a call of NCCL fails there (GRIDLOPS_FAULT), or the rank
// of an argument takes no part ("absent 2"), or works for 6 s before the first operation ("late 2"), or its
// operator throws before a broadcast of its own ("throws 2"), or it leaves out a broadcast before all throw
// ("unwinds 2"). But for a late rank, every other rank must get
// an error and print it, or find out that it waits in vain. None may wait for ever.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/ops/matrix_mult.hpp"

using namespace gridlops;

namespace {

void work_for_6_s() {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(6); Clock::now() < end; keep_alive())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void multiply_often(Communicator& world, int absent, int late) {
  const auto backend = make_gpu_backend(0);
  const auto gpus = make_gpu_communicator(world, backend, "nccl");
  const auto grid = std::make_shared<const ProcessGrid>(*gpus, near_square(world.size()), backend);
  const auto random = [](Index i, Index j) { return counter_random<double>(1, i, j); };
  DistMatrix<double> A(grid, matrix_layout(Algorithm::summa, *grid, 12, 9));
  A.fill(random);
  const auto op = matrix_mult(Algorithm::summa, std::move(A), {.panel = 2});
  DistMatrix<double> X(grid, op->domain().layout(3)), Y(grid, op->range().layout(3));
  X.fill(random);
  if (world.rank() == late) work_for_6_s();
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

/// X on all ranks becomes that of the first, by a broadcast of this program's own.
class OwnBroadcast final : public LinearOperator<double> {
 public:
  OwnBroadcast(const Space& space, int throws) : LinearOperator<double>(space, space), throws_(throws) {}

 private:
  void do_apply(double, const ConstDistMatrix<double>& X, double, DistMatrix<double>& Y) const override {
    const ProcessGrid& grid = *X.grid();
    if (grid.comm().rank() == throws_) throw std::runtime_error("the flux is negative");
    copy(X, Y);
    grid.comm().broadcast(Elements(Y.local().data, Y.local().size()), 0);
    grid.backend()->synchronize();
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    do_apply(alpha, Y, beta, X);
  }

  int throws_;
};

/// Ends all that was begun on the GPU, as a program that has caught the error, and says when it is done.
int broadcast_own(Communicator& world, int throws) {
  int status = 0;
  {
    const auto backend = make_gpu_backend(0);
    const auto gpus = make_gpu_communicator(world, backend, "nccl");
    const auto grid = std::make_shared<const ProcessGrid>(*gpus, near_square(world.size()), backend);
    const Space space{grid, Cut::balanced(Axis::uncut, 100, *grid), Axis::uncut};
    DistMatrix<double> X(grid, space.layout(1)), Y(grid, space.layout(1));
    X.set_zero();
    OwnBroadcast(space, -1).apply(1, X, 0, Y);
    try {
      OwnBroadcast(space, throws).apply(1, X, 0, Y);
    } catch (const Error& error) {
      std::fprintf(stderr, "rank %d got: %s\n", world.rank(), error.what());
      status = static_cast<int>(error.status());
    }
    // Meanwhile the others must be done with their GPUs, though this one has not given up its communicators.
    if (world.rank() == throws) sleep(4);
    std::fprintf(stderr, "rank %d ends\n", world.rank());
  }
  std::fprintf(stderr, "rank %d has ended\n", world.rank());
  return status;
}

/// All ranks but `absent` begin a broadcast, which never ends, and all throw. Unwinding ends a communicator.
int unwind(Communicator& world, int absent) {
  {
    const auto backend = make_gpu_backend(0);
    const auto gpus = make_gpu_communicator(world, backend, "nccl");
    const auto grid = std::make_shared<const ProcessGrid>(*gpus, near_square(world.size()), backend);
    const Space space{grid, Cut::balanced(Axis::uncut, 100, *grid), Axis::uncut};
    DistMatrix<double> X(grid, space.layout(1));
    X.set_zero();
    const Elements elements(X.local().data, X.local().size());
    gpus->broadcast(elements, 0);
    try {
      const auto child = gpus->split(0, 0);
      const Request request = world.rank() == absent ? Request() : gpus->start_broadcast(elements, 0);
      throw std::runtime_error("the flux is negative");
    } catch (const std::runtime_error& error) {
      std::fprintf(stderr, "rank %d got: %s\n", world.rank(), error.what());
    }
    try {
      if (world.rank() != absent) gpus->broadcast(elements, 0);
    } catch (const CommunicationError& error) {
      std::fprintf(stderr, "rank %d then got: %s\n", world.rank(), error.what());
    }
  }
  std::fprintf(stderr, "rank %d has ended\n", world.rank());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string fault = argc > 2 ? argv[1] : "";
  MpiSession session(&argc, &argv);
  if (fault == "throws") return broadcast_own(session.world(), std::atoi(argv[2]));
  if (fault == "unwinds") return unwind(session.world(), std::atoi(argv[2]));
  const int rank = argc > 2 ? std::atoi(argv[2]) : -1;
  try {
    multiply_often(session.world(), fault == "absent" ? rank : -1, fault == "late" ? rank : -1);
  } catch (const CommunicationError& error) {
    std::fprintf(stderr, "rank %d got: %s\n", session.world().rank(), error.what());
    // The session would end the job at once; here every rank prints its own error.
    sleep(3);
    _exit(static_cast<int>(error.status()));
  }
  return 0;
}
