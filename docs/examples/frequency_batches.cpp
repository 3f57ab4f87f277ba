// SPDX-License-Identifier: BSD-3-Clause
// One matrix for each frequency, and more of them than memory holds at once: D_f = G_f M_f is solved for
// some frequencies at a time. Each rank has whole matrices of some frequencies of a batch, so that no product
// sends anything.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;
using T = std::complex<double>;

constexpr gl::Index frequencies = 11, batch = 4;
constexpr gl::Index nx = 40, ny = 15, nrhs = 3;  // G_f is nx × ny

/// The problem: what would be read from files, and the solution, which is known here.
T element_of_G(gl::Index f, gl::Index x, gl::Index y) { return gl::counter_random<T>(1, f * nx + x, y); }
T element_of_M(gl::Index f, gl::Index y, gl::Index k) { return gl::counter_random<T>(2, f * ny + y, k); }
T element_of_D(gl::Index f, gl::Index x, gl::Index k) {
  T sum = 0;
  for (gl::Index y = 0; y < ny; ++y) sum += element_of_G(f, x, y) * element_of_M(f, y, k);
  return sum;
}

/// Solves for the frequencies [first, first + count), and returns the largest error on this rank.
double solve(const std::shared_ptr<const gl::ProcessGrid>& grid, gl::Index first, gl::Index count) {
  // Arrays of the batch, cut along the frequencies. Rows of a matrix are numbered in C order: y runs before
  // f.
  const gl::Space kernel = gl::array_space(grid, {count, ny, nx}, 0);
  gl::DistMatrix<T> G = gl::allocate_matrix<T>(grid, kernel.layout(1));
  G.fill([&](gl::Index i, gl::Index) { return element_of_G(first + i / (ny * nx), i % nx, i / nx % ny); });
  const auto A = gl::fredholm<T>(kernel, std::move(G));
  gl::DistMatrix<T> D = gl::allocate_matrix<T>(grid, A->range().layout(nrhs)),
                    M = gl::allocate_matrix<T>(grid, A->domain().layout(nrhs));
  D.fill([&](gl::Index i, gl::Index k) { return element_of_D(first + i / nx, i % nx, k); });

  gl::cgls(*A, D, M, {.tolerance = 1e-12});

  double error = 0;
  const gl::Index begin = M.local_row_range().begin;
  for (gl::Index k = 0; k < nrhs; ++k)
    for (gl::Index i = 0; i < M.local().rows; ++i) {
      const gl::Index f = first + (begin + i) / ny, y = (begin + i) % ny;
      error = std::max(error, std::abs(M.local()(i, k) - element_of_M(f, y, k)));
    }
  return error;
}

int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  gl::Communicator& world = session.world();
  const auto grid =
      std::make_shared<gl::ProcessGrid>(world, gl::GridShape{1, world.size()}, gl::make_host_backend());
  double error = 0;
  for (gl::Index first = 0; first < frequencies; first += batch)
    error = std::max(error, solve(grid, first, std::min(batch, frequencies - first)));
  world.all_reduce(std::span(&error, 1), gl::ReduceOp::max);
  if (world.rank() == 0) std::printf("error %.1e\n", error);
  return error <= 1e-10 ? 0 : 1;
}
