// SPDX-License-Identifier: BSD-3-Clause
// Many GPUs: each rank takes one of its machine, and matrices, products and solver stay in their memory. The
// same program runs on the host where there are none. Link it to gridlops_gpu.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;

/// The process grid, and the communicator that it is made of.
struct Ranks {
  std::unique_ptr<gl::Communicator> comm;
  std::shared_ptr<gl::ProcessGrid> grid;
};

/// GPUs if every rank finds one, otherwise the host (collective).
Ranks choose_device(gl::Communicator& world) {
  const gl::GpuInfo info = gl::gpu_info();
  const int place = rank_on_host(world);
  // The fewest devices of any machine, and how many ranks share a machine: all ranks must decide alike.
  std::int64_t devices = info.devices, ranks = place + 1;
  world.all_reduce(std::span(&devices, 1), gl::ReduceOp::min);
  world.all_reduce(std::span(&ranks, 1), gl::ReduceOp::max);
  Ranks result;
  std::shared_ptr<gl::Backend> backend = gl::make_host_backend();
  if (devices > 0) {
    gl::attempt(world, [&] { backend = gl::make_gpu_backend(place % info.devices); });
    // NCCL wants a GPU for each rank. Ranks that share GPUs exchange by MPI.
    result.comm = gl::make_gpu_communicator(world, backend, ranks <= devices ? "nccl" : "mpi");
  } else {
    if (world.rank() == 0) std::printf("no GPU: %s\n", info.problem.c_str());
    result.comm = gl::make_host_communicator(world, "auto");
  }
  result.grid = std::make_shared<gl::ProcessGrid>(*result.comm, gl::near_square(world.size()), backend);
  return result;
}

int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  return session.run([&] {
    const auto [comm, grid] = choose_device(session.world());
    // From here on nothing says where the memory is. fill() computes on the host and copies.
    auto matrix =
        gl::allocate_matrix<float>(grid, gl::matrix_layout(gl::Algorithm::stationary_a, *grid, 500, 60));
    matrix.fill([](gl::Index i, gl::Index j) { return gl::counter_random<float>(1, i, j); });
    const auto A = gl::matrix_mult(gl::Algorithm::stationary_a, std::move(matrix));
    auto B = gl::allocate_matrix<float>(grid, A->range().layout(16));
    auto X = gl::allocate_matrix<float>(grid, A->domain().layout(16)),
         error = gl::allocate_matrix<float>(grid, X.layout());
    error.fill([](gl::Index i, gl::Index j) { return gl::counter_random<float>(2, i, j); });  // the true X
    A->apply(1, error, 0, B);
    gl::cgls(*A, B, X, {.tolerance = 1e-6});
    error -= X;
    double largest = 0;
    for (const double norm : gl::column_norms(error)) largest = std::max(largest, norm);
    if (comm->rank() == 0) std::printf("by %s: error %.1e\n", comm->transport().c_str(), largest);
    return largest <= 1e-3 ? 0 : 1;
  });
}
